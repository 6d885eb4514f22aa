"""The contents of a TensorFlow.js model: the topology, and the weights with their places in the files."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from webnn_wgpu import NotSupportedError, WebNNError

from ..common.held import Array, DType

LAYERS, GRAPH = "layers-model", "graph-model"

BROKEN = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, ZeroDivisionError, RecursionError)
"""Errors of Python that entries of the wrong kind cause."""

DTYPES: Mapping[str, DType] = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "int32": np.dtype(np.int32),
    "uint16": np.dtype(np.uint16),
    "uint8": np.dtype(np.uint8),
    "bool": np.dtype(bool),
    "complex64": np.dtype(np.complex64),
}
"""The types of weights but strings, as numpy dtypes."""


@dataclass(frozen=True, kw_only=True)
class Quantization:
    """The storage of a weight in fewer bits: `number * scale + low`, or float16 numbers."""

    dtype: DType
    scale: float = 1.0
    low: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Shard:
    """A file of a group of weights: where its bytes begin in the group, and how many there are."""

    path: Path
    start: int
    size: int


@dataclass(frozen=True, kw_only=True)
class WeightRecord:
    """A weight.

    Attributes:
        name: its name.
        shape: its sizes.
        dtype: its type. None for strings, which are in `strings`.
        shards: the files of its group.
        start: its first byte in the group.
        size: the number of its bytes.
        quantization: the storage, if it is not `dtype`.
        strings: the elements of a weight of strings.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType | None
    shards: Sequence[Shard]
    start: int
    size: int
    quantization: Quantization | None = None
    strings: tuple[bytes, ...] = ()

    @property
    def elements(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, kw_only=True)
class TfjsFile:
    """A model as its files have it.

    Attributes:
        name: its name in messages.
        kind: "layers-model" or "graph-model".
        topology: `modelTopology`, the description of the network.
        document: the whole of model.json.
        weights: the weights by name.
    """

    name: str
    kind: str
    topology: Mapping[str, Any]
    document: Mapping[str, Any]
    weights: Mapping[str, WeightRecord] = field(default_factory=dict[str, WeightRecord])

    def array(self, name: str) -> Array:
        """Return the elements of a weight.

        Raises:
            NotSupportedError: the weight is made of strings, or its file has changed.
        """
        record = self.weights[name]
        if record.dtype is None:
            raise NotSupportedError(f"{self.name}: weight '{name}' consists of strings, which no tensor holds")
        data = bytes_of(self.name, record.shards, record.start, record.size)
        if record.quantization is None:
            return np.frombuffer(data, record.dtype).reshape(record.shape)
        stored = np.frombuffer(data, record.quantization.dtype)
        return dequantized(stored, record.quantization, record.dtype).reshape(record.shape)


def fields(value: Any) -> dict[str, Any]:
    """Return a JSON object, an empty one for a value of another kind."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def entries(value: Any) -> list[Any]:
    """Return a JSON list, an empty one for a value of another kind."""
    return cast("list[Any]", value) if isinstance(value, list) else []


@contextmanager
def checked(name: str, part: str) -> Generator[None]:
    """Refuse a file with entries of the wrong kind.

    Args:
        name: the name of the model.
        part: the part of the file that the block reads.

    Raises:
        NotSupportedError: an entry is of the wrong kind.
    """
    try:
        yield
    except BROKEN as error:
        # The package's errors are errors of Python too.
        if isinstance(error, WebNNError):
            raise
        raise NotSupportedError(f"{name}: {part} is broken: {type(error).__name__}: {error}") from error


def dequantized(stored: Array, quantization: Quantization, dtype: DType) -> Array:
    """Return the numbers that stored ones stand for. As in TensorFlow.js, float64 computes them, and integers are rounded.

    Example:
        >>> dequantized(np.uint8([0, 2]), Quantization(dtype=np.dtype(np.uint8), scale=0.5, low=-1), np.dtype(np.float32))
        array([-1.,  0.], dtype=float32)
    """
    if quantization.dtype.kind == "f":
        return stored.astype(dtype)
    numbers = stored.astype(np.float64) * quantization.scale + quantization.low
    # Half up, as in JavaScript's Math.round.
    return (np.floor(numbers + 0.5) if dtype.kind in "iu" else numbers).astype(dtype)


def bytes_of(model: str, shards: Sequence[Shard], start: int, size: int) -> bytes:
    """Return bytes of a group of weights, which may begin and end in different files.

    Raises:
        NotSupportedError: a file has fewer bytes than when the model was read.
    """
    parts: list[bytes] = []
    for shard in shards:
        low, high = max(start, shard.start), min(start + size, shard.start + shard.size)
        if low >= high:
            continue
        with shard.path.open("rb") as file:
            file.seek(low - shard.start)
            part = file.read(high - low)
        if len(part) != high - low:
            raise NotSupportedError(f"{model}: {shard.path.name} has become shorter")
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
