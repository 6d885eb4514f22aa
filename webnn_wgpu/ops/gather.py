"""Gathering slices by index along one dimension."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..kernels.element import QUAD
from ..kernels.spec import Binding, Interval, KernelCall, KernelTemplate, UniformType
from ..kernels.windows import repeated
from ._attrs import Attr
from ._def import Call, Lowering, OpDef, Operand
from ._quads import quad_launch, quad_work
from ._units import units_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ir.graph import Array, Attrs
    from ..ir.types import TensorType

GATHER = KernelTemplate("gather", ("quad",))

INDEX_TYPES = ("int32", "uint32", "int64")
"""Data types of indices."""


def index_binding(name: str, data_type: str) -> Binding:
    """Return the binding of an indices operand as `shaders/lib/clamped_index.wgsl.j2` reads it: int64 as two words."""
    return Binding(name, "read", "bits64" if data_type == "int64" else data_type)


def clamped_indices(indices: Array, size: int) -> Array:
    """Return indices into a dimension of `size`: negative ones count from its end, and what is out of range is clamped.

    >>> clamped_indices(np.array([0, 5, -1, -9]), 3)
    array([0, 2, 2, 0])
    """
    wide = indices.astype(np.int64)
    return np.clip(np.where(wide < 0, wide + size, wide), 0, size - 1)


def _infer(call: Call) -> tuple[TensorType, ...]:
    x, indices = call.input(), call.input(1)
    axis = call.axis(call.attrs["axis"], x.rank)
    return (call.output(x.data_type, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])),)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, indices = arrays
    assert x is not None
    assert indices is not None
    axis = attrs["axis"]
    return [np.asarray(np.take(x, clamped_indices(indices, x.shape[axis]), axis=axis))]


def _lower(low: Lowering) -> list[KernelCall]:
    x, indices, axis = low.input(), low.input(1), low.attrs["axis"]
    units = units_of(x.data_type, [math.prod(x.shape[axis + 1 :])])
    slice_length = units.lengths[0]
    slices = math.prod(x.shape[:axis]) * indices.num_elements
    launch, grid = quad_launch(slices * slice_length * (QUAD if units.quad else 1), low.caps)
    fields: list[tuple[str, UniformType, int]] = [
        *launch,
        ("slice_length", "u32", slice_length),
        ("count", "u32", indices.num_elements),
        ("size", "u32", x.shape[axis]),
    ]
    spec = GATHER.spec(
        [
            Binding("input", "read", units.element, quad=units.quad),
            index_binding("indices", indices.data_type),
            Binding("output", "write", units.element, quad=True),
        ],
        [(name, type_) for name, type_, _ in fields],
        quad=units.quad,
    )
    operands = (low.value(0), low.value(1), low.node.outputs[0])
    reason = "slices of whole quads" if units.quad else f"slices of {units.element}"
    length = slice_length * (QUAD if units.quad else 1)
    count, table = indices.num_elements, x.shape[axis] * length

    def reach(first: int, end: int) -> list[Interval]:
        first_slice, last_slice = first // length, (end - 1) // length
        tables = first_slice // count * table, (last_slice // count + 1) * table
        return [tables, repeated(count, first_slice, last_slice + 1), (first, end)]

    work = quad_work(slices * length, low.caps, reach, moved=[0])
    return [KernelCall(spec, operands, tuple(v for _, _, v in fields), grid, reason, work)]


OPS = (
    OpDef(
        "gather",
        (Operand("input", min_rank=1), Operand("indices", INDEX_TYPES)),
        _infer,
        _reference,
        _lower,
        attrs=(Attr("axis", "uint", 0),),
        templates=(GATHER,),
        spec="#api-mlgraphbuilder-gather",
        tolerance=0,
        moves=True,
    ),
)
