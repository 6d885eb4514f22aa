"""Writes layers models as TensorFlow.js reads them."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from webnn_wgpu import MLTypeError

from ..common.held import Array
from .contents import LAYERS, TfjsFile

WEIGHTS = "weights.bin"
"""The name of the file of weights."""


def write_layers_model(folder: str | os.PathLike[str], file: TfjsFile, weights: Mapping[str, Array]) -> list[Path]:
    """Write a layers model: `model.json` and `weights.bin`.

    Args:
        folder: the folder, which is created if it is not there.
        file: the model that was loaded. Its topology is written again.
        weights: the weights by name. Others stay as they are in the file.

    Returns:
        The files.

    Raises:
        MLTypeError: a weight that no file of TensorFlow.js has.
    """
    place = Path(folder)
    arrays = {
        name: weights.get(name, file.array(name) if record.dtype is not None else None) for name, record in file.weights.items()
    }
    entries: list[dict[str, Any]] = []
    parts: list[bytes] = []
    for name, array in arrays.items():
        if array is None or array.dtype.name not in ("float32", "int32", "bool"):
            kind = "string" if array is None else array.dtype.name
            raise MLTypeError("weights must be float32, int32 or bool", operator="save", label=name, got=kind)
        entries.append({"name": name, "shape": list(array.shape), "dtype": array.dtype.name})
        parts.append(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())
    document = {
        "modelTopology": _complete(copy.deepcopy(dict(file.topology)), arrays),
        "format": LAYERS,
        "generatedBy": "webnn_wgpu",
        "convertedBy": None,
        "weightsManifest": [{"paths": [WEIGHTS], "weights": entries}],
    }
    metadata = file.document.get("userDefinedMetadata")
    if metadata is not None:
        document["userDefinedMetadata"] = metadata
    place.mkdir(parents=True, exist_ok=True)
    (place / WEIGHTS).write_bytes(b"".join(parts))
    (place / "model.json").write_text(json.dumps(document), encoding="utf-8")
    return [place / "model.json", place / WEIGHTS]


def _complete(entry: Any, arrays: Mapping[str, Array | None]) -> Any:
    """Return a topology with the multiplier of separable layers, which TensorFlow.js reads but does not write."""
    if isinstance(entry, list):
        return [_complete(item, arrays) for item in entry]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(entry, dict):
        return entry
    found: dict[str, Any] = {key: _complete(value, arrays) for key, value in entry.items()}  # pyright: ignore[reportUnknownVariableType]
    if found.get("class_name") in ("SeparableConv1D", "SeparableConv2D") and isinstance(found.get("config"), dict):
        kernel = arrays.get(f"{found['config'].get('name')}/depthwise_kernel")
        if kernel is not None:
            found["config"].setdefault("depth_multiplier", kernel.shape[-1])
    return found
