"""Scattering: a copy of the input in which elements or slices, named by indices, are replaced by updates.

Several updates may name one place, also because indices are clamped. The one that stands last in row-major order wins, on
every device: `search` looks for it from every place, `winners` lets the updates vie for each place before anything is written.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..core.data_types import DATA_TYPES
from ..kernels.element import QUAD, STORAGE_ALIGNMENT_BYTES, padded_bytes
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Temp, UniformType, Window
from ..kernels.spec import Operand as Resource
from ._attrs import Attr
from ._def import Call, Lowering, OpDef, Operand
from ._places import (
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
from ._quads import quad_launch
from ._units import WORD_BYTES, Units

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..core.caps import Caps
    from ..ir.graph import Array, Attrs
    from ..ir.types import TensorType

SEARCH = KernelTemplate("scatter.search", ("form", "rank", "quad"))
WINNERS = KernelTemplate("scatter.winners", ("step", "form", "rank", "quad"))

_FEW = 2
"""Updates that are always searched: finding them costs each quad less than two more passes over the places."""

_COMPARISONS = 1 << 15
"""Comparisons up to which searching costs less than two more dispatches do, some 20 us each on a software adapter."""


Field: TypeAlias = tuple[str, UniformType, int]
Bound: TypeAlias = tuple[Binding, Resource]


@dataclass(frozen=True)
class _Scatter:
    """A scatter to `places`, its slices moved in `units`; the input is a table of `table` slices of `slice_bytes`."""

    low: Lowering
    places: Places
    units: Units
    table: int
    slice_bytes: int
    reason: str

    def search(self, first: int, count: int) -> list[KernelCall]:
        """Return the calls that fill a range of the table, each place looking for its update."""
        bindings = [self._input(first, count), self._indices, *self._written(first, count)]
        fields: list[Field] = [*self._update_fields, ("first", "u32", first), self._length]
        return [self._call(SEARCH, bindings, fields, self._elements(count), self._form(self.units.quad))]

    def winners(self, first: int, count: int) -> list[KernelCall]:
        """Return the calls that fill a range of the table, every update vying for its place."""
        winners = Temp("winners", count * WORD_BYTES)
        cleared, raised, read = (
            (Binding("winner", "write", "bits32", quad=True), winners),
            (Binding("winner", "write", "atomic32"), winners),
            (Binding("winner", "read", "uint32"), winners),
        )
        fields: list[Field] = [*self._update_fields, ("first", "u32", first), ("places", "u32", count)]
        written = [self._input(first, count), read, *self._written(first, count)]
        no_form = {"form": "", "rank": 0, "quad": self.units.quad}
        return [
            self._call(WINNERS, [cleared], [], count, {"step": "clear"} | no_form | {"quad": True}),
            self._call(WINNERS, [self._indices, raised], fields, self.places.count, {"step": "mark"} | self._form(False)),
            self._call(WINNERS, written, [self._length], self._elements(count), {"step": "write"} | no_form),
        ]

    def _call(
        self,
        template: KernelTemplate,
        bindings: Sequence[Bound],
        fields: Sequence[Field],
        num_elements: int,
        params: Mapping[str, Any],
    ) -> KernelCall:
        launch, grid = quad_launch(num_elements, self.low.caps)
        fields = [*launch, *fields]
        spec = template.spec([b for b, _ in bindings], [(name, type_) for name, type_, _ in fields], **params)
        return KernelCall(spec, tuple(r for _, r in bindings), tuple(v for *_, v in fields), grid, self.reason)

    @property
    def _update_fields(self) -> list[Field]:
        return [*self.places.fields, ("updates", "u32", self.places.count)]

    @property
    def _length(self) -> Field:
        return ("slice_length", "u32", self.units.lengths[0])

    @property
    def _indices(self) -> Bound:
        return index_binding(self.low.input(1).data_type), self.low.value(1)

    def _form(self, quad: bool) -> dict[str, Any]:
        return {"form": self.places.form, "rank": self.places.rank, "quad": quad}

    def _elements(self, count: int) -> int:
        return count * self.units.lengths[0] * (QUAD if self.units.quad else 1)

    def _input(self, first: int, count: int) -> Bound:
        return Binding("input", "read", self.units.element, quad=True), self._window(self.low.value(0), first, count)

    def _written(self, first: int, count: int) -> list[Bound]:
        element, output = self.units.element, self._window(self.low.node.outputs[0], first, count)
        updates = Binding("updates", "read", element, quad=self.units.quad)
        return [(updates, self.low.value(2)), (Binding("output", "write", element, quad=True), output)]

    def _window(self, value: int, first: int, count: int) -> Resource:
        if count == self.table:
            return value
        return Window(value, first * self.slice_bytes, padded_bytes(count * self.slice_bytes))


def _scatter(low: Lowering, places: Places) -> list[KernelCall]:
    """Return the kernel calls that scatter updates to `places`."""
    x = low.input()
    units, table = places.units(x.data_type), x.num_elements // places.slice_length
    slice_bytes = places.slice_length * DATA_TYPES[x.data_type].size_bytes
    variant, reason = low.forced_variant, "forced"
    if variant is None:
        quads = table * units.lengths[0] // (1 if units.quad else QUAD)
        few = places.count <= _FEW or places.count * quads <= _COMPARISONS
        variant, reason = "search" if few else "winners", f"{places.count} update(s), {table} place(s)"
    scatter = _Scatter(low, places, units, table, slice_bytes, reason)
    calls = scatter.search if variant == "search" else scatter.winners
    return [call for first, count in _ranges(table, slice_bytes, low.caps) for call in calls(first, count)]


def _ranges(places: int, slice_bytes: int, caps: Caps) -> Iterator[tuple[int, int]]:
    """Yield ranges of places as (first, count), so that their slices, and a word for each, can be bound; one if all can."""
    limit = caps.limit("max-storage-buffer-binding-size") // STORAGE_ALIGNMENT_BYTES * STORAGE_ALIGNMENT_BYTES
    alignment = caps.limit("min-storage-buffer-offset-alignment")
    # Every range but the last holds whole multiples of the alignment of offsets.
    step = alignment // math.gcd(alignment, slice_bytes)
    most = limit // max(slice_bytes, WORD_BYTES)
    most = most if places <= most else max(step, most // step * step)
    for first in range(0, places, most):
        yield first, min(most, places - first)


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


def _check_updates(call: Call, shape: Sequence[int], rule: str) -> None:
    x, indices, updates = (call.input(i) for i in range(3))
    call.require(
        updates.shape == tuple(shape),
        f"Incompatible shapes: updates must have {rule}",
        got=f"input {x}, indices {indices}, updates {updates}",
        allowed=f"updates of shape {list(shape)}",
    )


# scatterElements ------------------------------------------------------------------------------------------------------


def _infer_elements(call: Call) -> tuple[TensorType, ...]:
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


def _infer_nd(call: Call) -> tuple[TensorType, ...]:
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
        "scatterElements",
        (
            Operand("input", min_rank=1),
            Operand("indices", INDEX_TYPES, min_rank=1),
            Operand("updates", same_as="input", min_rank=1),
        ),
        _infer_elements,
        _elements_reference,
        _lower_elements,
        attrs=(Attr("axis", "uint", 0),),
        templates=(SEARCH, WINNERS),
        spec="#api-mlgraphbuilder-scatterelements",
        tolerance=0,
        moves=True,
    ),
    OpDef(
        "scatterND",
        (
            Operand("input", min_rank=1),
            Operand("indices", INDEX_TYPES, min_rank=1),
            Operand("updates", same_as="input"),
        ),
        _infer_nd,
        _nd_reference,
        _lower_nd,
        templates=(SEARCH, WINNERS),
        spec="#api-mlgraphbuilder-scatternd",
        tolerance=0,
        moves=True,
    ),
)
