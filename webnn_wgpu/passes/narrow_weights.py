"""Weights of quantized products, which the device stores as the bytes that they were."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..ir.graph import Array, Graph, Node, frozen_array
from ..ir.types import TensorType
from ..ops.conv2d import CONV2D
from ..ops.gemm import GEMM
from ..ops.matmul import MATMUL

_RANGE = np.iinfo(np.int8)

_LEAST = 1024
"""The minimum number of elements of an array that is worth bytes: a kernel of its own reads them."""

_FIRST = 4096
"""The number of elements that are examined first. Weights that no quantization made differ from whole numbers there already."""

_BLOCK = 1 << 20
"""The number of elements that are examined at a time, so that the copies of a check stay small beside large weights."""


def keep_weights_narrow(graph: Graph) -> Graph:
    """Store constant factors of products as int8 if they are whole numbers that it holds, and no other node reads them."""
    readers: dict[int, list[Node]] = {}
    for node in graph.nodes:
        for value in node.operands:
            readers.setdefault(value, []).append(node)
    outputs = set(graph.outputs.values())
    narrow = {
        value: frozen_array(array.astype(np.int8))
        for value, array in graph.constants.items()
        if value in readers
        and value not in outputs
        and all(_multiplies_by(graph, node, value) for node in readers[value])
        and holds_bytes(array)
    }
    if not narrow:
        return graph
    values = dict(graph.values)
    for value, array in narrow.items():
        values[value] = replace(values[value], type=TensorType("int8", array.shape))
    return graph.with_nodes(graph.nodes, values=values, constants={**graph.constants, **narrow})


def holds_bytes(array: Array) -> bool:
    """Return whether a float32 array has many elements, all of them whole numbers from -128 to 127."""
    if array.dtype != np.float32 or array.size < _LEAST:
        return False
    flat = array.reshape(-1)
    return _whole(flat[:_FIRST]) and all(_whole(flat[start : start + _BLOCK]) for start in range(_FIRST, flat.size, _BLOCK))


def _whole(part: Array) -> bool:
    return not part.size or bool(part.min() >= _RANGE.min and part.max() <= _RANGE.max and np.array_equal(part, np.rint(part)))


def _multiplies_by(graph: Graph, node: Node, value: int) -> bool:
    """Return whether a node is a product of float32, and a value is its right factor."""
    if node.op not in (MATMUL.name, GEMM.name, CONV2D.name) or node.operands.count(value) != 1 or node.operands[1] != value:
        return False
    if graph.type(node.operands[0]).data_type != "float32":
        return False
    if node.op != CONV2D.name:
        return True
    # The kernel of one input channel per group reads few weights, each as often as there are pixels.
    layout: str = node.attrs["filter_layout"]
    return bool(node.attrs["input_layout"] == "nhwc" and graph.type(value).shape[layout.index("i")] > 1)
