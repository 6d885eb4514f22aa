"""Reshapes that move behind element-wise operators and normalizations, which producers can then compute.

A convolution over one dimension is one over two, with reshapes around it that add and remove a dimension of size 1.
"""

from __future__ import annotations

import math

from ..costs import Target
from ..ir.graph import Graph, Node
from ..ops import OPS
from ..ops._normalization import ROW_NORMALIZATIONS, normalizes_last
from ..ops.views import RESHAPE
from .rewriting import Rewriter, merged, rewrite

_ELEMENT_WISE = tuple(op.name for op in OPS.values() if op.elementwise is not None)
_ANCHORS = tuple(op.name for op in OPS.values() if op.epilogue is not None)

_BEHIND_ANCHOR = "behind an anchor"
"""The key of the results that were moved before a reshape."""


def move_reshapes(graph: Graph, target: Target) -> Graph:
    """Compute operators before a reshape that changes dimensions of size 1 alone, if an anchor is in front."""
    if not target.costs.passes.moves_reshapes:
        return graph
    return rewrite(graph, _elementwise_before, _normalized_before, at=(*_ELEMENT_WISE, *ROW_NORMALIZATIONS))


def _elementwise_before(r: Rewriter, node: Node) -> bool:
    if node.op not in _ELEMENT_WISE:
        return False
    view = next((made for value in node.inputs if (made := r.made_for_one(value, RESHAPE.name)) is not None), None)
    if view is None or not _is_movable(r, view) or r.shape(node.outputs[0]) != r.shape(view.outputs[0]):
        return False
    shape, inputs = r.shape(view.operands[0]), list[int | None]()
    for value in node.inputs:
        if value == view.outputs[0]:
            inputs.append(view.operands[0])
        elif value is not None and r.type(value).num_elements == math.prod(shape):
            inputs.append(r.reshaped(value, shape, (node,)))
        elif value is None or len(r.shape(value)) <= _common_dims(r, view):
            inputs.append(value)
        else:
            return False
    return _replace(r, node, view, r.add(node.op, inputs, node.attrs, (view, node)))


def _normalized_before(r: Rewriter, node: Node) -> bool:
    view = r.made(node.inputs[0], RESHAPE.name)
    if view is None or not _is_movable(r, view) or not _common_dims(r, view):
        return False
    if not normalizes_last(node, len(r.shape(node.outputs[0]))):
        return False
    shape = r.shape(view.operands[0])
    inputs = (view.operands[0], *node.inputs[1:])
    return _replace(r, node, view, r.add(node.op, inputs, merged(node, axes=(len(shape) - 1,)), (view, node)))


def _replace(r: Rewriter, node: Node, view: Node, result: int) -> bool:
    """Add the reshape of a result to the shape that a node's result has."""
    r.remembered[_BEHIND_ANCHOR, result] = result
    r.add(RESHAPE.name, (result,), {"new_shape": r.shape(node.outputs[0])}, (view,), node.outputs[0])
    return True


def _is_movable(r: Rewriter, view: Node) -> bool:
    """Return whether a reshape changes dimensions of size 1 alone, behind an anchor or operators that an anchor can compute."""
    before, after = r.shape(view.operands[0]), r.shape(view.outputs[0])
    return [n for n in before if n > 1] == [n for n in after if n > 1] and _is_behind_anchor(r, view.operands[0])


def _is_behind_anchor(r: Rewriter, value: int) -> bool:
    """Return whether a value is the result of an anchor, or of element-wise operators that follow one and have one reader."""
    waiting = [value]
    while waiting:
        source = waiting.pop()
        if r.made(source, *_ANCHORS) is not None or (_BEHIND_ANCHOR, source) in r.remembered:
            return True
        node = r.made_for_one(source, *_ELEMENT_WISE)
        waiting += [operand for operand in node.operands if r.shape(operand) == r.shape(value)] if node else []
    return False


def _common_dims(r: Rewriter, view: Node) -> int:
    """Return the number of last dimensions that a reshape keeps."""
    before, after = r.shape(view.operands[0])[::-1], r.shape(view.outputs[0])[::-1]
    return next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
