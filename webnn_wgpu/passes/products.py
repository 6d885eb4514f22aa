"""Matrix products of the same rows become one: those of queries, keys and values with their weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.caps import DEFAULT_LIMITS
from ..core.mapped import release_pages
from ..ir.graph import Array, Graph, Node
from ..ops import OPS
from .rewriting import Rewriter, rewrite

MOST_JOINED_BYTES = 2 << 20
"""Weights that would take more than this are not joined: that takes a copy of them, and their products take long anyway."""


@dataclass(frozen=True)
class _Product:
    """A matrix product with a constant, and the constant vector that is added to it.

    Attributes:
        a: the rows, [..., K].
        weights: a constant, [K, N].
        bias: a constant of N elements, if one is added.
        nodes: the product, and the sum.
    """

    a: int
    weights: int
    bias: int | None
    nodes: tuple[Node, ...]

    @property
    def result(self) -> int:
        """What is computed."""
        return self.nodes[-1].outputs[0]


def merge_products(graph: Graph) -> Graph:
    """Compute products of the same rows with constants of one shape as one, whose results lie one behind the other."""
    gone: set[int] = set()

    def merge(r: Rewriter, node: Node) -> bool:
        return node.id in gone or _merge_siblings(r, node, gone) or _merge_columns(r, node)

    return rewrite(graph, merge)


def _merge_siblings(r: Rewriter, node: Node, gone: set[int]) -> bool:
    """Put one product in the place of all that read the first's rows; `gone` gets the nodes that are no more."""
    first = _product(r, node)
    if first is None:
        return False
    found = [product for reader in r.readers(first.a) if (product := _product(r, reader)) is not None]
    kind = (first.a, r.type(first.weights))
    products = [p for p in found if (p.a, r.type(p.weights)) == kind and _readable(r, p.result)]
    joined_bytes = len(products) * r.type(first.weights).size_bytes
    if len(products) < 2 or first not in products or joined_bytes > MOST_JOINED_BYTES:
        return False
    if not _bindable(r, first, r.shape(first.weights)[1]):
        return False
    weights = np.stack([r.constants[product.weights] for product in products])
    for product in products:
        release_pages(r.constants[product.weights])
    none = np.zeros(weights.shape[-1], weights.dtype)
    vectors = [none if product.bias is None else r.constants[product.bias].reshape(-1) for product in products]
    nodes = [node for product in products for node in product.nodes]
    bias = np.stack(vectors) if any(product.bias is not None for product in products) else None
    _add(r, first, weights, bias, nodes, [product.result for product in products])
    gone.update(node.id for node in nodes)
    return True


def _merge_columns(r: Rewriter, node: Node) -> bool:
    """Put a product with a matrix for each part in the place of one whose columns are split into equal parts."""
    if node.op != "split" or len(set(node.attrs["splits"])) > 1:
        return False
    value, count = node.operands[0], len(node.outputs)
    rows, columns = math.prod(r.shape(value)[:-1]), r.shape(value)[-1]
    made = r.made_for_one(value, "add", "matmul")
    # A single row lies in parts as it is.
    if made is None or rows == 1 or node.attrs["axis"] != len(r.shape(value)) - 1:
        return False
    matmul = next((found for v in (value, *made.operands) if (found := r.made_for_one(v, "matmul")) is not None), None)
    product = None if matmul is None else _product(r, matmul)
    if product is None or product.result != value or not _bindable(r, product, columns // count):
        return False
    if not all(_readable(r, part) for part in node.outputs):
        return False
    # A view of the weights, which are packed for the device from where they are.
    parts = r.constants[product.weights].reshape(-1, count, columns // count)
    bias = None if product.bias is None else r.constants[product.bias].reshape(count, columns // count)
    _add(r, product, np.moveaxis(parts, 1, 0), bias, [*product.nodes, node], node.outputs)
    return True


def _product(r: Rewriter, node: Node) -> _Product | None:
    """Return a node as a product with a constant, and the sum with a constant vector that alone reads it."""
    if node.op != "matmul":
        return None
    a, weights = node.operands
    if weights not in r.constants or len(r.shape(weights)) != 2:
        return None
    result = node.outputs[0]
    add = r.readers(result)[0] if r.inner(result) else None
    if add is not None and add.op == "add" and r.shape(add.outputs[0]) == r.shape(result):
        bias = next((value for value in add.operands if value != result), result)
        if bias in r.constants and r.shape(bias)[-1:] == (r.constants[bias].size,) == r.shape(weights)[1:]:
            return _Product(a, weights, bias, (node, add))
    return _Product(a, weights, None, (node,))


def _readable(r: Rewriter, value: int) -> bool:
    """Return whether all that read a value can read it where it lies: what can be fused behind a product wants it alone."""
    return _stays(r, value) and all(OPS[reader.op].elementwise is None for reader in r.readers(value))


def _stays(r: Rewriter, value: int) -> bool:
    """Return whether neither a value nor a view of it lies elsewhere: an output, or what is written where it is joined."""
    readers = r.readers(value)
    if not r.inner(value, len(readers)) or any(OPS[reader.op].parts for reader in readers):
        return False
    return all(_stays(r, view) for reader in readers if OPS[reader.op].view for view in reader.outputs)


def _bindable(r: Rewriter, product: _Product, columns: int) -> bool:
    """Return whether each of the results, of so many columns, ends where another may begin on every device."""
    rows = math.prod(r.shape(product.a)[:-1])
    return rows * columns * r.type(product.a).numpy.itemsize % DEFAULT_LIMITS["min-storage-buffer-offset-alignment"] == 0


def _add(
    r: Rewriter, product: _Product, weights: Array, bias: Array | None, sources: Sequence[Node], results: Sequence[int]
) -> None:
    """Add the product of a product's rows with several matrices, and make its parts the results."""
    count, K, N = weights.shape
    a = r.reshaped(product.a, (1, math.prod(r.shape(product.a)[:-1]), K), sources)
    value = r.add("matmul", (a, r.constant(weights, product.weights)), {}, sources)
    if bias is not None:
        value = r.add("add", (value, r.constant(bias.reshape(count, 1, N), product.weights)), {}, sources)
    parts = r.add_all("split", (value,), {"axis": 0, "splits": (1,) * count}, sources)
    for part, result in zip(parts, results, strict=True):
        r.add("reshape", (part,), {"new_shape": r.shape(result)}, sources, result)
