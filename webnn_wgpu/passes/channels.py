"""Operators that multiply whole channels by constant factors and add constant addends to them."""

from __future__ import annotations

import numpy as np

from ..core.data_types import Array, cast_number
from ..ir.graph import Graph, Node
from ..ops import OPS
from .matching import Match
from .patterns import Apply, Operator, Pattern, Variable
from .rewriting import Rewriter
from .rules import Rule, apply_rules

_PRODUCTS = ("conv2d", "convTranspose2d", "gemm", "matmul")
_ELEMENTWISE = frozenset(op for op, definition in OPS.items() if definition.elementwise is not None)

x, mean, variance = Variable("x"), Variable("mean", constant=True), Variable("variance", constant=True)
scale, shift = (Variable(name, constant=True, optional=True) for name in ("scale", "shift"))

factor = (scale / Operator("sqrt")(variance + Variable("epsilon"))).named("factor")
addend = (shift - mean * factor).named("addend")


def normalization_of(pattern: Pattern) -> Apply:
    """Return the pattern of a batch normalization by constants."""
    return Operator("batchNormalization")(pattern, mean, variance, scale, shift)


def factor_and_addend(m: Match, normalization: Node) -> tuple[Array, Array]:
    """Return the factor and the addend of each channel for a batch normalization, in float64."""
    arrays = {v: m.r.constants[m[v]].astype(np.float64) for v in (mean, variance, scale, shift) if v in m}
    with np.errstate(all="ignore"):
        factors = 1 / np.sqrt(arrays[variance] + cast_number(normalization.attrs["epsilon"], "float32"))
        factors = factors * arrays[scale] if scale in arrays else factors
        addends = -arrays[mean] * factors
        return factors, addends + arrays[shift] if shift in arrays else addends


def per_channel(r: Rewriter, value: int, axis: int, shape: tuple[int, ...]) -> Array | None:
    """Return a constant that varies along the channels alone, in float64. None if it varies along another dimension.

    Args:
        r: the graph.
        value: the constant.
        axis: the dimension of channels.
        shape: the shape that the constant broadcasts to.
    """
    array = r.constants[value]
    if array.ndim > len(shape):
        return None
    array = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
    if any(size not in (1, shape[d] if d == axis else 1) for d, size in enumerate(array.shape)):
        return None
    return np.broadcast_to(array.reshape(-1).astype(np.float64), (shape[axis],))


# ------------------------------------------------------------------------------------------------- batch normalization

normalized = normalization_of(x).of("float32")


def _is_fused(m: Match) -> bool:
    """Return whether a producer or consumer of a batch normalization can fuse element-wise operators."""
    before, value = m.r.made_for_one(m[x], *_PRODUCTS, *_ELEMENTWISE), m.value(normalized)
    return before is not None or (m.r.inner(value) and m.r.readers(value)[0].op in _ELEMENTWISE)


def _decompose(m: Match, node: Node) -> bool:
    r, value = m.r, node.outputs[0]
    shape = [size if d == node.attrs["axis"] else 1 for d, size in enumerate(r.shape(value))]
    with np.errstate(all="ignore"):
        factors, addends = (array.astype(np.float32).reshape(shape) for array in factor_and_addend(m, node))
    if not np.all(np.isfinite(factors)) or not np.all(np.isfinite(addends)):
        return False
    scaled = r.add("mul", (m[x], r.constant(factors, value)), {}, (node,))
    r.add("add", (scaled, r.constant(addends, value)), {}, (node,), value)
    return True


RULES = (
    Rule(
        name="batch normalization",
        pattern=normalized,
        result=x * factor + addend,
        where={"it is fused with what is next to it": _is_fused},
        build=_decompose,
    ),
)


def decompose_batch_normalization(graph: Graph) -> Graph:
    """Replace a batch normalization by constants with a product and a sum, if a neighbor can fuse them."""
    return apply_rules(graph, *RULES)
