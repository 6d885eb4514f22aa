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

_OPTIMIZER, _STEPS = "webnn_wgpu.optimizer", "webnn_wgpu.steps"
"""Keys of the metadata."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The content of a checkpoint.

    Attributes:
        tensors: parameters and states by name.
        steps: the number of steps that have run.
        optimizer: the name of the optimizer's class.
    """

    tensors: Mapping[str, NDArray[Any]]
    steps: int
    optimizer: str


def write_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint. A present file is replaced only once the new one is complete."""
    with needed_by("save", "safetensors"):
        from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]: its PathLike has no parameter

    target = Path(path)
    partial = target.with_name(f"{target.name}.partial")
    save_file(
        dict(checkpoint.tensors),
        partial,
        metadata={_OPTIMIZER: checkpoint.optimizer, _STEPS: str(checkpoint.steps)},
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
    return Checkpoint(tensors=tensors, steps=int(metadata[_STEPS]), optimizer=metadata[_OPTIMIZER])


def _no_checkpoint(name: str, got: str) -> MLTypeError:
    return MLTypeError("the file must be a checkpoint", operator="load", label=name, got=got, allowed="a file of Step.save")
