"""Products of the same rows with parameters that follow each other in memory, such as those of queries, keys and values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..costs import Target
from ..ir.graph import Node
from ..ir.types import TensorType
from ..ops._quads import fits_binding
from ..ops.elementwise import ADD
from ..ops.matmul import MATMUL
from ..ops.strided import SLICE
from .joined_products import add_joined, bindable, readable
from .rewriting import Rewriter
from .views import run_of


@dataclass(frozen=True)
class _Run:
    """Elements that follow each other in a tensor of one dimension.

    Attributes:
        value: the tensor.
        start: the number of the first element.
        nodes: the nodes that select them, the first one first.
    """

    value: int
    start: int
    nodes: tuple[Node, ...] = field(default=(), compare=False)

    def after(self, size: int) -> _Run:
        """Return the run behind one of so many elements."""
        return replace(self, start=self.start + size)


@dataclass(frozen=True)
class _RunProduct:
    """A matrix product with a matrix that is a part of a tensor, and the sum with a vector that is a part of one.

    Attributes:
        a: the rows, [..., K].
        shape: the shape of the matrix, [K, N].
        weights: the place of the matrix.
        bias: the place of the vector of N elements, if one is added.
        nodes: the product, and the sum.
    """

    a: int
    shape: tuple[int, ...]
    weights: _Run
    bias: _Run | None
    nodes: tuple[Node, ...]

    @property
    def result(self) -> int:
        """The value that the product computes."""
        return self.nodes[-1].outputs[0]

    def next(self) -> tuple[object, ...]:
        """Return the key of a product whose factor and vector follow those of this one."""
        K, N = self.shape
        return self.a, self.shape, self.weights.after(K * N), self.bias.after(N) if self.bias else None

    def key(self) -> tuple[object, ...]:
        """Return the rows, the shape of the factor, and the places of factor and vector."""
        return self.a, self.shape, self.weights, self.bias


def merge_consecutive(r: Rewriter, node: Node, gone: set[int], target: Target) -> bool:
    """Replace products of the same rows with consecutive parts of a tensor by one. `gone` gets the removed nodes."""
    first = _run_product(r, node)
    if first is None:
        return False
    found = {p.key(): p for reader in r.readers(first.a) if (p := _run_product(r, reader)) and readable(r, p.result)}
    ends = {p.next() for p in found.values()}
    head = next((p for key, p in found.items() if key not in ends and first in _chain(found, p)), None)
    products = _chain(found, head) if head else []
    K, N = first.shape
    rows, data_type = math.prod(r.shape(first.a)[:-1]), r.type(first.a).data_type
    sizes = [TensorType(data_type, (len(products) * n * N,)) for n in (K, rows)]
    if len(products) < 2 or not all(fits_binding(type_, target.caps) for type_ in sizes) or not bindable(r, first.a, N):
        return False
    made = [node for product in products for node in product.nodes]
    runs = [run for product in products for run in (product.weights, product.bias) if run]
    nodes = [*(node for run in runs for node in run.nodes), *made]

    def part(run: _Run, *shape: int) -> int:
        size = {"starts": [run.start], "sizes": [math.prod(shape)]}
        return r.reshaped(r.add(SLICE.name, (run.value,), size, nodes), shape, nodes)

    count, start = len(products), products[0]
    bias = None if start.bias is None else part(start.bias, count, 1, N)
    add_joined(r, first.a, part(start.weights, count, K, N), bias, made, [product.result for product in products])
    gone.update(node.id for node in made)
    return True


def _chain(found: Mapping[tuple[object, ...], _RunProduct], first: _RunProduct) -> list[_RunProduct]:
    """Return a product and those that follow it."""
    chain = [first]
    while (behind := found.get(chain[-1].next())) is not None:
        chain.append(behind)
    return chain


def _run_product(r: Rewriter, node: Node) -> _RunProduct | None:
    """Return a node as a product with a part of a tensor, and the sum with such a part that alone reads it."""
    if node.op != MATMUL.name:
        return None
    a, matrix = node.operands
    weights = _run(r, matrix) if len(r.shape(matrix)) == 2 and len(r.shape(a)) > 1 else None
    if weights is None:
        return None
    result, shape = node.outputs[0], r.shape(matrix)
    add = r.readers(result)[0] if r.inner(result) else None
    if add is not None and add.op == ADD.name and r.shape(add.outputs[0]) == r.shape(result):
        vector = next((value for value in add.operands if value != result), result)
        bias = _run(r, vector) if r.shape(vector) == shape[1:] else None
        if bias is not None:
            return _RunProduct(a, shape, weights, bias, (node, add))
    return _RunProduct(a, shape, weights, None, (node,))


def _run(r: Rewriter, value: int) -> _Run | None:
    """Return the place of a value in a tensor of one dimension that it is a part of. None if it is no such part."""
    view = run_of(r, value)
    return None if view is None or len(r.shape(view.value)) != 1 else _Run(view.value, view.offset, view.nodes)
