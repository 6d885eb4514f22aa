"""Merges consecutive movements: transposes, reshapes, splits before concatenations, slices of concatenations.

Transposes that preserve the order in memory become views. The pass drops expansions that operators can broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from ..ir.graph import Graph, Node
from ..ops import OPS
from ..ops.concat import CONCAT
from ..ops.interfaces.movement import Steps
from ..ops.quantization_parameters import QUANTIZATION_PARAMETERS
from ..ops.strided import EXPAND, SLICE, SPLIT, TRANSPOSE
from ..ops.views import IDENTITY, RESHAPE
from .cleanup import drop_identities
from .rewriting import Rewriter, rewrite
from .views import PERMUTATIONS, moved_by, view_of

_Cut: TypeAlias = tuple[int, int, int]
"""A dimension, and the first of so many of its indices."""


def merge_movement(graph: Graph) -> Graph:
    """Return the graph without the movements that other movements, views or broadcasts make unnecessary.

    The pass merges transposes, reshapes, splits and slices with concatenations, and turns transposes of size 1 into views.
    """
    merged = rewrite(
        rewrite(graph, _moved_once, _in_any_order, _concatenated_splits, _slices_of_concatenation, _expanded),
        _partly_read_splits,
        at=(SPLIT.name,),
    )
    # Movements that cancel each other become identities.
    return graph if merged is graph else drop_identities(merged)


def _moved_once(r: Rewriter, node: Node) -> bool:
    """Replace several movements by one transpose or none, with a reshape before it if that is enough."""
    if node.op not in PERMUTATIONS:
        return False
    output, shape = node.outputs[0], r.shape(node.outputs[0])
    view = moved_by(r, view_of(r, node.operands[0], *PERMUTATIONS), node, output)
    cost = (sum(each.op == TRANSPOSE.name for each in view.nodes), len(view.nodes))
    if len(view.steps) <= 1:
        if cost == (0, 1):
            return False
        r.add(RESHAPE.name, (view.value,), {"new_shape": shape}, view.nodes, output)
        return True
    if cost[0] == 1 and not all(r.inner(each.outputs[0]) for each in view.nodes if each.outputs[0] != output):
        # The transpose would stay for its other consumers, beside a new one.
        return False
    behind = max(map(len, view.dims)) > 1
    dims = [(each,) for each in view.steps] if behind else view.dims
    before, permutation = _before(r.shape(view.value), dims)
    if cost <= (1, (before != r.shape(view.value)) + 1 + behind):
        return False
    value = r.reshaped(view.value, before, view.nodes)
    value = r.add(TRANSPOSE.name, (value,), {"permutation": permutation}, view.nodes, None if behind else output)
    if behind:
        r.add(RESHAPE.name, (value,), {"new_shape": shape}, view.nodes, output)
    return True


def _before(shape: tuple[int, ...], dims: Sequence[Steps]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of memory, the given one if that will do, and the permutation of it that has these dimensions."""
    large = sorted((d for d, steps in enumerate(dims) if steps), key=lambda d: -dims[d][0][1])
    sizes = [dims[d][0][0] for d in large]
    if len(shape) != len(dims) or [size for size in shape if size != 1] != sizes:
        left = iter(sizes)
        shape = tuple(next(left) if steps else 1 for steps in dims)
    places = {d: place for d, place in zip(large, (p for p, size in enumerate(shape) if size != 1), strict=True)}
    ones = (place for place, size in enumerate(shape) if size == 1)
    return shape, tuple(places[d] if steps else next(ones) for d, steps in enumerate(dims))


def _in_any_order(r: Rewriter, node: Node) -> bool:
    """Compute the range of the elements before their movement instead of behind it."""
    if node.op != QUANTIZATION_PARAMETERS.name:
        return False
    source = view_of(r, node.operands[0], *PERMUTATIONS)
    if not source.nodes or len(r.shape(source.value)) != len(source.dims):
        return False
    r.add_all(node.op, (source.value,), node.attrs, (*source.nodes, node), node.outputs)
    return True


def _concatenated_splits(r: Rewriter, node: Node) -> bool:
    """Replace all parts of a split in a concatenation along the same dimension by the source of the split."""
    if node.op != CONCAT.name:
        return False
    joined, sources = list(node.operands), [node]
    for split in dict.fromkeys(made for value in joined if (made := r.made(value, SPLIT.name)) is not None):
        parts, first = list(split.outputs), joined.index(next(v for v in joined if v in split.outputs))
        if split.attrs["axis"] == node.attrs["axis"] and joined[first : first + len(parts)] == parts:
            joined[first : first + len(parts)] = split.operands
            sources.insert(0, split)
    if len(sources) == 1:
        return False
    r.add(CONCAT.name, joined, node.attrs, sources, node.outputs[0])
    return True


