from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support import Sketch
from tests.targets import DEFAULT_TARGET
from webnn_wgpu.ir.graph import Graph, Node, Value, frozen_array, substitute
from webnn_wgpu.ir.text import to_text
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ir.verify import GraphError, verify
from webnn_wgpu.ops.fused import FUSED
from webnn_wgpu.passes.fuse import fuse_elementwise

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def sample() -> tuple[Sketch, Graph]:
    """x (input) -> matmul with a constant -> add bias -> relu; two outputs."""
    s = Sketch()
    product = s.apply("matmul", s.input(X), s.constant(np.ones((3, 2), np.float32)), label="dense")
    total = s.apply("add", product, s.input(np.ones(2, np.float32)))
    return s, s.graph(out=s.apply("relu", total), sum=total)


def test_text() -> None:
    _, graph = sample()
    assert to_text(graph) == "\n".join(
        (
            "input 0: %0 float32[2, 3]",
            "input 1: %3 float32[2]",
            "constant %1 float32[3, 2]",
            "%2 float32[2, 2] = matmul(%0, %1)  # dense",
            "%4 float32[2, 2] = add(%2, %3)",
            "%5 float32[2, 2] = relu(%4)",
            "output out: %5",
            "output sum: %4",
        )
    )


def test_text_of_bodies_attributes_and_absent_operands() -> None:
    s = Sketch()
    x = s.input(X)
    y = s.apply("exp", s.apply("elu", x, alpha=0.5))
    graph = fuse_elementwise(s.graph(s.apply("reshape", y, new_shape=[6])), DEFAULT_TARGET)
    assert to_text(graph) == "\n".join(
        (
            "input 0: %0 float32[2, 3]",
            "%2 float32[2, 3] = fused(%0)",
            "    input 0: %0 float32[2, 3]",
            "    %1 float32[2, 3] = elu(%0, alpha=0.5)",
            "    %2 float32[2, 3] = exp(%1)",
            "    output 0: %2",
            "%3 float32[6] = reshape(%2, new_shape=(6,))",
            "output 0: %3",
        )
    )
    normalized = Sketch()
    graph = normalized.graph(normalized.apply("gemm", normalized.input(X), normalized.input(X.T)))
    assert "gemm(%0, %1, -," in to_text(graph)


def test_with_nodes_keeps_what_is_named() -> None:
    _, graph = sample()
    smaller = graph.with_nodes((graph.nodes[0],), outputs={"out": 2})
    assert set(smaller.values) == {0, 1, 2, 3}
    assert set(smaller.constants) == {1}
    without = graph.with_nodes((), outputs={"out": 0})
    assert set(without.values) == {0, 3}
    assert not without.constants
    verify(smaller)
    verify(without)


def test_substitute() -> None:
    _, graph = sample()
    assert substitute(graph.nodes[0], {9: 1}) is graph.nodes[0]
    assert substitute(graph.nodes[0], {0: 7}).inputs == (7, 1)
    node = Node(id=0, op="gemm", inputs=(0, 1, None), outputs=(2,))
    assert node.operands == (0, 1)
    assert substitute(node, {1: 5}).inputs == (0, 5, None)


def test_frozen_arrays_are_views() -> None:
    array = np.zeros(3)
    frozen = frozen_array(array)
    assert np.shares_memory(frozen, array)
    assert array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        frozen[0] = 1


NODE = Node(id=9, op="relu", inputs=(0,), outputs=(9,))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda g: replace(g, nodes=(g.nodes[1], *g.nodes)), "add (node 1) reads %2 before it is made"),
        (lambda g: replace(g, nodes=(*g.nodes, g.nodes[2])), "node 2 stands twice"),
        (lambda g: replace(g, nodes=(*g.nodes, replace(g.nodes[2], id=7))), "relu (node 7) makes %5, which exists"),
        (lambda g: replace(g, nodes=g.nodes[:1]), "output 'out' is %5, which nothing makes"),
        (lambda g: replace(g, outputs={"out": 77}), "output 'out' is %77, which nothing makes"),
        (lambda g: replace(g, nodes=(*g.nodes, NODE)), "%9 has no type"),
        (lambda g: replace(g, constants={**g.constants, 88: X}), "%88 has no type"),
        (
            lambda g: replace(g, values={**g.values, 0: Value(1, g.type(0))}),
            "%0 has no type",
        ),
        (
            lambda g: replace(g, constants={1: np.ones((3, 3), np.float32)}),
            "constant %1 is float32[3, 3], its value is float32[3, 2]",
        ),
        (
            lambda g: replace(g, constants={1: np.ones((3, 2), np.float64)}),
            "constant %1 is float64[3, 2], its value is float32[3, 2]",
        ),
        (
            lambda g: replace(g, constants={0: X}),
            "a value is both an input and a constant, or named twice",
        ),
        (
            lambda g: replace(g, inputs={**g.inputs, "again": 0}),
            "a value is both an input and a constant, or named twice",
        ),
    ],
)
def test_broken_graphs(broken: Callable[[Graph], Graph], message: str) -> None:
    _, graph = sample()
    with pytest.raises(GraphError) as raised:
        verify(broken(graph))
    assert message in str(raised.value)


def test_broken_bodies() -> None:
    s = Sketch()
    graph = fuse_elementwise(s.graph(s.apply("exp", s.apply("neg", s.input(X)))), DEFAULT_TARGET)
    (node,) = graph.nodes
    body: Graph = node.attrs["body"]
    assert node.op == FUSED.name
    verify(graph)

    def with_body(changed: Graph) -> Graph:
        return replace(graph, nodes=(replace(node, attrs=MappingProxyType({"body": changed})),))

    with pytest.raises(GraphError, match=r"exp \(node 1\) reads %1 before it is made"):
        verify(with_body(replace(body, nodes=body.nodes[1:])))
    with pytest.raises(GraphError, match=r"fused \(node 1\) has 1 inputs, its body \['x'\]"):
        verify(with_body(replace(body, inputs={"x": 0})))
    wrong = {**body.values, 0: Value(0, TensorType("float32", (9,)))}
    with pytest.raises(GraphError, match=r"input 0 of fused \(node 1\) is not of its body's type"):
        verify(with_body(replace(body, values=wrong)))
