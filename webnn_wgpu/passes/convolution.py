"""What stands around a convolution goes into it: factors and addends of channels behind it, zeros around its input."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.data_types import Array
from ..ir.graph import Graph, Node
from .channels import factor_and_addend
from .rewriting import Rewriter, given, merged, rewrite

_CONVOLUTIONS = ("conv2d", "convTranspose2d")

_PADDED = {"conv2d": 0.0, "l2Pool2d": 0.0, "maxPool2d": -np.inf}
"""What the operators that pad take the elements around their input for."""


def fold_into_convolutions(graph: Graph) -> Graph:
    """Fold batch normalization, factors and addends of channels that follow a convolution into filter and bias."""
    return rewrite(graph, _fold)


def _fold(r: Rewriter, node: Node) -> bool:
    for value, other in ((node.operands[0], -1),) if node.op in ("batchNormalization", "sub", "div") else _sides(node):
        made = r.made_for_one(value, *_CONVOLUTIONS)
        # float16 weights would be rounded once more than the results are.
        if made is None or r.type(value).data_type != "float32" or r.shape(node.outputs[0]) != r.shape(value):
            continue
        axis = made.attrs["input_layout"].index("c")
        found = factor_and_addend(r, node, node.operands[other], axis)
        if found is not None:
            return _folded(r, made, node, *found)
    return False


def _sides(node: Node) -> tuple[tuple[int, int], ...]:
    return ((node.operands[0], 1), (node.operands[1], 0)) if node.op in ("mul", "add") else ()


def _folded(r: Rewriter, made: Node, node: Node, factor: Array | None, addend: Array | None) -> bool:
    weights, bias = made.operands[1], given(made, 2)
    if bias is not None and bias not in r.constants:
        return False
    total: Any = np.float64(0) if bias is None else r.constants[bias].astype(np.float64)
    with np.errstate(all="ignore"):
        total = total if factor is None else total * factor
        total = (total if addend is None else total + addend).astype(np.float32)
    if factor is not None:
        array = r.constants.get(weights)
        axis = made.attrs["filter_layout"].index("o")
        # Filters of transposed convolutions number the channels of a group only.
        if array is None or array.shape[axis] != factor.size:
            return False
        shape = [factor.size if d == axis else 1 for d in range(4)]
        with np.errstate(all="ignore"):
            scaled: Any = (array * factor.reshape(shape)).astype(np.float32)
        # A weight must stay what it is: no overflow, and nothing that a device would take for zero.
        ordinary = np.isfinite(scaled) & ((np.abs(scaled) >= np.finfo(np.float32).tiny) | (array == 0))
        if not np.all(ordinary):
            return False
        weights = r.constant(scaled, weights)
    if not np.all(np.isfinite(total)):
        return False
    if total.shape or addend is not None:
        like = bias if bias is not None else weights
        channels = r.shape(node.outputs[0])[int(made.attrs["input_layout"].index("c"))]
        bias = r.constant(np.broadcast_to(total, (channels,)), like)
    r.add(made.op, (made.operands[0], weights, bias), merged(made), (made, node), node.outputs[0])
    return True


def fold_padding(graph: Graph) -> Graph:
    """Let convolutions and pools pad their input themselves."""
    return rewrite(graph, _pad)


def _pad(r: Rewriter, node: Node) -> bool:
    if node.op not in _PADDED:
        return False
    pad = r.made_for_one(node.operands[0], "pad")
    if pad is None or pad.attrs["mode"] != "constant" or pad.attrs["value"] != _PADDED[node.op]:
        return False
    layout: str = node.attrs["input_layout" if node.op == "conv2d" else "layout"]
    before: tuple[int, ...] = pad.attrs["beginning_padding"]
    after: tuple[int, ...] = pad.attrs["ending_padding"]
    h, w = layout.index("h"), layout.index("w")
    if any(before[d] or after[d] for d in range(4) if d not in (h, w)):
        return False
    added = (before[h], after[h], before[w], after[w])
    if node.op == "maxPool2d":
        high, wide = node.attrs["window_dimensions"]
        if max(before[h], after[h]) >= high or max(before[w], after[w]) >= wide:
            # A window of nothing but padding has no -infinity in it.
            return False
    padding = tuple(own + more for own, more in zip(node.attrs["padding"], added, strict=True))
    r.add(node.op, (pad.operands[0], *node.inputs[1:]), merged(node, padding=padding), (pad, node), node.outputs[0])
    return True
