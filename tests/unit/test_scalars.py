"""Operators on single elements run in the kernels of their consumers on GPUs, where a dispatch costs more than they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support import Sketch, assert_same
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.costs import Target
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.passes.fuse import MAX_INPUTS, fuse_elementwise, fuse_epilogues
from webnn_wgpu.passes.scalars import repeat_scalars
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Graph

GPU, SOFTWARE = (Target.of(Caps(adapter_type=kind)) for kind in ("DiscreteGPU", "CPU"))
ONE = np.full((1, 1), 3, np.float32)
MATRIX = np.linspace(-3, 3, 16, dtype=np.float32).reshape(4, 4)


def names(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def fused(graph: Graph) -> Graph:
    return fuse_elementwise(fuse_epilogues(graph, GPU), GPU)


def scaled(s: Sketch, anchor: str) -> int:
    """Add a result times a factor that is the product of two inputs."""
    x = s.input(MATRIX)
    y = s.apply(anchor, x, *([x] if anchor == "matmul" else []))
    return s.apply("mul", y, s.apply("mul", s.input(ONE), s.input(ONE)), label="scaled")


@pytest.mark.parametrize("anchor", ["exp", "matmul"])
def test_consumers_repeat_operators_on_single_elements(anchor: str) -> None:
    s = Sketch()
    graph = s.graph(scaled(s, anchor))
    before = fused(graph)
    after = verify(repeat_scalars(before, GPU))
    assert [node.label for node in after.nodes] == ["scaled"]
    # A product is the first operator of a body, whatever its epilogue computes.
    assert names(after.nodes[0].attrs["body"]) == (["matmul", "mul", "mul"] if anchor == "matmul" else ["mul", "exp", "mul"])
    assert_same(interpret(after, s.feeds), interpret(graph, s.feeds))
    assert repeat_scalars(before, SOFTWARE) is before


def test_several_consumers_repeat_a_chain_of_operators_on_single_elements() -> None:
    s = Sketch()
    factor = s.apply("sqrt", s.apply("abs", s.input(ONE)))
    graph = s.graph(*(s.apply("mul", s.input(MATRIX), factor) for _ in range(2)))
    after = verify(repeat_scalars(fused(graph), GPU))
    assert [names(node.attrs["body"]) for node in after.nodes] == [["abs", "sqrt", "mul"]] * 2
    assert_same(interpret(after, s.feeds), interpret(graph, s.feeds))


@pytest.mark.parametrize("reason", ["output", "factor of a product", "consumer without a formula", "many steps"])
def test_operators_on_single_elements_that_are_not_repeated(reason: str) -> None:
    s = Sketch()
    factor = s.apply("neg", s.input(ONE))
    if reason == "many steps":
        for _ in range(GPU.costs.passes.most_repeated_steps):
            factor = s.apply("neg", factor)
    if reason == "consumer without a formula":
        y = s.apply("tile", factor, repetitions=[2, 2])
    elif reason == "factor of a product":
        y = s.apply("relu", s.apply("matmul", s.input(MATRIX[:, :1]), factor))
    else:
        y = s.apply("mul", s.input(MATRIX), factor)
    before = fused(s.graph(y, *[factor] * (reason == "output")))
    assert repeat_scalars(before, GPU) is before


@pytest.mark.parametrize("operands", [1, 2])
def test_consumers_read_no_more_tensors_than_a_device_binds(operands: int) -> None:
    s = Sketch()
    y = s.input(MATRIX)
    for _ in range(MAX_INPUTS - 2):
        y = s.apply("add", y, s.input(MATRIX))
    factor = s.apply("neg" if operands == 1 else "mul", *(s.input(ONE) for _ in range(operands)))
    before = fused(s.graph(s.apply("mul", y, factor)))
    assert len(before.nodes) == 2
    assert len(repeat_scalars(before, GPU).nodes) == operands
