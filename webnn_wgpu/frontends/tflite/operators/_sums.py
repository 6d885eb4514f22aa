"""Integer sums of products of quantized tensors, rescaled and rounded once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from webnn_wgpu import MLOperand

from ...common.exact import Bilinear, exact_sums
from ...common.held import Array
from ..call import LIMITS, RANGES, TfliteCall
from ..tensors import PACKED, TfliteTensor

EIGHT = ("int8", "uint8")
NARROW = (*EIGHT, "int4", "uint4", "int2", "uint2")
BITS = {"int8": 8, "uint8": 8, "int4": 4, "uint4": 4, "int2": 2, "uint2": 2}


def sums_integers(call: TfliteCall, x: int, w: int) -> bool:
    """Return whether a product of two inputs is summed in integers: activations of 8 bits, weights of at most 8."""
    a, b, y = call.tensor(x), call.tensor(w), call.output()
    narrow = a.is_quantized and a.dtype.name in EIGHT and b.is_quantized and b.dtype.name in NARROW
    whole = a.quantization is not None and a.quantization.is_whole
    blocks = b.quantization is not None and b.quantization.block_scales >= 0
    return narrow and whole and not blocks and y.quantization is not None and y.dtype is not None and y.dtype.name in RANGES


def counts_steps(call: TfliteCall, *inputs: int) -> bool:
    """Return whether inputs and the output are quantized to 8 bits with one scale each."""
    record = call.output()
    if record.quantization is None or not record.quantization.is_whole or record.dtype is None:
        return False
    tensors = [call.tensor(i) for i in inputs]
    narrow = record.dtype.name in EIGHT and all(t.is_quantized and t.dtype.name in EIGHT for t in tensors)
    return narrow and all(t.quantization is not None and t.quantization.is_whole for t in tensors)


def counted(call: TfliteCall, index: int) -> MLOperand:
    """Return an input's steps from its zero point as float32."""
    return centered(call, call.tensor(index))[0]


def in_steps(call: TfliteCall, *inputs: int) -> float:
    """Return the product of the scales of inputs in steps of the output."""
    record = call.output()
    assert record.quantization is not None
    scale = np.float32(1)
    for index in inputs:
        quantization = call.tensor(index).quantization
        assert quantization is not None
        scale = scale * np.float32(quantization.scale)
    return float(scale / np.float32(record.quantization.scale))


def twice_rounded(counts: Array, multiplier: float) -> Array:
    """Return whole numbers times a multiplier, rounded to a fraction and then to whole ones as LiteRT's kernels do.

    Args:
        counts: int64 numbers of at most 16 bits.
        multiplier: a positive number below 2^15.
    """
    fraction, exponent = np.frexp(multiplier)
    left, right = max(int(exponent), 0), max(-int(exponent), 0)
    products = (counts << left) * round(float(fraction) * 2**31)
    nudged = products + np.where(products < 0, 1 - 2**30, 2**30)
    high = np.sign(nudged) * (np.abs(nudged) >> 31)
    mask = (1 << right) - 1
    return (high >> right) + ((high & mask) > (mask >> 1) + (high < 0))


def centered(call: TfliteCall, tensor: TfliteTensor, operand: MLOperand | None = None) -> tuple[MLOperand, int]:
    """Return a quantized tensor minus its zero point as float32, and the number of bits of its magnitude.

    Args:
        call: the node.
        tensor: the tensor.
        operand: its integers, if they are not the tensor's own operand.
    """
    quantization = tensor.quantization
    assert quantization is not None
    bits = BITS[tensor.dtype.name]
    points = quantization.zero_points
    if operand is None and tensor.dtype in PACKED and tensor.array is not None:
        alike = (points == points[0]).all()
        shape = (1,) * tensor.rank if alike else call.along(tensor, quantization)
        zero = call.stored((points[:1] if alike else points).reshape(shape).astype(tensor.dtype))
        ones = call.constant(np.ones(shape), "float32")
        return call.build.dequantize_linear(call.stored(tensor.array), ones, zero), bits
    values = call.cast(call.lowering.hold(tensor) if operand is None else operand, "float32")
    if not points.any():
        return values, bits - tensor.dtype.name.startswith("int")
    if (points == points[0]).all():
        return call.build.sub(values, call.constant(int(points[0]), "float32")), bits
    return call.build.sub(values, call.constant(points.reshape(call.along(tensor, quantization)), "float32")), bits


def whole_weights(call: TfliteCall, index: int, axis: int) -> tuple[MLOperand, Array | None]:
    """Return constant int8 weights as whole numbers with the scales of the output channels, or as numbers and None.

    Products of the whole numbers are scaled behind their sums, so that the device can hold the weights as bytes.

    Args:
        call: the node, with activations of float32.
        index: the input.
        axis: the dimension of the output channels.
    """
    tensor = call.tensor(index)
    quantization = tensor.quantization
    symmetric = (
        tensor.array is not None
        and tensor.is_quantized
        and tensor.dtype.name == "int8"
        and quantization is not None
        and quantization.block_scales < 0
        and not quantization.zero_points.any()
        and (len(quantization.scales) == 1 or quantization.axis == axis)
    )
    if not symmetric or quantization is None:
        return call.floats(index), None
    call.along(tensor, quantization)
    if tensor.whole is None:
        tensor.whole = call.cast(call.lowering.hold(tensor), "float32")
    return tensor.whole, quantization.scales


def scaled_sums(call: TfliteCall, sums: MLOperand, scales: Array | None, bias: MLOperand | None) -> MLOperand:
    """Return float32 sums of products, the channels last, times the scales of the weights, plus the bias."""
    if scales is not None:
        sums = call.build.mul(sums, call.constant(scales.reshape([1] * (len(sums.shape) - 1) + [-1]), "float32"))
    return sums if bias is None else call.build.add(sums, bias)


