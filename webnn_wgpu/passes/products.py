"""Matrix products of the same rows become one: those of queries, keys and values with their weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby

import numpy as np

from ..core.mapped import release_pages
from ..costs import PassCosts, Target
from ..ir.graph import Array, Graph, Node
from ..ops.elementwise import ADD
from ..ops.gemm import GEMM
from ..ops.matmul import MATMUL
from ..ops.strided import SLICE, SPLIT
from ..ops.views import RESHAPE
from .joined_products import add_joined, bindable, readable
from .parameter_products import merge_consecutive
from .rewriting import Rewriter, given, rewrite
from .views import view_of


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
        """The value that the product computes."""
        return self.nodes[-1].outputs[0]


def merge_products(graph: Graph, target: Target) -> Graph:
    """Compute products of the same rows as one product with consecutive results.

    Their right factors are constants of one shape, or follow each other in memory, as parameters that are trained do.
    """
    gone: set[int] = set()
    costs = target.costs.passes

    def merge(r: Rewriter, node: Node) -> bool:
        if node.id in gone or _merge_siblings(r, node, gone, costs) or _part_columns(r, node, gone, costs):
            return True
        return merge_consecutive(r, node, gone, target)

    return rewrite(rewrite(graph, _keep_rows), merge)


def _keep_rows(r: Rewriter, node: Node) -> bool:
    """Multiply rows of any rank directly, if reshapes flatten the rows for a matrix product and restore them behind it."""
    made = r.made_for_one(node.operands[0], GEMM.name) if node.op == RESHAPE.name else None
    if made is None or made.attrs["a_transpose"] or (made.attrs["alpha"], made.attrs["beta"]) != (1, 1):
        return False
    (a, weights, *_), bias, shape = made.operands, given(made, 2), r.shape(node.outputs[0])
    columns, array = r.shape(made.outputs[0])[1], r.constants.get(weights)
    view = r.made(a, RESHAPE.name)
    if array is None or len(shape) < 3 or shape[-1] != columns or view is None:
        return False
    if bias is not None and r.shape(bias) not in ((columns,), (1, columns)):
        return False
    nodes = (view, made, node)
    source = r.reshaped(a, (*shape[:-1], r.shape(a)[1]), nodes)
    matrix = r.constant(array.T, weights) if made.attrs["b_transpose"] else weights
    if bias is None:
        r.add(MATMUL.name, (source, matrix), {}, nodes, node.outputs[0])
        return True
    value = r.add(MATMUL.name, (source, matrix), {}, nodes)
    r.add(ADD.name, (value, r.reshaped(bias, (columns,), nodes)), {}, nodes, node.outputs[0])
    return True


def _merge_siblings(r: Rewriter, node: Node, gone: set[int], costs: PassCosts) -> bool:
    """Replace all products of the same rows by one product. `gone` gets the removed nodes."""
    first = _product(r, node)
    if first is None:
        return False
    found = [product for reader in r.readers(first.a) if (product := _product(r, reader)) is not None]
    kind = (first.a, r.type(first.weights))
    products = [p for p in found if (p.a, r.type(p.weights)) == kind and readable(r, p.result)]
    joined_bytes = len(products) * r.type(first.weights).size_bytes
    if len(products) < 2 or first not in products or joined_bytes > costs.most_joined_bytes:
        return False
    if not bindable(r, first.a, r.shape(first.weights)[1]):
        return False
    weights = np.stack([r.constants[product.weights] for product in products])
    for product in products:
        release_pages(r.constants[product.weights])
    none = np.zeros(weights.shape[-1], weights.dtype)
    vectors = [none if product.bias is None else r.constants[product.bias].reshape(-1) for product in products]
    nodes = [node for product in products for node in product.nodes]
    bias = np.stack(vectors) if any(product.bias is not None for product in products) else None
    _add_constants(r, first, weights, bias, nodes, [product.result for product in products])
    gone.update(node.id for node in nodes)
    return True


@dataclass(frozen=True)
class _ColumnPart:
    """Columns of a product.

    Attributes:
        value: the value of the columns.
        columns: the numbers of the columns.
        nodes: the node that selects the columns, and the views before it, the last one first.
    """

    value: int
    columns: Array
    nodes: tuple[Node, ...]

    @property
    def whole(self) -> bool:
        """Whether the columns are neighbors, in order."""
        return bool(self.columns[-1] - self.columns[0] + 1 == self.columns.size and np.all(np.diff(self.columns) == 1))


def _part_columns(r: Rewriter, node: Node, gone: set[int], costs: PassCosts) -> bool:
    """Replace a product whose columns are split by one product for each part. `gone` gets the nodes that split it."""
    if node.op not in (SPLIT.name, SLICE.name):
        return False
    value = view_of(r, node.operands[0]).value
    made = r.made(value, ADD.name, MATMUL.name)
    matmul = (
        None if made is None else next((m for v in (value, *made.operands) if (m := r.made(v, MATMUL.name)) is not None), None)
    )
    product = None if matmul is None else _product(r, matmul)
    if product is None or product.result != value:
        return False
    rows, columns = math.prod(r.shape(product.a)[:-1]), r.shape(product.weights)[1]
    # The parts of a single row are contiguous in any case.
    parts = _parts(r, value, rows, columns) if rows > 1 else []
    if node not in [part.nodes[0] for part in parts]:
        return False
    groups: list[list[_ColumnPart]] = []
    for _, equal in groupby(sorted(parts, key=lambda part: part.columns[0]), lambda part: part.columns.size):
        group = list(equal)
        joint = all(readable(r, part.value) for part in group) and bindable(r, product.a, group[0].columns.size)
        groups += [group] if joint else [[part] for part in group]
    copied = not all(part.whole for part in parts) and r.type(product.weights).size_bytes > costs.most_joined_bytes
    if copied or len(groups) > costs.most_products or sum(part.columns.size for part in parts) > columns:
        return False
    weights, bias = r.constants[product.weights], None if product.bias is None else r.constants[product.bias].reshape(-1)
    nodes = [*product.nodes, *dict.fromkeys(each for part in parts for each in part.nodes[::-1])]
    for group in groups:
        _add_parts(r, product, weights, bias, nodes, group)
    gone.update(part.nodes[0].id for part in parts)
    return True


def _parts(r: Rewriter, value: int, rows: int, columns: int) -> list[_ColumnPart]:
    """Return the parts that the consumers of a product select. An empty list if a consumer does something else."""
    found: list[_ColumnPart] = []
    readers, shape = r.readers(value), r.shape(value)
    outer = next((d for d in range(len(shape)) if math.prod(shape[:d]) == rows and math.prod(shape[d:]) == columns), None)
    if outer is None or not r.inner(value, len(readers)):
        return []
    numbers = np.arange(columns).reshape(shape[outer:])
    for reader in readers:
        if reader.op == RESHAPE.name:
            behind = _parts(r, reader.outputs[0], rows, columns)
            cuts = [replace(part, nodes=(*part.nodes, reader)) for part in behind]
        elif reader.op == SPLIT.name and reader.attrs["axis"] >= outer:
            sizes: tuple[int, ...] = reader.attrs["splits"]
            arrays = np.split(numbers, list(accumulate(sizes))[:-1], reader.attrs["axis"] - outer)
            cuts = [_ColumnPart(o, array.reshape(-1), (reader,)) for o, array in zip(reader.outputs, arrays, strict=True)]
        elif reader.op == SLICE.name and r.shape(reader.outputs[0])[:outer] == shape[:outer]:
            starts, sizes, strides = (reader.attrs[name][outer:] for name in ("starts", "sizes", "strides"))
            place = tuple(slice(at, at + n, step) for at, n, step in zip(starts, sizes, strides, strict=True))
            cuts = [_ColumnPart(reader.outputs[0], numbers[place].reshape(-1), (reader,))]
        else:
            cuts = []
        if not cuts:
            return []
        found += cuts
    return found


def _add_parts(
    r: Rewriter, product: _Product, weights: Array, bias: Array | None, sources: Sequence[Node], parts: Sequence[_ColumnPart]
) -> None:
    """Add products with these columns."""
    columns = np.concatenate([part.columns for part in parts])
    first, count, size = int(columns[0]), len(parts), parts[0].columns.size
    # A view of the weights, which are packed for the device from where they are.
    whole = replace(parts[0], columns=columns).whole
    matrix = weights[:, first : first + columns.size] if whole else weights[:, columns]
    vector = None if bias is None else bias[columns]
    if count > 1:
        stacked = None if vector is None else vector.reshape(count, size)
        _add_constants(
            r, product, np.moveaxis(matrix.reshape(-1, count, size), 1, 0), stacked, sources, [part.value for part in parts]
        )
        return
    value = r.add(MATMUL.name, (product.a, r.constant(matrix, product.weights)), {}, sources)
    if vector is not None:
        value = r.add(ADD.name, (value, r.constant(vector, product.weights)), {}, sources)
    r.add(RESHAPE.name, (value,), {"new_shape": r.shape(parts[0].value)}, sources, parts[0].value)


def _product(r: Rewriter, node: Node) -> _Product | None:
    """Return a node as a product with a constant, and the sum with a constant vector that alone reads it."""
    if node.op != MATMUL.name:
        return None
    a, weights = node.operands
    if weights not in r.constants or len(r.shape(weights)) != 2:
        return None
    result = node.outputs[0]
    add = r.readers(result)[0] if r.inner(result) else None
    if add is not None and add.op == ADD.name and r.shape(add.outputs[0]) == r.shape(result):
        bias = next((value for value in add.operands if value != result), result)
        if bias in r.constants and r.shape(bias)[-1:] == (r.constants[bias].size,) == r.shape(weights)[1:]:
            return _Product(a, weights, bias, (node, add))
    return _Product(a, weights, None, (node,))


def _add_constants(
    r: Rewriter, product: _Product, weights: Array, bias: Array | None, sources: Sequence[Node], results: Sequence[int]
) -> None:
    """Add the product of a product's rows with several constant matrices, and make its parts the results."""
    count, _, N = weights.shape
    matrices = r.constant(weights, product.weights)
    vectors = None if bias is None else r.constant(bias.reshape(count, 1, N), product.weights)
    add_joined(r, product.a, matrices, vectors, sources, results)
