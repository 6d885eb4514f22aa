"""The formulas of element-wise operators on 64-bit integers where the device has none: on pairs of words, exact.

A pair is vec2<u32>(low, high). WGSL's operators would work on the words one by one, so every formula calls functions of
`shaders/lib/math`: those named `_pair` depend on no sign, those named `_i64x2` and `_u64x2` do.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..kernels.element import PAIRS
from ..kernels.expression import Formula, formula

_FORMULAS = {
    "abs": "abs_T(x)",
    "add": "add_pair(a, b)",
    "clamp": "min_T(max_T(x, T(low_0, low_1)), T(high_0, high_1))",
    "div": "div_T(a, b)",
    "equal": "select(0u, 1u, equal_pair(a, b))",
    "greater": "select(0u, 1u, less_T(b, a))",
    "greaterOrEqual": "select(1u, 0u, less_T(a, b))",
    "lesser": "select(0u, 1u, less_T(a, b))",
    "lesserOrEqual": "select(1u, 0u, less_T(b, a))",
    "max": "max_T(a, b)",
    "min": "min_T(a, b)",
    "mul": "mul_pair(a, b)",
    "neg": "neg_pair(x)",
    "notEqual": "select(1u, 0u, equal_pair(a, b))",
    "pow": "pow_T(a, b)",
    "prelu": "select(a, mul_pair(b, a), is_negative_T(a))",
    "relu": "max_T(x, T(0u, 0u))",
    "sign": "sign_T(x)",
    "sub": "sub_pair(a, b)",
    "where": "select(false_value, true_value, condition != 0u)",
    "x.bitwise_and": "(a & b)",
    "x.bitwise_not": "~x",
    "x.bitwise_or": "(a | b)",
    "x.bitwise_xor": "(a ^ b)",
    "x.fmod": "fmod_T(a, b)",
    "x.mod": "mod_T(a, b)",
    "x.shift_left": "shifted_left_pair(a, b)",
    "x.shift_right": "shifted_right_T(a, b)",
}
"""By operator; `T` is the WGSL type of the operands, whose names are those of the formula for devices with 64-bit integers."""


def in_pairs(op: str, native: Formula, inputs: Sequence[str], output: str) -> Formula:
    """Return the formula of an element-wise operator some of whose operands or results are pairs.

    Args:
        op: the operator's specification name; cast, or one that has a formula here.
        native: its formula on devices with 64-bit integers; the uniforms are the same.
        inputs: WGSL types of the operands.
        output: WGSL type of the result.
    """
    if op == "cast":
        return _cast(inputs[0], output)
    value = inputs[-1]
    return formula(_FORMULAS[op], native.operands, native.uniforms, type_=value, lib=("pair", value))


def _cast(source: str, target: str) -> Formula:
    if source in PAIRS and target in PAIRS:
        return formula("x", lib=("pair",))
    if source in PAIRS:
        if target == "f32":
            return formula(f"{source}_to_f32(x)")
        return formula("bitcast<i32>(x.x)" if target == "i32" else "x.x", lib=("pair",))
    if source == "f32":
        return formula(f"f32_to_{target}(x)")
    words = "bitcast<u32>(x), bitcast<u32>(x >> 31u)" if source == "i32" else "x, 0u"
    return formula(f"{target}({words})", lib=("pair",))
