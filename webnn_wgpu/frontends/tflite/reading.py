"""`read`: a TFLite file as plain data.

Files come from strangers. Every number of a file is checked before its use, and nothing is allocated for a size that a file
merely states. The number of parsed records is limited by the size of the file, since records may refer to each other.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
import tflite as _tflite  # pyright: ignore[reportMissingTypeStubs] - the package has none

from webnn_wgpu import NotSupportedError

from ..common.held import DType
from . import fields
from .contents import (
    ExternalBuffer,
    OperatorRecord,
    Quantization,
    SignatureRecord,
    SparseDimension,
    Sparsity,
    SubgraphRecord,
    TensorRecord,
    TfliteFile,
)

schema: Any = _tflite

IDENTIFIER = b"TFL3"
CUSTOM = "CUSTOM"
VERSION = 3
LARGEST = 2**31
"""The exclusive maximum of sizes and offsets within the FlatBuffer, in bytes."""

MOST_ELEMENTS = 1 << 48
"""The maximum number of elements of a tensor, sizes of 0 left out."""

BROKEN = (struct.error, ValueError, TypeError, IndexError, OverflowError, AttributeError, KeyError, AssertionError, MemoryError)
"""Exceptions of the package `flatbuffers` for offsets beyond the file."""

TYPES: dict[int, tuple[str, DType | None]] = {
    0: ("float32", np.dtype(np.float32)),
    1: ("float16", np.dtype(np.float16)),
    2: ("int32", np.dtype(np.int32)),
    3: ("uint8", np.dtype(np.uint8)),
    4: ("int64", np.dtype(np.int64)),
    5: ("string", None),
    6: ("bool", np.dtype(bool)),
    7: ("int16", np.dtype(np.int16)),
    8: ("complex64", np.dtype(np.complex64)),
    9: ("int8", np.dtype(np.int8)),
    10: ("float64", np.dtype(np.float64)),
    11: ("complex128", None),
    12: ("uint64", np.dtype(np.uint64)),
    13: ("resource", None),
    14: ("variant", None),
    15: ("uint32", np.dtype(np.uint32)),
    16: ("uint16", np.dtype(np.uint16)),
    17: ("int4", np.dtype(ml_dtypes.int4)),
    18: ("bfloat16", np.dtype(ml_dtypes.bfloat16)),
    19: ("int2", np.dtype(ml_dtypes.int2)),
    20: ("uint4", np.dtype(ml_dtypes.uint4)),
    21: ("float8_e4m3fn", np.dtype(ml_dtypes.float8_e4m3fn)),
    22: ("float8_e5m2", np.dtype(ml_dtypes.float8_e5m2)),
}
"""The format's numbers of data types."""


def _names(enumeration: Any) -> dict[int, str]:
    """Return the names of an enumeration of the package `tflite` by number."""
    members = cast("dict[str, Any]", vars(enumeration))
    return {number: name for name, number in members.items() if type(number) is int}


OPERATOR_NAMES: dict[int, str] = {**_names(schema.BuiltinOperator), 209: "STABLEHLO_CASE"}
"""Operators by number, with those that the package `tflite` does not have yet."""

OPTIONS, OPTIONS_2 = _names(schema.BuiltinOptions), _names(schema.BuiltinOptions2)
"""The tables of options by number."""


class _Broken(Exception):
    """A fault of a file. `str()` is the reason."""


