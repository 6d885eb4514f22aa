"""Operators between floats and quantized integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..options import with_options
from ._base import OperatorMethods

if TYPE_CHECKING:
    from ..operand import MLOperand
    from .dictionaries import MLOperatorOptions


class QuantizationOperators(OperatorMethods):
    """dequantizeLinear, quantizeLinear: per tensor, per axis and block-wise."""

    @with_options()
    def dequantize_linear(
        self, input: MLOperand, scale: MLOperand, zero_point: MLOperand, options: MLOperatorOptions = {}, *, label: str = ""
    ) -> MLOperand:
        """Turn quantized integers into floats: (input - zero_point) * scale.

        Args:
            input: int8, uint8, int32 or uint32, or a constant of int4 or uint4; any shape.
            scale: float32 or float16; the input's rank, and along every dimension a size that divides the input's. Each
                element serves a block of the input: sizes of 1 throughout make one scale for all, the input's own size
                along one dimension a scale per channel, anything between block-wise scales.
            zero_point: The input's data type and the shape of `scale`.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the data type of `scale` and the input's shape.

        Raises:
            MLTypeError: Another data type, another rank, a size that does not divide the input's, shapes of `scale` and
                `zero_point` that differ, or an operand of another builder.

        Numerics: The difference is exact; it is then rounded to float32 (for 32-bit integers beyond 2^24), and the product
            is rounded once.

        Example:
            >>> levels = b.constant(np.array([[0, 128, 255], [1, 2, 3]], np.uint8))
            >>> per_row = b.constant(np.float32([[0.5], [2]]))
            >>> b.dequantize_linear(levels, per_row, b.constant(np.array([[128], [0]], np.uint8))).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-dequantizelinear
        """
        return self._output("dequantizeLinear", [input, scale, zero_point], label=label)

    @with_options()
    def quantize_linear(
        self, input: MLOperand, scale: MLOperand, zero_point: MLOperand, options: MLOperatorOptions = {}, *, label: str = ""
    ) -> MLOperand:
        """Turn floats into quantized integers: round_even(input / scale) + zero_point, limited to the data type's range.

        Args:
            input: float32 or float16; any shape.
            scale: The input's data type and rank, and along every dimension a size that divides the input's. Each element
                serves a block of the input: sizes of 1 throughout make one scale for all, the input's own size along one
                dimension a scale per channel, anything between block-wise scales.
            zero_point: int8, uint8, int32 or uint32; the shape of `scale`.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the data type of `zero_point` and the input's shape.

        Raises:
            MLTypeError: Another data type, another rank, a size that does not divide the input's, shapes of `scale` and
                `zero_point` that differ, or an operand of another builder.

        Numerics: The quotient is rounded to float32, then to the nearest integer, halves to even; adding and limiting are
            exact. NaN becomes 0. A negative scale follows the formula too. Where the device's division is not correctly
            rounded, a quotient next to a half may end one step off.

        Example:
            >>> one = b.constant(np.float32([[0.1]]))
            >>> levels = b.quantize_linear(x, one, b.constant(np.array([[128]], np.uint8)))
            >>> levels.data_type, levels.shape
            ('uint8', (2, 3))

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-quantizelinear
        """
        return self._output("quantizeLinear", [input, scale, zero_point], label=label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        dequantizeLinear = dequantize_linear
        quantizeLinear = quantize_linear
