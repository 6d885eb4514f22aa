"""Weights that were quantized to 8 bits or rounded to float16, which the device stores in as many bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..ir.graph import Array, Graph, Node, frozen_array
from ..ir.types import TensorType
from ..ops import gru, lstm
from ..ops.conv2d import CONV2D
from ..ops.conv_transpose2d import CONV_TRANSPOSE2D
from ..ops.gemm import GEMM
from ..ops.matmul import MATMUL

_CONVOLUTIONS = (CONV2D.name, CONV_TRANSPOSE2D.name)

_NETWORKS = {op.name: op.precision.weights for op in (*gru.OPS, *lstm.OPS) if op.precision is not None}
"""Positions of the weights of recurrent networks. Their kernels read float16, but no bytes."""

_LOW, _HIGH = int(np.iinfo(np.int8).min), int(np.iinfo(np.int8).max)

_LEAST = 1024
"""The minimum number of elements of an array that is worth bytes: a kernel of its own reads them."""

_FIRST = 4096
"""The number of elements that are examined first. Weights that nothing has rounded differ from narrow numbers there already."""

_BLOCK = 1 << 20
"""The number of elements that are examined at a time, so that the copies of a check stay small beside large weights."""


def keep_weights_narrow(graph: Graph) -> Graph:
    """Store constant weights as int8 or float16 if that holds their numbers, and no other node reads them.

    The weights are right factors of products, and those of recurrent networks, which stay float16 at the narrowest. Bytes hold
    any whole numbers in a range of 256. Kernels subtract the zero point of weights that were uint8.
    """
    readers: dict[int, list[Node]] = {}
    for node in graph.nodes:
        for value in node.operands:
            readers.setdefault(value, []).append(node)
    outputs = set(graph.outputs.values())
    narrow: dict[int, tuple[Array, int]] = {}
    for value, array in graph.constants.items():
        if value not in readers or value in outputs:
            continue
        nodes = readers[value]
        factor = all(_multiplies_by(graph, node, value) for node in nodes)
        if factor and (zero_point := byte_zero_point(array)) is not None:
            narrow[value] = frozen_array((array + np.float32(zero_point)).astype(np.int8)), zero_point
        elif (factor or all(_has_weights(graph, node, value) for node in nodes)) and holds_halves(array):
            narrow[value] = frozen_array(array.astype(np.float16)), 0
    if not narrow:
        return graph
    values = dict(graph.values)
    for value, (array, zero_point) in narrow.items():
        values[value] = replace(values[value], type=TensorType(array.dtype.name, array.shape), zero_point=zero_point)
    arrays = {value: array for value, (array, _) in narrow.items()}
    return graph.with_nodes(graph.nodes, values=values, constants={**graph.constants, **arrays})


def byte_zero_point(array: Array) -> int | None:
    """Return the zero point with which bytes hold a float32 array: element = byte - zero point. None if they cannot.

    The array must have many elements, all of them whole numbers, in a range of 256 that includes 0.
    """
    if array.dtype != np.float32 or array.size < _LEAST:
        return None
    low, high = 0.0, 0.0
    for part in _parts(array):
        low, high = min(low, float(part.min())), max(high, float(part.max()))
        if high - low > _HIGH - _LOW or not np.array_equal(part, np.rint(part)):
            return None
    return 0 if low >= _LOW and high <= _HIGH else _LOW - int(low)


def holds_halves(array: Array) -> bool:
    """Return whether a float32 array has many elements, all of them finite numbers of float16."""
    return array.dtype == np.float32 and array.size >= _LEAST and all(map(_half, _parts(array)))


def _parts(array: Array) -> Iterator[Array]:
    """Yield the elements of an array in parts, the first of them small."""
    flat = array.reshape(-1)
    yield flat[:_FIRST]
    for start in range(_FIRST, flat.size, _BLOCK):
        yield flat[start : start + _BLOCK]


def _half(part: Array) -> bool:
    with np.errstate(over="ignore"):
        rounded = part.astype(np.float16)
    return np.array_equal(part, rounded) and bool(np.isfinite(part).all())


def _multiplies_by(graph: Graph, node: Node, value: int) -> bool:
    """Return whether a node is a product of float32, and a value is its right factor."""
    if node.op not in (MATMUL.name, GEMM.name, *_CONVOLUTIONS) or node.operands.count(value) != 1 or node.operands[1] != value:
        return False
    if graph.type(node.operands[0]).data_type != "float32":
        return False
    return node.op not in _CONVOLUTIONS or bool(node.attrs["input_layout"] == "nhwc")


def _has_weights(graph: Graph, node: Node, value: int) -> bool:
    """Return whether a node is a recurrent network of float32, and a value is one of its weights alone."""
    positions = _NETWORKS.get(node.op, ())
    uses = [i for i, operand in enumerate(node.inputs) if operand == value]
    return graph.type(node.operands[0]).data_type == "float32" and bool(uses) and set(uses) <= set(positions)
