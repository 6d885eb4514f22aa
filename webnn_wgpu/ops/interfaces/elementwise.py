"""Operators that compute each element of their result from one element of each operand, by a formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...ir.graph import Attrs
from ...kernels.expression import Formula, formula

FormulaFor = Callable[[Sequence[str], str, Attrs], Formula]
"""The formula for operands of some data types, an output data type and canonical attributes."""

FormulaInPairs = Callable[[Formula, Sequence[str], str], Formula]
"""The formula on pairs, from the one for devices with 64-bit integers, the operands' WGSL types and the result's."""


@dataclass(frozen=True)
class ElementWise:
    """An element-wise operator. Such operators can be fused with each other and behind operators that take an epilogue.

    Attributes:
        formula: returns the formula.
        pairs: returns the formula of 64-bit integers for devices without such integers, which represent them as pairs,
            vec2<u32>(low, high). None means that no operand and no result has a 64-bit integer type. WGSL's operators would
            compute the words separately, so such a formula calls functions of `shaders/lib/math`. Functions named `_pair`
            do not depend on the sign, functions named `_i64x2` and `_u64x2` do.
    """

    formula: FormulaFor
    pairs: FormulaInPairs | None = None


def in_pairs(code: str) -> FormulaInPairs | None:
    """Return a function that returns the formula of `code` on pairs, or None without code.

    Args:
        code: the WGSL of the formula. `T` is the type of the last operand. The operands have the same names as in the formula
            for devices with 64-bit integers.
    """

    def made(native: Formula, inputs: Sequence[str], output: str) -> Formula:
        return formula(code, native.operands, native.uniforms, type_=inputs[-1], lib=("pair", inputs[-1]))

    return made if code else None
