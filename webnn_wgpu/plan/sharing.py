"""Merges kernels that differ only in the clamp of their epilogue, in an addend, or in their tiles.

The first use of a kernel costs a driver up to half a second. Matrix products and convolutions have one epilogue for each
activation behind them. No activation is a clamp to the infinities, and relu is a clamp to 0 and infinity, bit for bit: the
library's functions keep NaN and the signs of zeros. Products in the registers of a subgroup, which take longest to compile,
exist with and without an added tensor. A uniform can switch the addition off. Such products also exist in tiles of many sizes.
A short product runs in the tiles of others, although they do not suit it best.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ..costs import Target, Tile
from ..kernels.expression import Expression, LetStatement, hide_last
from ..kernels.notation import term
from ..kernels.spec import KernelCall, KernelSpec, Tiling, UniformType
from ..kernels.terms import OPAQUE_ZERO, Infix, Parentheses, Symbol
from ..kernels.tiles import retiled

_ARGS = (("x0", "f32"),)
_Field: TypeAlias = tuple[str, UniformType]
_FIELDS: tuple[_Field, ...] = (("y0_low", "f32"), ("y0_high", "f32"))
_CLAMP_STEP = LetStatement("y0", "f32", term("clamp_f32(x0, params.y0_low, params.y0_high)"))
_CLAMP = Expression(args=_ARGS, steps=(_CLAMP_STEP,), result="y0", type="f32", lib=("clamp",))
_HIDDEN: _Field = (OPAQUE_ZERO, "u32")
ADDS: _Field = ("adds", "u32")
"""The uniform that states whether a call adds the optional operand of its kernel."""
_ADDED = term(f"select(before, before + addend, params.{ADDS[0]} != 0u)")
_RELU = term("max_f32(x0, 0.0)")


def share_kernels(calls: Sequence[KernelCall], target: Target) -> list[KernelCall]:
    """Return the calls with kernels that differ in their clamps, last addends or tiles alone replaced by one."""
    if target.costs.sharing.merges:
        calls = _merged(_merged(_merged(calls, _clamped), _adding), _with_addend, _untiled)
    return _in_fewer_tiles(calls, target)


def _merged(
    calls: Sequence[KernelCall],
    general: Callable[[KernelCall], KernelCall | None],
    kind: Callable[[KernelSpec], KernelSpec] = lambda spec: spec,
) -> list[KernelCall]:
    """Return the calls, with the general form of each call whose kind would otherwise have several kernels.

    Args:
        calls: all calls.
        general: returns the general form of a call, or None if it has none.
        kind: returns equal values for kernels of general forms that may become one. By default, each kernel is its own kind.
    """
    specs: defaultdict[KernelSpec, set[KernelSpec]] = defaultdict(set)
    forms = [general(call) for call in calls]
    for call, form in zip(calls, forms, strict=True):
        if form is not None:
            specs[kind(form.spec)].add(call.spec)
    return [call if form is None or len(specs[kind(form.spec)]) == 1 else form for call, form in zip(calls, forms, strict=True)]


def _clamped(call: KernelCall) -> KernelCall | None:
    """Return an equivalent call with a clamp in its epilogue. None if it has another epilogue."""
    params: dict[str, Any] = dict(call.spec.params)
    # Matrix products and convolutions have it. `shaders/lib/product.wgsl.j2` writes their epilogues. Those that store means
    # have further uniforms behind.
    if "c_read" not in params or "pooled" in params:
        return None
    expression: Expression | None = params["expression"]
    # A scaled value, or a sum, is hidden from simplification before the expression applies to it.
    hidden = (_HIDDEN,) if params.get("alpha") or params["c_read"] else ()
    fields, values = call.spec.uniforms, call.uniforms
    if expression == _CLAMP:
        return call
    if expression is None and call.spec.bindings[-1].element == "float32":
        low = -math.inf
    elif expression is not None and expression.args == _ARGS and [s.code for s in expression.steps] == [_RELU]:
        low = 0.0
    else:
        return None
    if hidden and fields[-1] == _HIDDEN:
        fields, values = fields[:-1], values[:-1]
    spec = replace(
        call.spec,
        params=tuple((name, _CLAMP if name == "expression" else value) for name, value in call.spec.params),
        uniforms=(*fields, *_FIELDS, *hidden),
    )
    uniforms = (*values, low, math.inf, *[0] * len(hidden))
    return replace(call, spec=spec, uniforms=uniforms, reason=_reason(call, "clamp"))


def _adding(call: KernelCall) -> KernelCall | None:
    """Return a call that may add a tensor of the result's shape at its end, and then clamps, and does the same."""
    spec, params = call.spec, dict[str, Any](call.spec.params)
    if spec.template != "matmul.subgroup" or any(b.element != "float32" or b.window for b in spec.bindings):
        return None
    expression: Expression = params["expression"] or Expression(args=_ARGS, steps=(), result="x0", type="f32", lib=())
    if expression.others:
        return None
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
        read = replace(bindings[-1], name=f"extra{len(reads)}", access="read")
        bindings = (*bindings[:-1], read, bindings[-1])
        operands = (*operands[:-1], operands[0], operands[-1])
        adds = 0
    else:
        steps, reads, adds = steps[:-1], reads[:-1], 1
    before, addend = sum_
    added = LetStatement("sum", "f32", _ADDED.substituted({"before": Symbol(before), "addend": Symbol(addend)}))
    values[ADDS] = adds
    if steps:
        expression = replace(expression, args=args, steps=(*steps, added), result=added.name)
    else:
        clamp = replace(_CLAMP_STEP, code=_CLAMP_STEP.code.substituted({"x0": Symbol(added.name)}))
        expression = replace(_CLAMP, args=args, steps=(added, clamp))
        values |= limits
    values[_HIDDEN] = 0
    params |= {"expression": expression, "extra_reads": (*reads, "switched")}
    spec = replace(spec, params=tuple(params.items()), bindings=bindings, uniforms=tuple(values))
    return replace(call, spec=spec, operands=operands, uniforms=tuple(values.values()), reason=_reason(call, "add a tensor"))


