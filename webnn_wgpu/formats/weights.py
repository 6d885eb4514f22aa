"""Files of weights beside graph files: blobs with a manifest, and safetensors.

Tensors are read from memory maps, so that only the tensors that a graph uses are copied.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from ..core.data_types import CONSTANT_TYPES, PACKED_TYPES, Array, byte_length
from ..core.errors import quoted
from .document import FileError, Location, checked_object, element_count

MAGIC = b"WGWT"
MANIFEST_FORMATS = ("wg-weights-manifest", "webnn-weights-manifest")
PACKED_MARK = "rustnn.webnn.packed4"
"""Key of the metadata of safetensors that hold 4-bit types, two elements in a byte of type U8."""

MAX_HEADER = 100_000_000
"""Bytes of a safetensors header, at most."""

SAFETENSORS_TYPES = {
    "F32": "float32",
    "F16": "float16",
    "I32": "int32",
    "U32": "uint32",
    "I64": "int64",
    "U64": "uint64",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "uint8",
    "BF16": "bfloat16",
}


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file of weights.

    Attributes:
        data_type: WebNN's name of its type, or "bfloat16".
        shape: its shape, or the number of bytes of packed elements of 4 bits.
        data: its bytes, in the memory map.
        packed: whether the file says that bytes hold two elements of 4 bits.
        offset: where the bytes begin in the file.
    """

    data_type: str
    shape: tuple[int, ...]
    data: Array
    packed: bool = False
    offset: int = 0


@dataclass(frozen=True)
class WeightsFile:
    """The tensors of a file of weights, by key.

    Attributes:
        location: the file.
        tensors: the tensors.
    """

    location: Location
    tensors: Mapping[str, StoredTensor]

    def find(self, key: str) -> StoredTensor | None:
        """Return the tensor of a key, compared loosely where no key is equal: `::` as `__`, and `.` as `_`."""
        if key in self.tensors:
            return self.tensors[key]
        similar = self._loose_keys.get(_loose(key), [])
        if len(similar) > 1:
            raise FileError(self.location, f"several tensors match the key {quoted(key)}", got=", ".join(map(quoted, similar)))
        return self.tensors[similar[0]] if similar else None

    @cached_property
    def _loose_keys(self) -> dict[str, list[str]]:
        """The keys of each loose form."""
        found: dict[str, list[str]] = {}
        for key in self.tensors:
            found.setdefault(_loose(key), []).append(key)
        return found


def _loose(key: str) -> str:
    return key.replace("::", "__").replace(".", "_")


def candidates(graph: Path) -> list[Path]:
    """Return the files beside a graph file that may hold its weights, in the order of the search."""
    folder, name = graph.parent, graph.stem
    return [
        folder / f"{name}.safetensors",
        folder / f"{name}.weights",
        folder / "model.safetensors",
        folder / "model.weights",
    ]


def open_weights(path: Path, graph: Path, manifest: Path | None = None) -> WeightsFile:
    """Open a file of weights.

    Args:
        path: the file: `.safetensors`, or a blob with a manifest.
        graph: the graph file, beside which a manifest is looked for.
        manifest: the blob's manifest. By default it is searched beside both files.

    Returns:
        The tensors by key.

    Raises:
        FileError: a broken file, ranges outside it, or no manifest.
        FileNotFoundError: no such file.
    """
    if path.suffix == ".safetensors":
        return _safetensors(path)
    if manifest is None:
        folder = graph.parent
        places = [path.with_suffix(".manifest.json"), folder / f"{graph.stem}.manifest.json", path.parent / "manifest.json"]
        manifest = next((p for p in places if p.exists()), None)
        if manifest is None:
            names = ", ".join(dict.fromkeys(p.name for p in places))
            raise FileError(Location(str(path)), "the weights have no manifest", hint=f"Looked for {names}.")
    return _blob(path, manifest)


def opened(file: Path, manifest: Path | None = None) -> WeightsFile:
    """Open a file of weights by itself: safetensors, a blob, or the manifest of a blob beside it.

    Raises:
        FileError: a broken file, or no manifest.
        FileNotFoundError: no such file, or no blob beside a manifest.
    """
    if file.suffix.lower() != ".json":
        return open_weights(file, file, manifest)
    places = [
        file.with_name(f"{file.name.removesuffix('.json').removesuffix('.manifest')}.weights"),
        file.with_name("model.weights"),
    ]
    blob = next((p for p in places if p.exists()), None)
    if blob is None:
        names = ", ".join(dict.fromkeys(p.name for p in places))
        raise FileError(Location(str(file)), "the manifest has no file of weights beside it", hint=f"Looked for {names}.")
    return _blob(blob, file)


def _mapped(path: Path) -> Array:
    if path.stat().st_size == 0:
        return np.zeros(0, np.uint8)
    return np.memmap(path, np.uint8, "r")


