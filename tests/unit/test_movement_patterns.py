"""Movements that follow each other: what becomes one, and what does not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support import Sketch, assert_same
from tests.unit.rewrites import check, normal, unchanged
from webnn_wgpu.passes.movement import merge_movement
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from collections.abc import Sequence


def test_transposes_and_reshapes_merge() -> None:
    s = Sketch()
    x = s.input(normal(2, 3, 4, 5))
    y = s.apply("transpose", s.apply("transpose", x, permutation=[0, 2, 3, 1]), permutation=[1, 0, 2, 3])
    z = s.apply("reshape", s.apply("reshape", y, new_shape=[8, 15]), new_shape=[120])
    after = check(merge_movement, s.graph(z), s.feeds, ["transpose", "reshape"], tolerance=None)
    assert after.nodes[0].attrs["permutation"] == (2, 0, 3, 1)


def test_movement_back_to_where_it_began_is_none() -> None:
    s = Sketch()
    x = s.input(normal(2, 3, 4))
    y = s.apply("transpose", s.apply("transpose", x, permutation=[0, 2, 1]), permutation=[0, 2, 1])
    y = s.apply("reshape", s.apply("reshape", y, new_shape=[6, 4]), new_shape=[2, 3, 4])
    check(merge_movement, s.graph(s.apply("neg", y)), s.feeds, ["neg"], tolerance=None)


@pytest.mark.parametrize("op", ["add", "div", "max", "where"])
def test_what_operators_broadcast_is_not_expanded(op: str) -> None:
    s = Sketch()
    x, norm = s.input(normal(2, 3, 4)), s.input(np.abs(normal(2, 3, 1)) + 1)
    operands = [x, s.apply("expand", norm, new_shape=[2, 3, 4])]
    if op == "where":
        operands.insert(0, s.apply("expand", s.input(np.uint8([[1], [0], [1]])), new_shape=[2, 3, 4]))
    check(merge_movement, s.graph(s.apply(op, *operands)), s.feeds, [op], tolerance=None)


@pytest.mark.parametrize("what", ["nothing else has the size", "no element-wise operator", "one operand"])
def test_what_has_to_be_expanded(what: str) -> None:
    s = Sketch()
    x = s.apply("expand", s.input(normal(3, 1)), new_shape=[3, 4])
    if what == "one operand":
        end = s.apply("neg", x)
    elif what == "no element-wise operator":
        end = s.apply("matmul", x, s.input(normal(4, 5)))
    else:
        end = s.apply("add", x, s.input(normal(3, 1)))
    unchanged(merge_movement, s.graph(end))


@pytest.mark.parametrize(
    ("permutation", "shape"), [((0, 2, 1), [2, 3, 4, 7]), ((0, 2, 1), [6, 4, 7]), ((1, 0, 2), [2, 3, 7, 4])]
)
def test_dimensions_are_swapped_at_once(permutation: Sequence[int], shape: list[int]) -> None:
    s = Sketch()
    joined = s.apply("reshape", s.input(normal(2, 3, 7, 4)), new_shape=[6, 7, 4])
    graph = s.graph(s.apply("reshape", s.apply("transpose", joined, permutation=permutation), new_shape=shape))
    if permutation == (0, 2, 1) and len(shape) == 4:
        check(merge_movement, graph, s.feeds, ["transpose"], tolerance=None)
    else:
        assert [node.op for node in merge_movement(graph).nodes].count("reshape") > 0


def test_parts_side_by_side_are_what_was_split() -> None:
    s = Sketch()
    x, other = s.input(normal(2, 9)), s.input(normal(2, 3))
    parts = s.apply_all("split", [x], splits=[2, 3, 4], axis=1)
    whole = s.apply("concat", other, *parts, s.apply("neg", parts[1]), axis=1)
    after = check(merge_movement, s.graph(whole), s.feeds, ["slice", "neg", "concat"], tolerance=None)
    assert after.nodes[0].attrs["starts"] == (0, 2)
    assert after.nodes[2].operands[:2] == (other, x)
    s = Sketch()
    halves = s.apply_all("split", [s.input(normal(2, 4, 3))], splits=2, axis=1)
    check(merge_movement, s.graph(s.apply("neg", s.apply("concat", *halves, axis=1))), s.feeds, ["neg"], tolerance=None)


@pytest.mark.parametrize("order", [(1, 0), (0, 0, 1), (0, 2), (0, 1)])
def test_parts_that_are_put_otherwise_stay(order: tuple[int, ...]) -> None:
    s = Sketch()
    parts = s.apply_all("split", [s.input(normal(6, 6))], splits=[2, 2, 2] if 2 in order else [3, 3], axis=1)
    axis = 0 if order == (0, 1) else 1
    graph = s.graph(s.apply("concat", *(parts[i] for i in order), axis=axis), *parts)
    if order == (0, 0, 1):
        check(merge_movement, graph, s.feeds, ["split", "concat"], tolerance=None)
    unchanged(merge_movement, graph)


def test_a_dimension_is_split_before_transposes_that_then_merge() -> None:
    s = Sketch()
    turned = s.apply("transpose", s.input(normal(2, 5, 12)), permutation=[0, 2, 1])
    split = s.apply("reshape", turned, new_shape=[2, 3, 4, 5])
    out = s.apply("transpose", split, permutation=[0, 2, 1, 3])
    after = check(merge_movement, s.graph(out), s.feeds, ["reshape", "transpose"], tolerance=None)
    assert after.nodes[0].attrs["new_shape"] == (2, 5, 3, 4)
    assert after.nodes[1].attrs["permutation"] == (0, 3, 2, 1)


@pytest.mark.parametrize(
    ("shape", "ops"),
    [
        ([2, 2, 3, 4], ["reshape", "transpose"]),
        ([2, 3, 2, 2, 2], ["reshape", "transpose"]),
        ([2, 24], ["transpose", "reshape"]),
        ([12, 4], ["transpose", "reshape"]),
        ([4, 12], ["reshape", "transpose", "reshape"]),
        ([8, 6], ["transpose", "reshape", "transpose"]),
    ],
)
def test_transposes_merge_where_they_can_whatever_dimensions_become_between_them(shape: list[int], ops: list[str]) -> None:
    s = Sketch()
    turned = s.apply("transpose", s.input(normal(2, 4, 6)), permutation=[0, 2, 1])
    out = s.apply("transpose", s.apply("reshape", turned, new_shape=shape))
    check(merge_movement, s.graph(out), s.feeds, ops, tolerance=None)


@pytest.mark.parametrize("dimensions", ["split", "joined and split"])
def test_random_chains_of_transposes_and_reshapes(dimensions: str) -> None:
    choices = np.random.default_rng(7)
    for _ in range(200):
        s = Sketch()
        x = s.input(normal(*choices.permutation([1, 2, 3, 4, 6])[: choices.integers(2, 6)]))
        for _ in range(choices.integers(2, 7)):
            shape = s.type(x).shape
            if choices.random() < 0.5:
                x = s.apply("transpose", x, permutation=[int(d) for d in choices.permutation(len(shape))])
                continue
            kept = [] if dimensions == "joined and split" else list(shape[1:])
            x = s.apply("reshape", x, new_shape=[*split(choices, math.prod(shape) // math.prod(kept), 8 - len(kept)), *kept])
        graph = s.graph(s.apply("neg", x))
        after = merge_movement(graph)
        assert_same(interpret(after, s.feeds), interpret(graph, s.feeds))
        before, left = ([node.op for node in each.nodes].count("transpose") for each in (graph, after))
        assert left <= (before if dimensions == "joined and split" else 1)
        assert len(after.nodes) <= max(len(graph.nodes), 4)


def test_a_range_is_found_before_elements_are_moved() -> None:
    s = Sketch()
    x = s.apply("neg", s.input(normal(2, 3, 4)))
    moved = s.apply("transpose", s.apply("reshape", s.apply("transpose", x), new_shape=[4, 6, 1]))
    scale, zero = s.apply_all("x.quantization_parameters", [moved])
    ops = ["neg", "x.quantization_parameters"]
    check(merge_movement, s.graph(scale, zero), s.feeds, ops, tolerance=None)
    s = Sketch()
    flat = s.apply("reshape", s.input(normal(2, 3, 4)), new_shape=[24])
    unchanged(merge_movement, s.graph(*s.apply_all("x.quantization_parameters", [flat])))


def split(choices: np.random.Generator, size: int, most: int) -> list[int]:
    """Return at most so many dimensions that make up a size, some of them 1."""
    parts: list[int] = []
    while size > 1 and len(parts) < most - 1:
        parts.append(int(choices.choice([n for n in range(1, size + 1) if size % n == 0])))
        size //= parts[-1]
    return [*parts, size]


def joined_levels(s: Sketch, kinds: int = 2) -> int:
    """Add what a detector's head does: values of several kinds, beside each other on each level, levels behind each other."""
    levels = [[s.apply("neg", s.input(normal(1, n, n, 3 + kind))) for kind in range(kinds)] for n in (3, 2)]
    sides = [s.apply("concat", *level, axis=3) for level in levels]
    width = sum(3 + kind for kind in range(kinds))
    flat = [s.apply("reshape", side, new_shape=[1, n * n, width]) for side, n in zip(sides, (3, 2), strict=True)]
    return s.apply("concat", *flat, axis=1)


