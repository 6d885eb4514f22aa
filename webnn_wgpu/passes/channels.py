"""What is done to whole channels by constants: each is multiplied by a factor, and an addend is added to it."""

from __future__ import annotations

import numpy as np

from ..core.data_types import Array, cast_number
from ..ir.graph import Graph, Node
from ..ops import OPS
from .rewriting import Rewriter, given, rewrite

_PRODUCTS = ("conv2d", "convTranspose2d", "gemm", "matmul")
_ELEMENTWISE = frozenset(op for op, definition in OPS.items() if definition.elementwise is not None)


def decompose_batch_normalization(graph: Graph) -> Graph:
    """Multiply and add instead of a batch normalization by constants, where that can be fused with what is next to it."""
    return rewrite(graph, _decompose)


def _decompose(r: Rewriter, node: Node) -> bool:
    if node.op != "batchNormalization" or r.type(node.outputs[0]).data_type != "float32":
        return False
    value = node.outputs[0]
    found = factor_and_addend(r, node, -1, node.attrs["axis"]) if _is_fused(r, node) else None
    if found is None:
        return False
    shape = [size if d == node.attrs["axis"] else 1 for d, size in enumerate(r.shape(value))]
    with np.errstate(all="ignore"):
        factor, addend = (np.asarray(array, np.float32) for array in found)
    if not np.all(np.isfinite(factor)) or not np.all(np.isfinite(addend)):
        return False
    scaled = r.add("mul", (node.operands[0], r.constant(factor.reshape(shape), value)), {}, (node,))
    r.add("add", (scaled, r.constant(addend.reshape(shape), value)), {}, (node,), value)
    return True


def _is_fused(r: Rewriter, node: Node) -> bool:
    """Return whether what is next to a node is fused with operators that work element by element."""
    before, value = r.made_for_one(node.operands[0], *_PRODUCTS, *_ELEMENTWISE), node.outputs[0]
    return before is not None or (r.inner(value) and r.readers(value)[0].op in _ELEMENTWISE)


def factor_and_addend(r: Rewriter, node: Node, other: int, axis: int) -> tuple[Array | None, Array | None] | None:
    """Return what a node multiplies every channel by and then adds to it, in float64; None for what is not constant.

    Args:
        r: the graph.
        node: a batch normalization, product, quotient, sum or difference.
        other: the operand that is a factor or an addend, where it is no batch normalization.
        axis: the dimension of channels.
    """
    if node.op == "batchNormalization":
        if node.attrs["axis"] != axis or any(v not in r.constants for v in node.operands[1:]):
            return None
        mean, variance, scale, bias = (
            None if (v := given(node, i)) is None else r.constants[v].astype(np.float64) for i in range(1, 5)
        )
        assert mean is not None
        assert variance is not None
        with np.errstate(all="ignore"):
            factor = 1 / np.sqrt(variance + cast_number(node.attrs["epsilon"], "float32"))
            factor = factor if scale is None else factor * scale
            addend = -mean * factor
            return factor, addend if bias is None else addend + bias
    array = _per_channel(r, other, axis, r.shape(node.outputs[0]))
    if array is None:
        return None
    with np.errstate(all="ignore"):
        match node.op:
            case "mul":
                return array, None
            case "div":
                return 1 / array, None
            case "add":
                return None, array
            case _:
                return None, -array


def _per_channel(r: Rewriter, value: int, axis: int, shape: tuple[int, ...]) -> Array | None:
    """Return a constant that varies along the channels alone, in float64."""
    array = r.constants.get(value)
    if array is None or array.ndim > len(shape):
        return None
    array = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    if any(size != 1 for d, size in enumerate(array.shape) if d != axis):
        return None
    return np.broadcast_to(array.reshape(-1).astype(np.float64), (shape[axis],))
