"""Places that indices name, shared by gathering and scattering operators.

These operators see a tensor as a table of slices, one per place. Indices form rows, and each row names a place. One rule holds
for every index: a negative index counts from the dimension's end, and an index that is still out of range is clamped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..kernels.element import bits_of
from ..kernels.spec import Binding, Interval, UniformType
from ..kernels.windows import repeated
from ._units import Units, units_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ir.graph import Array
    from ._def import OpCall

INDEX_TYPES = ("int32", "uint32", "int64")
"""Data types of indices."""

CLAMPED_INDICES = "A negative index counts from the end. An index out of range is limited to the first or last."
"""The documentation of indices of the specification's operators."""


@dataclass(frozen=True, kw_only=True)
class Places:
    """The mapping from rows of indices to places. `shaders/lib/places.wgsl.j2` is the same mapping in WGSL.

    Attributes:
        form: the meaning of a row. With `axis`, a row is one index along a dimension, and all rows repeat for every position
            before that dimension. With `elements`, a row is one index, which replaces its own coordinate along a dimension.
            With `coordinates`, a row holds the leading coordinates of a place.
        rank: the number of indices in a row.
        count: the number of named places.
        slice_length: the number of elements at a place.
        fields: the uniforms of the shader.
        group: the number of consecutive named places that are in one part of the table. The next group is in the next part.
        part: the number of places in such a part.
    """

    form: Literal["axis", "elements", "coordinates"]
    rank: int
    count: int
    slice_length: int
    fields: tuple[tuple[str, UniformType, int], ...]
    group: int
    part: int

    def reach(self, first: int, end: int) -> tuple[Interval, Interval]:
        """Return the places that rows first..end-1 may name, and the indices of these rows."""
        end = min(end, self.count)
        table = first // self.group * self.part, ((end - 1) // self.group + 1) * self.part
        return table, repeated(self.group, first, end) if self.form == "axis" else (first * self.rank, end * self.rank)

    def units(self, data_type: str) -> Units:
        """Return the unit in which kernels copy slices."""
        if self.slice_length == 1:
            # With words as units, the kernel would compute the place twice, for each half of a 64-bit element.
            return Units(bits_of(data_type), (1,), False)
        return units_of(data_type, (self.slice_length,))


def places_along(shape: Sequence[int], indices: Sequence[int], axis: int) -> Places:
    """Return the places `input[..., index, ...]` of slices behind a dimension."""
    rows = math.prod(indices)
    fields: tuple[tuple[str, UniformType, int], ...] = (("count", "u32", rows), ("size", "u32", shape[axis]))
    return Places(
        form="axis",
        rank=1,
        count=math.prod(shape[:axis]) * rows,
        slice_length=math.prod(shape[axis + 1 :]),
        fields=fields,
        group=rows,
        part=shape[axis],
    )


def places_of_elements(shape: Sequence[int], indices: Sequence[int], axis: int) -> Places:
    """Return the places of single elements whose coordinate along a dimension is an index."""
    inner = math.prod(shape[axis + 1 :])
    fields: tuple[tuple[str, UniformType, int], ...] = (
        ("row", "u32", indices[axis] * inner),
        ("size", "u32", shape[axis]),
        ("inner", "u32", inner),
    )
    return Places(
        form="elements",
        rank=1,
        count=math.prod(indices),
        slice_length=1,
        fields=fields,
        group=indices[axis] * inner,
        part=shape[axis] * inner,
    )


def places_at(shape: Sequence[int], indices: Sequence[int]) -> Places:
    """Return the places of slices. The last dimension of the indices holds their leading coordinates."""
    rank = indices[-1]
    fields: tuple[tuple[str, UniformType, int], ...] = tuple((f"size_{d}", "u32", shape[d]) for d in range(rank))
    count = math.prod(indices[:-1])
    return Places(
        form="coordinates",
        rank=rank,
        count=count,
        slice_length=math.prod(shape[rank:]),
        fields=fields,
        group=count,
        part=math.prod(shape[:rank]),
    )


def index_binding(data_type: str, name: str = "indices") -> Binding:
    """Return the binding of the indices as `shaders/lib/clamped_index.wgsl.j2` reads it: int64 as two words."""
    return Binding(name=name, access="read", element="bits64" if data_type == "int64" else data_type)


def clamped_indices(indices: Array, size: int) -> Array:
    """Return indices into a dimension of `size`. Negative indices count from its end, indices out of range are clamped.

    >>> clamped_indices(np.array([0, 5, -1, -9]), 3)
    array([0, 2, 2, 0])
    """
    wide = indices.astype(np.int64)
    return np.clip(np.where(wide < 0, wide + size, wide), 0, size - 1)


def coordinates(indices: Array, shape: Sequence[int]) -> tuple[Array, ...]:
    """Return the coordinates in the last dimension of the indices, one array per dimension.

    >>> coordinates(np.array([[1, -1], [9, 0]]), (2, 3))
    (array([1, 1]), array([2, 0]))
    """
    return tuple(clamped_indices(indices[..., d], shape[d]) for d in range(indices.shape[-1]))


def check_elements(call: OpCall) -> int:
    """Check operands `input` and `indices` whose shapes differ along the axis at most, and return the axis."""
    x, indices = call.input(), call.input(1)
    got = f"input {x}, indices {indices}"
    call.require(
        indices.rank == x.rank,
        "Incompatible shapes: indices must have the rank of input",
        got=got,
        allowed=f"rank {x.rank}",
    )
    axis = call.axis(call.attrs["axis"], x.rank)
    wanted = (*x.shape[:axis], indices.shape[axis], *x.shape[axis + 1 :])
    call.require(
        indices.shape == wanted,
        f"Incompatible shapes: indices must have input's shape in all dimensions except axis {axis}",
        got=got,
        allowed=f"indices of shape {list(wanted)}",
    )
    return axis


def check_coordinates(call: OpCall) -> tuple[int, ...]:
    """Check the operands `input` and `indices`, whose rows are coordinates, and return the shape of the named slices."""
    x, indices = call.input(), call.input(1)
    rank = indices.shape[-1]
    call.require(
        rank <= x.rank,
        "the last dimension of indices must be <= rank(input)",
        got=f"{rank} coordinates, input {x}, indices {indices}",
        allowed=f"1..{x.rank}",
    )
    return (*indices.shape[:-1], *x.shape[rank:])
