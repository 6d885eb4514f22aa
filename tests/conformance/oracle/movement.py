"""Cases of operators that move elements: exact to the bit, for element sizes of 8 to 64 bits."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from .drawing import ANY, EXACT, Constant, Numbers, case, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.testing import Case

INDICES = ("int32", "uint32", "int64")


def cases() -> Iterator[Case]:
    """Yield the cases of all operators that move elements."""
    for data_type in ANY:
        yield from _shapes(data_type)
        yield from _parts(data_type)
        yield from _gathered(data_type)
        yield from _scattered(data_type)
        yield from _turned(data_type)
        yield from _padded(data_type)


def _drawn(operator: str, data_type: str, shape: Sequence[int]) -> Array:
    return Numbers(operator, data_type, shape).whole_range(data_type, shape)


def _turned(data_type: str) -> Iterator[Case]:
    orders = [*itertools.permutations(range(3)), (0, 2, 3, 1), (0, 3, 1, 2), (1, 0, 3, 2), (3, 2, 1, 0), (4, 0, 3, 1, 2)]
    for order in orders:
        x = _drawn("transpose", data_type, (2, 3, 4, 5, 2)[: len(order)])
        what = f"{data_type} {shown(x.shape)} to {order}"
        yield case("transpose", what, {"input": x}, x.transpose(order), EXACT, permutation=list(order))
    for shape, axes in (((6,), None), ((3, 4), [0]), ((3, 4), [1]), ((2, 3, 4), [2, 0]), ((2, 3, 4), [])):
        x = _drawn("reverse", data_type, shape)
        options: dict[str, Any] = {} if axes is None else {"axes": axes}
        yield case("reverse", f"{data_type} {shown(shape)} axes {axes}", {"input": x}, np.flip(x, axes), EXACT, **options)
    for shape in ((4, 4), (3, 5), (2, 5, 3)):
        for upper, diagonal in itertools.product((True, False), (-1, 0, 2)):
            x = _drawn("triangular", data_type, shape)
            result = (np.triu if upper else np.tril)(x, diagonal)
            what = f"{data_type} {shown(shape)} upper={upper} diagonal={diagonal}"
            yield case("triangular", what, {"input": x}, result, EXACT, upper=upper, diagonal=diagonal)


def _padded(data_type: str) -> Iterator[Case]:
    modes = {"constant": "constant", "edge": "edge", "reflection": "reflect"}
    for mode, (shape, before, after) in itertools.product(
        modes, (((5,), [2], [3]), ((3, 4), [1, 0], [0, 2]), ((3, 4), [2, 3], [1, 1]), ((2, 3, 4), [0, 1, 2], [1, 2, 0]))
    ):
        x = _drawn("pad", data_type, shape)
        value: dict[str, Any] = {"constant_values": 7} if mode == "constant" else {}
        result = np.pad(x, list(zip(before, after, strict=True)), modes[mode], **value)  # type: ignore[call-overload]
        options: dict[str, Any] = {"mode": mode} | ({"value": 7} if mode == "constant" else {})
        arguments = {"input": x, "beginningPadding": before, "endingPadding": after}
        yield case("pad", f"{data_type} {shown(shape)} {mode} {before} {after}", arguments, result, EXACT, **options)


def _shapes(data_type: str) -> Iterator[Case]:
    for shape, new in (((6,), (2, 3)), ((2, 3, 4), (4, 6)), ((1,), ()), ((2, 6), (3, 1, 4))):
        x = _drawn("reshape", data_type, shape)
        yield case("reshape", f"{data_type} {shown(shape, new)}", {"input": x, "newShape": list(new)}, x.reshape(new), EXACT)
    for shape, new in (((), (3,)), ((1, 4), (3, 4)), ((3, 1), (3, 5)), ((4,), (2, 3, 4)), ((2, 1, 3), (2, 4, 3))):
        x = _drawn("expand", data_type, shape)
        result = np.ascontiguousarray(np.broadcast_to(x, new))
        yield case("expand", f"{data_type} {shown(shape, new)}", {"input": x, "newShape": list(new)}, result, EXACT)
    for shape, times in (((4,), [3]), ((2, 3), [1, 2]), ((2, 3), [3, 2]), ((2, 1, 3), [2, 3, 1])):
        x = _drawn("tile", data_type, shape)
        arguments = {"input": x, "repetitions": times}
        yield case("tile", f"{data_type} {shown(shape)} {times}", arguments, np.tile(x, times), EXACT)


def _parts(data_type: str) -> Iterator[Case]:
    for shape, starts, sizes, strides in (
        ((9,), [2], [5], None),
        ((4, 6), [1, 2], [3, 4], None),
        ((4, 6), [0, 1], [4, 5], [2, 3]),
        ((2, 5, 7), [1, 0, 3], [1, 5, 4], [1, 2, 1]),
    ):
        x = _drawn("slice", data_type, shape)
        steps = strides or [1] * len(shape)
        part = tuple(slice(a, a + n, s) for a, n, s in zip(starts, sizes, steps, strict=True))
        options: dict[str, Any] = {"strides": strides} if strides else {}
        arguments = {"input": x, "starts": starts, "sizes": sizes}
        yield case("slice", f"{data_type} {shown(shape)} {starts} {sizes} {strides}", arguments, x[part], EXACT, **options)
    for shape, splits, axis in (
        ((6,), 3, 0),
        ((6,), [1, 2, 3], 0),
        ((4, 6), 2, 1),
        ((4, 6), [3, 1], 0),
        ((2, 5, 3), [1, 4], 1),
    ):
        x = _drawn("split", data_type, shape)
        ends = splits if isinstance(splits, int) else list(np.cumsum(splits)[:-1])
        arguments = {"input": x, "splits": splits}
        yield case("split", f"{data_type} {shown(shape)} {splits}", arguments, np.split(x, ends, axis), EXACT, axis=axis)
    for shapes, axis in (
        (((2,), (3,)), 0),
        (((2, 3), (2, 4)), 1),
        (((2, 3), (1, 3), (4, 3)), 0),
        (((2, 1, 3), (2, 2, 3)), 1),
        (((2, 3),), 1),
    ):
        numbers = Numbers("concat", data_type, shapes)
        parts = [numbers.whole_range(data_type, shape) for shape in shapes]
        arguments = {"inputs": parts, "axis": axis}
        yield case("concat", f"{data_type} {shown(*shapes)} axis {axis}", arguments, np.concatenate(parts, axis), EXACT)


def _index(numbers: Numbers, kind: str, size: int, shape: Sequence[int]) -> tuple[Array, Array]:
    """Return indices, some from the end and some beyond it, and what they stand for: clamped to the dimension."""
    found = numbers.draw(kind, shape, -size - 1, size + 1)
    signed = found.astype(np.int64)
    return found, np.clip(np.where(signed < 0, signed + size, signed), 0, size - 1)


def _gathered(data_type: str) -> Iterator[Case]:
    for kind in INDICES:
        for shape, wanted, axis in (((6,), (4,), 0), ((4, 3), (2, 3), 0), ((4, 5), (6,), 1), ((2, 3, 4), (), 1)):
            numbers = Numbers("gather", data_type, kind, shape, axis)
            x = numbers.whole_range(data_type, shape)
            indices, places = _index(numbers, kind, shape[axis], wanted)
            result = np.ascontiguousarray(np.take(x, places, axis))
            what = f"{data_type} {kind} {shown(shape, wanted)} axis {axis}"
            # Constant indices are one of the two ways in which models have them.
            given = Constant(indices) if axis == 1 else indices
            yield case("gather", what, {"input": x, "indices": given}, result, EXACT, axis=axis)
        for shape, wanted, axis in (((6,), (4,), 0), ((4, 3), (2, 3), 0), ((4, 3), (4, 5), 1), ((2, 3, 4), (2, 2, 4), 1)):
            numbers = Numbers("gatherElements", data_type, kind, shape, axis)
            x = numbers.whole_range(data_type, shape)
            indices, places = _index(numbers, kind, shape[axis], wanted)
            result = np.take_along_axis(x, places, axis)
            what = f"{data_type} {kind} {shown(shape, wanted)} axis {axis}"
            yield case("gatherElements", what, {"input": x, "indices": indices}, result, EXACT, axis=axis)
        for shape, outer, depth in (((6,), (4,), 1), ((4, 3), (5,), 2), ((4, 3), (2, 2), 1), ((2, 3, 4), (3,), 2)):
            numbers = Numbers("gatherND", data_type, kind, shape, depth)
            x = numbers.whole_range(data_type, shape)
            columns = [_index(numbers, kind, shape[d], outer) for d in range(depth)]
            indices = np.stack([given for given, _ in columns], -1)
            result = x[tuple(places for _, places in columns)]
            what = f"{data_type} {kind} {shown(shape, indices.shape)}"
            yield case("gatherND", what, {"input": x, "indices": indices}, result, EXACT)


def _scattered(data_type: str) -> Iterator[Case]:
    for kind in INDICES:
        for shape, count, axis in (((8,), 5, 0), ((6, 3), 4, 0), ((3, 7), 5, 1), ((2, 6, 3), 3, 1)):
            numbers = Numbers("scatterElements", data_type, kind, shape, axis)
            x = numbers.whole_range(data_type, shape)
            lines = [size for d, size in enumerate(shape) if d != axis]
            # No place twice: which update counts then is not specified.
            rows = np.stack([numbers.different(shape[axis], count) for _ in range(int(np.prod(lines)))])
            places = np.moveaxis(rows.reshape(*lines, count), -1, axis)
            updates = numbers.whole_range(data_type, places.shape)
            result = x.copy()
            np.put_along_axis(result, places, updates, axis)
            what = f"{data_type} {kind} {shown(shape)} axis {axis}"
            indices = np.ascontiguousarray(_from_the_end(places, shape[axis], kind))
            arguments = {"input": x, "indices": indices, "updates": updates}
            yield case("scatterElements", what, arguments, result, EXACT, axis=axis)
        for shape, depth, count in (((8,), 1, 5), ((6, 3), 1, 4), ((4, 5), 2, 7), ((3, 4, 2), 2, 6)):
            numbers = Numbers("scatterND", data_type, kind, shape, depth)
            x = numbers.whole_range(data_type, shape)
            flat = numbers.different(int(np.prod(shape[:depth])), count)
            places = np.stack(np.unravel_index(flat, shape[:depth]), -1)
            updates = numbers.whole_range(data_type, (count, *shape[depth:]))
            result = x.copy()
            result[tuple(places.T)] = updates
            indices = _from_the_end(places, np.array(shape[:depth]), kind)
            arguments = {"input": x, "indices": indices, "updates": updates}
            yield case("scatterND", f"{data_type} {kind} {shown(shape, indices.shape)}", arguments, result, EXACT)


def _from_the_end(places: Array, size: Any, kind: str) -> Array:
    """Return indices of which every second one counts from the end, where the type has a sign."""
    if kind == "uint32":
        return places.astype(kind)
    odd = np.arange(places.size).reshape(places.shape) % 2 == 1
    return np.where(odd, places - size, places).astype(kind)
