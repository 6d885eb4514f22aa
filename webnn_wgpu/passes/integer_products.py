"""Products of few rows of quantized numbers, whose weights are read as the bytes that they were."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ..costs import Target
from ..ir.graph import Graph, Node
from ..ops.integer_product import INTEGER_PRODUCT, STEP
from ..ops.matmul import MATMUL
from ..ops.quantization import QUANTIZE_CENTERED, QUANTIZE_DEQUANTIZE, QUANTIZE_LINEAR
from .integers import sums_are_exact
from .rewriting import Rewriter, rewrite

_RANGE = np.iinfo(np.int8)


def multiply_integers(graph: Graph, target: Target) -> Graph:
    """Multiply few rows of quantized numbers with constant weights of 8 bits as integers, where that takes less time."""
    most_rows = target.costs.products.integer_rows
    return rewrite(graph, partial(_product, most_rows), at=(MATMUL.name,)) if most_rows else graph


def _product(most_rows: int, r: Rewriter, node: Node) -> bool:
    left, right = node.operands
    shape, weights = r.shape(left), r.constants.get(right)
    if weights is None or weights.ndim != 2 or shape[-1] % STEP or math.prod(shape[:-1]) > most_rows:
        return False
    centered = r.made(left, QUANTIZE_CENTERED.name, QUANTIZE_DEQUANTIZE.name)
    if centered is None or not sums_are_exact(r, node) or weights.min() < _RANGE.min or weights.max() > _RANGE.max:
        return False
    quantized, zero = _quantized(r, centered)
    r.add(INTEGER_PRODUCT.name, (quantized, right, zero), {}, (centered, node), node.outputs[0])
    return True


def _quantized(r: Rewriter, centered: Node) -> tuple[int, int]:
    """Return the integers and the zero point that a node subtracts from them. All products that read them share the result."""
    key = QUANTIZE_LINEAR.name, centered.outputs[0]
    x = centered.operands[0]
    ones = (1,) * len(r.shape(x))
    if centered.op == QUANTIZE_CENTERED.name:
        scale, zero = (r.reshaped(value, ones, (centered,)) for value in centered.operands[1:])
    else:
        data_type = centered.attrs["data_type"]
        scale = r.constant(np.full(ones, centered.attrs["scale"], np.float32), x)
        zero = r.constant(np.full(ones, centered.attrs["zero_point"], data_type), x, data_type)
    if key not in r.remembered:
        r.remembered[key] = r.add(QUANTIZE_LINEAR.name, (x, scale, zero), {}, (centered,))
    return r.remembered[key], zero
