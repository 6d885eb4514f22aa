"""Views tell where the elements of a value that was moved lie in what it was moved from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support import Sketch
from webnn_wgpu.passes.rewriting import Rewriter
from webnn_wgpu.passes.views import View, joined, view_of
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array


def viewed(s: Sketch, value: int) -> View:
    """Return the view of a value of a graph that is rewritten."""
    graph = s.graph(value)
    r = Rewriter(graph)
    for node in graph.nodes:
        r.keep(node)
    return view_of(r, value)


def elements(array: Array, view: View) -> Array:
    """Return the elements of an array that a view is."""
    places = np.full((), view.offset)
    for steps in view.dims:
        dim = np.zeros(1, np.int64)
        for size, step in steps:
            dim = (dim[:, None] + np.arange(size) * step).reshape(-1)
        places = places[..., None] + dim
    return array.reshape(-1)[places]


def moved(s: Sketch, value: int, random: np.random.Generator) -> int:
    """Move a value in one of the ways there are."""
    shape = s.type(value).shape
    axis = int(random.integers(len(shape)))
    match str(random.choice(["transpose", "join", "part", "slice", "split", "gather", "expand"])):
        case "transpose":
            return s.apply("transpose", value, permutation=random.permutation(len(shape)).tolist())
        case "join" if axis:
            return s.apply("reshape", value, new_shape=(*shape[: axis - 1], shape[axis - 1] * shape[axis], *shape[axis + 1 :]))
        case "part":
            factor = math.gcd(shape[axis], int(random.choice([2, 3, 4])))
            return s.apply("reshape", value, new_shape=(*shape[:axis], factor, shape[axis] // factor, *shape[axis + 1 :]))
        case "slice":
            start, stride = int(random.integers(shape[axis])), int(random.integers(1, 3))
            starts, strides, sizes = [0] * len(shape), [1] * len(shape), list(shape)
            starts[axis], strides[axis], sizes[axis] = start, stride, int(random.integers(1, shape[axis] - start + 1))
            return s.apply("slice", value, starts=starts, sizes=sizes, strides=strides)
        case "split" if shape[axis] % 2 == 0:
            return s.apply_all("split", (value,), splits=2, axis=axis)[int(random.integers(2))]
        case "gather" if len(shape) > 1:
            index = int(random.integers(-shape[axis], shape[axis]))
            return s.apply("gather", value, s.constant(np.int32(index)), axis=axis)
        case "expand" if shape[axis] == 1:
            return s.apply("expand", value, new_shape=(2, *shape[:axis], 3, *shape[axis + 1 :]))
    return value


@pytest.mark.parametrize("seed", range(200))
def test_a_view_is_what_movements_make(seed: int) -> None:
    random = np.random.default_rng(seed)
    s = Sketch()
    shape = random.choice([1, 2, 3, 4, 6, 12], int(random.integers(1, 5))).tolist()
    base = value = s.input(np.arange(math.prod(shape), dtype=np.int32).reshape(shape))
    for _ in range(int(random.integers(1, 8))):
        value = moved(s, value, random)
    view = viewed(s, value)
    arrays = interpret(s.graph(value, view.value), s.feeds)
    wanted, *_, source = (*arrays.values(), *arrays.values())
    np.testing.assert_array_equal(elements(source, view).reshape(wanted.shape), wanted)
    assert tuple(math.prod(size for size, _ in steps) for steps in view.dims) == wanted.shape
    assert view.value == base or len(view.nodes) < len(s.nodes)


def test_dimensions_that_do_not_lie_one_behind_the_other_are_joined_and_parted() -> None:
    s = Sketch()
    value = s.input(np.zeros((2, 3, 4, 5), np.float32))
    value = s.apply("transpose", value, permutation=[0, 2, 1, 3])
    value = s.apply("reshape", value, new_shape=[8, 3, 5])
    value = s.apply("transpose", value, permutation=[0, 2, 1])
    view = viewed(s, s.apply("reshape", value, new_shape=[2, 4, 5, 3]))
    assert (view.value, view.offset, view.dims) == (0, 0, (((2, 60),), ((4, 5),), ((5, 1),), ((3, 20),)))
    assert len(view.nodes) == 4


def test_a_view_ends_where_there_are_no_steps() -> None:
    s = Sketch()
    value = s.input(np.zeros((4, 6), np.float32))
    turned = s.apply("reshape", s.apply("transpose", value, permutation=[1, 0]), new_shape=[3, 8])
    cut = s.apply("slice", turned, starts=[0, 3], sizes=[3, 4])
    assert viewed(s, turned).value == value
    found = viewed(s, cut)
    assert (found.value, found.offset, found.dims) == (turned, 3, (((3, 8),), ((4, 1),)))


@pytest.mark.parametrize("what", ["several", "an input", "a row", "beyond"])
def test_what_is_no_view(what: str) -> None:
    s = Sketch()
    value = s.input(np.zeros((4, 6), np.float32))
    indices = {"several": np.int32([0, 2]), "a row": np.int32([1]), "beyond": np.int32(7)}.get(what, np.int32(1))
    end = s.apply("gather", value, s.input(indices) if what == "an input" else s.constant(indices), axis=0)
    assert viewed(s, end).value == end


def test_steps_that_lie_one_behind_the_other_are_one() -> None:
    assert joined([((2, 12), (3, 4)), (), ((4, 1),)]) == ((24, 1),)
    assert joined([((2, 12),), ((1, 7),), ((4, 1),)]) == ((2, 12), (4, 1))
    assert joined([((2, 0),), ((4, 0),)]) == ((8, 0),)
