"""The work of compiling a long graph: it grows with the number of nodes, not with the square of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np
import pytest

from tests.support import Sketch
from tests.targets import DEFAULT_TARGET, SOFTWARE
from webnn_wgpu.costs import Target
from webnn_wgpu.ir.graph import Graph, Value
from webnn_wgpu.passes import run_passes
from webnn_wgpu.passes.fuse import fuse_elementwise
from webnn_wgpu.plan import make_plan

UNITS = 64
"""Inputs of steps are 256 bytes, which are parts of one buffer."""


def unrolled(steps: int) -> Graph:
    """Return a recurrent network that returns its last state. The number of tensors in memory at once is that of one step."""
    s = Sketch()
    x = s.input(np.ones((steps, UNITS), np.float32))
    state = s.input(np.ones((1, UNITS), np.float32))
    weights = s.constant(np.ones((UNITS, UNITS), np.float32))
    two = s.constant(np.array(2, np.float32))
    parts = s.apply_all("split", [x], splits=(1,) * steps, axis=0)
    for part in parts:
        sums = s.apply("add", s.apply("matmul", state, weights), part)
        mean = s.apply("reduceMean", sums, axes=(1,), keep_dimensions=True)
        state = s.apply("tanh", s.apply("mul", s.apply("sub", sums, mean), two))
        state = s.apply("softmax", state, axis=1)
    return s.graph(state)


def calls_of(work: Callable[[], object]) -> int:
    """Return the number of function calls that some work takes."""
    count = 0

    def see(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("target", [DEFAULT_TARGET, Target.of(SOFTWARE)], ids=["hardware", "software"])
def test_the_calls_for_a_node_do_not_grow_with_the_number_of_nodes(target: Target) -> None:
    calls: list[float] = []
    for steps in (40, 160):
        graph = unrolled(steps)
        calls.append(calls_of(lambda graph=graph: make_plan(run_passes(graph, target)[0], target)) / steps)
    assert calls[1] < 1.1 * calls[0]


class Counted(dict[int, Value]):
    """Values that count how often one of them is visited."""

    visited = 0

    def __iter__(self) -> Iterator[int]:
        for key in super().__iter__():
            self.visited += 1
            yield key

    def keys(self) -> Any:
        return iter(self)

    def items(self) -> Any:
        return ((key, self[key]) for key in self)


def test_fused_kernels_visit_no_values_but_their_own() -> None:
    visited: list[tuple[float, float]] = []
    for steps in (40, 160):
        graph = unrolled(steps)
        values = Counted(graph.values)
        fused = fuse_elementwise(replace(graph, values=values), DEFAULT_TARGET)
        assert sum(node.op == "fused" for node in fused.nodes) >= steps
        graph, _ = run_passes(graph, DEFAULT_TARGET)
        assert sum(node.op == "fused" and node.attrs["body"].nodes[0].op == "matmul" for node in graph.nodes) >= steps
        planned = Counted(graph.values)
        make_plan(replace(graph, values=planned), DEFAULT_TARGET)
        visited.append((values.visited / steps, planned.visited / steps))
    for few, many in zip(*visited, strict=True):
        assert many < 1.1 * few + 1
