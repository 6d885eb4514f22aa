"""Layer and RMS normalizations that only matrix products read: the products normalize the rows themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..core.caps import Caps
from ..core.mapped import release_pages
from ..costs import ProductSize, Target
from ..ir.graph import Array, Graph, Node
from ..ops._normalization import ROW_NORMALIZATIONS, normalizes_last
from ..ops._quads import fits_binding
from ..ops.elementwise import ADD
from ..ops.gemm import GEMM
from ..ops.matmul import MATMUL
from ..ops.normalized_product import LONGEST, NORMALIZED_MATMUL
from ..ops.views import RESHAPE
from .narrow_weights import byte_zero_point, holds_halves
from .rewriting import Rewriter, given, rewrite

_BLOCK = 1 << 20
"""The number of weights that are computed at a time in float64."""


@dataclass(frozen=True)
class _Product:
    """A matrix product of normalized rows with a constant, and the constant that is added to it.

    Attributes:
        views: the views of the rows, the first one first.
        node: the product.
        sum: the sum of the product and the constant, if that is a node of its own.
        rows: the rows, in the form in which the product reads them.
        weights: a constant whose matrices are [K, N], or [N, K] if `transposed`.
        transposed: whether the matrices of the weights are transposed.
        bias: the added constant, which varies along the columns and from matrix to matrix. None for 0.
    """

    views: tuple[Node, ...]
    node: Node
    sum: Node | None
    rows: int
    weights: int
    transposed: bool
    bias: int | None

    @property
    def result(self) -> int:
        """The value that it computes."""
        return (self.sum or self.node).outputs[0]


def normalize_in_products(graph: Graph, target: Target) -> Graph:
    """Let products normalize the rows of their left factor, where that takes less time than a kernel that does it before.

    All readers of the normalization are products with constants. The build multiplies scale and bias into these.
    """
    return rewrite(graph, partial(_normalize, set(), target), at=(MATMUL.name, GEMM.name, ADD.name))


def _normalize(gone: set[int], target: Target, r: Rewriter, node: Node) -> bool:
    """Replace all products of normalized rows at the first of them. `gone` gets their nodes."""
    if node.id in gone:
        return True
    made = None if node.op == ADD.name else _source(r, node.operands[0], *ROW_NORMALIZATIONS)
    if made is None or not normalizes_last(made, len(r.shape(made.outputs[0]))):
        return False
    parameters = [None if value is None else r.constants.get(value) for value in made.inputs[1:]]
    constant = all((array is None) == (value is None) for array, value in zip(parameters, made.inputs[1:], strict=True))
    if not constant or r.type(made.operands[0]).data_type != "float32":
        return False
    products = _products(r, made.outputs[0], ())
    if not products or not _pays(r, products, target):
        return False
    scale, bias = (*parameters, None)[:2]
    folded = [_folded(r, product, scale, bias, centered=ROW_NORMALIZATIONS[made.op]) for product in products]
    if not all(np.isfinite(array).all() for arrays in folded for array in arrays if array is not None):
        return False
    for product, (weights, addend) in zip(products, folded, strict=True):
        _add(r, made, product, weights, addend)
        gone.update(each.id for each in (product.node, product.sum) if each)
    return True


def _source(r: Rewriter, value: int, *ops: str) -> Node | None:
    """Return the node that made rows, behind views that keep the rows."""
    while (view := r.made(value, RESHAPE.name)) is not None and r.shape(view.operands[0])[-1:] == r.shape(value)[-1:]:
        value = view.operands[0]
    return r.made(value, *ops)


def _products(r: Rewriter, rows: int, views: tuple[Node, ...]) -> list[_Product]:
    """Return the products that read rows. An empty list if there are other readers."""
    readers = r.readers(rows)
    if not r.inner(rows, len(readers)):
        return []
    found: list[_Product] = []
    for reader in readers:
        if reader.op == RESHAPE.name and r.shape(reader.outputs[0])[-1:] == r.shape(rows)[-1:]:
            behind = _products(r, reader.outputs[0], (*views, reader))
        else:
            product = _product(r, rows, reader, views)
            behind = [] if product is None else [product]
        if not behind:
            return []
        found += behind
    return found


def _product(r: Rewriter, rows: int, node: Node, views: tuple[Node, ...]) -> _Product | None:
    """Return a reader of rows as a product of these with a constant that it alone reads, or None."""
    if node.op not in (MATMUL.name, GEMM.name) or node.operands[0] != rows:
        return None
    weights, addend = node.operands[1], given(node, 2)
    array = r.constants.get(weights)
    if array is None or len(r.readers(weights)) > 1 or array.shape[-2] > LONGEST:
        return None
    # Kernels read these as bytes or float16, which factors and differences are not.
    if byte_zero_point(array) is not None or holds_halves(array):
        return None
    if node.op == GEMM.name:
        attrs, columns = node.attrs, r.shape(node.outputs[0])[-1]
        if attrs["a_transpose"] or attrs["alpha"] != 1 or attrs["beta"] != 1:
            return None
        if addend is not None and (addend not in r.constants or r.shape(addend) not in ((columns,), (1, columns))):
            return None
        return _Product(views, node, None, rows, weights, attrs["b_transpose"], addend)
    result = node.outputs[0]
    add = r.readers(result)[0] if r.inner(result) else None
    if add is not None and add.op == ADD.name and r.shape(add.outputs[0]) == r.shape(result):
        bias = next((value for value in add.operands if value != result), result)
        shape = r.shape(bias)
        per_column = (1,) * (array.ndim - len(shape)) + shape
        if bias in r.constants and len(per_column) == array.ndim and per_column[-2:] == (1, array.shape[-1]):
            return _Product(views, node, add, rows, weights, False, bias)
    return _Product(views, node, None, rows, weights, False, None)


def _pays(r: Rewriter, products: Sequence[_Product], target: Target) -> bool:
    """Return whether the products together take less time, and their tensors fit a binding."""
    fit = all(_fits(r, product, target.caps) for product in products)
    return fit and target.costs.products.normalizes([_size(r, product) for product in products])


def _fits(r: Rewriter, product: _Product, caps: Caps) -> bool:
    return all(fits_binding(r.type(value), caps) for value in (product.rows, product.weights, product.result))


def _size(r: Rewriter, product: _Product) -> ProductSize:
    *batch, rows, columns = r.shape(product.result)
    K = r.shape(product.rows)[-1]
    if math.prod(r.shape(product.weights)[:-2]) == 1:
        return ProductSize(math.prod(batch) * rows, columns, K)
    return ProductSize(rows, columns, K, math.prod(batch))


def _folded(
    r: Rewriter, product: _Product, scale: Array | None, bias: Array | None, *, centered: bool
) -> tuple[Array, Array | None]:
    """Return the weights and the addend of a product of rows that are normalized without scale and bias.

    The columns of the weights add up to 0 if the rows are centered: the same number in all elements of a row then adds up to
    nothing, and no mean need be subtracted.
    """
    array = r.constants[product.weights]
    weights = array.swapaxes(-1, -2) if product.transposed else array
    *batch, K, N = weights.shape
    folded = np.empty(weights.shape, np.float32)
    sums = np.zeros((*batch, 1, N))
    step = max(1, _BLOCK // (math.prod(batch) * K))
    with np.errstate(all="ignore"):
        for first in range(0, N, step):
            part: Any = weights[..., first : first + step].astype(np.float64)
            if bias is not None:
                sums[..., 0, first : first + step] = bias.astype(np.float64) @ part
            if scale is not None:
                part *= scale.astype(np.float64)[:, None]
            folded[..., first : first + step] = part - part.mean(axis=-2, keepdims=True) if centered else part
        release_pages(array)
        own = None if product.bias is None else r.constants[product.bias]
        if own is None and bias is None:
            return folded, None
        addend = np.asarray(sums if own is None else sums + own, np.float32)
    return folded, addend if batch else addend.reshape(N)


def _add(r: Rewriter, made: Node, product: _Product, weights: Array, addend: Array | None) -> None:
    """Add the product of the rows that a normalization reads, and the sum with an addend."""
    sources = (made, *product.views, product.node)
    rows = r.reshaped(made.operands[0], r.shape(product.rows), sources)
    attrs = {"epsilon": made.attrs["epsilon"], "centered": ROW_NORMALIZATIONS[made.op]}
    operands = rows, r.constant(weights, product.weights)
    if addend is None:
        r.add(NORMALIZED_MATMUL.name, operands, attrs, sources, product.result)
        return
    value = r.add(NORMALIZED_MATMUL.name, operands, attrs, sources)
    summed = (made, product.sum or product.node)
    r.add(ADD.name, (value, r.constant(addend, product.weights)), {}, summed, product.result)
