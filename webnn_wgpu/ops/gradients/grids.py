"""The gradient of samples at positions of a grid, as a composition of gathers and weights."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ...ir.graph import Attrs
from ..interfaces.gradient import GradientCall, GradientTerm, by_parts

_CUBIC_A = -0.75
_FLOAT, _INTEGER = "float32", "int32"


def _positions(c: GradientTerm, size: int, attrs: Attrs) -> GradientTerm:
    """Return the positions of coordinates among `size` elements, moved into the range that the padding mode requires."""
    align, padding = attrs["align_corners"], attrs["padding_mode"]
    x = (size - 1 if align else size) / 2 * c + (size - 1) / 2
    if attrs["mode"] == "nearest":
        x = x.apply("roundEven").cast(_INTEGER).cast(_FLOAT)
    if padding == "zeros":
        return x.apply("clamp", min_value=-4, max_value=size + 4)
    low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
    below = x.compared("lesser", low)
    beyond = below.apply("logicalOr", x.compared("greater", high))
    if padding == "border":
        return x.apply("clamp", min_value=0, max_value=size - 1).where(beyond, x)
    distance = (low - x).where(below, x - high)
    # Integers have no gradient: only the rest depends on the position.
    times = (1 / max(high - low, 0.5) * distance).apply("floor").cast(_INTEGER)
    rest = distance - (high - low) * times.cast(_FLOAT)
    even = times.apply("x.bitwise_and", times.number(1)).compared("equal", 0)
    return (rest + low).where(even.apply("equal", below), high - rest).where(beyond, x)


def _places(numbers: GradientTerm, size: int, attrs: Attrs) -> GradientTerm:
    """Return the elements that stand for numbers beyond the ends too."""
    if attrs["padding_mode"] != "reflection":
        return numbers.apply("clamp", min_value=0, max_value=size - 1)
    align = attrs["align_corners"]
    period = max(2 * size - 2, 1) if align else 2 * size
    wrapped = numbers.apply("x.mod", numbers.number(period))
    return wrapped.apply("min", numbers.number(period if align else period - 1).apply("sub", wrapped))


def _weights(t: GradientTerm, mode: str) -> Sequence[GradientTerm]:
    """Return the weights of neighbors at a part of the distance between two elements."""
    if mode == "nearest":
        return [t.filled(1.0)]
    u = 1 - t
    if mode == "linear":
        return [u, t]
    a = _CUBIC_A
    near = [((a + 2) * d - (a + 3)) * d.square() + 1 for d in (t, u)]
    return [a * t * u.square(), *near, a * u * t.square()]


def _grid_sample(call: GradientCall, operands: Sequence[GradientTerm | None]) -> Sequence[GradientTerm]:
    x, grid = operands
    assert x is not None
    assert grid is not None
    attrs, (images, channels, *sizes) = call.attrs, x.shape
    count = math.prod(call.y.shape[2:])
    table = x.cast(_FLOAT).reshaped((images, channels, math.prod(sizes)))
    coordinates = grid.cast(_FLOAT).reshaped((images, count, len(sizes)))
    starts: list[GradientTerm] = []
    weights: list[Sequence[GradientTerm]] = []
    for d, size in enumerate(sizes):
        # The grid has the last dimension's coordinate first.
        position = _positions(coordinates.sliced(2, len(sizes) - 1 - d, 1).reshaped((images, 1, count)), size, attrs)
        start = position.apply("floor").cast(_INTEGER)
        weights.append(_weights(position - start.cast(_FLOAT), attrs["mode"]))
        starts.append(start.apply("sub", start.number(1)) if attrs["mode"] == "cubic" else start)
    total: GradientTerm | None = None
    for taps in itertools.product(*(range(len(own)) for own in weights)):
        index, weight = starts[0].filled(0), None
        for tap, start, own, size in zip(taps, starts, weights, sizes, strict=True):
            number = start + start.number(tap)
            index = index * index.number(size) + _places(number, size, attrs)
            factor = own[tap]
            if attrs["padding_mode"] == "zeros":
                inside = number.compared("greaterOrEqual", 0).apply("logicalAnd", number.compared("lesser", size))
                factor = factor.where(inside)
            weight = factor if weight is None else weight * factor
        assert weight is not None
        part = table.apply("gatherElements", index.expanded((images, channels, count)), axis=2) * weight
        total = part if total is None else total + part
    assert total is not None
    return (total.cast(x.type.data_type).reshaped(call.y.shape),)


GRID_SAMPLE = by_parts(_grid_sample)
