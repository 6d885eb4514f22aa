"""Operators between floats and quantized integers.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..options import with_options
from ._base import OperatorMethods

if TYPE_CHECKING:
    from ..operand import MLOperand
    from .dictionaries import MLOperatorOptions


class QuantizationOperators(OperatorMethods):
    """dequantize_linear, quantize_linear. Scales are per tensor, per axis or per block."""

    @with_options()
    def dequantize_linear(
        self, input: MLOperand, scale: MLOperand, zero_point: MLOperand, options: MLOperatorOptions = {}, *, label: str = ""
    ) -> MLOperand:
        """Turn quantized integers into floats: (input - zero_point) * scale.

        Args:
            input: uint8, int8, uint32 or int32, or a constant of int4 or uint4, with any shape.
            scale: float32 or float16, with the input's rank. Each size must divide the input's size in that dimension, and each
                element serves a block of the input. Sizes of 1 in all dimensions give one scale for all elements. The input's
                own size in one dimension gives a scale per channel. Other sizes give block-wise scales.
            zero_point: The input's data type and the shape of `scale`.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the data type of `scale` and the input's shape.

        Raises:
            MLTypeError: A data type is not allowed, a rank differs from the input's, a size does not divide the input's, the
                shapes of `scale` and `zero_point` differ, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            The difference is exact. It is then rounded to float32, which changes differences of 32-bit integers beyond 2^24.
            The product is rounded once.

        Example:
            >>> levels = b.constant(np.array([[0, 128, 255], [1, 2, 3]], np.uint8))
            >>> per_row = b.constant(np.float32([[0.5], [2]]))
            >>> b.dequantize_linear(levels, per_row, b.constant(np.array([[128], [0]], np.uint8))).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-dequantizelinear
        """
        return self._output("dequantizeLinear", [input, scale, zero_point], {}, label)

    @with_options()
    def quantize_linear(
        self, input: MLOperand, scale: MLOperand, zero_point: MLOperand, options: MLOperatorOptions = {}, *, label: str = ""
    ) -> MLOperand:
        """Turn floats into quantized integers: round_even(input / scale) + zero_point, limited to the data type's range.

        Args:
            input: float32 or float16, with any shape.
            scale: The input's data type and rank. Each size must divide the input's size in that dimension, and each element
                serves a block of the input. Sizes of 1 in all dimensions give one scale for all elements. The input's own size
                in one dimension gives a scale per channel. Other sizes give block-wise scales.
            zero_point: uint8, int8, uint32 or int32, with the shape of `scale`.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the data type of `zero_point` and the input's shape.

        Raises:
            MLTypeError: A data type is not allowed, a rank differs from the input's, a size does not divide the input's, the
                shapes of `scale` and `zero_point` differ, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            The quotient is rounded to float32, then to the nearest integer, halves to even. Adding and limiting are exact. NaN
            becomes 0. A negative scale follows the formula too.

        Example:
            >>> one = b.constant(np.float32([[0.1]]))
            >>> levels = b.quantize_linear(x, one, b.constant(np.array([[128]], np.uint8)))
            >>> levels.data_type, levels.shape
            ('uint8', (2, 3))

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-quantizelinear
        """
        return self._output("quantizeLinear", [input, scale, zero_point], {}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        dequantizeLinear = dequantize_linear
        quantizeLinear = quantize_linear
