"""The ten reductions, one row each: a function of an element, the operation between elements, a function of its result.

Kernels reduce floats in float32, in blocks, and round once. Integers wrap. The maximum and minimum are NaN if any element is
NaN. With an empty list of axes, the functions apply to every element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ..core.caps import Caps
from ..core.data_types import ANY, DATA_TYPES, FLOATS
from ..core.wording import counted
from ..costs import Target
from ..costs.rows import SHARING_INVOCATIONS, SharedColumns
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import ELEMENTS, PAIRS, QUAD, element_of, padded_bytes
from ..kernels.spec import Binding, Interval, KernelCall, KernelTemplate, Reach, Temp, grid_1d
from ..kernels.spec import Operand as Resource
from ..kernels.windows import strided_span
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._element_epilogue import EPILOGUE_PARAMS, NO_EPILOGUE, ElementEpilogue, element_epilogue
from ._quads import OCTET, in_wide_words, quad_launch, quad_work, reads_octets
from ._reduction import (
    PLAIN_WORKGROUP,
    VARIANTS,
    Axis,
    Field,
    RowView,
    Variant,
    choose_variant,
    reduced_shape,
    row_launch,
    row_work,
    rows_fit,
    side_by_side,
    view_rows,
)
from ._reduction_bounds import LOG_SUM, LOG_SUM_EXP, PRODUCT, ROOT, SUM
from ._reduction_documentation import reduction_documentation
from ._reduction_functions import ReductionStep, T, X, arithmetic, extremum
from ._rows import to_type, wide
from .gradients import reductions as reductions_gradients
from .interfaces.bounds import EXACT, Bounds, mean_reached
from .interfaces.cost import per_element
from .interfaces.epilogue import TakesEpilogue
from .interfaces.family import Family
from .interfaces.gradient import GradientRule
from .interfaces.layout import ChannelsLast, Layout, moved, to_last

REDUCE = KernelTemplate(
    "reduce",
    ("variant", "form", "rows", "loads", "whole", "step", *EPILOGUE_PARAMS),
    VARIANTS,
    optional=EPILOGUE_PARAMS,
)

_SET = 4
"""Items that an invocation of the form `octets` reads at once."""

REDUCTION_EPILOGUE = TakesEpilogue(parts=False, pays=lambda costs: costs.passes.fuses_behind_reductions)
"""The fusion behind reductions and pools."""

_MEAN = "t / params.length"

REDUCE_SUM = "reduceSum"

SUMMABLE = ("float32", "float16", "int32", "uint32", "int64", "uint64")

_OF_COLUMNS = ("columns", "shared")
"""The forms of the kernel that read four neighboring columns at once."""

_WORDS = ("f32", "i32", "u32")
"""The types of values of which invocations combine several at once."""

_MOST_SERIAL = 4096
"""Items one invocation folds at most: 128 blocks of 32, which keeps float32 sums within some 160 roundings of exact."""


@dataclass(frozen=True)
class ReduceTensor:
    """A tensor that a kernel call reads or writes.

    Attributes:
        resource: the memory.
        element: the element kind.
        shape: the shape, for reading.
        epilogue: the epilogue that the call applies before it stores an element, for writing.
    """

    resource: Resource
    element: str
    shape: tuple[int, ...] = ()
    epilogue: ElementEpilogue = NO_EPILOGUE


def result_tensor(low: Lowering, axis: int = -1) -> ReduceTensor:
    """Return the tensor that the kernels of a node write, with its epilogue.

    Args:
        low: the node.
        axis: the dimension along which the epilogue may read a vector, counted from the end.
    """
    value = low.epilogue.output if low.epilogue else low.node.outputs[0]
    element = element_of(low.graph.type(value).data_type, low.caps)
    return ReduceTensor(value, element, epilogue=element_epilogue(low, axis))


def number_of_parts(rows: int, items: int, lanes: int, target: Target) -> int:
    """Return how many parts a row is cut into, so that the device is busy and no invocation folds too many items."""
    workgroups = rows if lanes > 1 else -(-rows // PLAIN_WORKGROUP)
    return max(1, target.costs.rows.parts(workgroups, items, lanes), -(-items // (lanes * _MOST_SERIAL)))


def reduce_calls(
    low: Lowering,
    step: ReductionStep,
    source: ReduceTensor,
    axes: Sequence[int],
    target: ReduceTensor,
    *,
    key: str,
    length: int = 0,
    shift: Resource | None = None,
    variant: Variant | None = None,
) -> list[KernelCall]:
    """Return the calls that reduce one tensor to another.

    Args:
        low: the node.
        step: the functions.
        source: the tensor that the calls read.
        axes: the reduced dimensions, ascending.
        target: the tensor that the calls write.
        key: the prefix of the names of scratch memory.
        length: the number of elements of a row, if the source is already reduced in part.
        shift: a float32 per row, for `step`.
        variant: the invocations that work on a row. None leaves the choice to the costs.
    """
    view = view_rows(source.shape, axes)
    length = length or view.reduced.size
    needed = parts_needed(view, source.element, low.caps)
    if 8 * needed > view.reduced.size and needed > 1:
        # The elements are too far apart even for parts of a few elements.
        rows_of, copy = side_by_side(view, source.resource, source.element, low.target, f"{key} side by side")
        source = ReduceTensor(rows_of, source.element, (view.kept.size, view.reduced.size))
        return [copy, *reduce_calls(low, step, source, (1,), target, key=key, length=length, shift=shift, variant=variant)]
    shares = None if variant else _shared_columns(low, step, source, view)
    if shares:
        across = SHARING_INVOCATIONS // shares.lanes * QUAD
        reason = f"workgroups share {across} neighboring columns ({counted(view.kept.size, 'row')} of {view.reduced.size})"
        variant = Variant("workgroup", shares.lanes, reason, columns=True)
    variant = variant or _choose(low, step, source, view)
    plain = variant.lanes == 1
    item = _item_size(step, view, variant)
    items, rows = view.reduced.size // item, view.kept.size
    if shares:
        parts = max(shares.parts, -(-items // (shares.lanes * _MOST_SERIAL)))
    else:
        # An invocation of the plain variant makes four results.
        parts = max(needed, number_of_parts(-(-rows // QUAD) if plain else rows, items, variant.lanes, low.target))
    chunk = -(-items // parts) * item
    # 8-bit results share a word, which invocations that make one result each cannot write.
    packed = ELEMENTS[target.element].size_bytes == 1 and not plain
    if parts == 1 and not packed:
        return [_reduce_call(low, step, source, view, variant, target, chunk, length, shift)]
    totals = _totals(step, view, chunk, key)
    rest = replace(step, map=X)
    in_quads = Variant("plain", 1, "8-bit results are written in quads") if packed else None
    first = replace(step, finish=T)
    return [
        _reduce_call(low, first, source, view, variant, totals, chunk, length, shift),
        *reduce_calls(low, rest, totals, (0,), target, key=key + "'", length=length, shift=shift, variant=in_quads),
    ]


def totals_of_parts(
    low: Lowering, step: ReductionStep, source: ReduceTensor, axis: int, chunk: int, key: str
) -> tuple[KernelCall, ReduceTensor]:
    """Return the call that reduces every `chunk` elements of a row, and its result, a scratch tensor [parts, rows].

    Args:
        low: the node.
        step: the functions.
        source: the tensor that the call reads.
        axis: the dimension of the rows.
        chunk: the number of elements of a part, a multiple of 4. The last part of a row may have fewer.
        key: the prefix of the name of scratch memory.
    """
    view = view_rows(source.shape, (axis,))
    totals = _totals(step, view, chunk, key)
    return _reduce_call(low, step, source, view, _choose(low, step, source, view), totals, chunk, chunk, None), totals


def _choose(low: Lowering, step: ReductionStep, source: ReduceTensor, view: RowView) -> Variant:
    variant = choose_variant(low, view, subgroups=ELEMENTS[step.element].size_bytes == 4)
    if _form(step, view, variant) == "quad" and not rows_fit(view, source.element, low.caps, four=True):
        return Variant("workgroup", PLAIN_WORKGROUP, "four rows do not fit a binding together")
    return variant


def _shared_columns(low: Lowering, step: ReductionStep, source: ReduceTensor, view: RowView) -> SharedColumns | None:
    """Return how workgroups share the rows of neighboring columns. None if they cannot, or the costs prefer other variants."""
    whole = padded_bytes(math.prod(source.shape) * ELEMENTS[source.element].size_bytes)
    if step.type not in _WORDS or not view.columns or not view.rows_are_quads or low.forced_variant is not None:
        return None
    if whole > low.caps.limit("max-storage-buffer-binding-size"):
        return None
    return low.target.costs.rows.shared_columns(view.kept.size // QUAD, view.reduced.size)


def _form(step: ReductionStep, view: RowView, variant: Variant) -> str:
    # There are no vectors of pairs.
    columns = view.rows_are_quads and step.type not in PAIRS
    if variant.columns:
        return "shared"
    return "lanes" if variant.lanes > 1 else "columns" if columns else "quad"


def _in_octets(low: Lowering, step: ReductionStep, source: ReduceTensor, view: RowView, *, shifted: bool) -> bool:
    """Return whether an invocation computes the sums of eight neighboring columns, which it reads in words of 64 bits."""
    if shifted or (step.operation, step.type, source.element) != ("sum", "f32", "float32"):
        return False
    aligned = view.kept.strides == (1,) and all(n % OCTET == 0 for n in (view.kept.size, *view.reduced.strides))
    return aligned and reads_octets([TensorType("float32", source.shape)], low.target)


def _item_size(step: ReductionStep, view: RowView, variant: Variant) -> int:
    """Return the number of elements of a row that an invocation reads at once."""
    quads = view.items_are_quads and step.type not in PAIRS
    return QUAD if quads and _form(step, view, variant) not in _OF_COLUMNS else 1


def _totals(step: ReductionStep, view: RowView, chunk: int, key: str) -> ReduceTensor:
    shape = (-(-view.reduced.size // chunk), view.kept.size)
    return ReduceTensor(Temp(key, math.prod(shape) * ELEMENTS[step.element].size_bytes), step.element, shape)


def _reduce_call(
    low: Lowering,
    step: ReductionStep,
    source: ReduceTensor,
    view: RowView,
    variant: Variant,
    target: ReduceTensor,
    chunk: int,
    length: int,
    shift: Resource | None,
) -> KernelCall:
    """Return the call that computes one result from every `chunk` elements of a row: all of part 0, all of part 1, ..."""
    form, item = _form(step, view, variant), _item_size(step, view, variant)
    plain, quads, columns = variant.lanes == 1, item == QUAD, form in _OF_COLUMNS
    reduced, rows = view.items(quads), view.kept.size
    parts = -(-view.reduced.size // chunk)
    shape = variant.shape(view, quads=quads)
    uses_shift = shift is not None and step.uses("shift")
    outputs = rows * parts
    epilogue = target.epilogue
    reach = _reach(view, reduced, chunk // item, outputs, epilogue, shifted=uses_shift)
    # Of the loops for one result: items in blocks of 32.
    iterations = chunk // item // variant.lanes * 34 // 32 + 2
    if form == "columns" and _in_octets(low, step, source, view, shifted=uses_shift):
        form = "octets"
        launch, grid = quad_launch(outputs // 2, low.target, iterations)
        work = None
    elif plain:
        iterations *= 1 if form == "columns" else QUAD
        launch, grid = quad_launch(outputs, low.target, iterations)
        work = quad_work(outputs, low.target, reach, iterations=iterations)
    elif form == "shared":
        counted: Field = ("outputs", "u32", outputs)
        launch, work = (counted,), None
        grid = grid_1d(-(-outputs // (SHARING_INVOCATIONS // variant.lanes * QUAD)), low.caps)
    else:
        launch, grid = row_launch(shape, outputs, low.target, "outputs", iterations)
        work = row_work(shape, outputs, low.target, reach, "outputs", iterations)
    fields: list[Field] = [*launch, ("rows", "u32", rows), ("items", "u32", reduced.size), ("chunk", "u32", chunk // item)]
    fields.append(("length", "f32", float(length)))
    fields += [*view.kept.fields("kept"), *reduced.fields("reduced"), *epilogue.fields]
    words = 4 if form == "octets" else 0
    bindings = [Binding(name="input", access="read", element=source.element, quad=quads or columns, words=words)]
    resources = [source.resource]
    if shift is not None and uses_shift:
        bindings.append(Binding(name="shift", access="read", element="float32", quad=columns))
        resources.append(shift)
    bindings += [*epilogue.bindings, Binding(name="output", access="write", element=target.element, quad=plain or columns)]
    # Sets of items that are all there cost no comparison.
    whole = form == "octets" and reduced.size % chunk == 0 and chunk % _SET == 0
    loads = _SET if whole else low.target.costs.rows.loads if step.type in _WORDS else 1
    spec = REDUCE.spec(
        in_wide_words(bindings, low.target),
        [(name, type_) for name, type_, _ in fields],
        features=(*variant.features, *epilogue.features),
        variant=variant.name,
        form=form,
        rows=shape,
        loads=loads,
        whole=whole,
        step=step,
        **epilogue.params,
    )
    reason = variant.reason + (f", in {parts} parts" if parts > 1 else "")
    resources += [*epilogue.operands, target.resource]
    return KernelCall(
        spec=spec, operands=tuple(resources), uniforms=tuple(v for *_, v in fields), grid=grid, reason=reason, work=work
    )


def parts_needed(view: RowView, element: str, caps: Caps) -> int:
    """Return how many parts a row must be cut into so that a few of them fit a binding."""
    row_bytes = (view.reduced.reach + 1) * ELEMENTS[element].size_bytes
    return 1 if rows_fit(view, element, caps) else -(-4 * row_bytes // caps.limit("max-storage-buffer-binding-size"))


def _reach(view: RowView, items: Axis, chunk: int, outputs: int, epilogue: ElementEpilogue, *, shifted: bool) -> Reach:
    """Return the reach of the `outputs`, which are numbered by part, of `chunk` items each, and then by row."""
    rows, width = view.kept.size, QUAD if items.size < view.reduced.size else 1

    def reach(first: int, end: int) -> list[Interval | None]:
        end = min(end, outputs)
        one_part = first // rows == (end - 1) // rows
        touched = (first % rows, (end - 1) % rows + 1) if one_part else (0, rows)
        last = min(((end - 1) // rows + 1) * chunk, items.size)
        low_row, past_row = strided_span(view.kept.dims, view.kept.strides, *touched)
        low_item, past_item = strided_span(items.dims, items.strides, first // rows * chunk, last)
        interval = low_row + low_item, past_row + past_item + width - 2
        return [interval, *([touched] if shifted else []), *epilogue.reach(first, end), (first, end)]

    return reach


def total_calls(
    low: Lowering,
    total: Literal["sum", "mean", "max"],
    source: ReduceTensor,
    axes: Sequence[int],
    target: ReduceTensor,
    *,
    key: str,
) -> list[KernelCall]:
    """Return the calls that reduce float tensors to float32 totals, for operators whose rows do not fit a binding."""
    step = extremum("max", "f32") if total == "max" else arithmetic("sum", "f32", finish=_MEAN if total == "mean" else "t")
    return reduce_calls(low, step, source, axes, target, key=key)


# The operators --------------------------------------------------------------------------------------------------------


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x, axes = call.input(), call.attrs["axes"]
    axes = tuple(range(x.rank)) if axes is None else tuple(sorted(call.axes(axes, x.rank)))
    call.attrs["axes"] = axes
    return (call.output(x.data_type, reduced_shape(x.shape, axes, call.attrs["keep_dimensions"])),)


def _lower_with(step_for: Callable[[str], ReductionStep], shifted: bool) -> Callable[[Lowering], list[KernelCall]]:
    def lower(low: Lowering) -> list[KernelCall]:
        x, axes = low.input(), low.attrs["axes"]
        element = element_of(x.data_type, low.caps)
        source = ReduceTensor(low.value(0), element, x.shape)
        target = result_tensor(low)
        calls: list[KernelCall] = []
        shift: Temp | None = None
        if shifted:
            shift = Temp("largest", low.output().num_elements * DATA_TYPES["float32"].size_bytes)
            largest = extremum("max", "f32")
            calls += reduce_calls(low, largest, source, axes, ReduceTensor(shift, "float32"), key="parts of largest")
        step = step_for(ELEMENTS[element].value)
        return [*calls, *reduce_calls(low, step, source, axes, target, key="parts", shift=shift)]

    return lower


def _layout(attrs: Attrs, shape: tuple[int, ...]) -> ChannelsLast | None:
    changed = moved(attrs, len(shape), axes=("axes",))
    if attrs["keep_dimensions"]:
        return ChannelsLast(changed)
    left = [d for d in to_last(len(shape)) if d not in attrs["axes"]]
    return ChannelsLast(changed, result=False) if left == sorted(left) else None


def _reduction(
    name: str,
    step_for: Callable[[str], ReductionStep],
    function: Callable[[Any, tuple[int, ...]], Any],
    types: tuple[str, ...],
    *,
    text: str,
    numerics: str = "",
    gradient: GradientRule,
    shifted: bool = False,
    bounds: Bounds,
    epilogue: TakesEpilogue | None = REDUCTION_EPILOGUE,
) -> OpDef:
    """Return the OpDef of a reduction.

    Args:
        name: specification name.
        step_for: makes the WGSL for the WGSL type elements are read into.
        function: numpy function of a float64 or integer array and the axes, keeping the dimensions.
        types: allowed data types.
        text: the quantity that is computed over dimensions, for the documentation.
        numerics: results for special values, for the documentation.
        gradient: the rule of the gradient.
        shifted: whether the step's functions need the largest element of the row (0 where it is not finite) as `shift`.
        bounds: allowed errors.
        epilogue: the fusion of element-wise operators behind the reduction, if any.
    """

    def reference(arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
        x = arrays[0]
        assert x is not None
        with np.errstate(all="ignore"):
            return [to_type(function(wide(x), attrs["axes"]), outputs[0]).reshape(outputs[0].shape)]

    return OpDef(
        name=name,
        operands=(Operand(name="input", data_types=types),),
        infer=_infer,
        reference=reference,
        lower=_lower_with(step_for, shifted),
        attrs=(Attr("axes", "uints", None), Attr("keep_dimensions", "bool", False)),
        templates=(REDUCE,),
        spec="#api-mlgraphbuilder-reduce",
        family=Family.REDUCTION,
        without=("elementwise", "movement", "precision") if epilogue else ("elementwise", "epilogue", "movement", "precision"),
        epilogue=epilogue,
        layout=Layout(_layout),
        cost=per_element(),
        bounds=bounds,
        gradient=gradient,
        documentation=reduction_documentation(name, text, numerics),
    )


def _sum(
    name: str,
    function: Callable[[Any, tuple[int, ...]], Any],
    map_item: str = "x",
    finish: str = "t",
    lib: tuple[str, ...] = (),
    types: tuple[str, ...] = FLOATS,
    *,
    text: str,
    numerics: str = "",
    gradient: GradientRule,
    shifted: bool = False,
    bounds: Bounds = SUM,
    epilogue: TakesEpilogue | None = REDUCTION_EPILOGUE,
) -> OpDef:
    def step(value: str) -> ReductionStep:
        return arithmetic("sum", value, map_item, finish, lib=lib)

    return _reduction(
        name,
        step,
        function,
        types,
        text=text,
        numerics=numerics,
        gradient=gradient,
        shifted=shifted,
        bounds=bounds,
        epilogue=epilogue,
    )


def _add(x: Any, axes: tuple[int, ...]) -> Any:
    return np.add.reduce(x, axis=axes, dtype=x.dtype)


def _log_sum_exp(x: Any, axes: tuple[int, ...]) -> Any:
    largest = np.max(x, axis=axes, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    return np.log(np.sum(np.exp(x - largest), axis=axes, keepdims=True)) + largest


OPS = (
    _sum(
        "reduceL1",
        lambda x, axes: _add(np.abs(x), axes),
        "abs(x)",
        types=SUMMABLE,
        gradient=reductions_gradients.L1,
        text="Sum of absolute values",
        numerics="Integers wrap around.",
    ),
    _sum(
        "reduceL2",
        lambda x, axes: np.sqrt(_add(x * x, axes)),
        "x * x",
        "sqrt_f32(t)",
        bounds=ROOT,
        gradient=reductions_gradients.L2,
        text="Square root of the sum of squares",
    ),
    _sum(
        "reduceLogSum",
        lambda x, axes: np.log(_add(x, axes)),
        "x",
        "log_f32(t)",
        bounds=LOG_SUM,
        gradient=reductions_gradients.LOG_SUM,
        text="Natural logarithm of the sum",
        numerics="-infinity for a sum of 0, NaN for a negative sum.",
    ),
    _sum(
        "reduceLogSumExp",
        _log_sum_exp,
        "exp_f32(x - shift)",
        "log_f32(t) + shift",
        ("finite_or_zero",),
        shifted=True,
        bounds=LOG_SUM_EXP,
        gradient=reductions_gradients.LOG_SUM_EXP,
        text="Natural logarithm of the sum of exponentials",
        numerics="The result is finite even if an exponential would overflow.",
    ),
    _reduction(
        "reduceMax",
        lambda value: extremum("max", value),
        lambda x, axes: np.max(x, axis=axes),
        ANY,
        bounds=EXACT,
        gradient=reductions_gradients.EXTREMUM,
        text="Greatest element",
        numerics="NaN if any element is NaN.",
    ),
    _sum(
        "reduceMean",
        lambda x, axes: np.mean(x, axis=axes),
        "x",
        _MEAN,
        bounds=replace(SUM, reached=mean_reached),
        gradient=reductions_gradients.MEAN,
        text="Mean",
    ),
    _reduction(
        "reduceMin",
        lambda value: extremum("min", value),
        lambda x, axes: np.min(x, axis=axes),
        ANY,
        bounds=EXACT,
        gradient=reductions_gradients.EXTREMUM,
        text="Least element",
        numerics="NaN if any element is NaN.",
    ),
    _reduction(
        "reduceProduct",
        lambda value: arithmetic("product", value),
        lambda x, axes: np.multiply.reduce(x, axis=axes, dtype=x.dtype),
        SUMMABLE,
        bounds=PRODUCT,
        gradient=reductions_gradients.PRODUCT,
        text="Product",
        numerics="Integers wrap around.",
    ),
    _sum(
        REDUCE_SUM,
        _add,
        types=SUMMABLE,
        gradient=reductions_gradients.SUM,
        text="Sum",
        numerics="Integers wrap around.",
        # Sums of gradients are merged with each other, and the updates behind them likewise.
        epilogue=None,
    ),
    _sum(
        "reduceSumSquare",
        lambda x, axes: _add(x * x, axes),
        "x * x",
        types=SUMMABLE,
        gradient=reductions_gradients.SUM_SQUARE,
        text="Sum of squares",
        numerics="Integers wrap around.",
    ),
)
