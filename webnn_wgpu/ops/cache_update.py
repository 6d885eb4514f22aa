"""The append of rows to a cache, behind its present rows. It works in place if the graph's output is an alias of its input."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..core.data_types import ANY, DATA_TYPES
from ..kernels.spec import Binding, KernelCall, KernelTemplate, grid_1d
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._product_kernel import ProductKernel
from ._strided_copy import STRIDED, copy_call
from ._units import WORD_BYTES, units_of
from .gradients import movement as movement_gradients
from .interfaces.bounds import EXACT
from .interfaces.cost import UPDATED
from .interfaces.documentation import CACHE_EXTENSIONS, Documentation
from .interfaces.family import Family
from .interfaces.movement import Movement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ir.graph import Array, Attrs
    from ..ir.types import TensorType

CACHE_UPDATE = KernelTemplate("cache_update", ("quad",))

_WORKGROUP = 64


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    cache, new, position = (call.input(i) for i in range(3))
    axis = call.axis(call.attrs["axis"], cache.rank)
    call.require(new.rank == cache.rank, "Incompatible shapes: cache and new must have the same rank", allowed=f"{cache.rank}")
    others = [d for d in range(cache.rank) if d != axis]
    call.require(
        all(new.shape[d] == cache.shape[d] for d in others),
        f"Incompatible shapes: all dimensions of new except axis {axis} must be those of cache",
        allowed=str([cache.shape[d] if d != axis else "any" for d in range(cache.rank)]),
    )
    call.require(
        new.shape[axis] <= cache.shape[axis],
        "new must not have more rows than cache",
        allowed=f"<= {cache.shape[axis]}",
    )
    batch = cache.shape[0] if axis else 1
    call.require(
        position.num_elements == 1 or position.shape == (batch,),
        "position must be one number, or one for each batch",
        allowed=f"[], [1] or [{batch}]",
    )
    call.require(
        math.prod(cache.shape[axis + 1 :]) * DATA_TYPES[cache.data_type].size_bytes % WORD_BYTES == 0,
        "the elements behind each index of axis must be whole words of 4 bytes",
        allowed=f"a multiple of {WORD_BYTES // math.gcd(WORD_BYTES, DATA_TYPES[cache.data_type].size_bytes)} elements",
    )
    return (cache,)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    cache, new, position = arrays
    assert cache is not None
    assert new is not None
    assert position is not None
    axis: int = attrs["axis"]
    result = cache.copy()
    batches, rows = (cache.shape[0], axis - 1) if axis else (1, 0)
    # Views of each batch, its rows first.
    targets, sources = (np.moveaxis(x.reshape(batches, *x.shape[min(axis, 1) :]), rows + 1, 1) for x in (result, new))
    starts = np.broadcast_to(position.reshape(-1).astype(np.int64), (batches,))
    for target, source, start in zip(targets, sources, starts, strict=True):
        places = np.arange(len(source)) + start
        inside = (places >= 0) & (places < len(target))
        target[places[inside]] = source[inside]
    return [result]


def _lower(low: Lowering) -> list[KernelCall]:
    cache, new, axis = low.input(0), low.input(1), int(low.attrs["axis"])
    outer, inner = math.prod(cache.shape[:axis]), math.prod(cache.shape[axis + 1 :])
    units = units_of(cache.data_type, [inner])
    width, rows = units.lengths[0], new.shape[axis]
    count = outer * rows * width
    kernel = ProductKernel(params={"quad": units.quad})
    kernel.bind(Binding(name="rows", access="read", element=units.element, quad=units.quad), low.value(1))
    kernel.bind(Binding(name="position", access="read", element=low.input(2).data_type), low.value(2))
    kernel.bind(Binding(name="output", access="write", element=units.element, quad=units.quad), low.node.outputs[0])
    kernel.uniforms(count=count, width=width, rows=rows, capacity=cache.shape[axis])
    per_batch = low.input(2).num_elements > 1
    kernel.uniforms(batch=math.prod(cache.shape[1:axis]), position_step=int(per_batch))
    reason = "in place" if low.in_place else "into a copy"
    call = kernel.call(CACHE_UPDATE, grid_1d(-(-count // _WORKGROUP), low.caps), reason)
    if low.in_place:
        return [call]
    return [copy_call(low.value(0), cache, low.node.outputs[0], low.target), call]


OPS = (
    OpDef(
        name="x.cache_update",
        operands=(
            Operand(name="cache", data_types=ANY, min_rank=1),
            Operand(name="new", same_as="cache", min_rank=1),
            Operand(name="position", data_types=("int32", "uint32"), max_rank=1),
        ),
        infer=_infer,
        reference=_reference,
        lower=_lower,
        attrs=(Attr("axis", "uint", 2),),
        templates=(CACHE_UPDATE, STRIDED),
        family=Family.MOVEMENT,
        without=("elementwise", "epilogue", "layout", "precision"),
        movement=Movement(updates=True),
        cost=UPDATED,
        bounds=EXACT,
        documentation=Documentation(
            group=CACHE_EXTENSIONS,
            summary="A cache with new rows from a position on, which is known at run time. Its other rows stay as they are.",
            details=(
                "If the cache is an input and `build(outputs, aliases={...})` makes the result its alias, nothing is "
                "copied: the rows are written into the tensor that `dispatch` gets for both. Together with the `length` of "
                "`attention`, decoding any number of tokens compiles once."
            ),
            arguments={
                "cache": "{types}, with rank 1 to 8. The elements behind an index of `axis` must fill whole words of 4 bytes.",
                "new": "The data type and shape of `cache`, with no more indices along `axis`.",
                "position": (
                    "{types}, with the shape [], [1] or [batch] for a position of each batch (dimension 0). Rows outside "
                    "the cache are left out."
                ),
                "axis": "The dimension along which the cache fills.",
            },
            returns="An operand with the cache's data type and shape.",
            raises="A data type, rank or shape is not allowed",
            example="""
                >>> cache = b.input("cache", {"dataType": "float32", "shape": [1, 2, 8, 4]})
                >>> new = b.constant(np.ones((1, 2, 1, 4), np.float32))
                >>> position = b.input("position", {"dataType": "int32", "shape": [1]})
                >>> graph = b.build({"updated": b.ext.cache_update(cache, new, position)}, aliases={"updated": "cache"})
                >>> tensor = context.create_tensor([1, 2, 8, 4], "float32", readable=True)
                >>> at = context.create_tensor([1], "int32", writable=True)
                >>> context.write_tensor(at, [3])
                >>> context.dispatch(graph, {"cache": tensor, "position": at}, {"updated": tensor})
                >>> print(context.read_tensor(tensor)[0, 0, :, 0])
                [0. 0. 0. 1. 0. 0. 0. 0.]
            """,
        ),
        gradient=movement_gradients.cache_update,
    ),
)
