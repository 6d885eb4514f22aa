"""Extension operators on weights of a few bits, and for quantizing at run time.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ...options import with_options
from .._base import OperatorMethods

if TYPE_CHECKING:
    from ...operand import MLOperand


class QuantizedExtensions(OperatorMethods):
    """gather_block_quantized, matmul_nbits, quantization_parameters."""

    @with_options()
    def gather_block_quantized(
        self,
        input: MLOperand,
        indices: MLOperand,
        scales: MLOperand,
        *,
        zero_points: MLOperand | None = None,
        bits: Literal[2, 4, 8] = 4,
        block_size: int = 128,
        label: str = "",
    ) -> MLOperand:
        """Slices of a table of 2, 4 or 8-bit numbers along its first dimension, `(number - zero_point) * scale`.

        It is ONNX Runtime's GatherBlockQuantized for bytes.

        Args:
            input: uint8, with the shape [size, ..., bytes]: rows of `8 / bits` numbers per byte, the first in the low bits.
            indices: int32, uint32 or int64, with any shape. Negative indices count from the end of the first dimension, and
                indices out of range are clamped.
            scales: float32 or float16, with the shape [size, ..., blocks]. The number of blocks is the numbers of a row divided
                by `block_size`, rounded up.
            zero_points: uint8, with the shape [size, ..., blocks * bits / 8 rounded up], packed like `input`. The default is 2
                to the power of (bits - 1).
            bits: 2, 4 or 8.
            block_size: Count of numbers that share a scale and a zero point: a power of 2, 16 or more.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the data type of `scales`. Its shape is `indices.shape`, followed by [..., numbers of a row].

        Raises:
            MLTypeError: A data type, shape, number of bits or block size is not allowed, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> table, scales = b.constant(np.zeros([100, 32], np.uint8)), b.constant(np.ones([100, 2], np.float32))
            >>> b.ext.gather_block_quantized(table, b.constant(np.int32([3, 7])), scales, block_size=32)
            MLOperand(float32[2, 64])
        """
        return self._output(
            "x.gather_block_quantized", [input, indices, scales, zero_points], {"bits": bits, "block_size": block_size}, label
        )

    @with_options()
    def matmul_nbits(
        self,
        a: MLOperand,
        b: MLOperand,
        scales: MLOperand,
        *,
        zero_points: MLOperand | None = None,
        bias: MLOperand | None = None,
        bits: Literal[2, 4, 8] = 4,
        block_size: int = 32,
        label: str = "",
    ) -> MLOperand:
        """`a @ ((b - zero_points) * scales).T + bias` with 2, 4 or 8-bit numbers in `b`.

        It is ONNX Runtime's MatMulNBits. The kernel takes the numbers out of their bytes itself: no wider copy is made.

        Args:
            a: float32 or float16, with the shape [..., K].
            b: uint8, with the shape [N, blocks, block_size * bits / 8]. The number of blocks is K / block_size rounded up.
                Numbers lie along K, the first in the low bits of a byte, and numbers beyond K do not count.
            scales: The data type of `a`, with the shape [N, blocks] or [N * blocks].
            zero_points: float32, float16 or uint8. Floats must have the data type of `a` and the shape [N, blocks]. Numbers of
                uint8 have the shape [N, blocks * bits / 8 rounded up] and are packed like `b`. The first two dimensions may be
                one. The default is 2 to the power of (bits - 1).
            bias: The data type of `a`, with the shape [N].
            bits: 2, 4 or 8.
            block_size: Count of numbers that share a scale and a zero point: a power of 2, 16 or more.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the data type of `a` and the shape [..., N].

        Raises:
            MLTypeError: A data type, shape, number of bits or block size is not allowed, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> packed = b.constant(np.zeros([8, 1, 16], np.uint8))
            >>> b.ext.matmul_nbits(x, packed, b.constant(np.ones([8, 1], np.float32)))
            MLOperand(float32[2, 8])
        """
        return self._output(
            "x.matmul_nbits", [a, b, scales, zero_points, bias], {"bits": bits, "block_size": block_size}, label
        )

    @with_options()
    def quantization_parameters(self, input: MLOperand, *, label: str = "") -> list[MLOperand]:
        """The scale and the zero point with which `quantize_linear` makes uint8 of a tensor's whole range, including 0.

        Together with `quantize_linear` it is ONNX's DynamicQuantizeLinear.

        Args:
            input: float32, with any shape.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            The scale, float32, and the zero point, uint8. Both have the input's rank and one element.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            255 steps of the scale lead from the least to the greatest element. If all elements are 0, the scale is 1. If NaN or
            an infinity is among them, the scale is that.

        Example:
            >>> scale, zero_point = b.ext.quantization_parameters(x)
            >>> b.quantize_linear(x, scale, zero_point)
            MLOperand(uint8[2, 3])
        """
        return self._outputs("x.quantization_parameters", [input], {}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        gatherBlockQuantized = gather_block_quantized
        matmulNbits = matmul_nbits
        quantizationParameters = quantization_parameters
