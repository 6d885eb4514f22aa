"""Sums, or products, of all elements up to each, along one dimension.

Kernels sum floats in float32, in blocks, and round once. Integers wrap. Kernels cut long rows into parts: they first compute
the cumulative sums of the parts' totals, and each part then starts with the total of the preceding parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np

from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import ELEMENTS, PAIRS, QUAD, element_of
from ..kernels.spec import Binding, Interval, KernelCall, KernelTemplate, Temp
from ..kernels.windows import strided_span
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._reduction import VARIANTS, Field, RowView, choose_variant, row_launch, row_work, side_by_side, view_rows
from ._reduction_functions import arithmetic
from ._rows import to_type, wide
from ._strided_copy import STRIDED, strided_call
from .gradients import reductions as reductions_gradients
from .interfaces.bounds import CONDITIONED, sums
from .interfaces.cost import per_element
from .interfaces.documentation import REDUCTIONS, SORTING_EXTENSIONS, Documentation
from .interfaces.family import Family
from .reduce import REDUCE, SUMMABLE, ReduceTensor, number_of_parts, parts_needed, totals_of_parts

CUMULATIVE_SUM = KernelTemplate(
    "cumulative_sum", ("variant", "form", "operation", "neutral", "exclusive", "reversed", "rows"), VARIANTS
)

Operation: TypeAlias = Literal["sum", "product"]


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x = call.input()
    call.axis(call.attrs["axis"], x.rank)
    return (x,)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
    return _cumulated(arrays, attrs, outputs, np.add)


def _product_reference(arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
    return _cumulated(arrays, attrs, outputs, np.multiply)


def _cumulated(
    arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...], operation: np.ufunc
) -> list[Array]:
    x, axis = arrays[0], attrs["axis"]
    assert x is not None
    values = wide(x)
    if attrs["reversed"]:
        values = np.flip(values, axis)
    if attrs["exclusive"]:
        first = np.full_like(values.take([0], axis), operation.identity)
        values = np.concatenate([first, values.take(range(x.shape[axis] - 1), axis)], axis)
    with np.errstate(all="ignore"):
        sums = operation.accumulate(values, axis, dtype=values.dtype)
    return [to_type(np.flip(sums, axis) if attrs["reversed"] else sums, outputs[0])]


def _scan_calls(
    low: Lowering, operation: Operation, source: ReduceTensor, axis: int, target: ReduceTensor, *, exclusive: bool, key: str
) -> list[KernelCall]:
    """Return the calls that compute the cumulative sums of one tensor along a dimension.

    Args:
        low: the node.
        operation: the operation between elements.
        source: the tensor that the calls read.
        axis: the dimension.
        target: the tensor that the calls write, of the same shape.
        exclusive: whether the sum of an element leaves out the element itself.
        key: the prefix of the names of scratch memory.
    """
    step = arithmetic(operation, ELEMENTS[source.element].value)
    length, inner = source.shape[axis], math.prod(source.shape[axis + 1 :])
    view = view_rows(source.shape, (axis,))
    # Its workgroups need the sums of all invocations before each, not those of all.
    variant = replace(choose_variant(low, view, subgroups=ELEMENTS[step.element].size_bytes == 4), by_subgroups=False)
    # An item consists of four neighbors: of four rows, or of one.
    form = "single"
    # There are no vectors of pairs.
    if step.type not in PAIRS:
        columns = inner % QUAD == 0 and variant.lanes == 1
        form = "columns" if columns else "quads" if inner == 1 and length % QUAD == 0 else "single"
    rows = view.kept.size // (QUAD if form == "columns" else 1)
    items = length // (QUAD if form == "quads" else 1)
    parts = number_of_parts(rows, items, variant.lanes, low.target)
    needed = parts_needed(view, source.element, low.caps)
    if 8 * needed > length and needed > 1:
        return _side_by_side_calls(low, operation, view, source, axis, target, exclusive=exclusive, key=key)
    parts = max(parts, needed)
    calls: list[KernelCall] = []
    chunk, starts = length, None
    if parts > 1:
        chunk = -(-length // (parts * QUAD)) * QUAD
        totals_call, totals = totals_of_parts(low, step, source, axis, chunk, f"{key} totals")
        scratch = Temp(f"{key} starts", math.prod(totals.shape) * ELEMENTS[step.element].size_bytes)
        starts = ReduceTensor(scratch, step.element, totals.shape)
        calls += [totals_call, *_scan_calls(low, operation, totals, 0, starts, exclusive=True, key=key + "'")]
    parts = -(-length // chunk)
    shape = replace(variant.shape(view, quads=form != "single"), kept_rank=1, reduced_rank=1)
    item = QUAD if form == "quads" else 1
    iterations = min(chunk, length) // item // variant.lanes * 34 // 32 + 2
    launch, grid = row_launch(shape, rows * parts, low.target, "units", iterations)
    # Rows that are counted together.
    width = QUAD if form == "columns" else 1
    fields: list[Field] = [
        *launch,
        ("rows", "u32", rows),
        ("items", "u32", items),
        ("chunk", "u32", chunk // item if parts > 1 else items),
        # In items, along which everything is counted.
        ("inner", "u32", inner // QUAD if form == "columns" else inner),
    ]
    quad = form != "single"
    bindings = [Binding(name="input", access="read", element=source.element, quad=quad)]
    operands = [source.resource]
    if starts is not None:
        bindings.append(Binding(name="starts", access="read", element=starts.element, quad=form == "columns"))
        operands.append(starts.resource)
    bindings.append(Binding(name="output", access="write", element=target.element, quad=quad))
    operands.append(target.resource)
    spec = CUMULATIVE_SUM.spec(
        bindings,
        [(name, type_) for name, type_, _ in fields],
        features=variant.features,
        variant=variant.name,
        form=form,
        operation=operation,
        neutral=step.zero,
        exclusive=exclusive,
        reversed=low.attrs["reversed"],
        rows=shape,
    )
    reason = variant.reason + (f", in {parts} parts" if parts > 1 else "")

    def reach(first: int, end: int) -> list[Interval]:
        one_part = first // rows == (end - 1) // rows
        touched = (first % rows * width, ((end - 1) % rows + 1) * width) if one_part else (0, view.kept.size)
        low_row, past_row = strided_span(view.kept.dims, view.kept.strides, *touched)
        last = min(((end - 1) // rows + 1) * chunk, length) - 1
        elements = low_row + first // rows * chunk * inner, past_row + last * inner
        return [elements, *([(first * width, end * width)] if starts else []), elements]

    work = row_work(shape, rows * parts, low.target, reach, "units", iterations)
    return [
        *calls,
        KernelCall(
            spec=spec, operands=tuple(operands), uniforms=tuple(v for *_, v in fields), grid=grid, reason=reason, work=work
        ),
    ]


def _side_by_side_calls(
    low: Lowering,
    operation: Operation,
    view: RowView,
    source: ReduceTensor,
    axis: int,
    target: ReduceTensor,
    *,
    exclusive: bool,
    key: str,
) -> list[KernelCall]:
    """Return the calls that sum up rows whose elements lie so far apart that few fit a binding: of a copy, and back."""
    length, inner = source.shape[axis], math.prod(source.shape[axis + 1 :])
    outer, shape = math.prod(source.shape[:axis]), (view.kept.size, length)
    together, copy = side_by_side(view, source.resource, source.element, low.target, f"{key} side by side")
    sums = Temp(f"{key} sums", together.size_bytes)
    rows = ReduceTensor(together, source.element, shape)
    calls = _scan_calls(low, operation, rows, 1, ReduceTensor(sums, source.element, shape), exclusive=exclusive, key=key + "'")
    strides = (inner * length, 1, length)
    dims = (outer, length, inner)
    back = strided_call(sums, source.element, 0, dims, strides, target.resource, low.target, "rows apart")
    return [copy, *calls, back]


def _lower(low: Lowering, operation: Operation = "sum") -> list[KernelCall]:
    x = low.input()
    element = element_of(x.data_type, low.caps)
    source = ReduceTensor(low.value(0), element, x.shape)
    target = ReduceTensor(low.node.outputs[0], element, x.shape)
    return _scan_calls(low, operation, source, low.attrs["axis"], target, exclusive=bool(low.attrs["exclusive"]), key="parts")


def _terms(attrs: Attrs, operands: Sequence[Array | None]) -> int:
    x = operands[0]
    assert x is not None
    return x.shape[attrs["axis"]]


OPS = (
    OpDef(
        name="cumulativeSum",
        operands=(Operand(name="input", data_types=SUMMABLE, min_rank=1),),
        infer=_infer,
        reference=_reference,
        lower=_lower,
        attrs=(Attr("axis", "uint"), Attr("exclusive", "bool", False), Attr("reversed", "bool", False)),
        templates=(CUMULATIVE_SUM, REDUCE, STRIDED),
        spec="#api-mlgraphbuilder-cumulativesum",
        family=Family.REDUCTION,
        without=("elementwise", "epilogue", "movement", "layout", "precision"),
        cost=per_element(),
        bounds=sums(_terms),
        documentation=Documentation(
            group=REDUCTIONS,
            summary="Sum of all elements up to each element, along a dimension.",
            arguments={
                "input": "{types}, with rank 1 or more.",
                "axis": "The dimension.",
                "exclusive": "Whether an element's own value is left out of its sum, so that the first sum is 0.",
                "reversed": "Whether sums run from the last element to the first.",
            },
            returns="An operand with the input's data type and shape.",
            raises="The axis is not a dimension of the input, the data type is not allowed",
            numerics="Integers wrap around. After a NaN, or after infinities of both signs, all sums are NaN.",
            example="""
                >>> b.cumulative_sum(x, 1, exclusive=True).shape
                (2, 3)
            """,
        ),
        gradient=reductions_gradients.cumulative_sum,
    ),
    OpDef(
        name="x.cumulative_product",
        operands=(Operand(name="input", data_types=SUMMABLE, min_rank=1),),
        infer=_infer,
        reference=_product_reference,
        lower=lambda low: _lower(low, "product"),
        attrs=(Attr("axis", "uint"), Attr("exclusive", "bool", False), Attr("reversed", "bool", False)),
        templates=(CUMULATIVE_SUM, REDUCE),
        family=Family.REDUCTION,
        without=("elementwise", "epilogue", "movement", "layout", "precision"),
        cost=per_element(),
        bounds=CONDITIONED,
        documentation=Documentation(
            group=SORTING_EXTENSIONS,
            summary="Product of all elements up to each element, along a dimension.",
            arguments={
                "input": "{types}, with rank 1 to 8.",
                "axis": "The dimension.",
                "exclusive": "Whether an element's own value is left out of its product, so that the first product is 1.",
                "reversed": "Whether products start at the end of the dimension.",
            },
            returns="An operand with the input's data type and shape.",
            raises="The axis or the data type is not allowed",
            numerics="Floats are multiplied in float32, in blocks, and rounded once. Integers wrap around.",
            example="""
                >>> b.ext.cumulative_product(x, 1).shape
                (2, 3)
            """,
        ),
        gradient=reductions_gradients.cumulative_product,
    ),
)
