"""Files of weights: constants moved out of a graph's file and into it, and tensors written in another form."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import ml_dtypes
import numpy as np

from webnn_wgpu.core.data_types import CONSTANT_TYPES, PACKED_TYPES, of_tensor_bytes
from webnn_wgpu.core.errors import MLTypeError, NotSupportedError
from webnn_wgpu.formats.constants import to_bytes
from webnn_wgpu.formats.document import Document, InlineBytes, ScalarFill, WeightsKey
from webnn_wgpu.formats.folders import folder_files
from webnn_wgpu.formats.reading import ConstantArrays
from webnn_wgpu.formats.weights import StoredTensor
from webnn_wgpu.formats.writing import to_json, to_text

from .files import replace_files
from .references import with_references
from .webnn import Array, blob_of, safetensors_of, weights_files

Place: TypeAlias = Literal["weights", "safetensors", "inline"]


def move_constants(document: Document, arrays: ConstantArrays, target: Path, place: Place, min_bytes: int) -> list[Path]:
    """Write a graph's file again with its constants elsewhere.

    Args:
        document: the graph.
        arrays: the arrays of its constants.
        target: the file, `.webnn` or `.json`.
        place: "weights" and "safetensors" for a file beside it, "inline" for the file itself.
        min_bytes: smaller constants stay in the file.

    Returns:
        The files that were written.
    """
    suffix = target.suffix.lower()
    if suffix not in (".webnn", ".json"):
        raise NotSupportedError("unknown kind of file", operator="weights", got=repr(suffix), allowed=".json, .webnn")
    document = with_references(document)
    moved: dict[str, Array] = {}
    constants = list(document.constants)
    for i, constant in enumerate(constants):
        if isinstance(constant.init, ScalarFill):
            continue
        array = arrays.array(constant)
        data = to_bytes(array)
        if place == "inline" or len(data) < min_bytes:
            constants[i] = replace(constant, init=InlineBytes(data))
        else:
            name = constant.declaration.name
            moved[name] = array
            constants[i] = replace(constant, init=WeightsKey(name))
    written = replace(document, constants=tuple(constants))
    form = to_json if suffix == ".json" else to_text
    return replace_files(
        {target: form(written).encode(), **weights_files(target, moved, "safetensors" if place == "safetensors" else "auto")}
    )


def tensor_array(tensor: StoredTensor) -> Array:
    """Return the array of a stored tensor. bfloat16 is widened to float32."""
    raw, kind = np.asarray(tensor.data), tensor.data_type
    if kind == "bfloat16":
        return cast("Array", raw.view(ml_dtypes.bfloat16).astype(np.float32).reshape(tensor.shape))
    if kind in PACKED_TYPES:
        return of_tensor_bytes(raw, kind, math.prod(tensor.shape)).reshape(tensor.shape)
    # Blobs do not align their tensors.
    return cast("Array", np.require(raw.view(CONSTANT_TYPES[kind].numpy), requirements="A").reshape(tensor.shape))


def write_tensors(tensors: Mapping[str, StoredTensor], target: Path) -> list[Path]:
    """Write tensors as safetensors, or as a blob and its manifest, by the suffix of the file."""
    suffix = target.suffix.lower()
    if suffix not in (".weights", ".safetensors"):
        raise NotSupportedError("unknown kind of file", operator="weights", got=repr(suffix), allowed=".safetensors, .weights")
    if any(t.packed and t.data_type not in PACKED_TYPES for t in tensors.values()):
        raise MLTypeError(
            "the shapes of packed tensors of 4 bits are in the graph's file, not in safetensors",
            operator="weights",
            hint="`weights extract` and `weights inline` convert them with the graph.",
        )
    arrays: dict[str, Any] = {key: tensor_array(tensor) for key, tensor in tensors.items()}
    if suffix == ".safetensors":
        return replace_files({target: safetensors_of(arrays)})
    blob, manifest = blob_of(arrays)
    return replace_files({target: blob, target.with_name(f"{target.stem}.manifest.json"): manifest})


def unpack_tensors(tensors: Mapping[str, StoredTensor], folder: Path) -> list[Path]:
    """Write each tensor as `NAME.bin` and `NAME.meta.json` into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    files = folder_files(tensors)
    return replace_files(
        {folder / name: content if isinstance(content, bytes) else content.tobytes() for name, content in files.items()}
    )
