"""Extension operators on weights of a few bits, and for quantizing at run time."""

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
        """Slices of a table of numbers of 2, 4 or 8 bits along its first dimension, `(number - zero_point) * scale`.

        It is ONNX Runtime's GatherBlockQuantized for bytes.

        Args:
            input: uint8 [size, ..., bytes]: rows of `8 / bits` numbers per byte, the first in the low bits.
            indices: int32, uint32 or int64 of any shape. Negative ones count from the end of the first dimension, and what is
                out of range is clamped.
            scales: float32 or float16 [size, ..., blocks], where blocks is the numbers of a row divided by `block_size`,
                rounded up.
            zero_points: uint8 [size, ..., blocks * bits / 8 rounded up], packed like `input`; where absent, 2 to the power of
                (bits - 1).
            bits: 2, 4 or 8.
            block_size: Numbers that share a scale and a zero point: a power of 2, 16 or more.
            label: The operator's name in messages.

        Returns:
            An operand of the data type of `scales`, `indices.shape` and then [..., numbers of a row].

        Raises:
            MLTypeError: A data type, shape, number of bits or block size that is not allowed, or an operand of another
                builder.

        Example:
            >>> table, scales = b.constant(np.zeros([100, 32], np.uint8)), b.constant(np.ones([100, 2], np.float32))
            >>> b.ext.gather_block_quantized(table, b.constant(np.int32([3, 7])), scales, block_size=32)
            MLOperand(float32[2, 64])
        """
        attrs = {"bits": bits, "block_size": block_size}
        return self._output("x.gather_block_quantized", [input, indices, scales, zero_points], attrs, label=label)

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
        """`a @ ((b - zero_points) * scales).T + bias` with numbers of 2, 4 or 8 bits in `b`.

        It is ONNX Runtime's MatMulNBits. The numbers are taken out of their bytes inside the kernel: no wider copy is made.

        Args:
            a: float32 or float16 [..., K].
            b: uint8 [N, blocks, block_size * bits / 8], where blocks is K / block_size rounded up. Numbers lie along K, the
                first in the low bits of a byte; what is beyond K does not count.
            scales: The data type of `a`, [N, blocks] or [N * blocks].
            zero_points: float32 or float16, which must be that of `a`, [N, blocks]; or uint8 [N, blocks * bits / 8 rounded
                up], packed like `b`; the first two dimensions may be one. Where absent, 2 to the power of (bits - 1).
            bias: The data type of `a`, [N].
            bits: 2, 4 or 8.
            block_size: Numbers that share a scale and a zero point: a power of 2, 16 or more.
            label: The operator's name in messages.

        Returns:
            An operand of the data type of `a`, [..., N].

        Raises:
            MLTypeError: A data type, shape, number of bits or block size that is not allowed, or an operand of another
                builder.

        Example:
            >>> packed = b.constant(np.zeros([8, 1, 16], np.uint8))
            >>> b.ext.matmul_nbits(x, packed, b.constant(np.ones([8, 1], np.float32)))
            MLOperand(float32[2, 8])
        """
        attrs = {"bits": bits, "block_size": block_size}
        return self._output("x.matmul_nbits", [a, b, scales, zero_points, bias], attrs, label=label)

    @with_options()
    def quantization_parameters(self, input: MLOperand, *, label: str = "") -> list[MLOperand]:
        """The scale and the zero point by which `quantize_linear` makes uint8 of a tensor's whole range, with 0 in it.

        With them it is ONNX's DynamicQuantizeLinear.

        Args:
            input: float32.
            label: The operator's name in messages.

        Returns:
            The scale, float32, and the zero point, uint8, both of the input's rank and of one element.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Numerics: 255 steps of the scale lead from the least to the greatest element. Where all elements are 0 the scale is 1.
            NaN among them, or an infinity, makes the scale that.

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
