"""Subgraphs that nodes use, and variables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...common.held import Array
from ..call import TfliteCall
from ..tensors import TfliteNode, TfliteTensor, TfliteValue
from ._registry import Result, TfliteInline, lowers

BRANCHES = ("ThenSubgraphIndex", "ElseSubgraphIndex")
"""The options of IF that name its subgraphs."""
MOST_SELECTED = 64
"""The maximum number of nodes of branches that both run."""


def present(call: TfliteCall) -> list[TfliteValue]:
    """Return the inputs of a node that are there."""
    return [v for v in call.node.inputs if v is not None]


def inline(call: TfliteCall, index: int, inputs: list[TfliteValue]) -> TfliteInline:
    """Return the nodes of a subgraph on given inputs."""
    subgraphs = call.module.file.subgraphs
    if not 0 <= index < len(subgraphs):
        call.fail(f"it uses subgraph {index}, which is missing")
    if len(subgraphs[index].inputs) != len(inputs) or len(subgraphs[index].outputs) < len(call.outputs):
        wanted = f"{len(subgraphs[index].inputs)} inputs and {len(subgraphs[index].outputs)} outputs"
        call.fail(f"subgraph {index} has {wanted}, the node {len(inputs)} and {len(call.outputs)}")
    graph = call.module.graph(index, inputs)
    return TfliteInline(graph.nodes, graph.outputs)


def known_result(call: TfliteCall, index: int) -> Array | None:
    """Return the first output of a subgraph on the node's inputs, if it does not depend on a run."""
    return call.lowering.known_result(call.module.graph(index, present(call)), call.node)


@lowers(CALL=1, folds=False, empty=True)
def call_(call: TfliteCall) -> Result:
    """The nodes of a subgraph."""
    return inline(call, int(call.option("Subgraph")), present(call))


@lowers(CALL_ONCE=1, folds=False, note="before the first run")
def call_once(call: TfliteCall) -> Result:
    """A subgraph that the model runs once, before everything else."""
    return []


def selected(call: TfliteCall) -> TfliteInline | None:
    """Return the nodes of both branches, and nodes that select the results of one. None if the host had better choose.

    Small branches take less time than the readback of a condition.
    """
    condition = call.tensor(0)
    if call.node.record.name != "IF" or condition.size != 1 or condition.dtype.kind != "b":
        return None
    numbers, inputs = [int(call.option(name)) for name in BRANCHES], present(call)[1:]
    branches = [inline(call, number, inputs) for number in numbers]
    if sum(len(b.nodes) for b in branches) > MOST_SELECTED:
        return None
    types = [call.lowering.result_types(call.module.graph(number, inputs)) for number in numbers]
    if types[0] is None or types[0] != types[1] or any(len(shape) < condition.rank for shape, _ in types[0]):
        return None
    nodes = [
        TfliteNode(
            record=replace(call.node.record, name="SELECT_V2", options=None),
            subgraph=call.node.subgraph,
            inputs=(call.node.inputs[0], chosen, other),
            outputs=(output,),
        )
        for output, chosen, other in zip(call.node.outputs, branches[0].outputs, branches[1].outputs, strict=False)
    ]
    return TfliteInline([*branches[0].nodes, *branches[1].nodes, *nodes], call.node.outputs)


@lowers(
    IF=1, STABLEHLO_CASE=1, folds=False, empty=True, note="small branches: both run; else host unless the condition is known"
)
def if_(call: TfliteCall) -> Result:
    """One of several subgraphs, by the elements of the first input."""
    chosen = call.tensor(0).array
    if chosen is None:
        return selected(call) or call.on_host("its condition is known only when the model runs")
    if call.node.record.name == "IF":
        return inline(call, int(call.option(BRANCHES[0 if chosen.reshape(-1)[0] else 1])), present(call)[1:])
    branches = [int(i) for i in call.option("BranchSubgraphIndices", [])]
    index = int(chosen.reshape(-1)[0])
    if not branches:
        call.fail("it has no branches")
    return inline(call, branches[index if 0 <= index < len(branches) else -1], present(call)[1:])


@lowers(WHILE=1, folds=False, empty=True, note="unrolled if the number of iterations is known, else host")
def while_(call: TfliteCall) -> Result:
    """A subgraph that is repeated as long as a condition holds."""
    if len(call.outputs) != len(call.inputs):
        call.fail(f"{len(call.inputs)} values become {len(call.outputs)}")
    holds = known_result(call, int(call.option("CondSubgraphIndex")))
    if holds is None or holds.size != 1:
        call.on_host("its number of iterations is known only when the model runs")
    inputs = present(call)
    if not bool(holds.reshape(-1)[0]):
        return TfliteInline([], inputs)
    body = inline(call, int(call.option("BodySubgraphIndex")), inputs)
    again = TfliteNode(
        record=call.node.record, subgraph=call.node.subgraph, inputs=tuple(body.outputs), outputs=call.node.outputs
    )
    return TfliteInline([*body.nodes, again], call.node.outputs)


@lowers(VAR_HANDLE=1, folds=False)
def var_handle(call: TfliteCall) -> Result:
    """A reference to a variable."""
    key = ("resource", str(call.option("Container", "") or ""), str(call.option("SharedName", "") or ""))
    return TfliteTensor(shape=(), dtype=np.dtype(np.int32), handle=key)


@lowers(READ_VARIABLE=1, folds=False)
def read_variable(call: TfliteCall) -> Result:
    """The elements of a variable."""
    handle = call.tensor(0).handle
    if handle is None:
        call.fail("the input must refer to a variable")
    return call.lowering.variable(handle, None, call.output().quantization)


@lowers(ASSIGN_VARIABLE=1, folds=False)
def assign_variable(call: TfliteCall) -> Result:
    """New elements for a variable."""
    handle = call.tensor(0).handle
    if handle is None:
        call.fail("the input must refer to a variable")
    call.lowering.assign(handle, call.tensor(1))
    return []
