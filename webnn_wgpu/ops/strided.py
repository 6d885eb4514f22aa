"""Operators that read their input with other strides: transpose, slice, split, expand, tile, reverse.

All use one kernel. It copies elements as bits, so every data type works on every device and NaN payloads survive.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from ..core.data_types import MAX_DIMENSION
from ..kernels.spec import KernelCall
from . import _movement_documentation as _documentation
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._shapes import broadcast_strides, strides_of, unidirectional
from ._strided_copy import STRIDED, place_of, strided_call
from .gradients import movement as movement_gradients
from .interfaces.bounds import EXACT
from .interfaces.cost import MOVED
from .interfaces.family import Family
from .interfaces.layout import ChannelsLast, Layout, dimensions, moved
from .interfaces.movement import MOVES, Move, Movement, Stepped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ir.graph import Array, Attrs, Graph, Node
    from ..ir.types import TensorType

MAX_PARTS = 8192
"""Most parts of a split and most inputs of a concat (specification, "valid tensor count")."""


def _lower(low: Lowering, base: int, dims: Sequence[int], strides: Sequence[int], reason: str) -> list[KernelCall]:
    data_type = low.input().data_type
    return [strided_call(low.value(0), data_type, base, dims, strides, low.node.outputs[0], low.target, reason)]


def _given(arrays: Sequence[Array | None]) -> Array:
    x = arrays[0]
    assert x is not None
    return x


# transpose ------------------------------------------------------------------------------------------------------------


def _infer_transpose(call: OpCall) -> tuple[TensorType, ...]:
    x = call.input()
    order = call.attrs["permutation"]
    if order is None:
        order = tuple(reversed(range(x.rank)))
    call.require(
        len(order) == x.rank,
        "permutation must have one item per dimension",
        got=f"permutation={list(order)}, input {x}",
        allowed=f"{x.rank} items",
    )
    call.attrs["permutation"] = call.axes(order, x.rank, "permutation")
    return (call.output(x.data_type, [x.shape[d] for d in order]),)


def _lower_transpose(low: Lowering) -> list[KernelCall]:
    order: tuple[int, ...] = low.attrs["permutation"]
    value, start, strides = place_of(low)
    steps, reason = [strides[d] for d in order], f"permutation {list(order)}"
    output = low.output()
    return [strided_call(value, output.data_type, start, output.shape, steps, low.node.outputs[0], low.target, reason)]


def _follow_transpose(source: Stepped, move: Move) -> Stepped:
    permutation: tuple[int, ...] = move.attrs["permutation"]
    return Stepped(source.offset, tuple(source.dims[d] for d in permutation))


# slice ----------------------------------------------------------------------------------------------------------------


def _infer_slice(call: OpCall) -> tuple[TensorType, ...]:
    x = call.input()
    starts, sizes, strides = (call.attrs[n] for n in ("starts", "sizes", "strides"))
    strides = (1,) * x.rank if strides is None else strides
    for name, items in (("starts", starts), ("sizes", sizes), ("strides", strides)):
        call.require(
            len(items) == x.rank,
            f"{name} must have one item per dimension",
            got=f"{name}={list(items)}, input {x}",
            allowed=f"{x.rank} items",
        )
    for name, items in (("sizes", sizes), ("strides", strides)):
        call.require(
            all(n >= 1 for n in items),
            f"every item of {name} must be at least 1",
            got=f"{name}={list(items)}",
            allowed=">= 1",
        )
    for d, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        call.require(
            start + size <= x.shape[d],
            f"starts[{d}] + sizes[{d}] must be <= input.shape[{d}]: slice is out of bounds",
            got=f"starts={list(starts)}, sizes={list(sizes)}, input {x}",
            allowed=f"<= {x.shape[d]}",
        )
    call.attrs["strides"] = strides
    return (call.output(x.data_type, [-(-n // s) for n, s in zip(sizes, strides, strict=True)]),)


def _slice_reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    starts, sizes, strides = attrs["starts"], attrs["sizes"], attrs["strides"]
    return [_given(arrays)[tuple(slice(b, b + n, s) for b, n, s in zip(starts, sizes, strides, strict=True))]]


def _lower_slice(low: Lowering) -> list[KernelCall]:
    value, start, own = place_of(low)
    base = start + sum(b * s for b, s in zip(low.attrs["starts"], own, strict=True))
    steps = [s * k for s, k in zip(own, low.attrs["strides"], strict=True)]
    output = low.output()
    return [strided_call(value, output.data_type, base, output.shape, steps, low.node.outputs[0], low.target, "slice")]


def _slice_runs(graph: Graph, node: Node) -> Sequence[int]:
    """Return where a slice begins, if it is cut along one dimension and all before that have one element."""
    x, output = graph.type(node.operands[0]), graph.type(node.outputs[0])
    cut = next((d for d, n in enumerate(output.shape) if n != 1), x.rank)
    if output.shape[cut + 1 :] != x.shape[cut + 1 :] or any(n != 1 for n in node.attrs["strides"][cut : cut + 1]):
        return ()
    return (sum(b * s for b, s in zip(node.attrs["starts"], strides_of(x.shape), strict=True)),)


def _follow_slice(source: Stepped, move: Move) -> Stepped | None:
    return source.cut(move.attrs["starts"], move.attrs["strides"], move.before, move.after)


# split ----------------------------------------------------------------------------------------------------------------


def _infer_split(call: OpCall) -> tuple[TensorType, ...]:
    x, splits = call.input(), call.attrs["splits"]
    axis = call.axis(call.attrs["axis"], x.rank)
    size = x.shape[axis]
    if isinstance(splits, int):
        call.require(1 <= splits <= MAX_PARTS, "splits is out of range", got=f"splits={splits}", allowed=f"1..{MAX_PARTS}")
        call.require(
            size % splits == 0,
            "splits must divide input.shape[axis]",
            got=f"splits={splits}, axis={axis}, input {x}",
            allowed=f"divisors of {size}",
        )
        splits = (size // splits,) * splits
    call.require(
        1 <= len(splits) <= MAX_PARTS,
        "splits must name 1 to 8192 parts",
        got=f"{len(splits)} parts",
        allowed=f"1..{MAX_PARTS}",
    )
    call.require(all(n > 0 for n in splits), "no part of splits may be 0", got=f"splits={list(splits)}", allowed=">= 1")
    call.require(
        sum(splits) == size,
        "splits must sum to input.shape[axis]",
        got=f"splits={list(splits)} (sum {sum(splits)}), axis={axis}, input {x}",
        allowed=f"sum {size}",
    )
    call.attrs["splits"] = splits
    return tuple(call.output(x.data_type, (*x.shape[:axis], n, *x.shape[axis + 1 :])) for n in splits)


def _split_reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    return list(np.split(_given(arrays), np.cumsum(attrs["splits"])[:-1], axis=attrs["axis"]))


def _lower_split(low: Lowering) -> list[KernelCall]:
    x, axis = low.input(), int(low.attrs["axis"])
    value, first, own = place_of(low)
    calls: list[KernelCall] = []
    start = 0
    parts: tuple[int, ...] = low.attrs["splits"]
    for i, part in enumerate(parts):
        output = low.output(i)
        reason = f"part {i} of {len(low.node.outputs)}"
        base = first + start * own[axis]
        calls.append(strided_call(value, x.data_type, base, output.shape, own, low.node.outputs[i], low.target, reason))
        start += part
    return calls


def _split_runs(graph: Graph, node: Node) -> Sequence[int]:
    """Return where the parts of a split begin, if all dimensions before the one it is cut along have one element."""
    x, axis = graph.type(node.operands[0]), int(node.attrs["axis"])
    if math.prod(x.shape[:axis]) != 1:
        return ()
    return [start * strides_of(x.shape)[axis] for start in accumulate((0, *node.attrs["splits"][:-1]))]


def _follow_split(source: Stepped, move: Move) -> Stepped | None:
    starts = [0] * len(move.before)
    starts[move.attrs["axis"]] = sum(move.attrs["splits"][: move.output])
    return source.cut(starts, [1] * len(starts), move.before, move.after)


# expand, tile, reverse ------------------------------------------------------------------------------------------------


def _infer_expand(call: OpCall) -> tuple[TensorType, ...]:
    x, shape = call.input(), call.attrs["new_shape"]
    call.require(
        all(0 < d <= MAX_DIMENSION for d in shape),
        "every item of new_shape must be a valid dimension",
        got=f"new_shape={list(shape)}",
        allowed=f"1..{MAX_DIMENSION}",
    )
    call.require(
        unidirectional(x.shape, shape),
        "Incompatible shapes: input must broadcast to new_shape",
        got=f"new_shape={list(shape)}, input {x}",
    )
    return (call.output(x.data_type, shape),)


def _lower_expand(low: Lowering) -> list[KernelCall]:
    shape = low.output().shape
    return _lower(low, 0, shape, broadcast_strides(low.input().shape, shape), "expand")


def _follow_expand(source: Stepped, move: Move) -> Stepped:
    more = len(move.after) - len(move.before)
    before, dims = (1,) * more + move.before, ((),) * more + source.dims
    repeated = (steps if old == n else ((n, 0),) for steps, old, n in zip(dims, before, move.after, strict=True))
    return Stepped(source.offset, tuple(repeated))


def _expanded_layout(attrs: Attrs, shape: tuple[int, ...]) -> ChannelsLast | None:
    same = len(shape) == len(attrs["new_shape"])
    return ChannelsLast(moved(attrs, len(shape), items=("new_shape",))) if same else None


def _infer_tile(call: OpCall) -> tuple[TensorType, ...]:
    x, repetitions = call.input(), call.attrs["repetitions"]
    call.require(
        len(repetitions) == x.rank,
        "repetitions must have one item per dimension",
        got=f"repetitions={list(repetitions)}, input {x}",
        allowed=f"{x.rank} items",
    )
    call.require(
        all(n > 0 for n in repetitions),
        "no item of repetitions may be 0",
        got=f"repetitions={list(repetitions)}",
        allowed=">= 1",
    )
    return (call.output(x.data_type, [d * n for d, n in zip(x.shape, repetitions, strict=True)]),)


def _lower_tile(low: Lowering) -> list[KernelCall]:
    x = low.input()
    # Every dimension is seen as (repetition, position), with stride 0 along the repetitions.
    pairs = zip(low.attrs["repetitions"], x.shape, strict=True)
    dims = [n for pair in pairs for n in pair]
    strides = [n for s in strides_of(x.shape) for n in (0, s)]
    return _lower(low, 0, dims, strides, "tile")


def _infer_reverse(call: OpCall) -> tuple[TensorType, ...]:
    x, axes = call.input(), call.attrs["axes"]
    call.attrs["axes"] = tuple(range(x.rank)) if axes is None else call.axes(axes, x.rank)
    return (x,)


def _lower_reverse(low: Lowering) -> list[KernelCall]:
    x = low.input()
    axes: tuple[int, ...] = low.attrs["axes"]
    own = list(strides_of(x.shape))
    base = sum((x.shape[d] - 1) * own[d] for d in axes)
    steps = [-s if d in axes else s for d, s in enumerate(own)]
    return _lower(low, base, x.shape, steps, f"reverse {list(axes)}")


TRANSPOSE = OpDef(
    name="transpose",
    operands=(Operand(name="input"),),
    infer=_infer_transpose,
    reference=lambda arrays, attrs, out: [np.transpose(_given(arrays), attrs["permutation"])],
    lower=_lower_transpose,
    attrs=(Attr("permutation", "uints", None),),
    templates=(STRIDED,),
    spec="#api-mlgraphbuilder-transpose",
    family=Family.MOVEMENT,
    without=("elementwise", "epilogue", "layout", "precision"),
    movement=Movement(follow=_follow_transpose, permutes=True, reads_parts=True),
    cost=MOVED,
    bounds=EXACT,
    documentation=_documentation.TRANSPOSE,
    gradient=movement_gradients.transpose,
)

SLICE = OpDef(
    name="slice",
    operands=(Operand(name="input"),),
    infer=_infer_slice,
    reference=_slice_reference,
    lower=_lower_slice,
    attrs=(Attr("starts", "uints"), Attr("sizes", "uints"), Attr("strides", "uints", None)),
    templates=(STRIDED,),
    spec="#api-mlgraphbuilder-slice",
    family=Family.MOVEMENT,
    without=("elementwise", "epilogue", "precision"),
    movement=Movement(follow=_follow_slice, runs=_slice_runs, reads_parts=True),
    layout=dimensions(items=("starts", "sizes", "strides")),
    cost=MOVED,
    bounds=EXACT,
    copies=True,
    documentation=_documentation.SLICE,
    gradient=movement_gradients.slice_,
)

SPLIT = OpDef(
    name="split",
    operands=(Operand(name="input", min_rank=1),),
    infer=_infer_split,
    reference=_split_reference,
    lower=_lower_split,
    attrs=(Attr("splits", "splits"), Attr("axis", "uint", 0)),
    templates=(STRIDED,),
    spec="#api-mlgraphbuilder-split",
    family=Family.MOVEMENT,
    without=("elementwise", "epilogue", "precision"),
    movement=Movement(follow=_follow_split, runs=_split_runs, reads_parts=True),
    layout=dimensions(axes=("axis",)),
    cost=MOVED,
    bounds=EXACT,
    outputs=("outputs",),
    copies=True,
    documentation=_documentation.SPLIT,
    gradient=movement_gradients.split,
)

EXPAND = OpDef(
    name="expand",
    operands=(Operand(name="input"),),
    infer=_infer_expand,
    reference=lambda arrays, attrs, out: [np.broadcast_to(_given(arrays), attrs["new_shape"])],
    lower=_lower_expand,
    attrs=(Attr("new_shape", "uints"),),
    templates=(STRIDED,),
    spec="#api-mlgraphbuilder-expand",
    family=Family.MOVEMENT,
    without=("elementwise", "epilogue", "precision"),
    movement=Movement(follow=_follow_expand),
    layout=Layout(_expanded_layout),
    cost=MOVED,
    bounds=EXACT,
    copies=True,
    documentation=_documentation.EXPAND,
    gradient=movement_gradients.expand,
)

TILE = OpDef(
    name="tile",
    operands=(Operand(name="input"),),
    infer=_infer_tile,
    reference=lambda arrays, attrs, out: [np.tile(_given(arrays), attrs["repetitions"])],
    lower=_lower_tile,
    attrs=(Attr("repetitions", "uints"),),
    templates=(STRIDED,),
    spec="#api-mlgraphbuilder-tile",
    family=Family.MOVEMENT,
    without=("elementwise", "epilogue", "precision"),
    movement=MOVES,
    layout=dimensions(items=("repetitions",)),
    cost=MOVED,
    bounds=EXACT,
    copies=True,
    documentation=_documentation.TILE,
    gradient=movement_gradients.tile,
)

REVERSE = OpDef(
    name="reverse",
    operands=(Operand(name="input"),),
    infer=_infer_reverse,
    reference=lambda arrays, attrs, out: [np.flip(_given(arrays), attrs["axes"])],
    lower=_lower_reverse,
    attrs=(Attr("axes", "uints", None),),
    templates=(STRIDED,),
    spec="#api-mlgraphbuilder-reverse-method",
    family=Family.MOVEMENT,
    without=("elementwise", "epilogue", "precision"),
    movement=MOVES,
    layout=dimensions(axes=("axes",)),
    cost=MOVED,
    bounds=EXACT,
    documentation=_documentation.REVERSE,
    gradient=movement_gradients.reverse,
)

OPS = (TRANSPOSE, SLICE, SPLIT, EXPAND, TILE, REVERSE)
