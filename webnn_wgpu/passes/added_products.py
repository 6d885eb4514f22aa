"""Products that are added up, such as the gradients of the rows of queries, keys and values, in one dispatch."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ..costs import ProductSize, Target
from ..ir.graph import Graph, Node
from ..ir.types import TensorType
from ..ops._quads import fits_binding
from ..ops.elementwise import ADD
from ..ops.matmul import MATMUL, TRANSPOSED_MATMUL
from ..ops.reduce import REDUCE_SUM
from ..ops.strided import SLICE, TRANSPOSE
from ..ops.views import RESHAPE
from .rewriting import Rewriter, rewrite
from .views import View, run_of


@dataclass(frozen=True)
class _Product:
    """A product of rows with a transposed matrix, both of them parts of larger tensors.

    Attributes:
        result: the value that it computes.
        rows: the place of the rows.
        matrix: the place of the matrix, [N, K].
        size: the sizes of the product.
        nodes: the transpose and the product.
    """

    result: int
    rows: View
    matrix: View
    size: ProductSize
    nodes: tuple[Node, ...]

    def follows(self, other: _Product) -> bool:
        """Return whether rows and matrix are behind those of another product of the same tensors and sizes."""
        size = self.size
        places = self.rows.offset - other.rows.offset, self.matrix.offset - other.matrix.offset
        return places == (size.M * size.K, size.N * size.K)


def merge_added_products(graph: Graph, target: Target) -> Graph:
    """Compute products of neighboring parts of the same tensors together, if their results are only added up."""
    return rewrite(graph, partial(_sum, target=target), at=(ADD.name,))


def _sum(r: Rewriter, node: Node, *, target: Target) -> bool:
    result, shape = node.outputs[0], r.shape(node.outputs[0])
    readers = r.readers(result)
    # The last of several additions sees all of their operands.
    if r.inner(result) and readers[0].op == ADD.name and r.shape(readers[0].outputs[0]) == shape:
        return False
    sums, terms = _additions(r, node)
    run = _longest_run([product for value in terms if (product := _product(r, value))])
    if len(run) < 2 or not _pays(r, run, target):
        return False
    sources = [*sums, *(each for product in run for each in (*product.rows.nodes, *product.matrix.nodes, *product.nodes))]
    size, count = run[0].size, len(run)
    rows = _part(r, run[0].rows, (count, size.M, size.K), sources)
    matrices = _part(r, run[0].matrix, (count, size.N, size.K), sources)
    products = r.add(TRANSPOSED_MATMUL.name, (rows, matrices), {"b_transpose": True}, sources)
    merged = {product.result for product in run}
    others = [value for value in terms if value not in merged]
    total = r.add(REDUCE_SUM, (products,), {"axes": (0,)}, sources)
    total = r.add(RESHAPE.name, (total,), {"new_shape": shape}, sources, None if others else result)
    for i, other in enumerate(others, 1):
        total = r.add(ADD.name, (total, other), {}, sources, result if i == len(others) else None)
    return True


def _additions(r: Rewriter, node: Node) -> tuple[list[Node], list[int]]:
    """Return an addition with those whose results only it reads, once, and the values that all of them add up."""
    sums: list[Node] = []
    terms: list[int] = []
    waiting = [node]
    while waiting:
        added = waiting.pop()
        sums.append(added)
        for value in added.operands:
            inner = r.made_for_one(value, ADD.name) if added.operands.count(value) == 1 else None
            if inner is not None and all(r.shape(operand) == r.shape(value) for operand in inner.operands):
                waiting.append(inner)
            else:
                terms.append(value)
    return sums, terms


def _product(r: Rewriter, value: int) -> _Product | None:
    """Return a value as a product that only its addition reads."""
    node = r.made_for_one(value, MATMUL.name)
    turned = r.made(node.operands[1], TRANSPOSE.name) if node else None
    if node is None or turned is None or tuple(turned.attrs["permutation"]) != (1, 0):
        return None
    rows, matrix = run_of(r, node.operands[0]), run_of(r, turned.operands[0])
    if rows is None or matrix is None:
        return None
    *lines, K = r.shape(node.operands[0])
    size = ProductSize(math.prod(lines), r.shape(turned.operands[0])[0], K)
    return _Product(value, rows, matrix, size, (turned, node))


def _longest_run(products: Sequence[_Product]) -> list[_Product]:
    """Return the most products of the same tensors and sizes that follow each other."""
    groups: defaultdict[object, list[_Product]] = defaultdict(list)
    for product in products:
        groups[product.rows.value, product.matrix.value, product.size].append(product)
    runs: list[list[_Product]] = [[]]
    for group in groups.values():
        runs.append([])
        for product in sorted(group, key=lambda product: product.rows.offset):
            if runs[-1] and not product.follows(runs[-1][-1]):
                runs.append([])
            runs[-1].append(product)
    return max(runs, key=len)


def _pays(r: Rewriter, run: Sequence[_Product], target: Target) -> bool:
    """Return whether the products together take less time, and fit a binding."""
    size, count, data_type = run[0].size, len(run), r.type(run[0].result).data_type
    # Results of float16 would be rounded before they are added up.
    if data_type != "float32" or not target.costs.products.adds_together(size, count):
        return False
    numbers = (size.M * size.K, size.N * size.K, size.M * size.N)
    return all(fits_binding(TensorType(data_type, (count * number,)), target.caps) for number in numbers)


def _part(r: Rewriter, first: View, shape: tuple[int, ...], sources: Sequence[Node]) -> int:
    """Return as many elements of a tensor as a shape has, from the first element of a view on."""
    whole, count = math.prod(r.shape(first.value)), math.prod(shape)
    if count == whole:
        return r.reshaped(first.value, shape, sources)
    flat = r.reshaped(first.value, (whole,), sources)
    part = r.add(SLICE.name, (flat,), {"starts": (first.offset,), "sizes": (count,)}, sources)
    return r.reshaped(part, shape, sources)
