"""The storage of elements of each data type in buffers, and the WGSL types that kernels compute with.

Besides the data types of the specification, `bits8` to `bits64` describe elements that are only moved. They need no device
feature, so data movement works for every type on every device, NaN payloads included.

If a device lacks a data type, an element kind without a device feature emulates it. `half` differs from float16 only in its
storage: authors write kernels for float16, and `kernels/emulation.py` replaces the type. `int64.pair` and `uint64.pair` are
vec2<u32>(low, high), on which WGSL's operators do not work. Authors of formulas ask `element_of`. The WGSL types `i64x2` and
`u64x2` are other names of vec2<u32>, declared in `shaders/lib/math/pair.wgsl`.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from ..core.caps import Caps


@dataclass(frozen=True, kw_only=True)
class ElementKind:
    """One kind of element.

    Attributes:
        name: the name of the data type, or of a kind of this module.
        size_bytes: the size of one packed element in bytes. 0 if two elements share a byte.
        word: the WGSL type of an item of the storage array for reads of single elements.
        quad: the WGSL type of an item of the storage array for reads of four elements. "" if there is none.
        value: the WGSL type that kernels compute with.
        zero: the WGSL literal of zero in that type.
        feature: the WebGPU feature that the shader needs, or "".
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
            ElementKind(name="float32", size_bytes=4, word="f32", quad="vec4<f32>", value="f32", zero="0.0"),
            # Half precision is storage only: arithmetic is done in float32 and rounded at every operator's end.
            ElementKind(
                name="float16", size_bytes=2, word="f16", quad="vec4<f16>", value="f32", zero="0.0", feature="shader-f16"
            ),
            ElementKind(name="int32", size_bytes=4, word="i32", quad="vec4<i32>", value="i32", zero="0i"),
            ElementKind(name="uint32", size_bytes=4, word="u32", quad="vec4<u32>", value="u32", zero="0u"),
            ElementKind(name="int64", size_bytes=8, word="i64", quad="", value="i64", zero="0li", feature="shader-int64"),
            ElementKind(name="uint64", size_bytes=8, word="u64", quad="", value="u64", zero="0lu", feature="shader-int64"),
            # Two to a 32-bit word. A kernel writes single elements by atomic operations on the word.
            ElementKind(name="half", size_bytes=2, word="u32", quad="vec2<u32>", value="f32", zero="0.0"),
            ElementKind(name="int64.pair", size_bytes=8, word="vec2<u32>", quad="", value="i64x2", zero="i64x2(0u, 0u)"),
            ElementKind(name="uint64.pair", size_bytes=8, word="vec2<u32>", quad="", value="u64x2", zero="u64x2(0u, 0u)"),
            # Four to a 32-bit word. A kernel must write whole words.
            ElementKind(name="int8", size_bytes=1, word="u32", quad="u32", value="i32", zero="0i"),
            ElementKind(name="uint8", size_bytes=1, word="u32", quad="u32", value="u32", zero="0u"),
            # Eight to a word. No kernel writes them.
            ElementKind(name="int4", size_bytes=0, word="u32", quad="u32", value="i32", zero="0i"),
            ElementKind(name="uint4", size_bytes=0, word="u32", quad="u32", value="u32", zero="0u"),
            ElementKind(name="bits8", size_bytes=1, word="u32", quad="u32", value="u32", zero="0u"),
            ElementKind(name="bits16", size_bytes=2, word="u32", quad="vec2<u32>", value="u32", zero="0u"),
            ElementKind(name="bits32", size_bytes=4, word="u32", quad="vec4<u32>", value="u32", zero="0u"),
            ElementKind(name="bits64", size_bytes=8, word="vec2<u32>", quad="", value="vec2<u32>", zero="vec2<u32>(0u, 0u)"),
            # Words that invocations raise to the maximum of their values. Another kernel reads them as uint32.
            ElementKind(name="atomic32", size_bytes=4, word="atomic<u32>", quad="", value="u32", zero="0u"),
        )
    }
)

PAIRS = ("i64x2", "u64x2")
"""The WGSL types of pairs. The names of the library functions that work on them end in them, or in `pair`."""

WORD_BYTES = 4
"""The size of a word in bytes: the unit of bindings, copies and, except for 16-bit types, writes."""

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
