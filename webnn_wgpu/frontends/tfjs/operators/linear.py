"""Matrix products, convolutions, pooling, and the operators fused to them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from webnn_wgpu import MLOperand

from ..call import TfjsCall
from ..layers.activations import ACTIVATIONS
from ..windows import Padding, convolution, depthwise, pooled, transposed, window_padding
from ._registry import Result, lowers
from .normalization import batch_normalized

_FUSED = {"Relu": "relu", "Elu": "elu", "Sigmoid": "sigmoid", "Relu6": "relu6", "Tanh": "tanh", "Linear": "linear"}


MOST_TAPS = 1 << 12
"""The maximum number of elements of a window whose elements are operands of their own."""


def matmul(call: TfjsCall, a: MLOperand, b: MLOperand, transpose_a: bool, transpose_b: bool) -> MLOperand:
    """Return a product of matrices, of which any number may lie in batches."""
    if len(a.shape) < 2 or len(b.shape) < 2:
        call.fail(f"factors of shapes {list(a.shape)} and {list(b.shape)}")
    if len(a.shape) == 2 and len(b.shape) == 2:
        return call.build.gemm(a, b, a_transpose=transpose_a, b_transpose=transpose_b)

    def turned(x: MLOperand) -> MLOperand:
        rank = len(x.shape)
        return call.transpose(x, [*range(rank - 2), rank - 1, rank - 2])

    return call.build.matmul(turned(a) if transpose_a else a, turned(b) if transpose_b else b)


def fused(call: TfjsCall, y: MLOperand, channel: int = -1) -> MLOperand:
    """Return a result with the bias, the normalization and the activation of the node."""
    arguments = list(range(2, len(call.inputs)))
    for name in call.texts("fused_ops"):
        if name == "BiasAdd":
            bias = call.floats(arguments.pop(0) if arguments else call.fail("it has no bias"))
            wide = [1] * len(y.shape)
            wide[channel] = bias.shape[-1] if bias.shape else 1
            y = call.build.add(y, call.reshape(bias, wide) if len(bias.shape) == 1 and channel != -1 else bias)
        elif name == "FusedBatchNorm":
            parts = [call.floats(arguments.pop(0)) for _ in range(min(4, len(arguments)))]
            y = batch_normalized(call, y, parts, call.float("epsilon", 1e-4), channel % len(y.shape))
        elif name == "LeakyRelu":
            y = call.build.leaky_relu(y, alpha=call.float("leakyrelu_alpha", 0.2))
        elif name == "Prelu":
            slope = call.floats(arguments.pop(0) if arguments else call.fail("it has no slope"))
            y = call.build.prelu(y, slope)
        elif name in _FUSED:
            y = ACTIVATIONS[_FUSED[name]](call, y)
        else:
            call.fail(f"{name} fused to it")
    return y


@lowers("MatMul", "BatchMatMul", "BatchMatMulV2", "_FusedMatMul")
def mat_mul(call: TfjsCall) -> Result:
    """Products of matrices."""
    turns = [call.flag(f"transpose_{x}") or call.flag(f"adj_{y}") for x, y in (("a", "x"), ("b", "y"))]
    return fused(call, matmul(call, call.floats(0), call.floats(1), *turns))


@lowers("Einsum")
def einsum(call: TfjsCall) -> Result:
    """Products summed over the dimensions that an equation names."""
    left, _, right = call.text("equation").replace(" ", "").partition("->")
    names = left.split(",")
    if "..." in left or len(names) != len(call.inputs) or any(len(set(n)) != len(n) for n in names):
        call.fail(f"the equation {call.text('equation')!r}")
    operands = [call.floats(i) for i in range(len(names))]
    sizes: dict[str, int] = {}
    for name, operand in zip(names, operands, strict=True):
        if len(name) != len(operand.shape) or any(
            sizes.setdefault(n, d) != d for n, d in zip(name, operand.shape, strict=True)
        ):
            call.fail(f"the equation {call.text('equation')!r} for {list(operand.shape)}")
    current, letters = operands[0], names[0]
    for number, (other, name) in enumerate(zip(operands[1:], names[1:], strict=True), 2):
        later = set("".join(names[number:]) + right)
        current, letters = _product(call, current, letters, other, name, later, sizes)
    spare = [i for i, n in enumerate(letters) if n not in right]
    if spare:
        current, letters = call.build.reduce_sum(current, axes=spare), "".join(n for n in letters if n in right)
    if sorted(letters) != sorted(right):
        call.fail(f"the equation {call.text('equation')!r}")
    return call.transpose(current, [letters.index(n) for n in right])


def _product(
    call: TfjsCall, a: MLOperand, left: str, b: MLOperand, right: str, later: set[str], sizes: dict[str, int]
) -> tuple[MLOperand, str]:
    """Return the product of two factors as a product of matrices in batches, and the letters of its dimensions."""
    for_sum = [n for n in left if n not in right and n not in later]
    if for_sum:
        a, left = call.build.reduce_sum(a, axes=[left.index(n) for n in for_sum]), "".join(n for n in left if n not in for_sum)
    for_sum = [n for n in right if n not in left and n not in later]
    if for_sum:
        b, right = (
            call.build.reduce_sum(b, axes=[right.index(n) for n in for_sum]),
            "".join(n for n in right if n not in for_sum),
        )
    batch = [n for n in left if n in right and n in later]
    inner = [n for n in left if n in right and n not in later]
    rows, columns = [n for n in left if n not in right], [n for n in right if n not in left]

    def matrix(x: MLOperand, own: str, first: list[str], second: list[str]) -> MLOperand:
        x = call.transpose(x, [own.index(n) for n in (*batch, *first, *second)])
        shape = [math.prod(sizes[n] for n in part) for part in (batch, first, second)]
        return call.reshape(x, shape)

    y = call.build.matmul(matrix(a, left, rows, inner), matrix(b, right, inner, columns))
    letters = [*batch, *rows, *columns]
    return call.reshape(y, [sizes[n] for n in letters]), "".join(letters)


def _spatial(call: TfjsCall, name: str, count: int, first: bool, default: int = 1) -> list[int]:
    """Return an attribute's numbers for the spatial dimensions."""
    values = call.integers(name) or [default] * (count + 2)
    if len(values) == count:
        return values
    if len(values) != count + 2:
        call.fail(f"{name} {values}")
    return values[2:] if first else values[1:-1]


