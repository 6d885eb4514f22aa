"""Judging an operator's results: which elements are further from the reference than its accuracy allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from webnn_wgpu.core.data_types import FLOATS
from webnn_wgpu.ir.graph import Array, Graph, Node
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops.interfaces.bounds import SMALLEST
from webnn_wgpu.reference.interpreter import evaluate

from .bounds import bounds, sign_unsure


@dataclass(frozen=True)
class Judgement:
    """What one result should be.

    Attributes:
        expected: the reference's result.
        allowed: how far each element may be off.
        wrong: which elements are further off.
    """

    expected: Array
    allowed: Array
    wrong: Array


def judge(
    graph: Graph, node: Node, operands: Sequence[Array | None], found: Sequence[Array | None], *, patches: bool = False
) -> list[Judgement] | None:
    """Compare a node's results with what the reference makes of the same operands.

    Args:
        graph: the graph of the node.
        node: the node, which may be a fused one.
        operands: what it was given; None for optional ones that are absent.
        found: its results; None for those that nobody needs, which are judged to be right.
        patches: whether a convolution goes by Winograd's transforms; see `bounds`.

    Returns:
        One judgement for each result; None where no accuracy is promised for these operands.
    """
    with np.errstate(all="ignore"):
        expected = evaluate(graph, node, operands)
        allowed = bounds(graph, node, operands, expected, patches=patches)
        if allowed is None:
            return None
        # What devices may do to operands that are subnormal.
        flushed = [None if a is None else _flushed(a) for a in operands]
        same = all(a is b for a, b in zip(operands, flushed, strict=True))
        others = expected if same else evaluate(graph, node, flushed)
        unsure = sign_unsure(graph, node, operands, expected)
    judged: list[Judgement] = []
    for result, wanted, bound, other in zip(found, expected, allowed, others, strict=True):
        actual = wanted if result is None else result
        wrong = differs(actual, wanted, bound)
        if unsure is not None:
            wrong &= ~(unsure & (np.isnan(actual) != np.isnan(wanted)))
        if OPS[node.op].moves:
            wrong = _bits(actual) != _bits(wanted)
        elif other is not wanted:
            wrong &= differs(actual, other, bound)
        judged.append(Judgement(wanted, bound, wrong))
    return judged


def differs(actual: Array, expected: Array, bound: Array) -> Array:
    """Return which elements are further from what is expected than their bounds.

    The sign of zero and the payload of NaN do not count, nor do float32 numbers so small that a device may flush them. An
    overflow may be missed by the bound.
    """
    if str(expected.dtype) not in FLOATS:
        if not np.any(bound):
            return np.asarray(actual != expected)
        return np.asarray(np.abs(actual.astype(np.float64) - expected.astype(np.float64)) > bound)
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    equal = (a == e) | (np.isnan(a) & np.isnan(e))
    if expected.dtype == np.float32:
        low, high = np.minimum(np.abs(a), np.abs(e)), np.maximum(np.abs(a), np.abs(e))
        equal |= (low < SMALLEST) & (high <= SMALLEST)
    with np.errstate(invalid="ignore"):
        # False where either is NaN.
        near = np.abs(_finite(a, expected.dtype) - _finite(e, expected.dtype)) <= bound
    return np.asarray(~(equal | near))


def _finite(array: Array, dtype: np.dtype[Any]) -> Array:
    """Put infinities where the next number after the largest would be."""
    limits = np.finfo(dtype)
    return np.where(np.isinf(array), np.copysign(float(limits.max) * (1 + float(limits.eps) / 2), array), array)


def _flushed(array: Array) -> Array:
    if array.dtype != np.float32:
        return array
    tiny = (np.abs(array) < SMALLEST) & (array != 0)
    return np.where(tiny, np.copysign(np.float32(0), array), array) if np.any(tiny) else array


def _bits(array: Array) -> Array:
    return np.asarray(array, order="C").reshape(-1).view(f"u{array.dtype.itemsize}").reshape(array.shape)
