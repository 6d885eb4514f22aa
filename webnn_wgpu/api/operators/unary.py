"""Element-wise operators of one operand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..options import with_options
from ._base import OperatorMethods

if TYPE_CHECKING:
    from ..operand import MLOperand
    from .dictionaries import MLOperatorOptions


class UnaryOperators(OperatorMethods):
    """abs, ceil, cos, erf, exp, floor, log, neg, reciprocal, round_even, sign, sin, sqrt, tan."""

    @with_options()
    def abs(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Absolute value of each element.

        Args:
            input: float32, float16, int64, int32 or int8; any shape.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Numerics: The least integer has no positive counterpart and stays as it is.

        Example:
            >>> b.abs(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("abs", [input], label=label)

    @with_options()
    def ceil(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Round each element up to an integer.

        Args:
            input: float32 or float16; any shape.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Example:
            >>> b.ceil(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("ceil", [input], label=label)

    @with_options()
    def cos(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Cosine of each element.

        Args:
            input: float32 or float16; any shape.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Numerics: In radians. NaN for infinities; large arguments are reduced modulo 2 pi.

        Example:
            >>> b.cos(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("cos", [input], label=label)

    @with_options()
    def erf(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Gauss error function of each element.

        Args:
            input: float32 or float16; any shape.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Numerics: 1 and -1 at the infinities.

        Example:
            >>> b.erf(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("erf", [input], label=label)

    @with_options()
    def exp(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """`e` to the power of each element.

        Args:
            input: float32 or float16; any shape.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Numerics: Infinity above the range of the data type, 0 below it.

        Example:
            >>> b.exp(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("exp", [input], label=label)

    @with_options()
    def floor(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Round each element down to an integer.

        Args:
            input: float32 or float16; any shape.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Example:
            >>> b.floor(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("floor", [input], label=label)

    @with_options()
    def log(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Natural logarithm of each element.

        Args:
            input: float32 or float16; any shape.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Numerics: -infinity for 0, NaN for negative elements.

        Example:
            >>> b.log(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("log", [input], label=label)

    @with_options()
    def neg(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Each element with its sign turned.

        Args:
            input: float32, float16, int64, int32 or int8; any shape.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Numerics: The least integer has no positive counterpart and stays as it is.

        Example:
            >>> b.neg(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("neg", [input], label=label)

    @with_options()
    def reciprocal(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 divided by each element.

        Args:
            input: float32 or float16; any shape.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Numerics: Infinity with the sign of the zero for 0.

        Example:
            >>> b.reciprocal(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("reciprocal", [input], label=label)

    @with_options()
    def round_even(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Round each element to the nearest integer, a half to the even one.

        Args:
            input: float32 or float16; any shape.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Numerics: 2.5 becomes 2 and 3.5 becomes 4.

        Example:
            >>> b.round_even(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("roundEven", [input], label=label)

    @with_options()
    def sign(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1, 0 or -1: the sign of each element.

        Args:
            input: float32, float16, int64, int32 or int8; any shape.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Numerics: 0 for NaN.

        Example:
            >>> b.sign(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("sign", [input], label=label)

    @with_options()
    def sin(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Sine of each element.

        Args:
            input: float32 or float16; any shape.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Numerics: In radians. NaN for infinities; large arguments are reduced modulo 2 pi.

        Example:
            >>> b.sin(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("sin", [input], label=label)

    @with_options()
    def sqrt(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Square root of each element.

        Args:
            input: float32 or float16; any shape.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Numerics: NaN for negative elements; -0 stays -0.

        Example:
            >>> b.sqrt(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("sqrt", [input], label=label)

    @with_options()
    def tan(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Tangent of each element.

        Args:
            input: float32 or float16; any shape.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Numerics: In radians. NaN for infinities; large arguments are reduced modulo 2 pi.

        Example:
            >>> b.tan(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("tan", [input], label=label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        roundEven = round_even
