"""How many arithmetic operations an operator takes by its definition, to hold the time of its kernels against.

A multiplication with an addition counts as two operations, any function (`exp`, `tanh`) as one, comparing as one and moving as
none. What a kernel computes besides, such as addresses, does not count, nor what a faster method saves: a convolution by
Winograd's method takes fewer than are told here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from ..ir.graph import Graph, Node
from ..ir.types import TensorType
from ..kernels.spec import KernelCall
from . import OPS

_PER_ELEMENT: Mapping[str, int] = {
    # Of an element of the input: what is summed up, then what is made of the sums.
    "softmax": 5,
    "x.log_softmax": 5,
    "layerNormalization": 8,
    "instanceNormalization": 8,
    "batchNormalization": 4,
    "x.rms_normalization": 4,
    "x.rotary_embedding": 3,
    "quantizeLinear": 4,
    "dequantizeLinear": 2,
}
_SUMS_AND_OTHERS = ("reduce", "arg", "cumulative", "x.cumulative", "x.top_k", "x.scatter")
"""Operators that take about one operation for each element of their input."""

_SAMPLED = 7
"""Multiply-adds for each element between four others: three for the weights of the directions, four products."""


def operations_of(node: Node, graph: Graph) -> int | None:
    """Return the arithmetic operations of a node; None where nothing is known of its kernel."""
    body = node.attrs.get("body")
    if isinstance(body, Graph):
        each = [operations_of(member, body) for member in body.nodes]
        return None if None in each else sum(n for n in each if n is not None)
    if OPS[node.op].opaque:
        return None
    if OPS[node.op].moves:
        return 0
    types = [graph.type(value) for value in node.operands]
    output = graph.type(node.outputs[0])
    formula = _FORMULAS.get(node.op)
    if formula is not None:
        return formula(node, types, output)
    if node.op in _PER_ELEMENT:
        return _PER_ELEMENT[node.op] * types[0].num_elements
    if node.op.startswith(_SUMS_AND_OTHERS):
        return types[0].num_elements
    return output.num_elements


def touched_bytes(node: Node | None, call: KernelCall, sizes: list[int]) -> int:
    """Return how many bytes a call reads and writes if it reads everything once that it needs.

    Args:
        node: the node it computes.
        call: the call.
        sizes: bytes that are bound of each of its operands.
    """
    written = sum(size for binding, size in zip(call.spec.bindings, sizes, strict=True) if binding.access == "write")
    read = [size for binding, size in zip(call.spec.bindings, sizes, strict=True) if binding.access != "write"]
    if node is not None and node.op == "x.cache_update":
        return 2 * sum(read)  # the rows that change, of a cache that is bound whole
    if node is not None and (OPS[node.op].moves or "gather" in node.op):
        return written + sum(min(size, written) for size in read)  # of tables and of what is cut, only what is taken
    return written * (2 if call.replaces else 1) + sum(read)


def _convolution(node: Node, types: list[TensorType], output: TensorType) -> int:
    # Each element of the output takes one of the filter's products for every channel of its group and place in the window.
    channels = output.shape[1 if node.attrs["input_layout"] == "nchw" else -1]
    return 2 * output.num_elements * (types[1].num_elements // channels)


def _transposed_convolution(node: Node, types: list[TensorType], output: TensorType) -> int:
    channels = types[0].shape[1 if node.attrs["input_layout"] == "nchw" else -1]
    return 2 * types[0].num_elements * (types[1].num_elements // channels)


def _product(node: Node, types: list[TensorType], output: TensorType) -> int:
    length = types[0].shape[0 if node.attrs.get("a_transpose") else -1]
    addends = output.num_elements if node.op == "gemm" and len(types) > 2 else 0
    return 2 * output.num_elements * length + addends


def _attention(node: Node, types: list[TensorType], output: TensorType) -> int:
    query, key = types[:2]
    keys = key.shape[-2]
    rows = query.num_elements // query.shape[-1] * (1 if query.rank == 4 else node.attrs["heads"])
    return 2 * keys * (query.num_elements + output.num_elements) + _PER_ELEMENT["softmax"] * rows * keys


def _pooling(node: Node, types: list[TensorType], output: TensorType) -> int:
    height, width = (1, 2) if node.attrs["layout"] == "nhwc" else (2, 3)
    window = node.attrs["window_dimensions"] or (types[0].shape[height], types[0].shape[width])
    return output.num_elements * math.prod(window)


def _recurrent(node: Node, types: list[TensorType], output: TensorType) -> int:
    source, weight, recurrent = types[:3]
    batch = source.shape[-2]
    steps = node.attrs.get("steps") or 1
    gates = math.prod(weight.shape[:-1])  # directions and the rows of all gates
    return 2 * steps * batch * (weight.num_elements + recurrent.num_elements) + 8 * steps * batch * gates


def _resampled(node: Node, types: list[TensorType], output: TensorType) -> int:
    return 2 * _SAMPLED * output.num_elements if node.attrs.get("mode") not in ("nearest", "nearest-neighbor") else 0


_FORMULAS: Mapping[str, Callable[[Node, list[TensorType], TensorType], int]] = {
    "conv2d": _convolution,
    "convTranspose2d": _transposed_convolution,
    "matmul": _product,
    "gemm": _product,
    "x.matmul_nbits": _product,
    "x.attention": _attention,
    "averagePool2d": _pooling,
    "maxPool2d": _pooling,
    "l2Pool2d": _pooling,
    "lstm": _recurrent,
    "lstmCell": _recurrent,
    "gru": _recurrent,
    "gruCell": _recurrent,
    "resample2d": _resampled,
    "x.grid_sample": _resampled,
}