def _padding(call: TfjsCall, count: int, first: bool) -> Padding:
    word = call.text("padding", "VALID").upper()
    if word in ("SAME", "VALID"):
        return "same" if word == "SAME" else "valid"
    values = call.integers("explicit_paddings")
    if word != "EXPLICIT" or len(values) != 2 * (count + 2):
        call.fail(f"padding {word!r} with {values}")
    pairs = [(values[i], values[i + 1]) for i in range(0, len(values), 2)]
    return pairs[2:] if first else pairs[1:-1]


def _channels_first(call: TfjsCall) -> bool:
    return call.text("data_format", "NHWC").startswith("NC")


def _last(call: TfjsCall, x: MLOperand) -> MLOperand:
    return call.transpose(x, [0, *range(2, len(x.shape)), 1]) if _channels_first(call) else x


def _restored(call: TfjsCall, y: MLOperand) -> MLOperand:
    rank = len(y.shape)
    return call.transpose(y, [0, rank - 1, *range(1, rank - 1)]) if _channels_first(call) else y


@lowers("Conv1D", "Conv2D", "Conv3D", "_FusedConv2D", "DepthwiseConv2d", "DepthwiseConv2dNative", "FusedDepthwiseConv2dNative")
def conv(call: TfjsCall) -> Result:
    """Convolutions over one to three dimensions, of all channels or of each."""
    count = len(call.tensor(0).shape) - 2
    x, w, first = _last(call, call.floats(0)), call.floats(1), _channels_first(call)
    if call.node.op == "Conv1D":
        strides, dilations = [call.integer("stride", 1)], [call.integer("dilation", 1)]
    else:
        strides, dilations = (_spatial(call, name, count, first) for name in ("strides", "dilations"))
    padding = _padding(call, count, first)
    if "Depthwise" in call.node.op:
        y = depthwise(call, x, w, strides, dilations, padding)
    else:
        groups = x.shape[-1] // max(w.shape[-2], 1) if len(w.shape) > 1 else 1
        y = convolution(call, x, w, strides, dilations, padding, groups)
    return _restored(call, fused(call, y))