def test_slices_of_what_is_joined_join_what_it_was_joined_from() -> None:
    s = Sketch()
    whole = joined_levels(s)
    cuts = [s.apply("slice", whole, starts=[0, 0, start], sizes=[1, 13, size]) for start, size in ((3, 4), (0, 3))]
    check(merge_movement, s.graph(*cuts), s.feeds, [*["neg"] * 4, *["reshape", "reshape", "concat"] * 2], tolerance=None)


@pytest.mark.parametrize("reason", ["across operands", "steps", "another reader", "another cut", "output", "two dimensions"])
def test_slices_that_would_be_joined_twice_stay(reason: str) -> None:
    s = Sketch()
    whole = joined_levels(s)
    options = {"across operands": ([0, 0, 1], [1, 13, 4]), "two dimensions": ([0, 1, 0], [1, 12, 3])}
    starts, sizes = options.get(reason, ([0, 0, 0], [1, 13, 3]))
    steps = {"strides": [1, 1, 2]} if reason == "steps" else {}
    results = [s.apply("slice", whole, starts=starts, sizes=sizes, **steps)]
    if reason == "another reader":
        results.append(s.apply("neg", whole))
    elif reason == "another cut":
        results.append(s.apply("slice", whole, starts=[0, 0, 2], sizes=[1, 13, 2]))
    elif reason == "output":
        results.append(whole)
    unchanged(merge_movement, s.graph(*results))


@pytest.mark.parametrize("permutation", [[0, 2, 1, 3], [3, 0, 1, 2]])
def test_transposes_that_move_nothing_are_views(permutation: list[int]) -> None:
    s = Sketch()
    x = s.apply("transpose", s.input(normal(2, 1, 3, 1)), permutation=permutation)
    check(merge_movement, s.graph(x), s.feeds, ["reshape"], tolerance=None)