def _with_addend(call: KernelCall) -> KernelCall | None:
    """Return a call whose end is to add a vector with that as the product's own addend, which the bias of others is."""
    spec, params = call.spec, dict[str, Any](call.spec.params)
    if "c_read" not in params or any(b.element != "float32" for b in spec.bindings):
        return None
    expression: Expression | None = params["expression"]
    if expression is None:
        return call if params["c_read"] == "columns" else None
    alone = len(expression.steps) == 1 and _sum_at_end(expression) is not None
    if not alone or params["c_read"] or params["extra_reads"] != ("columns",) or params.get("alpha"):
        return None
    bindings = tuple(replace(b, name="c") if b.name == "extra0" else b for b in spec.bindings)
    params |= {"c_read": "columns", "expression": None, "extra_reads": ()}
    reason = _reason(call, "add a vector")
    return replace(call, spec=replace(spec, params=tuple(params.items()), bindings=bindings), reason=reason)


def _in_fewer_tiles(calls: Sequence[KernelCall], target: Target) -> list[KernelCall]:
    """Return the calls. Kernels that lose little time in the tiles of another kernel are replaced by that kernel."""
    kinds: defaultdict[KernelSpec, defaultdict[KernelSpec, list[int]]] = defaultdict(lambda: defaultdict(list))
    for i, call in enumerate(calls):
        if call.tiling is not None:
            kinds[_untiled(call.spec)][call.spec].append(i)
    found = list(calls)
    for users in kinds.values():
        while (least := _least_lost(found, users, target)) is not None:
            spec, changed = least
            moved = users.pop(spec)
            users[changed[0].spec] += moved
            for i, call in zip(moved, changed, strict=True):
                found[i] = call
    return [
        call if new is call else replace(new, reason=_reason(call, "its tiles suit better"))
        for call, new in zip(calls, found, strict=True)
    ]


def _least_lost(
    calls: Sequence[KernelCall], users: Mapping[KernelSpec, Sequence[int]], target: Target
) -> tuple[KernelSpec, list[KernelCall]] | None:
    """Return the kernel whose calls lose least time in the tiles of another, and its retiled calls.

    None if all lose too much.

    Args:
        calls: all calls.
        users: the kernels that differ only in their tiles, with the positions of their calls.
        target: the device.
    """
    costs = target.costs.sharing

    def nanoseconds(tiling: Tiling, tile: Tile) -> float:
        return target.costs.products.tile_nanoseconds(tiling.size, *tile, texture=True)

    tilings = {spec: [t for i in own if (t := calls[i].tiling)] for spec, own in users.items()}
    lost = {
        (spec, other): sum(nanoseconds(t, tilings[other][0].tile) - costs.certain_share * nanoseconds(t, t.tile) for t in own)
        for spec, own in tilings.items()
        for other in tilings
        if other is not spec
    }
    for spec, other in sorted((pair for pair in lost if lost[pair] < costs.worth_a_kernel_ns), key=lost.__getitem__):
        tile = tilings[other][0].tile
        changed = [call for i in users[spec] if (call := retiled(calls[i], tile, target.caps)) and call.spec == other]
        if len(changed) == len(users[spec]):
            return spec, changed
    return None


def _untiled(spec: KernelSpec) -> KernelSpec:
    """Return a spec that is equal for kernels that differ only in their tiles."""
    return replace(spec, params=tuple((n, v) for n, v in spec.params if n not in ("rows", "quads", "rest")))


def _sum_at_end(expression: Expression) -> tuple[str, str] | None:
    """Return the terms of the sum that an expression ends in, if the second is its last argument."""
    if not expression.steps:
        return None
    *others, last = expression.steps
    before, addend = others[-1].name if others else "x0", expression.args[-1][0]
    match last.code:
        case Parentheses(Infix("+", Symbol(left), Symbol(right))) if (left, right) in ((before, addend), (addend, before)):
            return before, addend
        case _:
            return None


def _reason(call: KernelCall, what: str) -> str:
    return "; ".join(filter(None, (call.reason, f"shares its kernel with operators that {what}")))
