"""The formulas of element-wise operators on 64-bit integers where the device has none: on pairs of words, exact.

A pair is vec2<u32>(low, high). WGSL's operators would work on the words one by one, so every formula calls functions of
`shaders/lib/math`: those named `_pair` depend on no sign, those named `_i64x2` and `_u64x2` do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..kernels.element import PAIRS
from ..kernels.expression import Formula

_FORMULAS = {
    "abs": "abs_{value}({0})",
    "add": "add_pair({0}, {1})",
    "clamp": "min_{value}(max_{value}({0}, {value}({low_0}, {low_1})), {value}({high_0}, {high_1}))",
    "div": "div_{value}({0}, {1})",
    "equal": "select(0u, 1u, equal_pair({0}, {1}))",
    "greater": "select(0u, 1u, less_{value}({1}, {0}))",
    "greaterOrEqual": "select(1u, 0u, less_{value}({0}, {1}))",
    "lesser": "select(0u, 1u, less_{value}({0}, {1}))",
    "lesserOrEqual": "select(1u, 0u, less_{value}({1}, {0}))",
    "max": "max_{value}({0}, {1})",
    "min": "min_{value}({0}, {1})",
    "mul": "mul_pair({0}, {1})",
    "neg": "neg_pair({0})",
    "notEqual": "select(1u, 0u, equal_pair({0}, {1}))",
    "pow": "pow_{value}({0}, {1})",
    "prelu": "select({0}, mul_pair({1}, {0}), is_negative_{value}({0}))",
    "relu": "max_{value}({0}, {value}(0u, 0u))",
    "sign": "sign_{value}({0})",
    "sub": "sub_pair({0}, {1})",
    "where": "select({2}, {1}, {0} != 0u)",
    "x.bitwise_and": "({0} & {1})",
    "x.bitwise_not": "~{0}",
    "x.bitwise_or": "({0} | {1})",
    "x.bitwise_xor": "({0} ^ {1})",
    "x.fmod": "fmod_{value}({0}, {1})",
    "x.mod": "mod_{value}({0}, {1})",
    "x.shift_left": "shifted_left_pair({0}, {1})",
    "x.shift_right": "shifted_right_{value}({0}, {1})",
}
"""By operator; `{value}` is the WGSL type of the operands."""

_LIBRARY = {
    "div": ("div_{value}",),
    "pow": ("pow_{value}",),
    "x.fmod": ("remainder_{value}",),
    "x.mod": ("remainder_{value}",),
    "x.shift_left": ("shifts_pair",),
    "x.shift_right": ("shifts_pair",),
}
"""The library files that formulas call besides `pair` and the type's own."""


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
    own = [file.replace("{value}", value) for file in _LIBRARY.get(op, ())]
    return replace(native, code=_FORMULAS[op].replace("{value}", value), lib=("pair", value, *own))


def _cast(source: str, target: str) -> Formula:
    if source in PAIRS and target in PAIRS:
        return Formula("{0}", ("pair",))
    if source in PAIRS:
        if target == "f32":
            return Formula(f"{source}_to_f32({{0}})", (f"{source}_to_f32",))
        return Formula("bitcast<i32>({0}.x)" if target == "i32" else "{0}.x", ("pair",))
    if source == "f32":
        return Formula(f"f32_to_{target}({{0}})", (f"f32_to_{target}",))
    words = "bitcast<u32>({0}), bitcast<u32>({0} >> 31u)" if source == "i32" else "{0}, 0u"
    return Formula(f"{target}({words})", ("pair",))
