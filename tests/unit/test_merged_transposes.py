"""Transposes of several results of one producer in one kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support import Sketch, assert_same, random_array
from tests.unit.plans import caps_of, check_plan
from webnn_wgpu.costs import Target
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.ops.transposes import MOST_TENSORS
from webnn_wgpu.passes import run_passes
from webnn_wgpu.passes.transposes import merge_transposes
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webnn_wgpu.ir.graph import Graph

GPU, SOFTWARE = Target.of(caps_of("amd")), Target.of(caps_of("lavapipe"))
HEADS = (1, 6, 4, 16)
"""The shape of queries, keys and values: positions come before heads."""


class Heads:
    """The parts of one product, as heads of attention.

    Attributes:
        sketch: the graph.
        parts: the parts.
    """

    def __init__(self, count: int = 3) -> None:
        self.sketch = s = Sketch()
        product = s.apply("matmul", self.array(1, 6, 64), self.array(count, 64, 64))
        split = s.apply_all("split", [product], splits=count, axis=0)
        self.parts = [s.apply("reshape", part, new_shape=HEADS) for part in split]

    def array(self, *shape: int) -> int:
        """Return a new graph input."""
        return self.sketch.input(random_array(np.random.default_rng(len(self.sketch.feeds)), "float32", shape, 1))

    def turned(self, value: int, permutation: Sequence[int] = (0, 2, 1, 3)) -> int:
        """Return the transpose of a value."""
        return self.sketch.apply("transpose", value, permutation=permutation)

    def merged(self, *outputs: int) -> Graph:
        """Return the graph behind the pass, after a check that the results are the same."""
        graph = self.sketch.graph(*outputs)
        after = verify(merge_transposes(graph, GPU))
        assert_same(interpret(after, self.sketch.feeds), interpret(graph, self.sketch.feeds))
        return after


def names(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def test_keys_and_values_are_transposed_in_one_kernel() -> None:
    heads = Heads()
    s, (query, *others) = heads.sketch, heads.parts
    value = heads.turned(others[1])
    activated = s.apply("exp", query)
    graph = s.graph(activated, value, heads.turned(others[0]))
    after = heads.merged(*graph.outputs.values())
    assert names(after) == ["matmul", "split", *["reshape"] * 3, "transposes", "exp"]
    before, optimized = (run_passes(graph, GPU, disabled)[0] for disabled in (("merge_transposes",), ()))
    plans = [make_plan(each, GPU) for each in (before, optimized)]
    assert len(plans[1].dispatches) == len(plans[0].dispatches) - 1
    # The kernel reads the parts of the product where they are.
    assert [d.spec.template for d in plans[1].dispatches if d.node is not None].count("transposes") == 1
    assert not [d for d in plans[1].dispatches if d.spec.template == "strided"]
    check_plan(plans[1], GPU.caps, rendered=True)


def test_software_adapters_transpose_them_apart() -> None:
    heads = Heads()
    graph = heads.sketch.graph(*map(heads.turned, heads.parts))
    assert merge_transposes(graph, SOFTWARE) is graph


@pytest.mark.parametrize(("count", "kernels"), [(2, 1), (4, 1), (5, 2), (9, 3)])
def test_a_kernel_has_no_more_tensors_than_buffers_allow(count: int, kernels: int) -> None:
    heads = Heads(count)
    after = heads.merged(*map(heads.turned, heads.parts))
    turning = [node for node in after.nodes if node.op.startswith("transpose")]
    assert len(turning) == kernels
    assert all(len(node.outputs) <= MOST_TENSORS for node in turning)


def test_slices_of_one_value_are_transposed_together() -> None:
    heads = Heads()
    s, x = heads.sketch, heads.array(2, 6, 64)
    slices = [s.apply("slice", x, starts=[i, 0, 0], sizes=[1, 6, 64]) for i in range(2)]
    slices = [s.apply("reshape", each, new_shape=HEADS) for each in slices]
    assert names(heads.merged(*map(heads.turned, slices)))[-1] == "transposes"


def test_results_of_one_node_are_transposed_together() -> None:
    heads = Heads()
    s, weights = heads.sketch, (heads.array(1, 32, 8), heads.array(1, 32, 8))
    results = s.apply_all("lstm", [heads.array(3, 4, 8), *weights, *[None] * 5], steps=3, hidden_size=8)
    results = [s.apply("reshape", each, new_shape=(2, 2, 8)) for each in results]
    assert names(heads.merged(*(heads.turned(each, (1, 0, 2)) for each in results)))[-1] == "transposes"


def other_permutations(heads: Heads) -> list[int]:
    query, key, value = heads.parts
    return [heads.turned(query), heads.turned(key, (0, 1, 3, 2)), heads.turned(value, (2, 1, 0, 3))]


def other_producers(heads: Heads) -> list[int]:
    exp = heads.sketch.apply("exp", heads.parts[1])
    return [heads.turned(value) for value in (heads.array(*HEADS), heads.array(*HEADS), heads.parts[0], exp)]


def other_shapes(heads: Heads) -> list[int]:
    key = heads.sketch.apply("reshape", heads.parts[1], new_shape=(1, 12, 2, 16))
    return [heads.turned(heads.parts[0]), heads.turned(key)]


def pairs(heads: Heads) -> list[int]:
    return [heads.turned(heads.sketch.apply("reshape", part, new_shape=(1, 6, 32, 2))) for part in heads.parts]


def columns(heads: Heads) -> list[int]:
    return [heads.turned(part, (0, 1, 3, 2)) for part in heads.parts]


def made_later(heads: Heads) -> list[int]:
    x, found = heads.array(2, 6, 64), list[int]()
    for i in range(2):
        part = heads.sketch.apply("slice", x, starts=[i, 0, 0], sizes=[1, 6, 64])
        found.append(heads.turned(heads.sketch.apply("reshape", part, new_shape=HEADS)))
    return found


@pytest.mark.parametrize("drawn", [other_permutations, other_producers, other_shapes, pairs, columns, made_later])
def test_other_transposes_stay(drawn: Callable[[Heads], list[int]]) -> None:
    heads = Heads()
    graph = heads.sketch.graph(*drawn(heads))
    assert merge_transposes(graph, GPU) is graph


@pytest.mark.parametrize("is_output", [False, True])
def test_results_do_not_wait_for_long(is_output: bool) -> None:
    heads = Heads()
    s, (query, key, _) = heads.sketch, heads.parts
    first = between = heads.turned(query)
    for _ in range(20):
        between = s.apply("exp", between)
    second = heads.turned(key)
    outputs = (first, between, second if is_output else s.apply("exp", second))
    assert names(heads.merged(*outputs)).count("transposes") == is_output


def test_transposes_are_written_into_a_concatenation() -> None:
    heads = Heads()
    s = heads.sketch
    parts = [s.apply("reshape", part, new_shape=(6, 4, 16)) for part in heads.parts[1:]]
    graph = s.graph(s.apply("concat", *(heads.turned(part, (1, 0, 2)) for part in parts), axis=0))
    plan = make_plan(run_passes(graph, GPU)[0], GPU)
    assert [d.spec.template for d in plan.dispatches][-1] == "transposes"
