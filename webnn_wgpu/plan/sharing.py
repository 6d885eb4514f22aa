"""Fewer kernels: those that end in nothing, in relu or in a clamp become one that clamps, and those that add one that may add.

A kernel costs a driver up to half a second the first time. Matrix products and convolutions come with one end for each
activation behind them; of these, no activation is a clamp to the infinities and relu one to 0 and infinity, bit for bit: the
library's functions keep NaN and the signs of zeros. Products in the registers of a subgroup, which take longest to compile,
also come with and without a tensor that is added at their end: a uniform tells whether it is.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ..kernels.expression import OPAQUE_ZERO, Expression, Step, hide_last
from ..kernels.spec import Binding, KernelCall, KernelSpec, UniformType

_ARGS = (("x0", "f32"),)
_Field: TypeAlias = tuple[str, UniformType]
_FIELDS: tuple[_Field, ...] = (("y0_low", "f32"), ("y0_high", "f32"))
_CLAMP = Expression(_ARGS, (Step("y0", "f32", "clamp_f32(x0, params.y0_low, params.y0_high)"),), "y0", "f32", ("clamp",))
_HIDDEN: _Field = (OPAQUE_ZERO, "u32")
ADDS: _Field = ("adds", "u32")
"""The uniform that tells whether a call adds the tensor that its kernel may add."""
_RELU = "max_f32(x0, 0.0)"


def share_kernels(calls: Sequence[KernelCall]) -> list[KernelCall]:
    """Return the calls with kernels that differ in their clamps or last addends alone replaced by one, where several do."""
    return _merged(_merged(calls, _clamped), _adding)


def _merged(calls: Sequence[KernelCall], general: Callable[[KernelCall], KernelCall | None]) -> list[KernelCall]:
    """Return the calls, with those in their general form whose kernels that makes fewer; None is the form of other calls."""
    specs: defaultdict[KernelSpec, set[KernelSpec]] = defaultdict(set)
    forms = [general(call) for call in calls]
    for call, form in zip(calls, forms, strict=True):
        if form is not None:
            specs[form.spec].add(call.spec)
    return [form if form is not None and len(specs[form.spec]) > 1 else call for call, form in zip(calls, forms, strict=True)]


def _clamped(call: KernelCall) -> KernelCall | None:
    """Return a call with a clamp at its end that does the same; None if it ends otherwise."""
    params: dict[str, Any] = dict(call.spec.params)
    if "c_read" not in params:  # matrix products and convolutions have it: `shaders/lib/product.wgsl.j2` writes their ends
        return None
    expression: Expression | None = params["expression"]
    # What is scaled or added to is hidden from simplification before an expression takes it.
    hidden = (_HIDDEN,) if params.get("alpha") or params["c_read"] else ()
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
    uniforms = (*values, low, math.inf, *[0] * len(hidden))
    return replace(call, spec=spec, uniforms=uniforms, reason=_reason(call, "clamps"))


def _adding(call: KernelCall) -> KernelCall | None:
    """Return a call that may add a tensor of the result's shape at its end, and then clamps, and does the same."""
    spec, params = call.spec, dict[str, Any](call.spec.params)
    if spec.template != "matmul.subgroup" or any(b.element != "float32" or b.window for b in spec.bindings):
        return None
    expression: Expression = params["expression"] or Expression(_ARGS, (), "x0", "f32", ())
    reads: tuple[str, ...] = params["extra_reads"]
    values: dict[_Field, int | float] = dict(zip(spec.uniforms, call.uniforms, strict=True))
    values.pop(_HIDDEN, None)
    limits = dict(zip(_FIELDS, (-math.inf, math.inf), strict=True))
    if expression == _CLAMP:
        limits = {field: values.pop(field) for field in _FIELDS}
        expression = replace(expression, steps=(), result="x0")
    sum_ = _sum_at_end(expression) if reads[-1:] == ("full",) else None
    bindings, operands, args, steps = spec.bindings, call.operands, expression.args, expression.steps
    if sum_ is None:
        # The kernel reads one quad of the left factor in place of an addend, and does not use it.
        sum_ = expression.result, f"x{len(args)}"
        steps, args = hide_last(steps), (*args, (sum_[1], "f32"))
        bindings = (*bindings[:-1], Binding(f"extra{len(reads)}", "read", quad=bindings[-1].quad), bindings[-1])
        operands = (*operands[:-1], operands[0], operands[-1])
        adds = 0
    else:
        steps, reads, adds = steps[:-1], reads[:-1], 1
    before, addend = sum_
    added = Step("sum", "f32", f"select({before}, {before} + {addend}, params.{ADDS[0]} != 0u)")
    values[ADDS] = adds
    if steps:
        expression = replace(expression, args=args, steps=(*steps, added), result=added.name)
    else:
        clamp = replace(_CLAMP.steps[0], code=_CLAMP.steps[0].code.replace("x0", added.name))
        expression = replace(_CLAMP, args=args, steps=(added, clamp))
        values |= limits
    values[_HIDDEN] = 0
    params |= {"expression": expression, "extra_reads": (*reads, "switched")}
    spec = replace(spec, params=tuple(params.items()), bindings=bindings, uniforms=tuple(values))
    return replace(call, spec=spec, operands=operands, uniforms=tuple(values.values()), reason=_reason(call, "may add"))


def _sum_at_end(expression: Expression) -> tuple[str, str] | None:
    """Return the terms of the sum that an expression ends in, if the second is its last argument."""
    names = ["x0", *(step.name for step in expression.steps)]
    codes = ["", *(step.code for step in expression.steps)]
    before, addend = names[-2:][0], expression.args[-1][0]
    return (before, addend) if codes[-1] in (f"({addend} + {before})", f"({before} + {addend})") else None


def _reason(call: KernelCall, what: str) -> str:
    return "; ".join(filter(None, (call.reason, f"shares a kernel that {what}")))
