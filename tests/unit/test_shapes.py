from __future__ import annotations

import itertools
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webnn_wgpu.ops._shapes import broadcast, broadcast_strides, merge_dimensions, strides_of, unidirectional

SHAPES = st.lists(st.integers(1, 4), max_size=5).map(tuple)


@settings(max_examples=300)
@given(SHAPES, SHAPES)
def test_broadcast_is_numpys(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        expected = None
    assert broadcast(a, b) == broadcast(b, a) == expected
    assert unidirectional(a, b) == (expected == b)


@settings(max_examples=200)
@given(st.lists(st.integers(1, 5), max_size=5).map(tuple))
def test_strides_are_numpys(shape: tuple[int, ...]) -> None:
    assert strides_of(shape) == tuple(s for s in np.zeros(shape, np.int8).strides)


@settings(max_examples=200)
@given(SHAPES, st.data())
def test_broadcast_strides_read_what_numpy_reads(target: tuple[int, ...], data: st.DataObject) -> None:
    shape = tuple(1 if data.draw(st.booleans()) else d for d in target)[data.draw(st.integers(0, len(target))) :]
    x = np.arange(prod(shape)).reshape(shape)
    strides = broadcast_strides(shape, target)
    expected = np.broadcast_to(x, target)
    for index in itertools.product(*map(range, target)):
        assert x.reshape(-1)[sum(i * s for i, s in zip(index, strides, strict=True))] == expected[index]


@settings(max_examples=300)
@given(SHAPES, st.data())
def test_merged_dimensions_reach_the_same_elements_in_the_same_order(dims: tuple[int, ...], data: st.DataObject) -> None:
    # Strides of real tensors (whole, broadcast, transposed), and of nothing in particular.
    kinds = st.sampled_from(("whole", "broadcast", "transposed", "any"))
    strides = [strides_of(dims)]
    for _ in range(data.draw(st.integers(0, 2))):
        kind = data.draw(kinds)
        if kind == "broadcast":
            strides.append(broadcast_strides(tuple(1 if data.draw(st.booleans()) else d for d in dims), dims))
        elif kind == "transposed":
            order = data.draw(st.permutations(range(len(dims))))
            source = strides_of([dims[d] for d in order])
            strides.append(tuple(source[order.index(d)] for d in range(len(dims))))
        elif kind == "any":
            strides.append(tuple(data.draw(st.integers(-3, 12)) for _ in dims))
        else:
            strides.append(strides_of(dims))
    merged, own = merge_dimensions(dims, strides)
    assert len(own) == len(strides)
    assert 1 <= len(merged) <= max(1, len(dims))
    for before, after in zip(strides, own, strict=True):
        assert _walk(dims, before) == _walk(merged, after)


def _walk(dims: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    return [sum(i * s for i, s in zip(at, strides, strict=True)) for at in itertools.product(*map(range, dims))]


@pytest.mark.parametrize(
    ("dims", "strides", "expected"),
    [
        ((), [()], ((1,), ((0,),))),
        ((1, 1), [(1, 1), (0, 0)], ((1,), ((0,), (0,)))),
        ((2, 3, 4), [(12, 4, 1)], ((24,), ((1,),))),
        ((2, 1, 4), [(4, 4, 1), (4, 0, 1)], ((8,), ((1,), (1,)))),
        ((2, 3, 4), [(12, 4, 1), (0, 0, 0)], ((24,), ((1,), (0,)))),
        ((2, 3, 4), [(12, 4, 1), (3, 1, 0)], ((6, 4), ((4, 1), (1, 0)))),
        ((2, 3, 4), [(12, 4, 1), (1, 2, 6)], ((2, 3, 4), ((12, 4, 1), (1, 2, 6)))),
    ],
)
def test_merged_as_far_as_possible(
    dims: tuple[int, ...],
    strides: list[tuple[int, ...]],
    expected: tuple[tuple[int, ...], tuple[tuple[int, ...], ...]],
) -> None:
    assert merge_dimensions(dims, strides) == expected
