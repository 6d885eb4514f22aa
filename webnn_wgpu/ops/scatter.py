"""Scattering: a copy of the input in which elements or slices, named by indices, are replaced by updates.

Several updates may name one place, also because indices are clamped. The last update in row-major order wins on every device.
The `search` kernel searches for it from every place. The `winners` kernel lets the updates compete for each place before any
kernel writes an element.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..core.errors import OperationError
from ..core.wording import counted
from ..kernels.element import QUAD, STORAGE_ALIGNMENT_BYTES, padded_bytes
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Temp, UniformType
from ..kernels.spec import Operand as Resource
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
    places_at,
    places_of_elements,
)
from ._quads import quad_launch, quad_work
from ._units import WORD_BYTES, Units
from .gradients import indexing as indexing_gradients
from .interfaces.bounds import EXACT
from .interfaces.cost import MOVED
from .interfaces.documentation import INDEXING, Documentation, Method
from .interfaces.family import Family
from .interfaces.movement import MOVES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..ir.graph import Array, Attrs
    from ..ir.types import TensorType
    from ..kernels.spec import Interval, Reach

SEARCH = KernelTemplate("scatter.search", ("form", "rank", "quad"))
WINNERS = KernelTemplate("scatter.winners", ("step", "form", "rank", "quad"))


Field: TypeAlias = tuple[str, UniformType, int]
Bound: TypeAlias = tuple[Binding, Resource]


@dataclass(frozen=True, kw_only=True)
class _Scatter:
    """A scatter to `places`, which copies slices in `units`. The input is a table of `table` slices."""

    low: Lowering
    places: Places
    units: Units
    table: int
    reason: str

    def search(self) -> list[KernelCall]:
        """Return the call in which each place searches for its update."""
        written = [self._written[0], self._indices, *self._written[1:]]
        fields, elements = [*self._update_fields, *self._fields(0)], self._elements(self.table)
        form, reach = self._form(self.units.quad), self._written_reach(0)
        # Each quad searches all updates.
        return [self._call(SEARCH, written, fields, elements, form, reach, [2], self.places.count)]

    def winners(self, first: int, count: int) -> list[KernelCall]:
        """Return the calls that fill a range of the table. Every update competes for its place."""
        winners = Temp("winners", count * WORD_BYTES)
        cleared, raised, read = (
            (Binding(name="winner", access="write", element="bits32", quad=True), winners),
            (Binding(name="winner", access="write", element="atomic32"), winners),
            (Binding(name="winner", access="read", element="uint32"), winners),
        )
        written = [self._written[0], read, *self._written[1:]]
        places: list[Field] = [*self._update_fields, ("first", "u32", first), ("places", "u32", count)]
        no_form = {"form": "", "rank": 0, "quad": self.units.quad}
        write, reach = {"step": "write"} | no_form, self._written_reach(self._elements(first))
        return [
            self._call(WINNERS, [cleared], [], count, {"step": "clear"} | no_form | {"quad": True}),
            self._call(
                WINNERS, [self._indices, raised], places, self.places.count, {"step": "mark"} | self._form(False), self._marked
            ),
            self._call(WINNERS, written, self._fields(first), self._elements(count), write, reach, [2]),
        ]

    def _call(
        self,
        template: KernelTemplate,
        bindings: Sequence[Bound],
        fields: Sequence[Field],
        num_elements: int,
        params: Mapping[str, Any],
        reach: Reach | None = None,
        moved: Sequence[int] = (),
        iterations: int = 1,
    ) -> KernelCall:
        launch, grid = quad_launch(num_elements, self.low.target, iterations)
        fields = [*launch, *fields]
        spec = template.spec([b for b, _ in bindings], [(name, type_) for name, type_, _ in fields], **params)
        work = quad_work(num_elements, self.low.target, reach, moved, iterations) if reach else None
        return KernelCall(
            spec=spec,
            operands=tuple(r for _, r in bindings),
            uniforms=tuple(v for *_, v in fields),
            grid=grid,
            reason=self.reason,
            work=work,
        )

    def _marked(self, first: int, end: int) -> list[Interval | None]:
        """Return the indices of updates first..end-1. They may name any place."""
        return [(first * self.places.rank, end * self.places.rank), None]

    def _written_reach(self, start: int) -> Reach:
        """Return the reach from element `start` on, in the input, the indices or winners, the updates and the output.

        A place with an update receives only that update, once. All runs write the input's element to the other places.
        """

        def reach(first: int, end: int) -> list[Interval | None]:
            elements = start + first, start + end
            return [elements, None, None, elements]

        return reach

    def _fields(self, first: int) -> list[Field]:
        """Return the uniforms of the kernels that fill the table from place `first` on."""
        quad: Field = ("first_quad", "u32", self._elements(first) // QUAD)
        return [("slice_length", "u32", self.units.lengths[0]), quad]

    @property
    def _update_fields(self) -> list[Field]:
        return [*self.places.fields, ("updates", "u32", self.places.count)]

    @property
    def _indices(self) -> Bound:
        return index_binding(self.low.input(1).data_type), self.low.value(1)

    def _form(self, quad: bool) -> dict[str, Any]:
        return {"form": self.places.form, "rank": self.places.rank, "quad": quad}

    def _elements(self, count: int) -> int:
        return count * self.units.lengths[0] * (QUAD if self.units.quad else 1)

    @property
    def _written(self) -> list[Bound]:
        element = self.units.element
        return [
            (Binding(name="input", access="read", element=element, quad=True), self.low.value(0)),
            (Binding(name="updates", access="read", element=element, quad=self.units.quad), self.low.value(2)),
            (Binding(name="output", access="write", element=element, quad=True), self.low.node.outputs[0]),
        ]


def _scatter(low: Lowering, places: Places) -> list[KernelCall]:
    """Return the kernel calls that scatter updates to `places`."""
    x = low.input()
    units, table = places.units(x.data_type), x.num_elements // places.slice_length
    variant, reason = low.forced_variant, "forced"
    costs = low.target.costs
    if variant == "search" and places.count > costs.launches.most_iterations:
        raise OperationError(
            "the forced kernel variant cannot be had",
            operator=low.ops[low.node.op].python_name,
            label=low.node.label,
            got=f"search, {places.count} updates",
            allowed="winners",
        )
    limit = low.caps.limit("max-storage-buffer-binding-size")
    if variant is None:
        quads = table * units.lengths[0] // (1 if units.quad else QUAD)
        # Searching reads all indices at once.
        few = places.count <= costs.scatter.most_searched or places.count * quads <= costs.scatter.most_comparisons
        few &= padded_bytes(low.input(1).size_bytes) <= limit
        variant, reason = "search" if few else "winners", f"{counted(places.count, 'update')}, {counted(table, 'place')}"
    scatter = _Scatter(low=low, places=places, units=units, table=table, reason=reason)
    if variant == "search":
        return scatter.search()
    # A word for each place can be bound, and ranges start at whole quads of elements.
    most = limit // STORAGE_ALIGNMENT_BYTES * STORAGE_ALIGNMENT_BYTES // WORD_BYTES
    return [call for first in range(0, table, most) for call in scatter.winners(first, min(most, table - first))]


def _given(arrays: Sequence[Array | None]) -> tuple[Array, Array, Array]:
    x, indices, updates = arrays
    assert x is not None
    assert indices is not None
    assert updates is not None
    return x, indices, updates


def _replace(x: Array, places: Array, updates: Array, slice_length: int) -> Array:
    """Return `x`, seen as a table of slices, with the last update of every place in its place."""
    table = x.reshape(-1, slice_length).copy()
    winners = np.zeros(len(table), np.int64)
    np.maximum.at(winners, places.reshape(-1), np.arange(1, places.size + 1))
    table[winners > 0] = updates.reshape(-1, slice_length)[winners[winners > 0] - 1]
    return table.reshape(x.shape)


def _check_updates(call: OpCall, shape: Sequence[int], rule: str) -> None:
    x, indices, updates = (call.input(i) for i in range(3))
    call.require(
        updates.shape == tuple(shape),
        f"Incompatible shapes: updates must have {rule}",
        got=f"input {x}, indices {indices}, updates {updates}",
        allowed=f"updates of shape {list(shape)}",
    )


# scatterElements ------------------------------------------------------------------------------------------------------


def _infer_elements(call: OpCall) -> tuple[TensorType, ...]:
    check_elements(call)
    _check_updates(call, call.input(1).shape, "the shape of indices")
    return (call.input(),)


def _elements_reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, indices, updates = _given(arrays)
    axis = attrs["axis"]
    spots = list(np.indices(indices.shape))
    spots[axis] = clamped_indices(indices, x.shape[axis])
    return [_replace(x, np.asarray(np.ravel_multi_index(tuple(spots), x.shape)), updates, 1)]


def _lower_elements(low: Lowering) -> list[KernelCall]:
    return _scatter(low, places_of_elements(low.input().shape, low.input(1).shape, low.attrs["axis"]))


# scatterND ------------------------------------------------------------------------------------------------------------


def _infer_nd(call: OpCall) -> tuple[TensorType, ...]:
    rule = "the shape of indices without its last dimension, followed by input's dimensions behind the coordinates"
    _check_updates(call, check_coordinates(call), rule)
    return (call.input(),)


def _nd_reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, indices, updates = _given(arrays)
    rank = indices.shape[-1]
    places = np.asarray(np.ravel_multi_index(coordinates(indices, x.shape), x.shape[:rank]))
    return [_replace(x, places, updates, math.prod(x.shape[rank:]))]


def _lower_nd(low: Lowering) -> list[KernelCall]:
    return _scatter(low, places_at(low.input().shape, low.input(1).shape))


OPS = (
    OpDef(
        name="scatterElements",
        operands=(
            Operand(name="input", min_rank=1),
            Operand(name="indices", data_types=INDEX_TYPES, min_rank=1),
            Operand(name="updates", same_as="input", min_rank=1),
        ),
        infer=_infer_elements,
        reference=_elements_reference,
        lower=_lower_elements,
        attrs=(Attr("axis", "uint", 0),),
        templates=(SEARCH, WINNERS),
        spec="#api-mlgraphbuilder-scatterelements",
        family=Family.MOVEMENT,
        without=("elementwise", "epilogue", "layout", "precision"),
        movement=MOVES,
        cost=MOVED,
        bounds=EXACT,
        documentation=Documentation(
            group=INDEXING,
            summary="Copy the input and replace single elements, whose coordinate along one dimension is an index.",
            arguments={
                "input": "{types}, with rank 1 or more.",
                "indices": "{types}, with the input's shape except in dimension `axis`.",
                "updates": (
                    "The input's data type and the shape of `indices`. With axis 1, element [i, j, k] replaces `input[i, "
                    "indices[i, j, k], k]`."
                ),
                "axis": "The dimension.",
            },
            returns="An operand with the input's data type and shape.",
            raises="The axis is not a dimension of the input, the data type or shape of indices or updates is not allowed",
            numerics=f"{CLAMPED_INDICES} Of several updates of one element, the last in row-major order wins on every device.",
            example="""
                >>> indices = b.constant(np.array([[2], [0]], np.int32))
                >>> b.scatter_elements(x, indices, b.constant(np.float32([[5], [6]])), axis=1).shape
                (2, 3)
            """,
            method=Method(dictionary="MLScatterOptions", pywebnn=("axis",)),
        ),
        gradient=indexing_gradients.SCATTER_ELEMENTS,
    ),
    OpDef(
        name="scatterND",
        operands=(
            Operand(name="input", min_rank=1),
            Operand(name="indices", data_types=INDEX_TYPES, min_rank=1),
            Operand(name="updates", same_as="input"),
        ),
        infer=_infer_nd,
        reference=_nd_reference,
        lower=_lower_nd,
        templates=(SEARCH, WINNERS),
        spec="#api-mlgraphbuilder-scatternd",
        family=Family.MOVEMENT,
        without=("elementwise", "epilogue", "layout", "precision"),
        movement=MOVES,
        cost=MOVED,
        bounds=EXACT,
        documentation=Documentation(
            group=INDEXING,
            summary="Copy the input and replace the slices at coordinates.",
            arguments={
                "input": "{types}, with rank 1 or more.",
                "indices": (
                    "{types}, with rank 1 or more. The last dimension holds the leading coordinates of a slice. There are "
                    "as many as the input has dimensions for single elements, or fewer."
                ),
                "updates": (
                    "The input's data type. The shape is that of `indices` without its last dimension, followed by the "
                    "dimensions of `input` behind the coordinates."
                ),
            },
            returns="An operand with the input's data type and shape.",
            raises=(
                "The number of coordinates exceeds the number of dimensions of the input. The data type of the indices is not "
                "allowed, the data type or shape of the updates is not allowed"
            ),
            numerics=f"{CLAMPED_INDICES} Of several updates of one slice, the last in row-major order wins on every device.",
            example="""
                >>> row = b.constant(np.array([[-1]], np.int32))
                >>> b.scatter_nd(x, row, b.constant(np.float32([[7, 8, 9]]))).shape
                (2, 3)
            """,
        ),
        gradient=indexing_gradients.SCATTER_ND,
    ),
)
