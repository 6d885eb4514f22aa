"""Fewer kernels: those that end in nothing, in relu or in a clamp become one that clamps.

A kernel costs a driver up to half a second the first time. Matrix products and convolutions come with one end for each
activation behind them; of these, no activation is a clamp to the infinities and relu one to 0 and infinity, bit for bit: the
library's max and min keep NaN and the signs of zeros.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..kernels.expression import OPAQUE_ZERO, Expression, Step
from ..kernels.spec import KernelCall, KernelSpec

_ARGS = (("x0", "f32"),)
_FIELDS = (("y0_low", "f32"), ("y0_high", "f32"))
_CLAMP = Expression(
    _ARGS, (Step("y0", "f32", "min_f32(max_f32(x0, params.y0_low), params.y0_high)"),), "y0", "f32", ("max", "min")
)
_RELU = "max_f32(x0, 0.0)"


def share_kernels(calls: Sequence[KernelCall]) -> list[KernelCall]:
    """Return the calls with kernels that differ in their clamps alone replaced by one, where there are several."""
    forms: defaultdict[KernelSpec, set[KernelSpec]] = defaultdict(set)
    clamped = [_clamped(call) for call in calls]
    for call, form in zip(calls, clamped, strict=True):
        if form is not None:
            forms[form.spec].add(call.spec)
    return [form if form is not None and len(forms[form.spec]) > 1 else call for call, form in zip(calls, clamped, strict=True)]


def _clamped(call: KernelCall) -> KernelCall | None:
    """Return a call with a clamp at its end that does the same; None if it ends otherwise."""
    params: dict[str, Any] = dict(call.spec.params)
    if "c_read" not in params:  # matrix products and convolutions have it: `shaders/lib/product.wgsl.j2` writes their ends
        return None
    expression: Expression | None = params["expression"]
    # What is scaled or added to is hidden from simplification before an expression takes it.
    hidden = ((OPAQUE_ZERO, "u32"),) if params.get("alpha") or params["c_read"] else ()
    fields, values = call.spec.uniforms, call.uniforms
    if expression == _CLAMP:
        return call
    if expression is None and call.spec.bindings[-1].element == "float32":
        low = -math.inf
    elif expression is not None and expression.args == _ARGS and [s.code for s in expression.steps] == [_RELU]:
        low = 0.0
        fields, values = fields[: len(fields) - len(hidden)], values[: len(values) - len(hidden)]
    else:
        return None
    spec = replace(
        call.spec,
        params=tuple((name, _CLAMP if name == "expression" else value) for name, value in call.spec.params),
        uniforms=(*fields, *_FIELDS, *hidden),
    )
    reason = f"{call.reason}; shares a kernel that clamps" if call.reason else "shares a kernel that clamps"
    return replace(call, spec=spec, uniforms=(*values, low, math.inf, *[0] * len(hidden)), reason=reason)
