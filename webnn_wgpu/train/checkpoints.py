"""Checkpoints of training: safetensors files with parameters, states of the optimizer and the number of steps."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from numpy.typing import NDArray

from webnn_wgpu import MLTypeError
from webnn_wgpu.api.optional import needed_by

_OPTIMIZER, _STEPS, _SCALE = "webnn_wgpu.optimizer", "webnn_wgpu.steps", "webnn_wgpu.loss_scale"
"""Keys of the metadata."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The content of a checkpoint.

    Attributes:
        tensors: parameters and states by name.
        steps: the number of steps that have run.
        optimizer: the name of the optimizer's class.
        loss_scale: the factor of the loss.
        finite_steps: the number of steps since a gradient was not finite, for the factor of the loss.
    """

    tensors: Mapping[str, NDArray[Any]]
    steps: int
    optimizer: str
    loss_scale: float = 1.0
    finite_steps: int = 0


def write_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint. A present file is replaced only once the new one is complete."""
    with needed_by("save", "safetensors"):
        from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]: its PathLike has no parameter

    target = Path(path)
    partial = target.with_name(f"{target.name}.partial")
    save_file(
        dict(checkpoint.tensors),
        partial,
        metadata={
            _OPTIMIZER: checkpoint.optimizer,
            _STEPS: str(checkpoint.steps),
            _SCALE: f"{checkpoint.loss_scale} {checkpoint.finite_steps}",
        },
    )
    partial.replace(target)


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        FileNotFoundError: no such file.
        MLTypeError: the file is no checkpoint.
    """
    with needed_by("load", "safetensors"):
        from safetensors import SafetensorError, safe_open

    name = os.fspath(path)
    try:
        with cast("Any", safe_open)(name, framework="numpy") as file:
            metadata: dict[str, str] = file.metadata() or {}
            tensors: dict[str, NDArray[Any]] = {key: file.get_tensor(key) for key in file.keys()}
    except SafetensorError as error:
        raise _no_checkpoint(name, str(error)) from error
    if not metadata.get(_STEPS, "").isdecimal() or _OPTIMIZER not in metadata:
        raise _no_checkpoint(name, "a file without the number of steps")
    try:
        scale, finite_steps = metadata.get(_SCALE, "1.0 0").split()
        return Checkpoint(
            tensors=tensors,
            steps=int(metadata[_STEPS]),
            optimizer=metadata[_OPTIMIZER],
            loss_scale=float(scale),
            finite_steps=int(finite_steps),
        )
    except ValueError as error:
        raise _no_checkpoint(name, f"a factor of the loss of {metadata[_SCALE]!r}") from error


def _no_checkpoint(name: str, got: str) -> MLTypeError:
    return MLTypeError("the file must be a checkpoint", operator="load", label=name, got=got, allowed="a file of Step.save")