def read(source: str | os.PathLike[str] | bytes, name: str = "model") -> TfliteFile:
    """Read a file. Constants stay in the file, which is mapped.

    Args:
        source: the path of the file, or its bytes.
        name: the name in messages if `source` is bytes.

    Raises:
        FileNotFoundError: no such file.
        NotSupportedError: not a TFLite file, or a broken one. The message names the file and the fault.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        data, path, shown = memoryview(source).cast("B"), None, name
    else:
        path = os.fspath(source)
        shown, name = Path(path).name, Path(path).stem
        data = _mapped(path)
    try:
        try:
            return _Reader(data, name, path).file()
        except BROKEN as error:
            raise _Broken(f"a record lies outside the file ({type(error).__name__}: {error})") from error
    except _Broken as fault:
        raise NotSupportedError(f"{shown} must be a valid TFLite model; got a file that is broken: {fault}") from fault


def _mapped(path: str) -> memoryview:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) if size else memoryview(b"")


def _require(holds: bool, fault: str) -> None:
    if not holds:
        raise _Broken(fault)


class _Reader:
    """One walk over the records of a file."""

    def __init__(self, data: memoryview, name: str, path: str | None) -> None:
        _require(len(data) >= 8, f"it has {len(data)} bytes")
        identifier = bytes(data[4:8])
        _require(identifier == IDENTIFIER, f"bytes 4 to 8 are {identifier!r}, not {IDENTIFIER!r}")
        self.data = data
        self.left = len(data)
        self.record: Any = schema.Model.GetRootAs(data, 0)
        self.result = TfliteFile(name=name, path=path, data=data)

    def count(self, number: int, what: str) -> range:
        """Return the indices of a vector, whose elements take at least 4 bytes each in an honest file."""
        self.left -= number
        _require(0 <= number and self.left >= 0, f"the number of {what}, {number}, exceeds the size of the file")
        return range(number)

    def numbers(self, vector: Any) -> tuple[int, ...]:
        """Return a vector of integers of the package `tflite`."""
        if isinstance(vector, int):  # an absent vector
            return ()
        self.count(len(vector), "integers")
        return tuple(int(v) for v in vector)

    def text(self, value: Any) -> str:
        return bytes(value).decode("utf-8", "replace") if value is not None else ""

    def file(self) -> TfliteFile:
        model, result = self.record, self.result
        _require(model.Version() == VERSION, f"the version of its format is {model.Version()}, not {VERSION}")
        _require(model.SubgraphsLength() > 0, "it has no subgraphs")
        result.description = self.text(model.Description())
        result.buffers = [self.buffer(model.Buffers(i), i) for i in self.count(model.BuffersLength(), "buffers")]
        self.external()
        codes = [self.code(model.OperatorCodes(i)) for i in self.count(model.OperatorCodesLength(), "operator codes")]
        count = self.count(model.SubgraphsLength(), "subgraphs")
        result.subgraphs = tuple(self.subgraph(i, model.Subgraphs(i), codes) for i in count)
        result.signatures = tuple(
            self.signature(model.SignatureDefs(i)) for i in self.count(model.SignatureDefsLength(), "signatures")
        )
        metadata: dict[str, int] = {}
        for i in self.count(model.MetadataLength(), "metadata"):
            entry = model.Metadata(i)
            _require(0 <= entry.Buffer() < len(result.buffers), f"metadata {i} has buffer {entry.Buffer()}, which is missing")
            metadata[self.text(entry.Name())] = int(entry.Buffer())
        result.metadata = metadata
        return result

    def buffer(self, record: Any, index: int) -> tuple[int, int]:
        offset, size = int(record.Offset()), int(record.Size())
        if offset > 1:
            _require(offset + size <= len(self.data), f"buffer {index} has bytes {offset} to {offset + size}")
            return offset, size
        size = int(record.DataLength())
        if not size:
            return 0, 0
        table = fields.table_of(record)
        start = int(table.Vector(table.Offset(4)))
        _require(0 <= start and start + size <= len(self.data), f"buffer {index} has bytes {start} to {start + size}")
        return start, size

    def external(self) -> None:
        table = fields.table_of(self.record)
        groups = [
            fields.text(fields.element(table, 8, i), 0) for i in self.count(fields.length(table, 8), "external buffer groups")
        ]
        found: dict[int, ExternalBuffer] = {}
        for i in self.count(fields.length(table, 9), "external buffers"):
            entry = fields.element(table, 9, i)
            number, group = (fields.integer(entry, f, kind="Uint32") for f in (0, 1))
            offset, length = (fields.integer(entry, f, kind="Uint64") for f in (2, 3))
            packing = fields.text(entry, 4)
            _require(group < len(groups), f"external buffer {number} is in group {group}, which is missing")
            _require(packing in ("", "none"), f"external buffer {number} has the packing {packing!r}")
            found[number] = ExternalBuffer(file=groups[group], offset=offset, length=length)
        self.result.external = found

    def code(self, record: Any) -> tuple[str, bool, int]:
        """Return an operator's name, whether it is custom, and its version."""
        number = max(int(record.BuiltinCode()), int(record.DeprecatedBuiltinCode()))
        name = OPERATOR_NAMES.get(number, f"operator {number}")
        if name == CUSTOM:
            return self.text(record.CustomCode()), True, int(record.Version())
        return name, False, int(record.Version())

    # subgraphs ------------------------------------------------------------------------------------------------------

    def subgraph(self, index: int, record: Any, codes: Sequence[tuple[str, bool, int]]) -> SubgraphRecord:
        count = self.count(record.TensorsLength(), "tensors")
        tensors = tuple(self.tensor(i, record.Tensors(i), f"tensor {i} of subgraph {index}") for i in count)

        def checked(numbers: tuple[int, ...], what: str, least: int = 0) -> tuple[int, ...]:
            for number in numbers:
                _require(least <= number < len(tensors), f"{what} refers to tensor {number} of {len(tensors)}")
            return numbers

        operators: list[OperatorRecord] = []
        for i in self.count(record.OperatorsLength(), "operators"):
            entry, what = record.Operators(i), f"operator {i} of subgraph {index}"
            code = int(entry.OpcodeIndex())
            _require(0 <= code < len(codes), f"{what} has operator code {code} of {len(codes)}")
            name, custom, version = codes[code]
            outputs = checked(self.numbers(entry.OutputsAsNumpy()), what)
            operators.append(
                OperatorRecord(
                    index=i,
                    name=name,
                    custom=custom,
                    version=version,
                    inputs=checked(self.numbers(entry.InputsAsNumpy()), what, -1),
                    outputs=outputs,
                    intermediates=checked(self.numbers(entry.IntermediatesAsNumpy()), what, -1),
                    options=self.options(entry),
                    custom_options=self.custom_options(entry, what),
                )
            )
        inputs, outputs = self.numbers(record.InputsAsNumpy()), self.numbers(record.OutputsAsNumpy())
        given = {*inputs, *(number for operator in operators for number in operator.outputs)}
        return SubgraphRecord(
            index=index,
            name=self.text(record.Name()),
            tensors=tuple(t if t.index in given else replace(t, is_empty=t.shape is not None and not t.size) for t in tensors),
            operators=tuple(operators),
            inputs=checked(inputs, f"the inputs of subgraph {index}"),
            outputs=checked(outputs, f"the outputs of subgraph {index}"),
        )

    def options(self, entry: Any) -> Any:
        """Return the accessor of an operator's options, the plain table if the package `tflite` has no class for it."""
        for kind, table, names in (
            (int(entry.BuiltinOptionsType()), entry.BuiltinOptions(), OPTIONS),
            (int(entry.BuiltinOptions2Type()), entry.BuiltinOptions2(), OPTIONS_2),
        ):
            if kind and table is not None:
                found = getattr(schema, names.get(kind, ""), None)
                if found is None:
                    return table
                options = found()
                options.Init(table.Bytes, table.Pos)
                return options
        return None

    def custom_options(self, entry: Any, what: str) -> bytes:
        offset, size = int(entry.LargeCustomOptionsOffset()), int(entry.LargeCustomOptionsSize())
        if offset > 1:
            _require(offset + size <= len(self.data), f"{what} has options at bytes {offset} to {offset + size}")
            return bytes(self.data[offset : offset + size])
        vector = entry.CustomOptionsAsNumpy()
        if isinstance(vector, int):
            return b""
        self.count(len(vector), "bytes of options")
        return vector.tobytes()

    def tensor(self, index: int, record: Any, what: str) -> TensorRecord:
        type_name, dtype = TYPES.get(int(record.Type()), (f"type {record.Type()}", None))
        shape = self.numbers(record.ShapeAsNumpy())
        signature = self.numbers(record.ShapeSignatureAsNumpy()) or shape
        _require(all(-1 <= d < LARGEST for d in shape), f"{what} has the shape {list(shape)}")
        _require(math.prod(max(d, 1) for d in shape) <= MOST_ELEMENTS, f"{what} has the shape {list(shape)}")
        _require(len(signature) == len(shape), f"{what} has the shape {list(shape)} and the signature {list(signature)}")
        buffer = int(record.Buffer())
        _require(0 <= buffer < len(self.result.buffers) or not buffer, f"{what} has buffer {buffer}, which is missing")
        external = fields.integer(fields.table_of(record), 10, kind="Uint32")
        _require(not external or external in self.result.external, f"{what} has external buffer {external}, which is missing")
        # Files of older converters state no ranks: a tensor without sizes is a scalar if it has data or if the rank is known.
        unknown = not shape and not record.HasRank() and not self.has_data(buffer)
        return TensorRecord(
            index=index,
            name=self.text(record.Name()),
            type_name=type_name,
            dtype=dtype,
            shape=None if unknown and record.ShapeIsNone() else tuple(max(d, 0) if d >= 0 else 1 for d in shape),
            signature=None if unknown and record.ShapeIsNone() else signature,
            buffer=buffer,
            external=external,
            is_variable=bool(record.IsVariable()),
            quantization=self.quantization(record.Quantization(), len(shape), what),
            sparsity=self.sparsity(record.Sparsity(), len(shape), what),
        )

    def has_data(self, buffer: int) -> bool:
        return bool(buffer) and self.result.buffers[buffer][1] > 0

    def quantization(self, record: Any, rank: int, what: str) -> Quantization | None:
        if record is None:
            return None
        details = {"block_scales": -1, "block_zero_points": -1, "block_size": 0}
        kind = int(record.DetailsType())
        if kind == 2:
            table = record.Details()
            names = zip(details, (0, 1, 2), strict=True)
            details = {name: fields.integer(table, f, -1 if f < 2 else 0) for name, f in names}
        elif kind:
            _require(False, f"{what} has a kind of quantization, {kind}, that is not supported")
        scales, points = record.ScaleAsNumpy(), record.ZeroPointAsNumpy()
        scales = np.zeros(0, np.float32) if isinstance(scales, int) else scales
        if not len(scales) and details["block_scales"] < 0:
            return None
        points = np.zeros(len(scales), np.int64) if isinstance(points, int) else points
        if len(points) == 1 and len(scales) > 1:
            points = np.repeat(points, len(scales))
        self.count(len(scales), "scales")
        _require(len(points) == len(scales), f"{what} has {len(scales)} scales and {len(points)} zero points")
        axis = int(record.QuantizedDimension())
        # Old converters give a vector the axis that the tensor had before it was flattened.
        axis = axis if 0 <= axis < max(rank, 1) else max(rank - 1, 0) if rank == 1 else axis
        _require(0 <= axis < max(rank, 1) or len(scales) == 1, f"{what} is quantized along dimension {axis} of {rank}")
        return Quantization(scales=scales, zero_points=points, axis=axis, **details)

    def sparsity(self, record: Any, rank: int, what: str) -> Sparsity | None:
        if record is None or not record.DimMetadataLength():
            return None
        order, blocked = self.numbers(record.TraversalOrderAsNumpy()), self.numbers(record.BlockMapAsNumpy())
        levels: list[SparseDimension] = []
        for i in self.count(record.DimMetadataLength(), "sparse dimensions"):
            level = record.DimMetadata(i)
            if not int(level.Format()):
                levels.append(SparseDimension(size=int(level.DenseSize())))
                continue
            found = [
                fields.integers(table, 0, {1: "<i4", 2: "<u2", 3: "u1"}[int(kind)]) if table is not None else None
                for kind, table in (
                    (level.ArraySegmentsType(), level.ArraySegments()),
                    (level.ArrayIndicesType(), level.ArrayIndices()),
                )
            ]
            _require(found[0] is not None and found[1] is not None, f"{what} has a sparse dimension without indices")
            levels.append(SparseDimension(size=0, segments=found[0], indices=found[1]))
        fits = sorted(order) == list(range(rank + len(blocked))) and all(0 <= b < rank for b in blocked)
        _require(fits and len(levels) == len(order), f"{what} has sparse dimensions {list(order)} with blocks {list(blocked)}")
        return Sparsity(order=order, blocked=blocked, levels=tuple(levels))

    def signature(self, record: Any) -> SignatureRecord:
        key, index = self.text(record.SignatureKey()), int(record.SubgraphIndex())
        _require(0 <= index < len(self.result.subgraphs), f"signature '{key}' has subgraph {index}, which is missing")
        tensors = len(self.result.subgraphs[index].tensors)

        def names(count: int, entry: Any) -> dict[str, int]:
            found = {self.text(entry(i).Name()): int(entry(i).TensorIndex()) for i in self.count(count, "names")}
            for name, number in found.items():
                _require(0 <= number < tensors, f"'{name}' of signature '{key}' is tensor {number} of {tensors}")
            return found

        inputs, outputs = names(record.InputsLength(), record.Inputs), names(record.OutputsLength(), record.Outputs)
        return SignatureRecord(key=key, subgraph=index, inputs=inputs, outputs=outputs)