@dataclass(frozen=True)
class Weights:
    """Transposed weights of float32 products.

    Attributes:
        call: the node.
        values: the weights [outputs, inputs].
        scales: the factors of the outputs, None without them.
    """

    call: TfliteCall
    values: MLOperand
    scales: Array | None

    @classmethod
    def of(cls, call: TfliteCall, *indices: int, multiples: tuple[int, int] = (1, 1)) -> Weights:
        """Return weights of inputs side by side, each padded with zeros to multiples of some numbers of outputs and inputs."""
        found = [whole_weights(call, index, 0) for index in indices]
        if any(scales is None for _, scales in found):
            found = [(call.floats(index), None) for index in indices]
        if len(found) == 1 and multiples == (1, 1):
            return cls(call, *found[0])
        values = call.build.concat([padded_to(call, weights, *multiples) for weights, _ in found], 0)
        scales: list[Array] = []
        for weights, factors in found:
            if factors is not None:
                size = int(weights.shape[0])
                scales.append(np.pad(np.broadcast_to(factors, size), (0, -size % multiples[0])))
        return cls(call, values, np.concatenate(scales) if scales else None)

    def products(self, x: MLOperand, addend: MLOperand | None = None) -> MLOperand:
        """Return rows times the weights, plus an addend."""
        if self.scales is None:
            return self.call.build.gemm(x, self.values, c=addend, b_transpose=True)
        return scaled_sums(self.call, self.call.build.gemm(x, self.values, b_transpose=True), self.scales, addend)


def padded_to(call: TfliteCall, x: MLOperand, *multiples: int) -> MLOperand:
    """Return an operand with zeros at the ends of dimensions, whose sizes become multiples of some numbers."""
    rest = [-int(size) % multiple for size, multiple in zip(x.shape, multiples, strict=True)]
    return call.build.pad(x, [0] * len(rest), rest) if any(rest) else x


def magnitude(tensor: TfliteTensor, axes: Sequence[int]) -> int | None:
    """Return the maximum sum over axes of the magnitudes of a constant minus its zero point. None for other tensors."""
    quantization = tensor.quantization
    if tensor.array is None or quantization is None:
        return None
    points = quantization.zero_points
    if (points != points[0]).any():
        return None
    return int(np.abs(tensor.array.astype(np.int64) - int(points[0])).sum(tuple(axes)).max())


def scales_of(call: TfliteCall, w: int) -> Array:
    """Return the scales of weights, one or one for each output channel."""
    quantization = call.tensor(w).quantization
    assert quantization is not None
    return quantization.scales


def rescaled(call: TfliteCall, sums: MLOperand, x: int, scales: Array, bias: int) -> TfliteTensor:
    """Return integer sums of products, with their bias, as the output's integers.

    The multiplier is float32, each step of it too, and the product is rounded once, halves to even.

    Args:
        call: the node.
        sums: int32 sums, the channels last.
        x: the input of the activations.
        scales: the scales of the weights.
        bias: the input of the bias.
    """
    record, quantization = call.output(), call.tensor(x).quantization
    assert quantization is not None
    assert record.quantization is not None
    assert record.dtype is not None
    rank = len(sums.shape)
    if call.has(bias):
        steps = call.cast(call.operand(bias), "int32")
        sums = call.build.add(sums, call.reshape(steps, [1] * (rank - 1) + [steps.shape[-1]]))
    with np.errstate(all="ignore"):
        multiplier = (quantization.scales[:1] * scales) / record.quantization.scales[:1]
    shape = [1] * (rank - 1) + [len(multiplier)]
    steps = call.build.mul(call.cast(sums, "float32"), call.constant(multiplier.reshape(shape), "float32"))
    return call.bare(rounded_steps(call, steps))


def rounded_steps(call: TfliteCall, steps: MLOperand) -> MLOperand:
    """Return float32 numbers of steps of the output's scale as its integers, within the fused activation."""
    record = call.output()
    assert record.quantization is not None
    assert record.dtype is not None
    ones = [1] * len(steps.shape)
    point = record.quantization.zero_point
    held = call.held(record.dtype)
    zero = call.constant(np.full(ones, point), held)
    low, high = step_limits(call)
    if held != record.dtype.name or (low, high) != RANGES[record.dtype.name]:
        # Limits that are whole numbers give the same before the rounding, which the kernel of the product can do then.
        steps = call.build.clamp(steps, min_value=low - point, max_value=high - point)
    return call.build.quantize_linear(steps, call.constant(np.ones(ones), "float32"), zero)


def step_limits(call: TfliteCall) -> tuple[int, int]:
    """Return the range of the output's integers, with the fused activation."""
    record = call.output()
    assert record.quantization is not None
    assert record.dtype is not None
    least, most = RANGES[record.dtype.name]
    activation = call.activation
    if activation not in LIMITS:
        return least, most
    scale, point = record.quantization.scale, record.quantization.zero_point
    if not 0 < scale < math.inf:
        call.fail(f"its output has the scale {scale}, in which {activation} has no limits")
    low, high = LIMITS[activation]
    first = least if low is None else max(least, point + int(_rounded(low / scale)))
    last = most if high is None else min(most, point + int(_rounded(high / scale)))
    return first, max(first, last)


def _rounded(value: float) -> float:
    return float(np.trunc(value + np.copysign(0.5, value)))


def integer_sums(
    call: TfliteCall,
    product: Bilinear,
    a: tuple[MLOperand, int],
    b: tuple[MLOperand, int],
    terms: int,
    most: int | None,
) -> MLOperand:
    """Return exact sums of products of `centered` tensors as int32."""
    return exact_sums(call, product, *a, *b, terms, most)
