"""Sums of all elements up to each, along one dimension.

Floats are summed in float32, in blocks, and rounded once; integers wrap. Long rows are cut into parts: the sums of the parts
are summed up first, and each part then starts where the parts before it end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..core.data_types import DATA_TYPES
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import ELEMENTS, QUAD
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Temp
from ..kernels.spec import Operand as Resource
from ._attrs import Attr
from ._def import Call, Lowering, OpDef, Operand
from ._reduction import VARIANTS, Field, choose_variant, row_launch, view_rows
from ._rows import to_type, wide
from .reduce import REDUCE, SUMMABLE, Tensor, arithmetic, number_of_parts, totals_of_parts

CUMULATIVE_SUM = KernelTemplate("cumulative_sum", ("variant", "form", "exclusive", "reversed", "rows"), VARIANTS)


def _infer(call: Call) -> tuple[TensorType, ...]:
    x = call.input()
    call.axis(call.attrs["axis"], x.rank)
    return (x,)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
    x, axis = arrays[0], attrs["axis"]
    assert x is not None
    values = wide(x)
    if attrs["reversed"]:
        values = np.flip(values, axis)
    if attrs["exclusive"]:
        first = np.zeros_like(values.take([0], axis))
        values = np.concatenate([first, values.take(range(x.shape[axis] - 1), axis)], axis)
    with np.errstate(all="ignore"):
        sums = np.cumsum(values, axis, dtype=values.dtype)
    return [to_type(np.flip(sums, axis) if attrs["reversed"] else sums, outputs[0])]


def _scan_calls(
    low: Lowering, source: Tensor, axis: int, target: Resource, target_type: str, *, exclusive: bool, key: str
) -> list[KernelCall]:
    """Return the calls that sum one tensor up along a dimension.

    Args:
        low: the node.
        source: what is read.
        axis: the dimension.
        target: what is written, of the same shape.
        target_type: its data type.
        exclusive: whether an element's own value is left out of its sum.
        key: what scratch memory is named after.
    """
    value = ELEMENTS[source.data_type].value
    step = arithmetic("sum", "x", "t", (), value)
    length, inner = source.shape[axis], math.prod(source.shape[axis + 1 :])
    view = view_rows(source.shape, (axis,))
    variant = choose_variant(low, view, subgroups=DATA_TYPES[step.element].size_bytes == 4)
    # An item is four neighbours: of four rows, or of one.
    form = "columns" if inner % QUAD == 0 and variant.lanes == 1 else "quads" if inner == 1 and length % QUAD == 0 else "single"
    rows = view.kept.size // (QUAD if form == "columns" else 1)
    items = length // (QUAD if form == "quads" else 1)
    parts = number_of_parts(rows, items, variant.lanes, low.caps)
    calls: list[KernelCall] = []
    chunk, starts = length, None
    if parts > 1:
        chunk = -(-length // (parts * QUAD)) * QUAD
        totals_call, totals = totals_of_parts(low, step, source, axis, chunk, f"{key} totals")
        starts = Temp(f"{key} starts", math.prod(totals.shape) * DATA_TYPES[step.element].size_bytes)
        calls += [totals_call, *_scan_calls(low, totals, 0, starts, step.element, exclusive=True, key=key + "'")]
    parts = -(-length // chunk)
    shape = replace(variant.shape(view, quads=form != "single"), kept_rank=1, reduced_rank=1)
    item = QUAD if form == "quads" else 1
    iterations = min(chunk, length) // item // variant.lanes * 34 // 32 + 2
    launch, grid = row_launch(shape, rows * parts, low.caps, "units", iterations)
    fields: list[Field] = [
        *launch,
        ("rows", "u32", rows),
        ("items", "u32", items),
        ("chunk", "u32", chunk // item if parts > 1 else items),
        # In items, along which everything is counted.
        ("inner", "u32", inner // QUAD if form == "columns" else inner),
    ]
    quad = form != "single"
    bindings = [Binding("input", "read", source.data_type, quad=quad)]
    operands = [source.resource]
    if starts is not None:
        bindings.append(Binding("starts", "read", step.element, quad=form == "columns"))
        operands.append(starts)
    bindings.append(Binding("output", "write", target_type, quad=quad))
    operands.append(target)
    spec = CUMULATIVE_SUM.spec(
        bindings,
        [(name, type_) for name, type_, _ in fields],
        features=variant.features,
        variant=variant.name,
        form=form,
        exclusive=exclusive,
        reversed=low.attrs["reversed"],
        rows=shape,
    )
    reason = variant.reason + (f", in {parts} parts" if parts > 1 else "")
    return [*calls, KernelCall(spec, tuple(operands), tuple(v for *_, v in fields), grid, reason)]


def _lower(low: Lowering) -> list[KernelCall]:
    x = low.input()
    source = Tensor(low.value(0), x.data_type, x.shape)
    exclusive = bool(low.attrs["exclusive"])
    return _scan_calls(low, source, low.attrs["axis"], low.node.outputs[0], x.data_type, exclusive=exclusive, key="parts")


OPS = (
    OpDef(
        "cumulativeSum",
        (Operand("input", SUMMABLE, min_rank=1),),
        _infer,
        _reference,
        _lower,
        attrs=(Attr("axis", "uint"), Attr("exclusive", "bool", False), Attr("reversed", "bool", False)),
        templates=(CUMULATIVE_SUM, REDUCE),
        spec="#api-mlgraphbuilder-cumulativesum",
    ),
)
