"""Reads model.json, and checks every size and path in it against the files before anything is allocated."""

from __future__ import annotations

import json
import math
import os
import re
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np

from webnn_wgpu import NotSupportedError

from ..kinds import MOST_TEXT
from .contents import DTYPES, GRAPH, LAYERS, Quantization, Shard, TfjsFile, WeightRecord, bytes_of, checked, entries

MOST_RANK = 16
"""The maximum number of dimensions of a tensor."""
STORED = {"uint8", "uint16", "float16"}


def read(path: str | os.PathLike[str]) -> TfjsFile:
    """Read a model. The weights are read later, but their places are checked here.

    Raises:
        FileNotFoundError: no such file.
        NotSupportedError: not a TensorFlow.js model, or a broken one. The message has the file and the culprit.
    """
    place = Path(path)
    name = place.name if place.name != "model.json" else f"{place.absolute().parent.name}/{place.name}"
    if place.stat().st_size > MOST_TEXT:
        _fail(name, f"the file has more than {MOST_TEXT} bytes")
    try:
        document: Any = json.loads(place.read_bytes())
    except (ValueError, RecursionError) as error:
        _fail(name, f"no JSON: {type(error).__name__}: {error}")
    return _read_document(name, document, (place.absolute().parent, place.resolve().parent))


def _read_document(name: str, document: Any, folders: Sequence[Path]) -> TfjsFile:
    """Read a parsed model.json.

    Args:
        name: the name of the model in messages.
        document: its content.
        folders: the folder of the files of weights, and the folder that the file links to: download caches store files under
            other names and link to them.
    """
    if not isinstance(document, dict) or not isinstance(document.get("modelTopology"), dict):  # pyright: ignore[reportUnknownMemberType]
        _fail(name, "no model of TensorFlow.js: it has no modelTopology")
    model = cast("dict[str, Any]", document)
    topology: Mapping[str, Any] = model["modelTopology"]
    found = model.get("format") or (GRAPH if "node" in topology else LAYERS)
    if found not in (LAYERS, GRAPH):
        _fail(name, f"format {found!r}; allowed: {LAYERS}, {GRAPH}")
    weights: dict[str, WeightRecord] = {}
    with checked(name, "weightsManifest"):
        for number, group in enumerate(_list(name, model.get("weightsManifest"), "weightsManifest")):
            _read_group(name, f"weightsManifest[{number}]", group, folders, weights)
    return TfjsFile(name=name, kind=found, topology=topology, document=model, weights=weights)


def _read_group(model: str, where: str, group: Any, folders: Sequence[Path], weights: dict[str, WeightRecord]) -> None:
    if not isinstance(group, dict):
        _fail(model, f"{where} is not an object")
    content = cast("dict[str, Any]", group)
    shards: list[Shard] = []
    total = 0
    for path in _list(model, content.get("paths"), f"{where}.paths"):
        shard = _inside(model, f"{where}.paths", path, folders)
        size = shard.stat().st_size
        shards.append(Shard(path=shard, start=total, size=size))
        total += size
    start = 0
    for entry in _list(model, content.get("weights"), f"{where}.weights"):
        record = _read_weight(model, where, entry, shards, start, total)
        if record.name in weights:
            _fail(model, f"{where}: weight '{record.name}' occurs twice")
        weights[record.name] = record
        start += record.size


