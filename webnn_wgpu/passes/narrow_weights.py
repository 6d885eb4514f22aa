"""Weights of products that were quantized or rounded to float16, which the device stores in that type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..ir.graph import Array, Graph, Node, frozen_array
from ..ir.types import TensorType
from ..ops.conv2d import CONV2D
from ..ops.conv_transpose2d import CONV_TRANSPOSE2D
from ..ops.gemm import GEMM
from ..ops.matmul import MATMUL

_CONVOLUTIONS = (CONV2D.name, CONV_TRANSPOSE2D.name)

_RANGE = np.iinfo(np.int8)

_LEAST = 1024
"""The minimum number of elements of an array that is worth bytes: a kernel of its own reads them."""

_FIRST = 4096
"""The number of elements that are examined first. Weights that nothing has rounded differ from narrow numbers there already."""

_BLOCK = 1 << 20
"""The number of elements that are examined at a time, so that the copies of a check stay small beside large weights."""


def keep_weights_narrow(graph: Graph) -> Graph:
    """Store constant factors of products as int8 or float16 if that holds their numbers, and no other node reads them."""
    readers: dict[int, list[Node]] = {}
    for node in graph.nodes:
        for value in node.operands:
            readers.setdefault(value, []).append(node)
    outputs = set(graph.outputs.values())
    narrow: dict[int, Array] = {}
    for value, array in graph.constants.items():
        if value in readers and value not in outputs and all(_multiplies_by(graph, node, value) for node in readers[value]):
            data_type = np.int8 if holds_bytes(array) else np.float16 if holds_halves(array) else None
            if data_type is not None:
                narrow[value] = frozen_array(array.astype(data_type))
    if not narrow:
        return graph
    values = dict(graph.values)
    for value, array in narrow.items():
        values[value] = replace(values[value], type=TensorType(array.dtype.name, array.shape))
    return graph.with_nodes(graph.nodes, values=values, constants={**graph.constants, **narrow})


def holds_bytes(array: Array) -> bool:
    """Return whether a float32 array has many elements, all of them whole numbers from -128 to 127."""
    return _holds(array, _whole)


def holds_halves(array: Array) -> bool:
    """Return whether a float32 array has many elements, all of them finite numbers of float16."""
    return _holds(array, _half)


def _holds(array: Array, holds: Callable[[Array], bool]) -> bool:
    if array.dtype != np.float32 or array.size < _LEAST:
        return False
    flat = array.reshape(-1)
    return holds(flat[:_FIRST]) and all(holds(flat[start : start + _BLOCK]) for start in range(_FIRST, flat.size, _BLOCK))


def _half(part: Array) -> bool:
    with np.errstate(over="ignore"):
        rounded = part.astype(np.float16)
    return np.array_equal(part, rounded) and bool(np.isfinite(part).all())


def _whole(part: Array) -> bool:
    return not part.size or bool(part.min() >= _RANGE.min and part.max() <= _RANGE.max and np.array_equal(part, np.rint(part)))


def _multiplies_by(graph: Graph, node: Node, value: int) -> bool:
    """Return whether a node is a product of float32, and a value is its right factor."""
    if node.op not in (MATMUL.name, GEMM.name, *_CONVOLUTIONS) or node.operands.count(value) != 1 or node.operands[1] != value:
        return False
    if graph.type(node.operands[0]).data_type != "float32":
        return False
    if node.op not in _CONVOLUTIONS:
        return True
    # The kernel of one input channel per group reads few weights, each as often as there are pixels.
    layout: str = node.attrs["filter_layout"]
    return bool(node.attrs["input_layout"] == "nhwc" and graph.type(value).shape[layout.index("i")] > 1)
