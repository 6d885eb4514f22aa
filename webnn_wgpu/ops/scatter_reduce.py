"""Extension operators: scattering that combines the element at a place with its updates, and with smaller indices than WebNN's.

On every device, kernels apply the updates of one place in their order in the tensor, because they sort the updates by place
first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.data_types import ANY
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import QUAD, bits_of, element_of
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Temp, UniformType
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._places import INDEX_TYPES, check_coordinates, clamped_indices, coordinates, index_binding, places_at
from ._quads import quad_launch
from ._rows import to_type, wide
from ._shapes import merge_dimensions, strides_of
from .gradients import indexing as indexing_gradients
from .interfaces.bounds import CONDITIONED
from .interfaces.cost import per_element
from .interfaces.documentation import SCATTER_EXTENSIONS, Documentation
from .interfaces.family import Family
from .top_k import SortedRows, signed_axis, sorting_calls

SCATTER_REDUCE = KernelTemplate("scatter_reduce", ("step", "form", "rank", "reduction", "resumed", "whole", "ahead"))

_AHEAD = 4
"""Updates of a quad that an invocation loads before it combines the first of them."""

_REDUCTIONS = {"none": None, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}

_Fields = Sequence[tuple[str, UniformType, int]]


def _scatter(low: Lowering, form: str, rank: int, fields: _Fields, updates: int, slice_length: int) -> list[KernelCall]:
    """Return the calls that combine `updates` slices with the input. `form`, `rank` and `fields` describe the named places."""
    element = element_of(low.input().data_type, low.caps)
    named = Temp("named", 4 * updates)
    launch, grid = quad_launch(updates, low.target)
    first_fields = [*launch, *fields]
    spec = SCATTER_REDUCE.spec(
        [index_binding(low.input(1).data_type), Binding(name="named", access="write", element="uint32", quad=True)],
        [(name, type_) for name, type_, _ in first_fields],
        step="name",
        form=form,
        rank=rank,
        reduction="",
        resumed=False,
        whole=False,
        ahead=1,
    )
    name = KernelCall(
        spec=spec,
        operands=(low.value(1), named),
        uniforms=tuple(v for *_, v in first_fields),
        grid=grid,
        reason=f"{updates} places",
    )
    calls, order = sorting_calls(SortedRows(source=named, element="uint32", count=1, length=updates), updates, False, low.caps)
    reduction: str = low.attrs["reduction"]
    if reduction == "none":
        element = bits_of(element)
    most = updates
    if reduction != "none":
        # An element may have to take in all updates: as many in one dispatch as its loops may have iterations.
        most = min(updates, low.target.costs.launches.most_iterations // QUAD - 2 * 32)
    return [
        name,
        *calls,
        *(_reduce(low, element, named, order, f, updates, most, slice_length) for f in range(0, updates, most)),
    ]


def _reduce(
    low: Lowering, element: str, named: Temp, order: Temp, first: int, updates: int, most: int, slice_length: int
) -> KernelCall:
    """Return the call that takes in the sorted updates from `first` on, `most` of them."""
    end = min(first + most, updates)
    launch, grid = quad_launch(low.output().num_elements, low.target, QUAD * (min(most, updates) + 2 * 32))
    whole = slice_length % QUAD == 0
    fields: _Fields = [
        *launch,
        ("updates", "u32", updates),
        ("slice_quads", "u32", slice_length // QUAD) if whole else ("slice_length", "u32", slice_length),
        ("first", "u32", first),
        ("end", "u32", end),
    ]
    spec = SCATTER_REDUCE.spec(
        [
            Binding(name="input", access="read", element=element, quad=True),
            Binding(name="named", access="read", element="uint32"),
            Binding(name="order", access="read", element="uint32"),
            Binding(name="updates", access="read", element=element, quad=whole),
            Binding(name="output", access="write", element=element, quad=True),
        ],
        [(name, type_) for name, type_, _ in fields],
        step="reduce",
        form="",
        rank=0,
        reduction=low.attrs["reduction"],
        resumed=first > 0,
        whole=whole,
        ahead=1 if low.attrs["reduction"] == "none" else _AHEAD,
    )
    operands = (low.value(0), named, order, low.value(2), low.node.outputs[0])
    return KernelCall(
        spec=spec,
        operands=operands,
        uniforms=tuple(v for *_, v in fields),
        grid=grid,
        reason=f"updates {first} to {end - 1} of {updates}",
    )


def _combined(arrays: Sequence[Array | None], places: Array, slice_length: int, attrs: Attrs, out: TensorType) -> list[Array]:
    """Return the input, seen as a table of slices, with the updates of every place combined one after the other."""
    x, _, updates = arrays
    assert x is not None
    assert updates is not None
    reduction = _REDUCTIONS[attrs["reduction"]]
    slices = updates.reshape(-1, slice_length)
    if reduction is None:
        table = x.reshape(-1, slice_length).copy()
        table[places.reshape(-1)] = slices
        return [table.reshape(x.shape)]
    table = wide(x).reshape(-1, slice_length).copy()
    with np.errstate(all="ignore"):
        reduction.at(table, places.reshape(-1), wide(slices))
    return [to_type(table.reshape(x.shape), out)]


# x.scatter_elements ---------------------------------------------------------------------------------------------------


def _infer_elements(call: OpCall) -> tuple[TensorType, ...]:
    x, indices, updates = (call.input(i) for i in range(3))
    axis = signed_axis(call, x.rank)
    call.require(indices.rank == x.rank, "Incompatible shapes: indices must have the rank of input")
    call.require(
        all(d == axis or n <= x.shape[d] for d, n in enumerate(indices.shape)),
        f"Incompatible shapes: indices must not be larger than input in any dimension except axis {axis}",
    )
    call.require(updates.shape == indices.shape, "Incompatible shapes: updates must have the shape of indices")
    return (x,)


def _elements_reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, indices, _ = arrays
    assert x is not None
    assert indices is not None
    axis = attrs["axis"]
    spots = list(np.indices(indices.shape))
    spots[axis] = clamped_indices(indices, x.shape[axis])
    return _combined(arrays, np.asarray(np.ravel_multi_index(tuple(spots), x.shape)), 1, attrs, out[0])


def _lower_elements(low: Lowering) -> list[KernelCall]:
    x, indices = low.input(), low.input(1)
    axis: int = low.attrs["axis"]
    steps = strides_of(x.shape)
    own = tuple(0 if d == axis else step for d, step in enumerate(steps))
    # The indices' own steps take part so that merged dimensions still number them in order.
    dims, (_, table) = merge_dimensions(indices.shape, [strides_of(indices.shape), own])
    fields: _Fields = [
        *((f"dim_{d}", "u32", n) for d, n in enumerate(dims)),
        *((f"table_stride_{d}", "u32", n) for d, n in enumerate(table)),
        ("size", "u32", x.shape[axis]),
        ("step", "u32", steps[axis]),
    ]
    return _scatter(low, "table", len(dims), fields, indices.num_elements, 1)


# x.scatter_nd ---------------------------------------------------------------------------------------------------------


def _infer_nd(call: OpCall) -> tuple[TensorType, ...]:
    wanted = check_coordinates(call)
    call.require(
        call.input(2).shape == wanted,
        "Incompatible shapes: updates must have the shape of indices without its last dimension, "
        "followed by input's dimensions behind the coordinates",
        allowed=f"updates of shape {list(wanted)}",
    )
    return (call.input(),)


def _nd_reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, indices, _ = arrays
    assert x is not None
    assert indices is not None
    rank = indices.shape[-1]
    places = np.asarray(np.ravel_multi_index(coordinates(indices, x.shape), x.shape[:rank]))
    return _combined(arrays, places, math.prod(x.shape[rank:]), attrs, out[0])


def _lower_nd(low: Lowering) -> list[KernelCall]:
    places = places_at(low.input().shape, low.input(1).shape)
    return _scatter(low, places.form, places.rank, places.fields, places.count, places.slice_length)


_UPDATES = (
    "Updates of one element are applied in their order, on every device. Floats are combined in float32 and rounded once. "
    "Integers wrap around. The larger or smaller of a number and NaN is NaN."
)

_REDUCTION = Attr("reduction", "enum", "none", tuple(_REDUCTIONS))

OPS = (
    OpDef(
        name="x.scatter_elements",
        operands=(
            Operand(name="input", data_types=ANY, min_rank=1),
            Operand(name="indices", data_types=INDEX_TYPES, min_rank=1),
            Operand(name="updates", same_as="input", min_rank=1),
        ),
        infer=_infer_elements,
        reference=_elements_reference,
        lower=_lower_elements,
        attrs=(Attr("axis", "int", 0), _REDUCTION),
        templates=(SCATTER_REDUCE,),
        family=Family.OTHER,
        without=("elementwise", "epilogue", "movement", "layout", "precision"),
        cost=per_element(),
        bounds=CONDITIONED,
        documentation=Documentation(
            group=SCATTER_EXTENSIONS,
            summary="Copy the input and combine single elements with updates, as ONNX's ScatterElements does.",
            details="An index along one dimension names each element.",
            arguments={
                "input": "{types}, with rank 1 to 8.",
                "indices": (
                    "{types}, with the rank of `input`, and larger than it in no dimension except `axis`. Negative indices "
                    "count from the end of the dimension, and are then clamped to it."
                ),
                "updates": "The input's data type and the shape of `indices`.",
                "axis": "The dimension. Negative numbers count from the last.",
                "reduction": '"none" (the update takes the element\'s place), "add", "mul", "max" or "min".',
            },
            returns="An operand with the input's data type and shape.",
            raises="Shapes or data types do not fit, the reduction is unknown",
            numerics=_UPDATES,
            example="""
                >>> places = b.constant(np.int32([[0, 0]]))
                >>> b.ext.scatter_elements(x, places, b.constant(np.float32([[1, 2]])), axis=1, reduction="add").shape
                (2, 3)
            """,
        ),
        gradient=indexing_gradients.SCATTER_ELEMENTS,
    ),
    OpDef(
        name="x.scatter_nd",
        operands=(
            Operand(name="input", data_types=ANY, min_rank=1),
            Operand(name="indices", data_types=INDEX_TYPES, min_rank=1),
            Operand(name="updates", same_as="input"),
        ),
        infer=_infer_nd,
        reference=_nd_reference,
        lower=_lower_nd,
        attrs=(_REDUCTION,),
        templates=(SCATTER_REDUCE,),
        family=Family.OTHER,
        without=("elementwise", "epilogue", "movement", "layout", "precision"),
        cost=per_element(),
        bounds=CONDITIONED,
        documentation=Documentation(
            group=SCATTER_EXTENSIONS,
            summary="Copy the input and combine slices with updates, as ONNX's ScatterND does.",
            details="The leading coordinates name each slice.",
            arguments={
                "input": "{types}, with rank 1 to 8.",
                "indices": (
                    "{types}. The last dimension holds the coordinates. Negative coordinates count from the end of their "
                    "dimension, and are then clamped to it."
                ),
                "updates": (
                    "The input's data type. The shape is that of `indices` without its last dimension, followed by the "
                    "input's dimensions behind the coordinates."
                ),
                "reduction": '"none" (the update takes the slice\'s place), "add", "mul", "max" or "min".',
            },
            returns="An operand with the input's data type and shape.",
            raises="Shapes or data types do not fit, the reduction is unknown",
            numerics=_UPDATES,
            example="""
                >>> rows = b.constant(np.int32([[1], [1]]))
                >>> b.ext.scatter_nd(x, rows, b.constant(np.ones((2, 3), np.float32)), reduction="add").shape
                (2, 3)
            """,
        ),
        gradient=indexing_gradients.SCATTER_ND,
    ),
)
