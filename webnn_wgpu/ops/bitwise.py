"""Extension operators on the bits of integers, element by element.

A shift count is unsigned. A count of at least the element's width results in 0, or in -1 if a negative number is shifted right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..core.data_types import DATA_TYPES
from ..core.names import method_name
from ..ir.graph import Attrs
from ..kernels.element import ELEMENTS
from ..kernels.expression import Formula, formula
from ._def import OpDef
from ._row_documentation import Text
from ._rows import NumpyFunction, binary, unary
from .interfaces.documentation import BITWISE_EXTENSIONS
from .interfaces.elementwise import ElementWise, in_pairs

INTEGERS = tuple(name for name, info in DATA_TYPES.items() if info.kind != "float")
"""The data types of integers."""


def _text(name: str, summary: str, numerics: str = "", number: int = 7) -> Text:
    example = f'>>> b.{method_name(name)}(b.cast(x, "int32"), b.constant("int32", {number}))\nMLOperand(int32[2, 3])'
    return Text(summary=summary, numerics=numerics, group=BITWISE_EXTENSIONS, example=example)


def _bitwise(name: str, code: str, function: NumpyFunction, summary: str) -> OpDef:
    return binary(name, "", function, _text(name, summary), types=INTEGERS, integer=code, pairs=code, spec="", commutative=True)


def _shift(name: str, function: NumpyFunction, summary: str, numerics: str, pairs: str) -> OpDef:
    # Kernels compute elements of 8 bits in 32 bits. The conversion to 8 bits cuts off the bits that are shifted out.
    def formula_for(inputs: Sequence[str], out: str, attrs: Attrs) -> Formula:
        value = ELEMENTS[inputs[0]].value
        wide = DATA_TYPES[inputs[0]].size_bytes == 8
        unsigned, highest, mask = ("u64", "63lu", "63u") if wide else ("u32", "31u", "31u")
        # WGSL takes the count modulo the width.
        if name == "x.shift_right" and value in ("i32", "i64"):
            return formula(f"(a >> u32(min(T(b), {highest})))", ("a", "b"), type_=unsigned)
        operator = "<<" if name == "x.shift_left" else ">>"
        shifted, zero = f"a {operator} (u32(b) & {mask})", ELEMENTS[inputs[0]].zero
        return formula(f"select({shifted}, {zero}, T(b) > {highest})", ("a", "b"), type_=unsigned)

    text = _text(name, summary, f"Counts are read as unsigned, as in numpy. {numerics}", number=3)
    return replace(
        binary(name, "", function, text, types=INTEGERS, spec=""), elementwise=ElementWise(formula_for, in_pairs(pairs))
    )


OPS = (
    _bitwise("x.bitwise_and", "(a & b)", np.bitwise_and, "Bits that are set in both operands."),
    _bitwise("x.bitwise_or", "(a | b)", np.bitwise_or, "Bits that are set in either operand."),
    _bitwise("x.bitwise_xor", "(a ^ b)", np.bitwise_xor, "Bits that are set in one operand and not in the other."),
    unary(
        "x.bitwise_not",
        "",
        np.invert,
        Text(
            summary="Every bit flipped: -1 - x for signed integers.",
            group=BITWISE_EXTENSIONS,
            example='>>> b.ext.bitwise_not(b.cast(x, "int32"))\nMLOperand(int32[2, 3])',
        ),
        types=INTEGERS,
        integer="~x",
        spec="",
        pairs="~x",
    ),
    _shift(
        "x.shift_left",
        np.left_shift,
        "Bits moved up, with zeros moved in below: a 2^b, which wraps around.",
        "Counts of the element's width or more give 0.",
        "shifted_left_pair(a, b)",
    ),
    _shift(
        "x.shift_right",
        np.right_shift,
        "Bits moved down. Copies of the sign bit are moved into signed integers, zeros into unsigned ones.",
        "Counts of the element's width or more give 0, or -1 for negative numbers.",
        "shifted_right_T(a, b)",
    ),
)
