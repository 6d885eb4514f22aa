"""Weights embedded in a model file, which stay in the file until their upload.

A parser of a model file would copy all of its weights. This module therefore first walks the file's outer structure, down to
the initializers of the main graph. It rewrites each large initializer as external data in the model file itself. The parsed
message is then small, and the upload reads the weights from the mapped file. Files above 2 GB are supported, too.

Protobuf's encoding: https://protobuf.dev/programming-guides/encoding. The numbers of the fields are those of onnx.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx

MODEL_GRAPH, GRAPH_INITIALIZER, TENSOR_RAW_DATA = 7, 5, 9
SMALLEST = 1024
"""The minimum size of an initializer that stays in the file, in bytes."""


class Malformed(ValueError):
    """The bytes are not a protobuf message."""


@dataclass(frozen=True)
class MessageField:
    """A field of a message: its number, its start, and the range of its contents if it consists of bytes."""

    number: int
    begin: int
    contents: tuple[int, int] | None
    end: int


def fields(data: memoryview, begin: int, end: int) -> Iterator[MessageField]:
    """Yield the fields of the message between two positions.

    Raises:
        Malformed: the message ends within a field, or has a field of an unknown kind.
    """
    at = begin
    while at < end:
        start = at
        key, at = varint(data, at, end)
        contents = None
        match key & 7:
            case 0:
                _, at = varint(data, at, end)
            case 1:
                at += 8
            case 2:
                length, at = varint(data, at, end)
                contents = (at, at + length)
                at += length
            case 5:
                at += 4
            case _:
                raise Malformed(f"no field begins at byte {start}")
        if at > end:
            raise Malformed(f"the field at byte {start} reaches beyond its message")
        yield MessageField(key >> 3, start, contents, at)


def varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """Return a number of variable length and the position behind it."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise Malformed(f"a number at byte {at} does not end")


def message(number: int, parts: list[bytes | memoryview]) -> list[bytes | memoryview]:
    """Return the parts of a field that contains a message in parts."""
    return [_varint(number << 3 | 2), _varint(sum(len(p) for p in parts)), *parts]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def without_weights(data: memoryview, location: str) -> bytes:
    """Return a serialized model with large initializers that refer to their original file.

    Args:
        data: a serialized ModelProto.
        location: the name of its file, relative to the folder of external data.

    Raises:
        Malformed: the bytes are not a protobuf message.
    """
    model: list[bytes | memoryview] = []
    for field in fields(data, 0, len(data)):
        if field.number != MODEL_GRAPH or field.contents is None:
            model.append(data[field.begin : field.end])
            continue
        graph: list[bytes | memoryview] = []
        for part in fields(data, *field.contents):
            if part.number != GRAPH_INITIALIZER or part.contents is None:
                graph.append(data[part.begin : part.end])
            else:
                graph.extend(message(GRAPH_INITIALIZER, _tensor(data, *part.contents, location)))
        model.extend(message(MODEL_GRAPH, graph))
    return b"".join(model)


def _tensor(data: memoryview, begin: int, end: int, location: str) -> list[bytes | memoryview]:
    """Return the parts of an initializer. If it is large, its location in the file replaces its bytes."""
    parts: list[bytes | memoryview] = []
    there: onnx.TensorProto | None = None
    for field in fields(data, begin, end):
        if field.number == TENSOR_RAW_DATA and field.contents is not None and field.contents[1] - field.contents[0] >= SMALLEST:
            start, stop = field.contents
            there = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL)
            for key, value in (("location", location), ("offset", str(start)), ("length", str(stop - start))):
                there.external_data.add(key=key, value=value)
        else:
            parts.append(data[field.begin : field.end])
    # At the end: the last of several equal fields counts, and the tensor may have a location of its own.
    return parts if there is None else [*parts, there.SerializeToString()]