@lowers("Conv2DBackpropInput", "Conv2dTranspose")
def conv_transpose(call: TfjsCall) -> Result:
    """Transposed convolutions. Input 0 is the shape of the result."""
    sizes, w, first = call.sizes(0), call.floats(1), _channels_first(call)
    x = _last(call, call.floats(2))
    if len(sizes) != 4:
        call.fail(f"a result of shape {sizes}")
    padding = _padding(call, 2, first)
    if not isinstance(padding, str):
        call.fail("explicit paddings")
    strides = _spatial(call, "strides", 2, first)
    return _restored(call, transposed(call, x, w, strides, sizes[2:] if first else sizes[1:3], padding == "same"))


@lowers("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D")
def pool(call: TfjsCall) -> Result:
    """Maxima or means of windows."""
    count = len(call.tensor(0).shape) - 2
    x, first = _last(call, call.floats(0)), _channels_first(call)
    taps, strides = (_spatial(call, name, count, first) for name in ("ksize", "strides"))
    kind = "max" if call.node.op.startswith("Max") else "average"
    return _restored(call, pooled(call, x, kind, taps, strides, _padding(call, count, first)))


def _windows(
    call: TfjsCall, x: MLOperand, taps: list[int], strides: list[int], dilations: list[int], value: float
) -> tuple[list[MLOperand], list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the elements of windows of pictures by their place in the window, the places, and the padding."""
    padding = _padding(call, 2, False)
    if len(x.shape) != 4 or math.prod(taps) > MOST_TAPS:
        call.fail(f"windows of {taps} over {list(x.shape)}, of which {MOST_TAPS} elements are allowed")
    pads = window_padding(call, x.shape[1:3], taps, strides, dilations, padding)
    if any(map(any, pads)):
        x = call.build.pad(x, [0, pads[0][0], pads[1][0], 0], [0, pads[0][1], pads[1][1], 0], value=value)
    counts = [(d - (t - 1) * e - 1) // s + 1 for d, t, e, s in zip(x.shape[1:3], taps, dilations, strides, strict=True)]
    reach = [(n - 1) * s + 1 for n, s in zip(counts, strides, strict=True)]
    places = [(i, j) for i in range(taps[0]) for j in range(taps[1])]
    parts = [
        call.build.slice(
            x,
            [0, i * dilations[0], j * dilations[1], 0],
            [x.shape[0], *reach, x.shape[3]],
            strides=[1, *strides, 1],
        )
        for i, j in places
    ]
    return parts, places, pads


@lowers("MaxPoolWithArgmax")
def max_pool_with_places(call: TfjsCall) -> Result:
    """Maxima of windows, and where they are."""
    x = call.floats(0)
    n, h, w, c = x.shape
    taps, strides = (_spatial(call, name, 2, False) for name in ("ksize", "strides"))
    parts, places, pads = _windows(call, x, taps, strides, [1, 1], float(np.finfo(np.float32).min))
    best = parts[0]
    rows = np.arange(best.shape[1])[:, None, None] * strides[0] - pads[0][0]
    columns = np.arange(best.shape[2])[None, :, None] * strides[1] - pads[1][0]
    batch = np.arange(n)[:, None, None, None] * (h * w * c if call.flag("include_batch_in_index") else 0)

    def index(place: tuple[int, int]) -> MLOperand:
        at = ((rows + place[0]) * w + columns + place[1]) * c + np.arange(c)
        return call.constant(np.broadcast_to(at + batch, best_shape).astype(np.int32), "int32")

    best_shape = tuple(best.shape)
    where = index(places[0])
    for part, place in zip(parts[1:], places[1:], strict=True):
        better = call.build.greater(part, best)
        best, where = call.build.where(better, part, best), call.build.where(better, index(place), where)
    return [best, where]


@lowers("Dilation2D")
def dilation(call: TfjsCall) -> Result:
    """Maxima of windows plus a filter."""
    x, kernel = call.floats(0), call.floats(1)
    strides, rates = (_spatial(call, name, 2, False) for name in ("strides", "rates"))
    if len(kernel.shape) != 3 or kernel.shape[2] != x.shape[3]:
        call.fail(f"a filter of shape {list(kernel.shape)} for {list(x.shape)}")
    parts, places, _ = _windows(call, x, list(kernel.shape[:2]), strides, rates, float(np.finfo(np.float32).min))
    sums: list[Any] = []
    for part, (i, j) in zip(parts, places, strict=True):
        tap = call.reshape(call.build.slice(kernel, [i, j, 0], [1, 1, kernel.shape[2]]), [kernel.shape[2]])
        sums.append(call.build.add(part, tap))
    return call.fold(call.build.max, sums)