def parsed_object(text: bytes, location: Location) -> dict[str, Any]:
    """Return the members of a JSON file, or of a header."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(location, f"no JSON: {error}") from None
    return checked_object(content, location)


def _blob(path: Path, manifest: Path) -> WeightsFile:
    location, described = Location(str(path)), Location(str(manifest))
    content = parsed_object(manifest.read_bytes(), described)
    if content.get("format") not in MANIFEST_FORMATS:
        raise FileError(
            described.at("format"), "no manifest", got=quoted(content.get("format")), allowed=", ".join(MANIFEST_FORMATS)
        )
    for member, allowed in (("version", 1), ("endianness", "little")):
        if content.get(member, allowed) != allowed:
            raise FileError(described.at(member), f"unknown {member}", got=quoted(content[member]), allowed=repr(allowed))
    data = _mapped(path)
    headed = bytes(data[:4]) == MAGIC
    if headed and int.from_bytes(bytes(data[4:8]), "little") != 1:
        raise FileError(location, "unknown version", got=str(int.from_bytes(bytes(data[4:8]), "little")), allowed="1")
    tensors: dict[str, StoredTensor] = {}
    entries = content.get("tensors")
    for key, entry in checked_object(entries, described.at("tensors")).items():
        where = described.at("tensors").at(key)
        members = checked_object(entry, where)
        if members.get("layout") not in (None, "row-major"):
            raise FileError(where.at("layout"), "unknown layout", got=quoted(members["layout"]), allowed="row-major")
        data_type = tensor_type(members.get("dataType"), where.at("dataType"))
        shape = tensor_shape(members.get("shape"), where.at("shape"))
        first, size = (_count(members.get(n), where.at(n)) for n in ("byteOffset", "byteLength"))
        if headed and first < 8:
            raise FileError(where.at("byteOffset"), "the offset lies in the header", got=str(first), allowed="at least 8")
        if first + size > len(data):
            raise FileError(
                location,
                f"the tensor {quoted(key)} exceeds the file",
                got=f"bytes {first} to {first + size} of {len(data)} bytes",
            )
        packed = data_type in PACKED_TYPES
        count = element_count(shape, where.at("shape"))
        expected = byte_length(data_type, count)
        if size != expected and not (packed and size == count):
            raise FileError(where.at("byteLength"), "wrong number of bytes", got=f"{size} bytes", allowed=f"{expected} bytes")
        tensors[key] = StoredTensor(data_type, shape, data[first : first + size], packed, first)
    return WeightsFile(location, tensors)


def _count(value: Any, location: Location) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise FileError(location, "a number of bytes is expected", got=quoted(value))
    return value


def tensor_type(value: Any, location: Location) -> str:
    """Return `value` if it is WebNN's name of a data type."""
    if not isinstance(value, str) or value not in CONSTANT_TYPES:
        raise FileError(location, "no such data type", got=quoted(value), allowed=", ".join(CONSTANT_TYPES))
    return value


def tensor_shape(value: Any, location: Location) -> tuple[int, ...]:
    """Return `value` as a tuple if it is a list of sizes or offsets."""
    sizes = cast("list[Any]", value if isinstance(value, list) else [None])
    if any(not isinstance(n, int) or isinstance(n, bool) or not 0 <= n < 2**63 for n in sizes):
        raise FileError(location, "a list of sizes is expected", got=quoted(cast("object", value)))
    return tuple(sizes)


def _safetensors(path: Path) -> WeightsFile:
    location = Location(str(path))
    data = _mapped(path)
    size = int.from_bytes(bytes(data[:8]), "little")
    if len(data) < 8 or size > min(MAX_HEADER, len(data) - 8):
        raise FileError(location, "the file is truncated", got=f"{len(data)} bytes")
    header = parsed_object(bytes(data[8 : 8 + size]), location)
    metadata = checked_object(header.pop("__metadata__", {}), location.at("__metadata__"))
    tensors: dict[str, StoredTensor] = {}
    body = data[8 + size :]
    for key, entry in header.items():
        where = location.at(key)
        members = checked_object(entry, where)
        kind = members.get("dtype")
        if not isinstance(kind, str) or kind not in SAFETENSORS_TYPES:
            raise FileError(where.at("dtype"), "unknown data type", got=quoted(kind), allowed=", ".join(SAFETENSORS_TYPES))
        offsets = tensor_shape(members.get("data_offsets"), where.at("data_offsets"))
        shape = tensor_shape(members.get("shape"), where.at("shape"))
        if len(offsets) != 2 or not offsets[0] <= offsets[1] <= len(body):
            raise FileError(
                location, f"the tensor {quoted(key)} exceeds the file", got=f"bytes {list(offsets)} of {len(body)} bytes"
            )
        data_type = SAFETENSORS_TYPES[kind]
        expected = element_count(shape, where.at("shape")) * (2 if data_type == "bfloat16" else byte_length(data_type, 1))
        if offsets[1] - offsets[0] != expected:
            raise FileError(where, "wrong number of bytes", got=f"{offsets[1] - offsets[0]} bytes", allowed=f"{expected} bytes")
        packed = kind == "U8" and metadata.get(PACKED_MARK) == "1"
        tensors[key] = StoredTensor(data_type, shape, body[offsets[0] : offsets[1]], packed, 8 + size + offsets[0])
    return WeightsFile(location, tensors)
