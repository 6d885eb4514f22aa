"""Element-wise operators of one operand.

Generated from the operators' documentation by `python -m tests.generation`.
"""

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
            input: float32, float16, int64, int32 or int8, with any shape.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            The least integer has no positive counterpart and stays as it is.

        Example:
            >>> b.abs(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("abs", [input], {}, label)

    @with_options()
    def ceil(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Round each element up to an integer.

        Args:
            input: float32 or float16, with any shape.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.ceil(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("ceil", [input], {}, label)

    @with_options()
    def cos(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Cosine of each element.

        Args:
            input: float32 or float16, with any shape.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            In radians. NaN for infinities. Large arguments are reduced modulo 2 pi.

        Example:
            >>> b.cos(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("cos", [input], {}, label)

    @with_options()
    def erf(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Gauss error function of each element.

        Args:
            input: float32 or float16, with any shape.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            1 and -1 at the infinities.

        Example:
            >>> b.erf(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("erf", [input], {}, label)

    @with_options()
    def exp(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """`e` to the power of each element.

        Args:
            input: float32 or float16, with any shape.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Results above the range of the data type are infinity, those below it 0.

        Example:
            >>> b.exp(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("exp", [input], {}, label)

    @with_options()
    def floor(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Round each element down to an integer.

        Args:
            input: float32 or float16, with any shape.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.floor(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("floor", [input], {}, label)

    @with_options()
    def log(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Natural logarithm of each element.

        Args:
            input: float32 or float16, with any shape.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            -infinity for 0, NaN for negative elements.

        Example:
            >>> b.log(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("log", [input], {}, label)

    @with_options()
    def neg(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Each element with the opposite sign.

        Args:
            input: float32, float16, int64, int32 or int8, with any shape.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            The least integer has no positive counterpart and stays as it is.

        Example:
            >>> b.neg(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("neg", [input], {}, label)

    @with_options()
    def reciprocal(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 divided by each element.

        Args:
            input: float32 or float16, with any shape.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            For 0 the result is infinity with the sign of the zero.

        Example:
            >>> b.reciprocal(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("reciprocal", [input], {}, label)

    @with_options()
    def round_even(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Round each element to the nearest integer, a half to the even one.

        Args:
            input: float32 or float16, with any shape.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            2.5 becomes 2 and 3.5 becomes 4.

        Example:
            >>> b.round_even(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("roundEven", [input], {}, label)

    @with_options()
    def sign(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """The sign of each element: 1, 0 or -1.

        Args:
            input: float32, float16, int64, int32 or int8, with any shape.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            0 for NaN.

        Example:
            >>> b.sign(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("sign", [input], {}, label)

    @with_options()
    def sin(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Sine of each element.

        Args:
            input: float32 or float16, with any shape.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            In radians. NaN for infinities. Large arguments are reduced modulo 2 pi.

        Example:
            >>> b.sin(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("sin", [input], {}, label)

    @with_options()
    def sqrt(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Square root of each element.

        Args:
            input: float32 or float16, with any shape.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            NaN for negative elements, except that -0 stays -0.

        Example:
            >>> b.sqrt(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("sqrt", [input], {}, label)

    @with_options()
    def tan(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Tangent of each element.

        Args:
            input: float32 or float16, with any shape.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            In radians. NaN for infinities. Large arguments are reduced modulo 2 pi.

        Example:
            >>> b.tan(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("tan", [input], {}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        roundEven = round_even
