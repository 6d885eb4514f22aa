"""How elements of each data type lie in storage buffers, and in what WGSL type kernels hold them.

Besides the data types of the specification there are `bits8` to `bits64`: elements that are only moved. They need no device
feature, so data movement works for every type on every device, NaN payloads included.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from ..core.data_types import DATA_TYPES


@dataclass(frozen=True)
class Element:
    """One kind of element.

    Attributes:
        name: data type name, or `bits8`, `bits16`, `bits32`, `bits64`, `atomic32`.
        size_bytes: bytes of one packed element; 0 where two share a byte.
        word: WGSL type of one item of the storage array when elements are read one by one.
        quad: WGSL type of one item of the storage array when four elements are read at once ("" where there is none).
        value: WGSL type that kernels compute with.
        zero: WGSL literal of zero in that type.
        feature: WebGPU feature the shader needs, or "".
    """

    name: str
    size_bytes: int
    word: str
    quad: str
    value: str
    zero: str
    feature: str = ""


ELEMENTS = MappingProxyType(
    {
        e.name: e
        for e in (
            Element("float32", 4, "f32", "vec4<f32>", "f32", "0.0"),
            # Half precision is storage only: arithmetic is done in float32 and rounded at every operator's end.
            Element("float16", 2, "f16", "vec4<f16>", "f32", "0.0", "shader-f16"),
            Element("int32", 4, "i32", "vec4<i32>", "i32", "0i"),
            Element("uint32", 4, "u32", "vec4<u32>", "u32", "0u"),
            Element("int64", 8, "i64", "", "i64", "0li", "shader-int64"),
            Element("uint64", 8, "u64", "", "u64", "0lu", "shader-int64"),
            # Four to a 32-bit word: whoever writes must write whole words.
            Element("int8", 1, "u32", "u32", "i32", "0i"),
            Element("uint8", 1, "u32", "u32", "u32", "0u"),
            # Eight to a word; nothing writes them.
            Element("int4", 0, "u32", "u32", "i32", "0i"),
            Element("uint4", 0, "u32", "u32", "u32", "0u"),
            Element("bits8", 1, "u32", "u32", "u32", "0u"),
            Element("bits16", 2, "u32", "vec2<u32>", "u32", "0u"),
            Element("bits32", 4, "u32", "vec4<u32>", "u32", "0u"),
            Element("bits64", 8, "vec2<u32>", "", "vec2<u32>", "vec2<u32>(0u, 0u)"),
            # Words that invocations raise to the highest of their values; another kernel reads them as uint32.
            Element("atomic32", 4, "atomic<u32>", "", "u32", "0u"),
        )
    }
)

QUAD = 4
"""Elements that one invocation of an element-wise or data-moving kernel writes."""

STORAGE_ALIGNMENT_BYTES = 32
"""Tensors' buffers are padded to whole quads of the widest element, so that the last quad can be read and written unguarded."""


def padded_bytes(size_bytes: int) -> int:
    """Return the size of the buffer that holds a tensor of `size_bytes`."""
    return -(-size_bytes // STORAGE_ALIGNMENT_BYTES) * STORAGE_ALIGNMENT_BYTES


def bits_of(data_type: str) -> str:
    """Return the name of the element kind that moves a data type bit by bit."""
    return f"bits{8 * DATA_TYPES[data_type].size_bytes}"