def _partly_read_splits(r: Rewriter, node: Node) -> bool:
    """Replace a split by slices for its used parts, if some parts are unused."""
    read = [value for value in node.outputs if not r.inner(value, readers=0)] if node.op == SPLIT.name else []
    if not read or len(read) == len(node.outputs):
        return False
    shape, axis = r.shape(node.operands[0]), int(node.attrs["axis"])
    starts = dict(zip(node.outputs, accumulate((0, *node.attrs["splits"])), strict=False))
    for value in read:
        place = tuple(starts[value] if d == axis else 0 for d in range(len(shape)))
        r.add(SLICE.name, node.operands, {"starts": place, "sizes": r.shape(value)}, (node,), value)
    return True


def _slices_of_concatenation(r: Rewriter, node: Node) -> bool:
    """Take the operands of a concatenation that a slice consists of, or join slices of its operands that are such operands."""
    cut = _cut_of(r, node)
    if cut is None or not _cuts(r, node.operands[0], *cut):
        return False
    value = node.operands[0]
    others = [_cut_of(r, reader) for reader in r.readers(value)]
    # Otherwise the concatenation would still be needed for the other consumers.
    if not all(other is not None and _cuts(r, value, *other) for other in others) or not r.inner(value, len(others)):
        return False
    part, gone = _cut(r, value, *cut, node)
    r.add(IDENTITY.name, (part,), {}, (*gone, node), node.outputs[0])
    return True


def _expanded(r: Rewriter, node: Node) -> bool:
    """Let element-wise operators broadcast the sources of expansions."""
    made = [r.made(value, EXPAND.name) for value in node.operands]
    if OPS[node.op].elementwise is None or not any(made) or len(node.operands) < max(2, len(node.inputs)):
        return False
    inputs = [value if expand is None else expand.operands[0] for value, expand in zip(node.operands, made, strict=True)]
    if np.broadcast_shapes(*map(r.shape, inputs)) != r.shape(node.outputs[0]):
        return False
    expands = [expand for expand in made if expand is not None]
    r.add(node.op, inputs, node.attrs, (*expands, node), node.outputs[0])
    return True


def _cut_of(r: Rewriter, node: Node) -> _Cut | None:
    """Return the range of a slice along a single dimension without steps. None for other nodes."""
    if node.op != SLICE.name or set(node.attrs["strides"]) != {1}:
        return None
    shape, sizes = r.shape(node.operands[0]), node.attrs["sizes"]
    axes = [d for d in range(len(shape)) if sizes[d] != shape[d]]
    return (axes[0], node.attrs["starts"][axes[0]], sizes[axes[0]]) if len(axes) == 1 else None


def _operand(r: Rewriter, concat: Node, first: int, size: int) -> int | None:
    """Return the operand of a concatenation that is these indices of its dimension."""
    axis = int(concat.attrs["axis"])
    starts = accumulate((r.shape(value)[axis] for value in concat.operands), initial=0)
    found = (v for v, start in zip(concat.operands, starts, strict=False) if (start, r.shape(v)[axis]) == (first, size))
    return next(found, None)


def _cuts(r: Rewriter, value: int, axis: int, first: int, size: int) -> bool:
    """Return whether a part of a value consists of operands of the concatenations that compute it."""
    made = r.made(value, CONCAT.name, RESHAPE.name)
    if made is None:
        return False
    if made.op == RESHAPE.name:
        inner = r.shape(made.operands[0])
        last = axis == len(r.shape(value)) - 1 and inner[-1:] == r.shape(value)[-1:]
        return last and r.inner(made.operands[0]) and _cuts(r, made.operands[0], len(inner) - 1, first, size)
    if made.attrs["axis"] == axis:
        return _operand(r, made, first, size) is not None
    # A repeated operand would be sliced twice.
    once = len(set(made.operands)) == len(made.operands)
    return once and all(r.inner(operand) and _cuts(r, operand, axis, first, size) for operand in made.operands)


def _cut(r: Rewriter, value: int, axis: int, first: int, size: int, source: Node) -> tuple[int, tuple[Node, ...]]:
    """Return that part, and the nodes that it replaces."""
    made = r.made(value, CONCAT.name, RESHAPE.name)
    assert made is not None
    if made.op == RESHAPE.name:
        part, gone = _cut(r, made.operands[0], len(r.shape(made.operands[0])) - 1, first, size, source)
        return r.add(RESHAPE.name, (part,), {"new_shape": (*r.shape(value)[:-1], size)}, (*gone, made, source)), ()
    if made.attrs["axis"] == axis:
        operand = _operand(r, made, first, size)
        assert operand is not None
        return operand, (made,)
    parts = [_cut(r, operand, axis, first, size, source) for operand in made.operands]
    sources = (*(node for _, gone in parts for node in gone), made, source)
    return r.add(CONCAT.name, [part for part, _ in parts], made.attrs, sources), ()
