"""Gradients of operators that move elements: each gradient moves back to the place that its element came from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ..interfaces.gradient import GradientCall, GradientTerm


def reshape(call: GradientCall) -> Sequence[GradientTerm]:
    """Return the gradient of a reshape."""
    return (call.gradient.reshaped(call.x.shape),)


def transpose(call: GradientCall) -> Sequence[GradientTerm]:
    """Return the gradient of a transpose."""
    permutation = call.attrs["permutation"]
    return (call.gradient.permuted([permutation.index(d) for d in range(len(permutation))]),)


def slice_(call: GradientCall) -> Sequence[GradientTerm]:
    """Return the gradient of a slice: zeros between and around the elements that it takes."""
    g, shape = call.gradient, call.x.shape
    starts, strides = call.attrs["starts"], call.attrs["strides"] or (1,) * len(shape)
    for axis, (start, stride, size) in enumerate(zip(starts, strides, shape, strict=True)):
        g = _spread(g, axis, stride)
        missing = size - start - g.shape[axis]
        g = g.sliced(axis, 0, min(size - start, g.shape[axis])).padded(axis, start, max(missing, 0))
    return (g,)


def _spread(g: GradientTerm, axis: int, stride: int) -> GradientTerm:
    """Return a gradient with stride - 1 zeros behind each index of a dimension."""
    if stride == 1 or g.shape[axis] == 1:
        return g
    shape = list(g.shape)
    shape[axis] *= stride
    # Separate dimensions for outer, inner and new indices do not exceed the maximum rank.
    outer, size, inner = g.around(axis).shape
    return g.reshaped((outer, size, 1, inner)).padded(2, 0, stride - 1).reshaped(shape)


def split(call: GradientCall) -> Sequence[GradientTerm]:
    """Return the gradient of a split: the gradients of all parts side by side, zeros for unused parts."""
    gradients = [y.filled(0.0) if g is None else g for g, y in zip(call.gradients, call.results, strict=True)]
    return (gradients[0].apply("concat", *gradients[1:], axis=call.attrs["axis"]) if len(gradients) > 1 else gradients[0],)


def concat(call: GradientCall) -> Sequence[GradientTerm]:
    """Return the gradients of a concatenation: its parts."""
    axis: int = call.attrs["axis"]
    start = 0
    found: list[GradientTerm] = []
    for i in range(len(call.operands)):
        size = call.given(i).shape[axis]
        found.append(call.gradient.sliced(axis, start, size))
        start += size
    return found


def expand(call: GradientCall) -> Sequence[GradientTerm]:
    """Return the gradient of an expansion: sums over the repetitions."""
    return (call.gradient.summed_to(call.x.shape),)


def tile(call: GradientCall) -> Sequence[GradientTerm]:
    """Return the gradient of a tile: sums over the repetitions."""
    g = call.gradient
    for axis, (repetitions, size) in enumerate(zip(call.attrs["repetitions"], call.x.shape, strict=True)):
        if repetitions > 1:
            shape = (*g.shape[:axis], size, *g.shape[axis + 1 :])
            outer, _, inner = g.around(axis).shape
            g = g.reshaped((outer, repetitions, size * inner)).summed((1,)).reshaped(shape)
    return (g,)


def reverse(call: GradientCall) -> Sequence[GradientTerm]:
    """Return the gradient of a reversal."""
    return (call.gradient.apply("reverse", axes=call.attrs["axes"]),)


def pad(call: GradientCall) -> Sequence[GradientTerm]:
    """Return the gradient of a padding: that of the inner part, and of the elements that the padding repeats."""
    g, mode = call.gradient, call.attrs["mode"]
    before, after = call.attrs["beginning_padding"], call.attrs["ending_padding"]
    for axis, size in enumerate(call.x.shape):
        inner = g.sliced(axis, before[axis], size)
        if mode != "constant":
            for count, at_end in ((before[axis], False), (after[axis], True)):
                for repeated in _repeated(g, axis, size, count, mode, at_end=at_end):
                    inner = inner + repeated
        g = inner
    return (g,)


def _repeated(g: GradientTerm, axis: int, size: int, count: int, mode: str, *, at_end: bool) -> Iterator[GradientTerm]:
    """Yield the gradients of a dimension of `size` elements by one end of its padding, which has `count` elements."""
    first = g.shape[axis] - count if at_end else 0
    if mode == "edge" and count:
        sums = g.sliced(axis, first, count).summed((axis,), keep=True)
        yield sums.padded(axis, size - 1, 0) if at_end else sums.padded(axis, 0, size - 1)
        return
    # Reflections leave out the element at the end.
    skipped = 1 if mode == "reflection" else 0
    for turn in range(-(-count // size)):
        length = min(size, count - turn * size)
        part = g.sliced(axis, first + turn * size if at_end else count - turn * size - length, length)
        # Each repetition runs in the direction opposite to the one before, the first one away from the end.
        backward = turn % 2 == 0
        part = part.apply("reverse", axes=(axis,)) if backward else part
        rest = size - length - skipped
        yield part.padded(axis, rest, skipped) if at_end == backward else part.padded(axis, skipped, rest)


def triangular(call: GradientCall) -> Sequence[GradientTerm]:
    """Return the gradient of a triangle."""
    return (call.gradient.apply("triangular", upper=call.attrs["upper"], diagonal=call.attrs["diagonal"]),)


def cache_update(call: GradientCall) -> Sequence[GradientTerm | None]:
    """Return the gradients of a cache, zeros where rows are overwritten, and of the new rows inside the cache."""
    new, position, g = call.given(1), call.given(2), call.gradient
    axis: int = call.attrs["axis"]
    cache = g.apply("x.cache_update", new.filled(0.0), position, axis=axis)
    batch = g.shape[0] if axis else 1
    rows, capacity = new.shape[axis], g.shape[axis]
    inner = math.prod(g.shape[axis + 1 :])
    places = position.cast("int32").reshaped((position.type.num_elements, 1, 1, 1))
    places = places + call.constant(np.arange(rows, dtype=np.int32).reshape(1, 1, rows, 1))
    inside = places.compared("greaterOrEqual", 0).apply("logicalAnd", places.compared("lesser", capacity))
    table = g.reshaped((batch, math.prod(g.shape[:axis]) // batch, capacity, inner))
    taken = table.apply("gatherElements", places.expanded((*table.shape[:2], rows, inner)), axis=2)
    return cache, taken.where(inside).reshaped(new.shape), None
