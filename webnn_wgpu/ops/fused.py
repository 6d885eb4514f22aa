"""`fused`: a body of operators that runs as one kernel.

The body is a chain or tree of element-wise operators, behind at most one operator with an epilogue (matmul, gemm), the anchor.
The body may also transpose the first operand of the anchor from channels first to channels last. The anchor may then read the
operand before the transpose. Behind an anchor, the body may end in a normalization of the rows of the result. The anchor may
then compute it besides. Or the mean over the pixels of the result follows, with element-wise operators of the mean alone behind
it. The anchor may then store these instead. The body's inputs are named by position ("0", "1", ...) and stand for the node's
operands. So are its outputs, which are those of the node: several if one kernel stores several results.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from ..ir.graph import Graph, Node, Origin, Value, substitute
from ..ir.types import TensorType
from ..kernels.expression import ExpressionBuilder
from ..kernels.spec import KernelCall, Temp
from ._attrs import Attr
from ._chain import apply_chain
from ._def import Epilogue, Lowering, OpCall, OpDef, Operand, PixelMean, RowNormalization
from ._elementwise import ELEMENTWISE, Source, elementwise_call
from ._normalization import ROW_NORMALIZATIONS
from ._pixel_means import PIXEL_MEANS
from ._shapes import strides_of
from ._strided_copy import STRIDED, strided_call
from .interfaces.family import Family
from .product_pair import between
from .strided import TRANSPOSE

_WHOLE = ("int32", "int64")
"""The data types of the constant numbers that uniforms hold."""


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    raise call.fail("fused nodes come from passes alone", hint="Call the operators one by one: passes fuse them")


class Members(NamedTuple):
    """The operators of a body.

    Attributes:
        transpose: the one in front of the anchor, if any.
        anchor: the one that takes an epilogue, if any.
        chain: those of the expression, one for each step.
        normalization: the one of the rows of the chain's or the anchor's result, if any.
        pool: the one that takes the mean over the pixels of the chain's or the anchor's result, if any.
        behind: those of the expression of the mean, one for each step.
    """

    transpose: Node | None
    anchor: Node | None
    chain: tuple[Node, ...]
    normalization: Node | None = None
    pool: Node | None = None
    behind: tuple[Node, ...] = ()


def members_of(node: Node, ops: Mapping[str, OpDef]) -> Members:
    """Return the operators of a fused node. Any other node is itself the anchor, or the only operator of the chain."""
    nodes = cast("Graph", node.attrs["body"]).nodes if node.op == FUSED.name else (node,)
    transpose = nodes[0] if nodes[0].op == TRANSPOSE.name and nodes[-1] is not nodes[0] else None
    start = 1 if transpose else 0
    if ops[nodes[start].op].epilogue is None:
        return Members(transpose, None, nodes[start:])
    at = next((i for i in range(start + 1, len(nodes)) if nodes[i].op in PIXEL_MEANS), None)
    if at is not None:
        return Members(transpose, nodes[start], nodes[start + 1 : at], pool=nodes[at], behind=nodes[at + 1 :])
    normalization = nodes[-1] if nodes[-1].op in ROW_NORMALIZATIONS else None
    return Members(transpose, nodes[start], nodes[start + 1 : len(nodes) - (normalization is not None)], normalization)


def steps_of(node: Node, ops: Mapping[str, OpDef]) -> tuple[tuple[Origin, ...], ...]:
    """Return the origins of the operators that each step of a node's expressions computes, or () for an unfused node.

    Those between a pair of products come before those behind it.
    """
    members = members_of(node, ops)
    chain = (*members.chain, *members.behind) if node.op == FUSED.name else ()
    return tuple(step.origins for step in (*(between(members.anchor) if members.anchor else ()), *chain))


def whole_number(graph: Graph, value: int) -> int | None:
    """Return the number that a constant is, if kernels of element-wise operators find it in their uniforms. None for others.

    These are whole numbers of 32 bits. A binding for each would leave few for the tensors of a kernel.
    """
    type_ = graph.type(value)
    if value not in graph.constants or type_.num_elements != 1 or type_.data_type not in _WHOLE:
        return None
    number = int(graph.constants[value].reshape(-1)[0])
    return number if -(2**31) <= number < 2**31 else None


def _lower(low: Lowering) -> list[KernelCall]:
    body: Graph = low.attrs["body"]
    outer = {inner: low.value(int(name)) for name, inner in body.inputs.items()}
    transpose, anchor, chain, normalization, pool, behind = members_of(low.node, low.ops)
    builder = ExpressionBuilder()

    def number(value: int) -> int | None:
        return None if anchor else whole_number(low.graph, outer[value])

    names, read = apply_chain(builder, low, body, chain, anchor.outputs[0] if anchor else None, number)
    stored = {body.outputs[str(i)]: value for i, value in enumerate(low.node.outputs)}
    last = normalization or pool
    results = (last.operands[0],) if last else tuple(stored)
    expression = builder.finish(*(names[value] for value in results))
    output, *others = (stored.get(value, value) for value in results)
    if anchor is None:
        sources = [Source(outer[v], body.type(v)) for v in read]
        reason = f"{len(chain)} element-wise operators in one kernel"
        further = [(value, low.graph.type(value)) for value in others]
        return elementwise_call(expression, builder.uniforms, sources, output, low.output(), low.target, reason, further)
    operands = tuple(outer[v] for v in read)
    epilogue = Epilogue(expression, tuple(builder.uniforms), operands, output, tuple(others)) if chain else None
    # The anchor is lowered as if it stood in the outer graph, storing the node's output.
    whole = replace(low.graph, values=ChainMap(dict(body.values), cast("dict[int, Value]", low.graph.values)))
    lower = low.ops[anchor.op].lower
    assert lower is not None
    inner = replace(low, node=substitute(anchor, outer), graph=whole, epilogue=epilogue, in_place=False)
    source = outer[transpose.operands[0]] if transpose else None
    following = replace(low, node=substitute(last, outer), graph=whole, in_place=False) if last else None
    if following and pool:
        following = replace(following, epilogue=_epilogue_of_mean(low, body, pool, behind))
    rows, mean = (None, _mean_after(following)) if pool else (_rows_after(following, stored), None)
    calls = lower(replace(inner, channels_first=source, normalization=rows, pool=mean))
    if transpose is not None and source is not None:
        calls = _behind(low, source, transpose, calls)
    return _completed(following, low.node.outputs[-1], stored, calls) if following else calls


def _epilogue_of_mean(low: Lowering, body: Graph, pool: Node, behind: Sequence[Node]) -> Epilogue | None:
    """Return the epilogue of a mean, or None if no operators are behind the mean."""
    if not behind:
        return None
    builder = ExpressionBuilder("h")
    names, _ = apply_chain(builder, low, body, behind, pool.outputs[0])
    expression = builder.finish(names[behind[-1].outputs[0]])
    return Epilogue(expression, tuple(builder.uniforms), (), low.node.outputs[0])


def _mean_after(following: Lowering | None) -> PixelMean | None:
    """Return the mean that a kernel may store instead of its result, unless a kernel of its own is forced for it."""
    if following is None or following.forced_variant is not None:
        return None
    epilogue = following.epilogue
    return PixelMean(epilogue.output if epilogue else following.node.outputs[0], epilogue)


def _rows_after(following: Lowering | None, stored: Collection[int]) -> RowNormalization | None:
    """Return the normalization that a kernel may compute besides, unless a kernel of its own is forced for it."""
    if following is None or following.forced_variant is not None:
        return None
    node = following.node
    return RowNormalization(node, ROW_NORMALIZATIONS[node.op], stored=node.operands[0] in stored)


def _completed(low: Lowering, result: int, stored: Collection[int], calls: list[KernelCall]) -> list[KernelCall]:
    """Return the calls of an anchor with those of the operator of its result, unless they compute that already.

    Args:
        low: the normalization of the anchor's result, or the mean over its pixels.
        result: the value that is computed last.
        stored: the results that other nodes read.
        calls: the calls of the anchor.
    """
    if any(result in call.operands for call in calls):
        return calls
    lower = low.ops[low.node.op].lower
    assert lower is not None
    calls = [*calls, *lower(low)]
    return calls if low.value(0) in stored else _in_scratch(calls, low.value(0), "result", low.input().size_bytes)


def _in_scratch(calls: Sequence[KernelCall], value: int, key: str, size_bytes: int) -> list[KernelCall]:
    """Return calls whose operands of a value are scratch memory instead."""
    temp = Temp(key, size_bytes)
    return [replace(call, operands=tuple(temp if o == value else o for o in call.operands)) for call in calls]


def _behind(low: Lowering, source: int, transpose: Node, calls: list[KernelCall]) -> list[KernelCall]:
    """Return an operator's calls, behind the transpose of its first operand unless they read the untransposed value."""
    value = transpose.outputs[0]
    if not any(value in call.operands for call in calls):
        return calls
    type_ = low.graph.type(source)
    order: tuple[int, ...] = transpose.attrs["permutation"]
    temp, strides = Temp("transposed", type_.size_bytes), strides_of(type_.shape)
    dims, steps = [type_.shape[d] for d in order], [strides[d] for d in order]
    moved = strided_call(source, type_.data_type, 0, dims, steps, temp, low.target, f"permutation {list(order)}")
    return [moved, *_in_scratch(calls, value, temp.key, temp.size_bytes)]


FUSED = OpDef(
    name="fused",
    operands=(Operand(name="inputs", variadic=True),),
    infer=_infer,
    reference=None,
    lower=_lower,
    attrs=(Attr("body", "number"),),
    templates=(ELEMENTWISE, STRIDED),
    family=Family.OTHER,
    # The operators in its body have these interfaces.
    without=("elementwise", "epilogue", "movement", "layout", "precision", "cost", "bounds", "gradient"),
    internal=True,
)

OPS = (FUSED,)
