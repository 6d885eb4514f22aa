"""`fused`: a body of operators that runs as one kernel.

The body is a chain or tree of element-wise operators, behind at most one operator that takes an epilogue (matmul, gemm).
The body's inputs are named by position ("0", "1", ...) and stand for the node's operands; its only output is the node's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..ir.graph import Graph, Node, Origin, substitute
from ..ir.types import TensorType
from ..kernels.element import element_of
from ..kernels.expression import ExpressionBuilder
from ..kernels.spec import KernelCall
from ._attrs import Attr
from ._def import Call, Epilogue, Lowering, OpDef, Operand
from ._elementwise import ELEMENTWISE, Source, elementwise_call
from ._rows import apply_node

FUSED = "fused"


def _infer(call: Call) -> tuple[TensorType, ...]:
    raise call.fail("fused nodes are made by passes, not by programs")


def _parts(body: Graph, ops: Mapping[str, OpDef]) -> tuple[Node | None, tuple[Node, ...]]:
    """Return the operator of a body that takes an epilogue, if any, and those of its expression, one for each step."""
    return (body.nodes[0], body.nodes[1:]) if ops[body.nodes[0].op].epilogue else (None, body.nodes)


def steps_of(node: Node, ops: Mapping[str, OpDef]) -> tuple[tuple[Origin, ...], ...]:
    """Return where the operators come from that the steps of a node's expression compute; () if it is not fused."""
    return tuple(step.origins for step in _parts(node.attrs["body"], ops)[1]) if node.op == FUSED else ()


def _lower(low: Lowering) -> list[KernelCall]:
    body: Graph = low.attrs["body"]
    outer = {inner: low.value(int(name)) for name, inner in body.inputs.items()}
    anchor, chain = _parts(body, low.ops)
    builder = ExpressionBuilder()
    names: dict[int, str] = {}
    read: list[int] = []
    if anchor:
        names[anchor.outputs[0]] = builder.argument(element_of(body.type(anchor.outputs[0]).data_type, low.caps))
    for node in chain:
        for value in node.operands:
            if value not in names:
                names[value] = builder.argument(element_of(body.type(value).data_type, low.caps))
                read.append(value)
        inner = Lowering(node, body, low.caps, low.ops, low.forced)
        names[node.outputs[0]] = apply_node(builder, inner, [names[v] for v in node.operands])
    expression = builder.finish(names[body.outputs["0"]])
    output = low.node.outputs[0]
    if anchor is None:
        sources = [Source(outer[v], body.type(v)) for v in read]
        reason = f"{len(chain)} element-wise operators in one kernel"
        return elementwise_call(expression, builder.uniforms, sources, output, low.output(), low.caps, reason)
    epilogue = Epilogue(expression, tuple(builder.uniforms), tuple(outer[v] for v in read), output)
    # The anchor is lowered as if it stood in the outer graph, storing the node's output.
    whole = replace(low.graph, values={**low.graph.values, **body.values})
    lower = low.ops[anchor.op].lower
    assert lower is not None
    return lower(replace(low, node=substitute(anchor, outer), graph=whole, epilogue=epilogue, in_place=False))


OPS = (
    OpDef(
        FUSED,
        (Operand("inputs", variadic=True),),
        _infer,
        None,
        _lower,
        attrs=(Attr("body", "number"),),
        templates=(ELEMENTWISE,),
        internal=True,
    ),
)
