"""Conversions between quantized tensors and floats, and operators on quantized tensors.

WebNN's scale and zero point have the input's rank and sizes that divide the input's, one element for each block. Sums of
products of integers are exact.
"""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np

from webnn_wgpu import MLOperand

from ..call import NodeCall
from ..rounding import rounded
from ..tensors import OnnxTensor
from ..types import FLOAT32, HELD, DType, is_float
from ._exact import centered, exact_sums
from ._registry import IMAGES, MICROSOFT, Result, lowers
from ._windows import extended, windows_of
from .convolution import check_channels, convolution, kernel_of
from .linear import product
from .pooling import averaged
from .reductions import softmax_view

PACKED = (np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4))
"""Types whose constants stay packed on the device."""
DIRECT = frozenset({"int8", "uint8", "int32"})
"""Types that WebNN quantizes to."""
LIMITS = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3), "int16": (-32768, 32767), "uint16": (0, 65535)}
"""Ranges of the integers that are stored in wider types."""


class Blocks:
    """The assignment of scales and zero points to elements: one for all, for each index of an axis, or for each block.

    Args:
        call: the node.
        shape: the shape of the tensor.
        scale: the shape of its scales.
        axis: the axis of the scales, if there are several.
        block: the number of elements that share a scale, 0 without blocks.
    """

    def __init__(self, call: NodeCall, shape: tuple[int, ...], scale: tuple[int, ...], axis: int, block: int) -> None:
        self.call, self.gathered = call, None
        rank = len(shape)
        if block < 0:
            call.fail(f"blocks of {block}")
        if block:
            axis = call.axis(axis, rank)
            if len(scale) != rank or any(d != s for i, (d, s) in enumerate(zip(shape, scale, strict=True)) if i != axis):
                call.fail(f"a scale of shape {scale} does not fit blocks of {shape}")
            if scale[axis] != -(-shape[axis] // block):
                call.fail(f"{scale[axis]} blocks of {block} do not make {shape[axis]}")
            self.shape = scale
            if scale[axis] > 1 and scale[axis] * block != shape[axis]:
                # The last block is shorter: each element gets its own.
                self.gathered = (axis, np.arange(shape[axis]) // block)
        elif int(np.prod(scale)) == 1:
            self.shape = (1,) * rank
        else:
            axis = call.axis(axis, rank)
            if scale != (shape[axis],):
                call.fail(f"a scale of shape {scale} does not fit axis {axis} of {shape}")
            self.shape = tuple(d if i == axis else 1 for i, d in enumerate(shape))

    def laid(self, operand: MLOperand) -> MLOperand:
        """Return a scale or a zero point in the shape that WebNN requires."""
        operand = self.call.reshape(operand, self.shape)
        if self.gathered is None:
            return operand
        axis, indices = self.gathered
        return self.call.build.gather(operand, self.call.constant(indices, "int32"), axis=axis)

    def zeros(self, data_type: str) -> MLOperand:
        """Return zero points of 0."""
        shape = list(self.shape)
        if self.gathered is not None:
            shape[self.gathered[0]] = len(self.gathered[1])
        return self.call.constant(np.zeros(shape), data_type)


@lowers("QuantizeLinear")
@lowers("QuantizeLinear", domain=MICROSOFT)
def quantize_linear(call: NodeCall) -> Result:
    """round(x / scale) + zero point, clamped to the type's range. Floats of 8 bits have no zero point."""
    x, scale = call.tensor(0), call.tensor(1)
    dtype = call.tensor(2).dtype if call.has(2) else call.dtype("output_dtype") or np.dtype(np.uint8)
    blocks = Blocks(call, x.shape, scale.shape, call.attribute("axis", 1), call.attribute("block_size", 0))
    precision = call.dtype("precision")
    half = np.dtype(np.float16)
    in_half = precision == half or (precision is None and x.dtype == scale.dtype == half)
    computed = "float16" if in_half else "float32"
    values = call.cast(call.operand(0), computed)
    scales = call.cast(blocks.laid(call.operand(1)), computed)
    if precision is not None and HELD[precision] != precision.name:
        values = call.build.div(rounded(call, values, precision), scales)
        values, scales = rounded(call, values, precision), call.constant(np.ones(scales.shape), computed)
    elif in_half:
        # The quotient is rounded to float16 before it is rounded to an integer.
        values, scales = call.build.div(values, scales), call.constant(np.ones(scales.shape), computed)
    if is_float(dtype):
        quotients = call.build.div(values, expanded(call, scales, values))
        quotients = call.cast(quotients, "float32")
        return OnnxTensor(
            shape=x.shape, dtype=dtype, operand=rounded(call, quotients, dtype, bool(call.attribute("saturate", 1)))
        )
    if dtype.name in DIRECT:
        held = HELD[dtype]
    elif dtype.name in LIMITS:
        held = "int32"
    else:
        call.fail(f"{dtype} is no quantized type")
    zero = blocks.laid(call.cast(call.operand(2), held)) if call.has(2) else blocks.zeros(held)
    y = call.build.quantize_linear(values, scales, zero)
    if dtype.name in LIMITS:
        low, high = LIMITS[dtype.name]
        y = call.cast(call.build.clamp(y, min_value=low, max_value=high), HELD[dtype])
    return OnnxTensor(shape=x.shape, dtype=dtype, operand=y)


def expanded(call: NodeCall, blocks: MLOperand, like: MLOperand) -> MLOperand:
    """Return scales repeated over their blocks, where broadcasting would not repeat them."""
    for axis, (count, size) in enumerate(zip(blocks.shape, like.shape, strict=True)):
        if count not in (1, size):
            indices = np.arange(int(size)) // (int(size) // int(count))
            blocks = call.build.gather(blocks, call.constant(indices, "int32"), axis=axis)
    return blocks


@lowers("DequantizeLinear", folds=False)
@lowers("DequantizeLinear", domain=MICROSOFT, folds=False)
def dequantize_linear(call: NodeCall) -> Result:
    """(x - zero point) * scale. Constants of 4 bits stay packed."""
    x, scale = call.tensor(0), call.tensor(1)
    dtype = call.dtype("output_dtype") or scale.dtype
    blocks = Blocks(call, x.shape, scale.shape, call.attribute("axis", 1), call.attribute("block_size", 0))
    computed = "float16" if dtype == np.dtype(np.float16) == scale.dtype else "float32"
    scales = blocks.laid(call.cast(call.operand(1), computed))
    if is_float(x.dtype):
        values = call.cast(call.operand(0), computed)
        if call.has(2):
            values = call.build.sub(values, expanded(call, blocks.laid(call.cast(call.operand(2), computed)), values))
        y = call.build.mul(values, expanded(call, scales, values))
    else:
        y = call.build.dequantize_linear(integers(call, blocks), scales, zero_points(call, blocks))
    if computed == "float32" and HELD[dtype] == "float16":
        y = call.cast(y, "float16")
    return OnnxTensor(shape=x.shape, dtype=dtype, operand=rounded(call, y, dtype))


def stays_packed(call: NodeCall, blocks: Blocks) -> bool:
    """Return whether a node's quantized elements are a constant of 4 bits that the device reads unchanged."""
    known = call.tensor(0).array is not None and (not call.has(2) or call.tensor(2).array is not None)
    return known and call.tensor(0).dtype in PACKED and blocks.gathered is None


def integers(call: NodeCall, blocks: Blocks) -> MLOperand:
    """Return the quantized elements."""
    array = call.tensor(0).array
    return call.lowering.constant(array) if array is not None and stays_packed(call, blocks) else call.operand(0)


def zero_points(call: NodeCall, blocks: Blocks) -> MLOperand:
    """Return the zero points, in the type of the quantized elements."""
    dtype = call.tensor(0).dtype
    if not stays_packed(call, blocks):
        return blocks.laid(call.operand(2)) if call.has(2) else blocks.zeros(HELD[dtype])
    array = call.tensor(2).array if call.has(2) else np.zeros(blocks.shape, dtype)
    assert array is not None
    return call.lowering.constant(np.ascontiguousarray(array).reshape(blocks.shape))


@lowers("DynamicQuantizeLinear")
def dynamic_quantize_linear(call: NodeCall) -> Result:
    """The input quantized to uint8, with the scale and the zero point of its elements' range, extended to 0."""
    x = call.operand(0)
    scale, zero_point = call.build.ext.quantization_parameters(x)
    return [call.build.quantize_linear(x, scale, zero_point), call.reshape(scale, []), call.reshape(zero_point, [])]


# products -------------------------------------------------------------------------------------------------------------


def along(call: NodeCall, index: int, axis: int, rank: int) -> MLOperand | None:
    """Return an optional input, one number or a vector along an axis, in a shape that broadcasts. None if it is absent."""
    return laid_along(call, index, axis, rank) if call.has(index) else None


def laid_along(call: NodeCall, index: int, axis: int, rank: int) -> MLOperand:
    """Return a required input, one number or a vector along an axis, in a shape that broadcasts."""
    size = call.tensor(index).size
    return call.reshape(call.operand(index), [] if size == 1 else [size if i == axis else 1 for i in range(rank)])


def requantized(call: NodeCall, sums: MLOperand, scale: MLOperand, index: int, dtype: DType) -> MLOperand:
    """Return sums of products of scale `scale`, quantized with the scale and zero point in the inputs from `index` on."""
    y_scale = call.cast(laid_along(call, index, -1, 1), "float32")
    steps = call.build.mul(call.cast(sums, "float32"), call.build.div(scale, y_scale))
    ones = [1] * len(steps.shape)
    zero = call.reshape(call.operand(index + 1), ones) if call.has(index + 1) else call.constant(np.zeros(ones), dtype.name)
    return call.build.quantize_linear(steps, call.constant(np.ones(ones), "float32"), zero)


def exact_matmul(call: NodeCall, a: tuple[MLOperand, int], b: tuple[MLOperand, int], most: int | None = None) -> MLOperand:
    """Return the matrix product of `centered` tensors as int32 (see `exact_sums`)."""
    return exact_sums(call, lambda x, y: product(call, x, y), *a, *b, int(a[0].shape[-1]), most)


def magnitude(call: NodeCall, index: int, zero_index: int, axes: tuple[int, ...]) -> int | None:
    """Return the maximum sum over axes of the magnitudes of a known tensor minus its known scalar zero point, else None."""
    array = call.tensor(index).array
    if array is None or (call.has(zero_index) and call.tensor(zero_index).array is None):
        return None
    zero = call.tensor(zero_index).array if call.has(zero_index) else np.zeros(1, array.dtype)
    assert zero is not None
    first = zero.reshape(-1)[0]
    if (zero != first).any():
        return None
    return int(np.abs(array.astype(np.int64) - int(first)).sum(axes).max())


def matrix_zero(call: NodeCall, index: int, of: int, right: bool) -> MLOperand | None:
    """Return the optional zero point of a matrix: one number, or one for each row of a left or column of a right factor."""
    return matrix_scale(call, index, of, right) if call.has(index) else None


def matrix_scale(call: NodeCall, index: int, of: int, right: bool) -> MLOperand:
    """Return the required scale or zero point of a matrix."""
    shape = call.tensor(of).shape
    given = call.tensor(index)
    if given.rank < 2 and given.size > 1:
        return call.reshape(call.operand(index), [1, given.size] if right else [given.size, 1])
    return call.reshape(call.operand(index), []) if given.size == 1 and len(shape) else call.operand(index)


@lowers("MatMulInteger")
def matmul_integer(call: NodeCall) -> Result:
    """Matrix product of quantized tensors minus their zero points."""
    a = centered(call, call.tensor(0), matrix_zero(call, 2, 0, False))
    b = centered(call, call.tensor(1), matrix_zero(call, 3, 1, True))
    return exact_matmul(call, a, b, magnitude(call, 1, 3, (-2,)) if call.tensor(1).rank > 1 else None)


@lowers("MatMulIntegerToFloat", domain=MICROSOFT)
def matmul_integer_to_float(call: NodeCall) -> Result:
    """Matrix product of quantized tensors as floats, with a bias."""
    a = centered(call, call.tensor(0), matrix_zero(call, 4, 0, False))
    b = centered(call, call.tensor(1), matrix_zero(call, 5, 1, True))
    return to_floats(call, exact_matmul(call, a, b), scales(call, 2, 3, 0, 1), 6)


@lowers("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantize_matmul(call: NodeCall) -> Result:
    """Matrix product with a quantized matrix. The left factor is quantized first."""
    found = dynamic_quantize_linear(call)
    assert isinstance(found, list)
    y, scale, zero_point = (o for o in found if isinstance(o, MLOperand))
    a = centered(call, OnnxTensor(shape=call.tensor(0).shape, dtype=np.dtype(np.uint8), operand=y), zero_point)
    b = centered(call, call.tensor(1), matrix_zero(call, 3, 1, True))
    return to_floats(call, exact_matmul(call, a, b), call.build.mul(scale, matrix_scale(call, 2, 1, True)), 4)


def scales(call: NodeCall, a: int, b: int, of_a: int, of_b: int) -> MLOperand:
    """Return the product of two matrices' scales as float32."""
    left, right = matrix_scale(call, a, of_a, False), matrix_scale(call, b, of_b, True)
    return call.build.mul(call.cast(left, "float32"), call.cast(right, "float32"))


def to_floats(call: NodeCall, sums: MLOperand, scale: MLOperand, bias: int) -> OnnxTensor:
    """Return sums times their scale, plus a bias."""
    y = call.build.mul(call.cast(sums, "float32"), scale)
    y = call.build.add(y, call.operand(bias)) if call.has(bias) else y
    return OnnxTensor(shape=tuple(y.shape), dtype=FLOAT32, operand=y)


@lowers("QLinearMatMul")
@lowers("QLinearMatMul", domain=MICROSOFT)
def qlinear_matmul(call: NodeCall) -> Result:
    """Matrix product of quantized tensors, quantized again."""
    a = centered(call, call.tensor(0), matrix_zero(call, 2, 0, False))
    b = centered(call, call.tensor(3), matrix_zero(call, 5, 3, True))
    dtype = call.tensor(7).dtype
    y = requantized(call, exact_matmul(call, a, b), scales(call, 1, 4, 0, 3), 6, dtype)
    return OnnxTensor(shape=tuple(y.shape), dtype=dtype, operand=y)


@lowers("QGemm", domain=MICROSOFT)
def qgemm(call: NodeCall) -> Result:
    """Alpha * (A' * B' + C) of quantized matrices, quantized again if there is a scale. C has the scale of the product."""
    matrices: list[OnnxTensor] = []
    for index, name in ((0, "transA"), (3, "transB")):
        x = call.tensor(index)
        turned = OnnxTensor(shape=x.shape[::-1], dtype=x.dtype, operand=call.transpose(call.operand(index), [1, 0]))
        matrices.append(turned if call.attribute(name, 0) else x)
    a = centered(call, matrices[0], matrix_zero(call, 2, 0, False))
    b = centered(call, matrices[1], matrix_zero(call, 5, 3, True))
    sums = exact_matmul(call, a, b)
    sums = call.build.add(sums, call.operand(6)) if call.has(6) else sums
    scale = call.build.mul(scales(call, 1, 4, 0, 3), call.constant(call.attribute("alpha", 1.0), "float32"))
    if not call.has(7):
        return to_floats(call, sums, scale, 9)
    dtype = call.tensor(0).dtype
    y = requantized(call, sums, scale, 7, dtype)
    return OnnxTensor(shape=tuple(y.shape), dtype=dtype, operand=y)


def exact_convolution(
    call: NodeCall, image: OnnxTensor, w: int, x_zero: int, w_zero: int, bias: MLOperand | None = None
) -> MLOperand:
    """Return the convolution of quantized tensors minus their zero points as int32.

    Args:
        call: the node.
        image: the input, channels before rows.
        w: the index of the filter in the node's inputs.
        x_zero: the index of the image's zero point in the node's inputs.
        w_zero: the index of the filter's zero point in the node's inputs.
        bias: the summand of each output channel as int32, or None.
    """
    weight, groups = call.tensor(w), call.attribute("group", 1)
    check_channels(call, image.shape, weight.shape, groups)
    windows = windows_of(call, image.shape[2:], kernel_of(call, weight.shape))
    left = centered(call, image, along(call, x_zero, -1, image.rank))
    filters, bits = centered(call, weight, along(call, w_zero, 0, weight.rank))
    if [v.taps for v in windows[-2:]] == [3, 3]:
        # Filters of 3 x 3 taps may use Winograd's algorithm, which rounds. Filters of 3 x 4 taps do not.
        last = windows[-1]
        filters = extended(call, filters, weight.rank - 1, 0, 1)
        windows[-1] = replace(last, taps=4, end=last.end + last.dilation)
    terms = int(np.prod(weight.shape[1:]))
    most = magnitude(call, w, w_zero, tuple(range(1, weight.rank)))
    y = exact_sums(call, lambda a, b: convolution(call, a, b, None, windows, groups), *left, filters, bits, terms, most)
    if bias is None:
        return y
    return call.build.add(y, call.reshape(bias, [1, weight.shape[0], *[1] * (weight.rank - 2)]))


@lowers("ConvInteger")
def conv_integer(call: NodeCall) -> Result:
    """Convolution of quantized tensors minus their zero points."""
    return exact_convolution(call, call.tensor(0), 1, 2, 3)


@lowers("QLinearConv", ranks={0: IMAGES})
@lowers("QLinearConv", domain=MICROSOFT, ranks={0: IMAGES})
def qlinear_conv(call: NodeCall) -> Result:
    """Convolution of quantized tensors, quantized again. The scale of the bias is the product of both scales."""
    image, last = call.tensor(0), bool(call.attribute("channels_last", 0))
    outward = [0, *range(2, image.rank), 1] if last else list(range(image.rank))
    if last:
        inward = [0, image.rank - 1, *range(1, image.rank - 1)]
        shape = tuple(image.shape[i] for i in inward)
        image = OnnxTensor(shape=shape, dtype=image.dtype, operand=call.transpose(call.operand(0), inward))
    y = exact_convolution(call, image, 3, 2, 5, call.optional(8))
    x_scale, w_scale = laid_along(call, 1, -1, 1), laid_along(call, 4, 1, image.rank)
    scale = call.build.mul(call.cast(x_scale, "float32"), call.cast(w_scale, "float32"))
    dtype = call.tensor(7).dtype if call.has(7) else image.dtype
    y = call.transpose(requantized(call, y, scale, 6, dtype), outward)
    return OnnxTensor(shape=tuple(y.shape), dtype=dtype, operand=y)


# quantized element by element -----------------------------------------------------------------------------------------


def dequantized(call: NodeCall, index: int) -> MLOperand:
    """Return the tensor of input `index`, which its scale and its zero point follow, as float32."""
    x, _ = centered(call, call.tensor(index), along(call, index + 2, -1, 1))
    return call.build.mul(x, call.cast(laid_along(call, index + 1, -1, 1), "float32"))


def quantized(call: NodeCall, y: MLOperand, index: int, dtype: DType) -> OnnxTensor:
    """Return floats quantized with the scale and zero point that are inputs `index` and `index + 1`."""
    ones = [1] * len(y.shape)
    scale = call.reshape(call.operand(index), ones)
    zero = call.reshape(call.operand(index + 1), ones) if call.has(index + 1) else call.constant(np.zeros(ones), dtype.name)
    return OnnxTensor(shape=tuple(y.shape), dtype=dtype, operand=call.build.quantize_linear(y, scale, zero))


@lowers("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def qlinear_binary(call: NodeCall) -> Result:
    """Sum or product of quantized tensors, quantized again."""
    apply = call.build.add if call.node.op_type == "QLinearAdd" else call.build.mul
    return quantized(call, apply(dequantized(call, 0), dequantized(call, 3)), 6, call.tensor(0).dtype)


@lowers("QLinearSigmoid", "QLinearLeakyRelu", domain=MICROSOFT)
def qlinear_unary(call: NodeCall) -> Result:
    """Sigmoid or leaky rectifier of a quantized tensor, quantized again."""
    x = dequantized(call, 0)
    if call.node.op_type == "QLinearSigmoid":
        y = call.build.sigmoid(x)
    else:
        y = call.build.leaky_relu(x, alpha=call.attribute("alpha", 0.01))
    return quantized(call, y, 3, call.tensor(0).dtype)


@lowers("QLinearGlobalAveragePool", domain=MICROSOFT)
def qlinear_global_average_pool(call: NodeCall) -> Result:
    """Mean of each image's channels of a quantized tensor, quantized again."""
    rank = call.tensor(0).rank
    axes = list(range(1, rank - 1)) if call.attribute("channels_last", 0) else list(range(2, rank))
    y = call.build.reduce_mean(dequantized(call, 0), axes=axes, keep_dimensions=True)
    return quantized(call, y, 3, call.tensor(0).dtype)


@lowers("QLinearConcat", domain=MICROSOFT)
def qlinear_concat(call: NodeCall) -> Result:
    """Quantized tensors of several scales, joined and quantized again."""
    parts = [dequantized(call, i) for i in range(2, len(call), 3)]
    axis = call.attribute("axis")
    axis = call.axis(axis, call.tensor(2).rank) if isinstance(axis, int) else call.fail(f"axis {axis!r} is no integer")
    return quantized(call, call.build.concat(parts, axis), 0, call.tensor(1).dtype)


@lowers("QLinearAveragePool", domain=MICROSOFT, ranks={0: IMAGES})
def qlinear_average_pool(call: NodeCall) -> Result:
    """Mean of each window of a quantized tensor, quantized again."""
    rank, last = call.tensor(0).rank, bool(call.attribute("channels_last", 0))
    x = call.transpose(dequantized(call, 0), [0, rank - 1, *range(1, rank - 1)]) if last else dequantized(call, 0)
    y = averaged(call, x)
    return quantized(call, call.transpose(y, [0, *range(2, rank), 1]) if last else y, 3, call.tensor(0).dtype)


@lowers("QLinearSoftmax", domain=MICROSOFT)
def qlinear_softmax(call: NodeCall) -> Result:
    """Softmax of a quantized tensor, quantized again, as in the version of ONNX's operator set in an attribute."""
    x, axis = softmax_view(call, dequantized(call, 0), call.attribute("opset", 13))
    y = call.reshape(call.build.softmax(x, axis=axis), call.tensor(0).shape)
    return quantized(call, y, 3, call.tensor(0).dtype)


@lowers("QLinearWhere", domain=MICROSOFT)
def qlinear_where(call: NodeCall) -> Result:
    """Elements of one quantized tensor or the other, quantized again."""
    y = call.build.where(call.operand(0), dequantized(call, 1), dequantized(call, 4))
    return quantized(call, y, 7, call.tensor(1).dtype)