def _read_weight(model: str, where: str, entry: Any, shards: list[Shard], start: int, total: int) -> WeightRecord:
    if not isinstance(entry, dict) or not isinstance(cast("dict[str, Any]", entry).get("name"), str):
        _fail(model, f"{where}: a weight has no name")
    content = cast("dict[str, Any]", entry)
    name: str = content["name"]
    culprit = f"{where}: weight '{name}'"
    shape = _shape(model, culprit, content.get("shape"))
    elements, type_name = math.prod(shape), content.get("dtype")
    left = total - start
    if type_name == "string":
        size, strings = _strings(model, culprit, shards, start, elements, left)
        return WeightRecord(name=name, shape=shape, dtype=None, shards=shards, start=start, size=size, strings=strings)
    if not isinstance(type_name, str) or type_name not in DTYPES:
        _fail(model, f"{culprit} has the dtype {type_name!r}; allowed: {', '.join(DTYPES)}, string")
    dtype = DTYPES[type_name]
    quantization = _quantization(model, culprit, content.get("quantization"), type_name)
    size = elements * (dtype if quantization is None else quantization.dtype).itemsize
    if size > left:
        files = ", ".join(s.path.name for s in shards) or "no file"
        _fail(model, f"{culprit} of shape {list(shape)} needs {size} bytes, but {files} has {max(left, 0)} left")
    if dtype.name in ("float16", "uint8", "uint16"):
        # TensorFlow.js has no tensors of these types: it makes float32 or int32 of them.
        quantization = quantization or Quantization(dtype=dtype)
        dtype = np.dtype(np.float32) if dtype.kind == "f" else np.dtype(np.int32)
    return WeightRecord(name=name, shape=shape, dtype=dtype, shards=shards, start=start, size=size, quantization=quantization)


def _quantization(model: str, culprit: str, entry: Any, type_name: str) -> Quantization | None:
    if entry is None:
        return None
    content = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    stored = content.get("dtype")
    if stored not in STORED:
        _fail(model, f"{culprit} has the quantization {entry!r}; allowed dtypes: {', '.join(sorted(STORED))}")
    if type_name not in ("float32", "int32") or (type_name == "int32" and stored == "float16"):
        _fail(model, f"{culprit} of {type_name} has a quantization to {stored}; allowed: float32, and int32 to integers")
    numbers = [content.get("scale", 1), content.get("min", 0)]
    if not all(isinstance(n, int | float) and not isinstance(n, bool) and abs(n) < 1e300 for n in numbers):
        _fail(model, f"{culprit} has the scale and minimum {numbers}, which must be finite numbers")
    return Quantization(dtype=DTYPES[stored], scale=float(numbers[0]), low=float(numbers[1]))


def _strings(
    model: str, culprit: str, shards: list[Shard], start: int, elements: int, left: int
) -> tuple[int, tuple[bytes, ...]]:
    """Return the bytes that strings take, and the strings: each has 4 bytes of its length before it."""
    if elements * 4 > left:
        _fail(model, f"{culprit} has {elements} strings, but the files have {max(left, 0)} bytes left")
    data = bytes_of(model, shards, start, left)
    at, found = 0, list[bytes]()
    for _ in range(elements):
        length = struct.unpack_from("<I", data, at)[0] if at + 4 <= left else left
        if at + 4 + length > left:
            _fail(model, f"{culprit} has a string of {length} bytes, which ends behind the files")
        found.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    return at, tuple(found)


def _shape(model: str, culprit: str, shape: Any) -> tuple[int, ...]:
    sizes = entries(shape)
    numbers = all(isinstance(d, int) and not isinstance(d, bool) and d >= 0 for d in sizes)
    if not isinstance(shape, list) or len(sizes) > MOST_RANK or not numbers:
        _fail(model, f"{culprit} has the shape {shape!r}, which must be a list of at most {MOST_RANK} sizes")
    return tuple(sizes)


def _inside(model: str, where: str, path: Any, folders: Sequence[Path]) -> Path:
    """Return the place of a file of weights, which must lie in a folder of the model or below it, also as a link."""
    parts = re.split(r"[/\\]", path) if isinstance(path, str) else [""]
    if not all(parts) or ".." in parts or any(":" in part or "\0" in part for part in parts):
        _fail(model, f"{where} has {path!r}, which must be a path of a file inside the folder")
    place = folders[0].joinpath(*parts)
    if not any(place.resolve().is_relative_to(folder.resolve()) for folder in folders):
        _fail(model, f"{where} has {path!r}, which is a link out of the folder")
    if not place.is_file():
        _fail(model, f"{where}: there is no file {path!r} in {folders[0]}")
    return place


def _list(model: str, value: Any, where: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        _fail(model, f"{where} is not a list")
    return cast("list[Any]", value)


def _fail(model: str, reason: str) -> NoReturn:
    raise NotSupportedError(f"{model}: {reason}")
