"""How elements of each data type lie in storage buffers, and in what WGSL type kernels hold them.

Besides the data types of the specification there are `bits8` to `bits64`: elements that are only moved. They need no device
feature, so data movement works for every type on every device, NaN payloads included.

Where a device lacks a data type, others stand in for it that need no feature either. `half` differs from float16 in how it is
stored alone: kernels are written for float16, and `kernels/emulation.py` exchanges it behind their backs. `int64.pair` and
`uint64.pair` are vec2<u32>(low, high), on which WGSL's operators do not work: whoever makes formulas asks `element_of`. Their
WGSL types `i64x2` and `u64x2` are other names of vec2<u32>, declared in `shaders/lib/math/pair.wgsl`.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from ..core.caps import Caps


@dataclass(frozen=True)
class Element:
    """One kind of element.

    Attributes:
        name: data type name, or that of a kind of this module's own.
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
            # Two to a 32-bit word: whoever writes single ones does it by atomic operations on the word.
            Element("half", 2, "u32", "vec2<u32>", "f32", "0.0"),
            Element("int64.pair", 8, "vec2<u32>", "", "i64x2", "i64x2(0u, 0u)"),
            Element("uint64.pair", 8, "vec2<u32>", "", "u64x2", "u64x2(0u, 0u)"),
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

PAIRS = ("i64x2", "u64x2")
"""The WGSL types of pairs. The names of the library functions that work on them end in them, or in `pair`."""

WORD_BYTES = 4
"""Bytes of a word: what buffers are bound, copied and, but for 16-bit types, written in."""

QUAD = 4
"""Elements that one invocation of an element-wise or data-moving kernel writes."""

STORAGE_ALIGNMENT_BYTES = 32
"""Tensors' buffers are padded to whole quads of the widest element, so that the last quad can be read and written unguarded."""


def padded_bytes(size_bytes: int) -> int:
    """Return the size of the buffer that holds a tensor of `size_bytes`."""
    return -(-size_bytes // STORAGE_ALIGNMENT_BYTES) * STORAGE_ALIGNMENT_BYTES


def whole_words(size_bytes: int) -> int:
    """Return the bytes of the words that hold `size_bytes`."""
    return -(-size_bytes // WORD_BYTES) * WORD_BYTES


_STAND_INS = {"int64": "int64.pair", "uint64": "uint64.pair"}


def element_of(data_type: str, caps: Caps) -> str:
    """Return the name of the element kind that formulas compute with for a data type on a device.

    >>> element_of("int64", Caps()), element_of("int32", Caps())
    ('int64.pair', 'int32')
    >>> element_of("int64", Caps(features=frozenset(["shader-int64"])))
    'int64'
    """
    return data_type if caps.has_native(data_type) else _STAND_INS.get(data_type, data_type)


def bits_of(data_type: str) -> str:
    """Return the name of the element kind that moves a data type, or another element kind, bit by bit."""
    return f"bits{8 * ELEMENTS[data_type].size_bytes}"
