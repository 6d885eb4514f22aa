"""Operators of StableHLO that read or write slices at computed positions, and windows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from webnn_wgpu import MLOperand

from ..call import TfliteCall
from ._registry import Result, lowers
from .indexing import dynamic_update_slice, indices_of
from .stablehlo import padded, spread

REDUCTIONS = {
    "ADD": "add",
    "STABLEHLO_ADD": "add",
    "MUL": "mul",
    "STABLEHLO_MULTIPLY": "mul",
    "MAXIMUM": "max",
    "STABLEHLO_MAXIMUM": "max",
    "MINIMUM": "min",
    "STABLEHLO_MINIMUM": "min",
}
"""Operators of the subgraphs that combine two elements."""


def _combination(call: TfliteCall, index: int) -> str:
    """Return how a subgraph combines two elements: "none" if it returns the second."""
    subgraphs = call.module.file.subgraphs
    if not 0 <= index < len(subgraphs):
        call.fail(f"it uses subgraph {index}, which is missing")
    found = subgraphs[index]
    if not found.operators and found.outputs == found.inputs[1:2]:
        return "none"
    if len(found.operators) != 1 or found.operators[0].name not in REDUCTIONS:
        call.fail("its subgraph is no sum, product, maximum or minimum of two elements")
    return REDUCTIONS[found.operators[0].name]


def _numbers(call: TfliteCall, name: str) -> list[int]:
    return [int(v) for v in call.option(name, [])]


def _slice_sizes(call: TfliteCall) -> list[int]:
    """Return the sizes of slices of the first operand."""
    shape, sizes = call.shape(0), _numbers(call, "SliceSizes")
    if len(sizes) != len(shape) or any(not 1 <= s <= d for s, d in zip(sizes, shape, strict=True)):
        call.fail(f"slices of {sizes} from {list(shape)}")
    return sizes


def _mapped(call: TfliteCall, name: str, places: MLOperand) -> list[int]:
    """Return the dimensions of the first operand that the coordinates of places are for."""
    dims = _numbers(call, name)
    if len(dims) != int(places.shape[-1]) or any(not 0 <= d < len(call.shape(0)) for d in dims):
        call.fail(f"{places.shape[-1]} coordinates for the dimensions {dims}")
    return dims


def _strides(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def _coordinates(call: TfliteCall, index: int, vector: int) -> MLOperand:
    """Return positions as int32 with the coordinates last."""
    places = call.cast(indices_of(call, index), "int32")
    rank = len(places.shape)
    if vector == rank:
        return call.reshape(places, [*places.shape, 1])
    return call.transpose(places, [*(i for i in range(rank) if i != vector), vector])


@lowers(STABLEHLO_GATHER=1)
def gather(call: TfliteCall) -> Result:
    """Slices from positions on, which are moved so that the slices fit."""
    shape, b = call.shape(0), call.build
    sizes = _slice_sizes(call)
    collapsed, offset_dims = _numbers(call, "CollapsedSliceDims"), _numbers(call, "OffsetDims")
    places = _coordinates(call, 1, int(call.option("IndexVectorDim")))
    mapped = _mapped(call, "StartIndexMap", places)
    if any(not 0 <= d < len(shape) for d in collapsed):
        call.fail(f"collapsed dimensions {collapsed} of {list(shape)}")
    room = np.array([shape[d] - sizes[d] for d in mapped])
    strides = _strides(shape)
    places = b.max(b.min(places, call.constant(room, "int32")), call.constant(0, "int32"))
    steps = call.constant(np.array([strides[d] for d in mapped]), "int32")
    starts = b.reduce_sum(b.mul(places, steps), axes=[len(places.shape) - 1])
    batch = [int(d) for d in starts.shape]
    kept = [d for d in range(len(shape)) if d not in collapsed]
    window = [sizes[d] for d in kept]
    total = len(batch) + len(window)
    if not len(offset_dims) == len({*offset_dims} & {*range(total)}) == len(window):
        call.fail(f"the dimensions {offset_dims} of the result for slices of rank {len(window)}")
    offsets = np.tensordot([strides[d] for d in kept], np.indices(window), 1) if kept else np.zeros((), np.int64)
    at = b.add(call.reshape(starts, [*batch, *(1 for _ in window)]), call.constant(offsets, "int32"))
    y = b.gather(call.reshape(call.moved(0), [math.prod(shape)]), at, axis=0)
    others = iter(range(len(batch)))
    inner = iter(range(len(batch), total))
    order = [next(inner) if i in offset_dims else next(others) for i in range(total)]
    return call.bare(call.transpose(y, order))


@lowers(STABLEHLO_SCATTER=1)
def scatter(call: TfliteCall) -> Result:
    """Windows of updates combined with a tensor at positions. Windows that do not fit are dropped."""
    shape, b = call.shape(0), call.build
    how = _combination(call, int(call.option("UpdateComputationSubgraphIndex")))
    window_dims, inserted = _numbers(call, "UpdateWindowDims"), _numbers(call, "InsertedWindowDims")
    places = _coordinates(call, 1, int(call.option("IndexVectorDim")))
    mapped = _mapped(call, "ScatterDimsToOperandDims", places)
    update_shape = call.shape(2)
    outer = [i for i in range(len(update_shape)) if i not in window_dims]
    kept = [d for d in range(len(shape)) if d not in inserted]
    if len(kept) != len(window_dims) or len(outer) + len(window_dims) != len(update_shape):
        call.fail(f"windows of the dimensions {window_dims} of the updates {list(update_shape)} for {kept}")
    window = [update_shape[i] for i in window_dims]
    sizes = dict(zip(kept, window, strict=True))
    batch = [update_shape[i] for i in outer]
    strides = _strides(shape)
    room = call.constant(np.array([shape[d] - sizes.get(d, 1) for d in mapped]), "int32")
    inside = b.logical_and(b.greater_or_equal(places, call.constant(0, "int32")), b.lesser_or_equal(places, room))
    fits = b.reduce_min(inside, axes=[len(inside.shape) - 1])
    steps = call.constant(np.array([strides[d] for d in mapped]), "int32")
    starts = b.reduce_sum(b.mul(places, steps), axes=[len(places.shape) - 1])
    ones = [1 for _ in window]
    offsets = np.tensordot([strides[d] for d in kept], np.indices(window), 1) if kept else np.zeros((), np.int64)
    at = b.add(call.reshape(starts, [*batch, *ones]), call.constant(offsets, "int32"))
    # What does not fit goes to one element more, which is cut off.
    size = math.prod(shape)
    at = b.where(call.reshape(fits, [*batch, *ones]), at, call.constant(size, "int32"))
    count = math.prod(update_shape)
    updates = call.reshape(call.transpose(call.operand(2), [*outer, *window_dims]), [count])
    base = b.pad(call.reshape(call.operand(0), [size]), [0], [1])
    y = b.ext.scatter_elements(base, call.reshape(at, [count]), updates, axis=0, reduction=how)  # pyright: ignore[reportArgumentType]
    return call.bare(call.reshape(b.slice(y, [0], [size]), shape))


@lowers(STABLEHLO_DYNAMIC_UPDATE_SLICE=1)
def update(call: TfliteCall) -> Result:
    """A tensor with a part replaced, from coordinates on that are inputs of their own."""
    starts = [call.reshape(indices_of(call, i), [1]) for i in range(2, len(call))]
    if not starts:
        return call.bare(call.build.identity(call.moved(1)))
    joined = call.build.concat([call.cast(s, "int32") for s in starts], 0)
    return dynamic_update_slice(call, joined)


@lowers(STABLEHLO_DYNAMIC_SLICE=1)
def dynamic_slice(call: TfliteCall) -> Result:
    """A part from coordinates on, which are moved so that the part fits."""
    x, b = call.moved(0), call.build
    for axis, size in enumerate(_slice_sizes(call)):
        start = call.cast(call.reshape(indices_of(call, 1 + axis), [1]), "int32")
        start = b.clamp(start, min_value=0, max_value=call.shape(0)[axis] - size)
        x = b.gather(x, b.add(start, call.constant(np.arange(size), "int32")), axis=axis)
    return call.bare(x)


MOST_TAPS = 1 << 10
"""The maximum number of elements of a window."""


@lowers(STABLEHLO_REDUCE_WINDOW=1)
def reduce_window(call: TfliteCall) -> Result:
    """Reductions of windows that move over a tensor."""
    rank, b = call.tensor(0).rank, call.build
    how = _combination(call, int(call.option("BodySubgraphIndex")))
    names = ("WindowDimensions", "WindowStrides", "BaseDilations", "WindowDilations")
    window, strides, base, dilations = (_numbers(call, name) or [1] * rank for name in names)
    padding = _numbers(call, "Padding") or [0] * (2 * rank)
    if not all(len(v) == rank for v in (window, strides, base, dilations)) or len(padding) != 2 * rank:
        call.fail(f"windows of {window} over {rank} dimensions")
    if min(*window, *strides, *base, *dilations, 1) < 1 or math.prod(window) > MOST_TAPS:
        call.fail(f"windows of {window} with strides {strides} and dilations {dilations}")
    initial = call.reshape(call.operand(1), [])
    x = padded(call, spread(call, call.moved(0), [d - 1 for d in base], initial), padding[::2], padding[1::2])
    counts = [(int(d) - (w - 1) * g - 1) // s + 1 for d, w, g, s in zip(x.shape, window, dilations, strides, strict=True)]
    if min(counts, default=1) < 1:
        call.fail(f"windows of {window} do not fit {list(x.shape)}")
    reach = [(c - 1) * s + 1 for c, s in zip(counts, strides, strict=True)]
    combine = {"add": b.add, "mul": b.mul, "max": b.max, "min": b.min}.get(how)
    if combine is None:
        call.fail("its subgraph combines nothing")
    total = initial
    for tap in itertools.product(*(range(w) for w in window)):
        starts = [t * g for t, g in zip(tap, dilations, strict=True)]
        total = combine(b.slice(x, starts, reach, strides=strides), total)
    return call.bare(total)
