"""Judging an operator's results: which elements are further from the reference than its accuracy allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from webnn_wgpu.core.data_types import FLOATS
from webnn_wgpu.ir.graph import Array, Graph, Node
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops.fused import members_of
from webnn_wgpu.ops.interfaces.bounds import SMALLEST
from webnn_wgpu.reference.interpreter import evaluate

from .bounds import bounds, sign_unsure


@dataclass(frozen=True)
class Judgement:
    """The expected value of one result with its bounds.

    Attributes:
        expected: the reference's result.
        allowed: the bound of each element.
        wrong: whether each element is beyond its bound.
    """

    expected: Array
    allowed: Array
    wrong: Array


def judge(
    graph: Graph, node: Node, operands: Sequence[Array | None], found: Sequence[Array | None], *, patches: bool = False
) -> list[Judgement] | None:
    """Compare a node's results with those of the reference for the same operands.

    Args:
        graph: the graph of the node.
        node: the node, which may be a fused one.
        operands: the operands. None for optional ones that are absent.
        found: the results. None for results without consumers, which are judged to be right.
        patches: whether a convolution uses Winograd's transforms, see `bounds`.

    Returns:
        One judgement for each result, or None if the operands have no promised accuracy.
    """
    if (apart := _judged_apart(node, operands, found, patches=patches)) is not None:
        return apart
    with np.errstate(all="ignore"):
        expected = evaluate(graph, node, operands)
        allowed = bounds(graph, node, operands, expected, patches=patches)
        if allowed is None:
            return None
        # Devices may flush subnormal operands to zero.
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


def _judged_apart(
    node: Node, operands: Sequence[Array | None], found: Sequence[Array | None], *, patches: bool
) -> list[Judgement] | None:
    """Judge a normalization of stored rows by these rows, and the rows alone. The errors of the rows would widen its bounds.

    None if the node has no such normalization, or if the rows have no promised accuracy.
    """
    body, normalization = node.attrs.get("body"), members_of(node, OPS).normalization
    if not isinstance(body, Graph) or normalization is None or len(found) == 1 or found[0] is None:
        return None
    rows = body.outputs["0"]
    alone = replace(body, nodes=body.nodes[:-1], outputs={"0": rows})
    of_rows = replace(node, outputs=node.outputs[:1], attrs=MappingProxyType({"body": alone}))
    values = {inner: operands[int(name)] for name, inner in body.inputs.items()} | {rows: found[0]}
    judged = judge(body, of_rows, operands, found[:1], patches=patches)
    given = [None if value is None else values[value] for value in normalization.inputs]
    normalized = judge(body, normalization, given, found[1:])
    return [*judged, *normalized] if judged and normalized else None


def differs(actual: Array, expected: Array, bound: Array) -> Array:
    """Return whether each element differs from the expected one by more than its bound.

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
    """Replace numbers by infinities from the hypothetical successor of the largest number on."""
    limits = np.finfo(dtype)
    return np.where(np.isinf(array), np.copysign(float(limits.max) * (1 + float(limits.eps) / 2), array), array)


def _flushed(array: Array) -> Array:
    if array.dtype != np.float32:
        return array
    tiny = (np.abs(array) < SMALLEST) & (array != 0)
    return np.where(tiny, np.copysign(np.float32(0), array), array) if np.any(tiny) else array


def _bits(array: Array) -> Array:
    return np.asarray(array, order="C").reshape(-1).view(f"u{array.dtype.itemsize}").reshape(array.shape)
