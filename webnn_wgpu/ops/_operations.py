"""The numbers of arithmetic operations and bytes of nodes, for comparison with the time of their kernels."""

from __future__ import annotations

from ..ir.graph import Graph, Node
from ..kernels.spec import KernelCall
from . import OPS
from .interfaces.cost import Traffic


def operations_of(node: Node, graph: Graph) -> int | None:
    """Return the number of arithmetic operations of a node, or None if its kernel is unknown."""
    body = node.attrs.get("body")
    if isinstance(body, Graph):
        each = [operations_of(member, body) for member in body.nodes]
        return None if None in each else sum(n for n in each if n is not None)
    cost = OPS[node.op].cost
    if cost is None:
        return None
    return cost.operations(node.attrs, [graph.type(value) for value in node.operands], graph.type(node.outputs[0]))


def touched_bytes(node: Node | None, call: KernelCall, sizes: list[int]) -> int:
    """Return the number of bytes that a call reads and writes if it reads each byte that it needs once.

    Args:
        node: the node that the call computes.
        call: the call.
        sizes: the number of bound bytes of each of its operands.
    """
    written = sum(size for binding, size in zip(call.spec.bindings, sizes, strict=True) if binding.access == "write")
    read = [size for binding, size in zip(call.spec.bindings, sizes, strict=True) if binding.access != "write"]
    cost = OPS[node.op].cost if node else None
    traffic = cost.traffic if cost else Traffic.WHOLE
    if traffic is Traffic.CHANGED:
        return 2 * sum(read)  # the rows that change, of an operand that is bound whole
    if traffic is Traffic.TAKEN:
        return written + sum(min(size, written) for size in read)
    return written * (2 if call.replaces else 1) + sum(read)
