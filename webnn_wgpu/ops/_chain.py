"""The expression of a chain of element-wise operators in the body of a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..ir.graph import Graph, Node
from ..kernels.element import element_of
from ._def import Lowering
from ._rows import apply_node

if TYPE_CHECKING:
    from ..kernels.expression import ExpressionBuilder


def apply_chain(
    builder: ExpressionBuilder,
    low: Lowering,
    body: Graph,
    chain: Sequence[Node],
    result: int | None = None,
    number: Callable[[int], int | None] = lambda value: None,
) -> tuple[Mapping[int, str], list[int]]:
    """Add the operators of a chain to an expression.

    Args:
        builder: the expression.
        low: the node.
        body: the body of the node.
        chain: the operators, in order.
        result: the value that the kernel has computed in front of the chain, or None. It is the first argument.
        number: returns the whole number that a value is if it is one for the uniforms.

    Returns:
        The name of each value, and the values that are further arguments.
    """
    names: dict[int, str] = {}
    read: list[int] = []
    if result is not None:
        names[result] = builder.argument(element_of(body.type(result).data_type, low.caps))
    for node in chain:
        for value in node.operands:
            if value in names:
                continue
            kind, whole = element_of(body.type(value).data_type, low.caps), number(value)
            if whole is None:
                names[value] = builder.argument(kind)
                read.append(value)
            else:
                names[value] = builder.number(kind, whole)
        inner = Lowering(node=node, graph=body, target=low.target, ops=low.ops, forced=low.forced)
        names[node.outputs[0]] = apply_node(builder, inner, [names[v] for v in node.operands])
    return names, read
