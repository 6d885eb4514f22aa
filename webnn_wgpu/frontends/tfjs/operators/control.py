"""Graphs that nodes use: functions, conditions and loops."""

from __future__ import annotations

from collections.abc import Sequence

from ..call import TfjsCall
from ..tensors import TfjsGraph, TfjsInline, TfjsNode, TfjsValue
from ._registry import Result, lowers

MOST_SELECTED = 64
"""The maximum number of nodes of branches that both run."""


def graph_of(call: TfjsCall, name: str, given: Sequence[TfjsValue]) -> TfjsGraph:
    """Return a copy of a graph of the node, on given inputs."""
    graph = call.node.graphs.get(name)
    if graph is None or len(graph.inputs) != len(given):
        wanted = "is missing" if graph is None else f"has {len(graph.inputs)} inputs, the node gives it {len(given)}"
        call.fail(f"the graph {name} {wanted}")
    return graph.copy(given)


def inline(call: TfjsCall, name: str, given: Sequence[TfjsValue]) -> TfjsInline:
    """Return the nodes of a graph of the node on given inputs."""
    graph = graph_of(call, name, given)
    if len(graph.outputs) < len(call.node.outputs):
        call.fail(f"the graph {name} has {len(graph.outputs)} outputs, of which {len(call.node.outputs)} are used")
    return TfjsInline(graph.nodes, graph.outputs)


@lowers("PartitionedCall", "StatefulPartitionedCall", empty=True, folds=False)
def call_(call: TfjsCall) -> Result:
    """The nodes of a function."""
    return inline(call, "f", call.node.inputs)


@lowers("Select_", empty=True, folds=False)
def chosen(call: TfjsCall) -> Result:
    """The results of one of two branches that both run."""
    condition, one, other = call.inputs
    if condition.array is None and (one.shape != other.shape or one.dtype != other.dtype or not one.size):
        call.number(0)
    if condition.array is not None:
        return one if condition.array.reshape(-1)[0] else other
    flag = call.reshape(call.cast(call.operand(0), "uint8"), [])
    return call.typed(call.build.where(flag, call.operand(1), call.operand(2)), one.dtype)


def selection(name: str, condition: TfjsValue, one: TfjsValue, other: TfjsValue, output: TfjsValue) -> TfjsNode:
    """Return the node that selects one of two values."""
    return TfjsNode(name=name, op="Select_", inputs=(condition, one, other), outputs=(output,))


def _selected(call: TfjsCall) -> TfjsInline | None:
    """Return the nodes of both branches, and nodes that select the results of one. None if the host had better choose.

    Small branches take less time than the readback of a condition.
    """
    given = call.node.inputs[1:]
    branches = [inline(call, name, given) for name in ("then_branch", "else_branch")]
    if sum(len(b.nodes) for b in branches) > MOST_SELECTED:
        return None
    types = [call.lowering.result_types(graph_of(call, name, given)) for name in ("then_branch", "else_branch")]
    if types[0] is None or types[0] != types[1]:
        return None
    nodes = [
        selection(call.node.name, call.node.inputs[0], one, other, output)
        for output, one, other in zip(call.node.outputs, branches[0].outputs, branches[1].outputs, strict=False)
    ]
    return TfjsInline([*branches[0].nodes, *branches[1].nodes, *nodes], call.node.outputs)


@lowers("If", "StatelessIf", empty=True, folds=False)
def if_(call: TfjsCall) -> Result:
    """One of two graphs."""
    condition = call.tensor(0)
    if condition.array is None:
        return _selected(call) or call.on_host("its condition is known only when the model runs")
    holds = bool(condition.array.any()) if condition.size else False
    return inline(call, "then_branch" if holds else "else_branch", call.node.inputs[1:])


@lowers("While", "StatelessWhile", empty=True, folds=False)
def while_(call: TfjsCall) -> Result:
    """A graph that is repeated as long as a condition holds."""
    inputs = call.node.inputs
    holds = call.lowering.known_result(graph_of(call, "cond", inputs))
    if holds is None or holds.size != 1:
        call.on_host("its number of iterations is known only when the model runs")
    if not bool(holds.reshape(-1)[0]):
        return TfjsInline([], inputs)
    body = inline(call, "body", inputs)
    node = call.node
    again = TfjsNode(
        name=node.name,
        op=node.op,
        inputs=tuple(body.outputs),
        outputs=node.outputs,
        attributes=node.attributes,
        graphs=node.graphs,
    )
    return TfjsInline([*body.nodes, again], node.outputs)
