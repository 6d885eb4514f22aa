"""Products of few rows whose results only another such product reads, as in squeeze and excitation, in one kernel."""

from __future__ import annotations

from functools import partial

from ..core.data_types import DATA_TYPES, FLOATS
from ..costs import Target
from ..ir.graph import Graph, Node
from ..ops import OPS
from ..ops._quads import fits_binding
from ..ops.product_pair import PRODUCT_PAIR, PRODUCTS, RowProduct, row_product
from .fuse import MAX_INPUTS, body_of, fits_epilogue
from .rewriting import Rewriter, rewrite

_ELEMENTWISE = tuple(op.name for op in OPS.values() if op.elementwise is not None)

_WHOLE = 4
"""The sums of the first product have a multiple of so many terms: kernels read quads."""


def pair_products(graph: Graph, target: Target) -> Graph:
    """Compute a product of few rows and the product of its result in one kernel, where that takes less time than two."""
    return rewrite(graph, partial(_pair, graph, target), at=PRODUCTS)


def _pair(graph: Graph, target: Target, r: Rewriter, node: Node) -> bool:
    last = row_product(graph, node)
    if last is None or last.size.M > target.costs.products.gemv_rows:
        return False
    group = _group(r, node)
    hidden = row_product(graph, group[0]) if len(group) > 1 else None
    if hidden is None or not _pays(r, hidden, last, target):
        return False
    # The kernel finds operands of the operators between as those of an epilogue.
    if not all(fits_epilogue(graph, group[:i], group[i]) for i in range(1, len(group) - 1)):
        return False
    body = body_of(graph, group, node.outputs)
    operands = tuple(body.inputs.values())
    types = [graph.type(value) for value in (*operands, *(output for member in group for output in member.outputs))]
    if len(operands) > MAX_INPUTS or len(group) > target.costs.passes.most_fused_steps:
        return False
    if any(t.data_type not in FLOATS or not fits_binding(t, target.caps) for t in types):
        return False
    r.add(PRODUCT_PAIR.name, operands, {"body": body}, group, node.outputs[0])
    return True


def _group(r: Rewriter, node: Node) -> list[Node]:
    """Return the product that a product's left factor comes from alone, the operators between them, and the latter.

    There are fewer than two nodes if it comes from none or from several, or if others read something of it.
    """
    found: dict[int, Node] = {}
    waiting, products = [node.operands[0]], list[Node]()
    shape = r.shape(node.operands[0])
    while waiting:
        made = r.made(waiting.pop(), *_ELEMENTWISE, *PRODUCTS)
        if made is None or made.id in found or r.shape(made.outputs[0]) != shape:
            continue
        found[made.id] = made
        if made.op in PRODUCTS:
            products.append(made)
        else:
            waiting += made.operands
    if len(products) != 1:
        return []
    group, made = list[Node](), {products[0].outputs[0]}
    for each in r.nodes:
        if each.id in found and (each is products[0] or made.intersection(each.operands)):
            group.append(each)
            made.update(each.outputs)
    group.append(node)
    members = {member.id for member in group}
    for value in made:
        readers = r.readers(value)
        if not r.inner(value, len(readers)) or any(reader.id not in members for reader in readers):
            return []
    return group


def _pays(r: Rewriter, hidden: RowProduct, last: RowProduct, target: Target) -> bool:
    """Return whether the kernel can compute two products, and takes less time than two kernels."""
    if hidden.size.N != last.size.K or hidden.size.M != last.size.M or hidden.size.K % _WHOLE:
        return False
    for product in (hidden, last):
        weights = r.constants.get(product.weights)
        # Kernels of single products read weights of 8 bits or float16 as such.
        if weights is None or r.type(product.weights).data_type != r.type(product.rows).data_type:
            return False
    element_bytes = DATA_TYPES[r.type(hidden.weights).data_type].size_bytes
    return target.costs.products.pairs(hidden.size, last.size, element_bytes)
