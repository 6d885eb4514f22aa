"""Tensors as a folder of files: `NAME.bin` with the bytes, and `NAME.meta.json` with type and shape."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np

from ..core.data_types import DATA_TYPES, PACKED_TYPES, Array, byte_length, of_tensor_bytes
from .document import FileError, Location, element_count
from .weights import StoredTensor, parsed_object, tensor_shape, tensor_type

DESCRIPTION = ".meta.json"
LONGEST = 200
"""Characters of a file name without its suffix, at most."""


def file_name(key: str) -> str:
    """Return the file name of a key. Characters that names may not have are written as `%` and two digits.

    Example:
        >>> file_name("encoder/w:0"), file_name("..")
        ('encoder%2Fw%3A0', '%2E%2E')
    """
    name = quote(key, safe="")
    name = name.replace(".", "%2E") if not name.strip(".") else name.replace("~", "%7E")
    if len(name) > LONGEST:
        raise FileError(Location(name[:40]), "the key is too long for a file name", got=f"{len(name)} characters")
    return name


def folder_files(tensors: Mapping[str, StoredTensor]) -> dict[str, bytes | Array]:
    """Return the files of tensors by name, with their content."""
    files: dict[str, bytes | Array] = {}
    for key, tensor in sorted(tensors.items()):
        entry = {
            "dataType": tensor.data_type,
            "shape": list(tensor.shape),
            "byteLength": len(tensor.data),
            "layout": "row-major",
        }
        name = file_name(key)
        files[f"{name}.bin"] = tensor.data
        files[f"{name}{DESCRIPTION}"] = (json.dumps(entry, indent=2) + "\n").encode()
    return files


def folder_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Return the tensors of a folder and its subfolders, whose names are parts of keys.

    Raises:
        FileError: a file outside the folder, a description that is wrong, or bytes of another number.
    """
    root = folder.resolve()
    tensors: dict[str, StoredTensor] = {}
    for path in sorted(folder.rglob(f"*{DESCRIPTION}")):
        location = Location(str(path))
        data = path.with_name(f"{path.name.removesuffix(DESCRIPTION)}.bin")
        for file in (path, data):
            if not file.resolve().is_relative_to(root):
                raise FileError(Location(str(file)), "the file is outside the folder", got=str(file.resolve()))
        if not data.is_file():
            raise FileError(location, f"there is no file '{data.name}' with the bytes")
        kind, shape = _described(path, location)
        raw = np.memmap(data, np.uint8, "r") if data.stat().st_size else np.zeros(0, np.uint8)
        expected = byte_length(kind, element_count(shape, location.at("shape")))
        if len(raw) != expected:
            raise FileError(Location(str(data)), "wrong number of bytes", got=f"{len(raw)} bytes", allowed=f"{expected} bytes")
        parts = (*path.relative_to(folder).parts[:-1], path.name.removesuffix(DESCRIPTION))
        tensors["/".join(map(unquote, parts))] = StoredTensor(kind, shape, raw, packed=kind in PACKED_TYPES)
    return tensors


def _described(path: Path, location: Location) -> tuple[str, tuple[int, ...]]:
    members = parsed_object(path.read_bytes(), location)
    return (
        tensor_type(members.get("dataType"), location.at("dataType")),
        tensor_shape(members.get("shape"), location.at("shape")),
    )


def statistics(tensor: StoredTensor) -> tuple[float, float, int]:
    """Return the smallest and the largest element that are numbers, and how many are none."""
    kind = tensor.data_type
    if kind in PACKED_TYPES:
        count = math.prod(tensor.shape)
        array: Array = of_tensor_bytes(np.asarray(tensor.data), kind, count).astype(np.int8)
    elif kind == "bfloat16":
        array = (np.asarray(tensor.data).view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    else:
        array = np.asarray(tensor.data).view(DATA_TYPES[kind].numpy)
    lost = int(np.isnan(array).sum()) if array.dtype.kind == "f" else 0
    if array.size == lost:
        return math.nan, math.nan, lost
    return float(np.nanmin(array)), float(np.nanmax(array)), lost
