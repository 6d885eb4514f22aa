"""Gathering: slices by index along one dimension, elements by index along one dimension, slices by coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..kernels.element import QUAD
from ..kernels.spec import Binding, Interval, KernelCall, KernelTemplate, UniformType
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._places import (
    CLAMPED_INDICES,
    INDEX_TYPES,
    Places,
    check_coordinates,
    check_elements,
    clamped_indices,
    coordinates,
    index_binding,
    places_along,
    places_at,
    places_of_elements,
)
from ._quads import quad_launch, quad_work
from .gradients import indexing as indexing_gradients
from .interfaces.bounds import EXACT
from .interfaces.cost import MOVED
from .interfaces.documentation import INDEXING, Documentation, Method
from .interfaces.family import Family
from .interfaces.movement import MOVES, Move, Movement, Stepped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ir.graph import Array, Attrs
    from ..ir.types import TensorType

GATHER = KernelTemplate("gather", ("form", "rank", "quad"))


def _gather(low: Lowering, places: Places) -> list[KernelCall]:
    """Return the kernel call that stores the slices at all places one behind the other."""
    units = places.units(low.input().data_type)
    slice_length = units.lengths[0]
    launch, grid = quad_launch(places.count * slice_length * (QUAD if units.quad else 1), low.target)
    fields: list[tuple[str, UniformType, int]] = [*launch, *places.fields, ("slice_length", "u32", slice_length)]
    spec = GATHER.spec(
        [
            Binding(name="input", access="read", element=units.element, quad=units.quad),
            index_binding(low.input(1).data_type),
            Binding(name="output", access="write", element=units.element, quad=True),
        ],
        [(name, type_) for name, type_, _ in fields],
        form=places.form,
        rank=places.rank,
        quad=units.quad,
    )
    operands = (low.value(0), low.value(1), low.node.outputs[0])
    reason = "slices of whole quads" if units.quad else f"slices of {units.element}"
    length = slice_length * (QUAD if units.quad else 1)

    def reach(first: int, end: int) -> list[Interval]:
        (low, past), indices = places.reach(first // length, -(-end // length))
        return [(low * length, past * length), indices, (first, end)]

    work = quad_work(places.count * length, low.target, reach, moved=[0])
    return [
        KernelCall(spec=spec, operands=operands, uniforms=tuple(v for _, _, v in fields), grid=grid, reason=reason, work=work)
    ]


def _given(arrays: Sequence[Array | None]) -> tuple[Array, Array]:
    x, indices = arrays
    assert x is not None
    assert indices is not None
    return x, indices


# gather ---------------------------------------------------------------------------------------------------------------


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x, indices = call.input(), call.input(1)
    axis = call.axis(call.attrs["axis"], x.rank)
    return (call.output(x.data_type, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])),)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, indices = _given(arrays)
    axis = attrs["axis"]
    return [np.asarray(np.take(x, clamped_indices(indices, x.shape[axis]), axis=axis))]


def _lower(low: Lowering) -> list[KernelCall]:
    return _gather(low, places_along(low.input().shape, low.input(1).shape, low.attrs["axis"]))


# gatherElements -------------------------------------------------------------------------------------------------------


def _infer_elements(call: OpCall) -> tuple[TensorType, ...]:
    check_elements(call)
    return (call.output(call.input().data_type, call.input(1).shape),)


def _elements_reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, indices = _given(arrays)
    axis = attrs["axis"]
    return [np.take_along_axis(x, clamped_indices(indices, x.shape[axis]), axis)]


def _lower_elements(low: Lowering) -> list[KernelCall]:
    return _gather(low, places_of_elements(low.input().shape, low.input(1).shape, low.attrs["axis"]))


# gatherND -------------------------------------------------------------------------------------------------------------


def _infer_nd(call: OpCall) -> tuple[TensorType, ...]:
    return (call.output(call.input().data_type, check_coordinates(call)),)


def _nd_reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, indices = _given(arrays)
    return [np.asarray(x[coordinates(indices, x.shape)])]


def _lower_nd(low: Lowering) -> list[KernelCall]:
    return _gather(low, places_at(low.input().shape, low.input(1).shape))


def _follow(source: Stepped, move: Move) -> Stepped | None:
    """Return where the elements of one index lie, a constant."""
    axis, index = int(move.attrs["axis"]), move.constants[1]
    size = move.before[axis]
    if index is None or index.ndim or not -size <= index < size:
        return None
    starts = [0] * len(move.before)
    starts[axis] = int(index) % size
    after = (*move.after[:axis], 1, *move.after[axis:])
    found = source.cut(starts, [1] * len(starts), move.before, after)
    return found and Stepped(found.offset, (*found.dims[:axis], *found.dims[axis + 1 :]))


OPS = (
    OpDef(
        name="gather",
        operands=(Operand(name="input", min_rank=1), Operand(name="indices", data_types=INDEX_TYPES)),
        infer=_infer,
        reference=_reference,
        lower=_lower,
        attrs=(Attr("axis", "uint", 0),),
        templates=(GATHER,),
        spec="#api-mlgraphbuilder-gather",
        family=Family.MOVEMENT,
        without=("elementwise", "epilogue", "layout", "precision"),
        movement=Movement(follow=_follow),
        cost=MOVED,
        bounds=EXACT,
        documentation=Documentation(
            group=INDEXING,
            summary="Take the slices along a dimension that `indices` names.",
            arguments={
                "input": "{types}, with rank 1 or more.",
                "indices": "{types}, with any shape.",
                "axis": "The dimension of `input`.",
            },
            returns=(
                "An operand with the input's data type. Its shape is the input's, with the shape of `indices` in place of "
                "dimension `axis`."
            ),
            raises="The axis is not a dimension of the input, the data type of the indices is not allowed",
            numerics=CLAMPED_INDICES,
            example="""
                >>> b.gather(x, b.arg_max(x, 0), axis=1).shape
                (2, 3)
            """,
            method=Method(dictionary="MLGatherOptions", pywebnn=("axis",)),
        ),
        gradient=indexing_gradients.gather,
    ),
    OpDef(
        name="gatherElements",
        operands=(Operand(name="input", min_rank=1), Operand(name="indices", data_types=INDEX_TYPES, min_rank=1)),
        infer=_infer_elements,
        reference=_elements_reference,
        lower=_lower_elements,
        attrs=(Attr("axis", "uint", 0),),
        templates=(GATHER,),
        spec="#api-mlgraphbuilder-gatherelements",
        family=Family.MOVEMENT,
        without=("elementwise", "epilogue", "layout", "precision"),
        movement=MOVES,
        cost=MOVED,
        bounds=EXACT,
        documentation=Documentation(
            group=INDEXING,
            summary="Take single elements, whose coordinate along one dimension is replaced by an index.",
            arguments={
                "input": "{types}, with rank 1 or more.",
                "indices": "{types}, with the input's shape except in dimension `axis`.",
                "axis": "The dimension.",
            },
            returns=(
                "An operand with the input's data type and the shape of `indices`. With axis 1 its element [i, j, k] is "
                "`input[i, indices[i, j, k], k]`."
            ),
            raises="The axis is not a dimension of the input, the data type or shape of the indices is not allowed",
            numerics=CLAMPED_INDICES,
            example="""
                >>> indices = b.constant(np.array([[2, 0, 0, -1], [1, 1, 1, 0]], np.int32))
                >>> b.gather_elements(x, indices, axis=1).shape
                (2, 4)
            """,
            method=Method(dictionary="MLGatherOptions"),
        ),
        gradient=indexing_gradients.gather_elements,
    ),
    OpDef(
        name="gatherND",
        operands=(Operand(name="input", min_rank=1), Operand(name="indices", data_types=INDEX_TYPES, min_rank=1)),
        infer=_infer_nd,
        reference=_nd_reference,
        lower=_lower_nd,
        templates=(GATHER,),
        spec="#api-mlgraphbuilder-gathernd",
        family=Family.MOVEMENT,
        without=("elementwise", "epilogue", "layout", "precision"),
        movement=MOVES,
        cost=MOVED,
        bounds=EXACT,
        documentation=Documentation(
            group=INDEXING,
            summary="Take the slices at coordinates.",
            arguments={
                "input": "{types}, with rank 1 or more.",
                "indices": (
                    "{types}, with rank 1 or more. The last dimension holds the leading coordinates of a slice. There are "
                    "as many as the input has dimensions for single elements, or fewer."
                ),
            },
            returns=(
                "An operand with the input's data type. Its shape is that of `indices` without the last dimension, "
                "followed by the dimensions of `input` behind the coordinates."
            ),
            raises="There are more coordinates than the input has dimensions, the data type of the indices is not allowed",
            numerics=CLAMPED_INDICES,
            example="""
                >>> indices = b.constant(np.array([[1, 2], [0, 0]], np.int32))
                >>> b.gather_nd(x, indices).shape
                (2,)
                >>> b.gather_nd(x, b.constant(np.array([[1], [0], [1]], np.int32))).shape
                (3, 3)
            """,
        ),
        gradient=indexing_gradients.gather_nd,
    ),
)
