"""Smooth activations.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from ..options import with_options
from ._base import OperatorMethods

if TYPE_CHECKING:
    from ..activation import MLActivation
    from ..operand import MLOperand
    from .dictionaries import MLEluOptions, MLOperatorOptions, MLSoftplusOptions


class SmoothActivations(OperatorMethods):
    """elu, gelu, sigmoid, softplus, softsign, tanh. Without an operand, each method returns an `MLActivation`."""

    @overload
    def elu(self, input: MLOperand, options: MLEluOptions = {}, *, alpha: float = 1.0, label: str = "") -> MLOperand: ...
    @overload
    def elu(self, input: MLEluOptions | None = None, *, alpha: float = 1.0, label: str = "") -> MLActivation: ...
    @with_options(positions=("alpha",))
    def elu(
        self, input: MLOperand | MLEluOptions | None = None, options: MLEluOptions = {}, *, alpha: float = 1.0, label: str = ""
    ) -> MLOperand | MLActivation:
        """`alpha * (exp(x) - 1)` for x below 0, else x.

        Args:
            input: float32 or float16, with any shape. Without it the method returns an MLActivation.
            options: The options that follow, as one dictionary.
            alpha: Finite.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`. Without `input`, an MLActivation.

        Raises:
            MLTypeError: An option is not finite, the data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.elu(x, alpha=0.5).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-elu
        """
        return self._activate("elu", input, {"alpha": alpha}, label)

    @overload
    def gelu(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand: ...
    @overload
    def gelu(self, input: MLOperatorOptions | None = None, *, label: str = "") -> MLActivation: ...
    @with_options()
    def gelu(
        self, input: MLOperand | MLOperatorOptions | None = None, options: MLOperatorOptions = {}, *, label: str = ""
    ) -> MLOperand | MLActivation:
        """0.5 * x * (1 + erf(x / sqrt(2))).

        Args:
            input: float32 or float16, with any shape. Without it the method returns an MLActivation.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`. Without `input`, an MLActivation.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            The error function itself is computed, not the approximation by tanh. The result is -0 for -infinity.

        Example:
            >>> b.gelu(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-gelu-method
        """
        return self._activate("gelu", input, {}, label)

    @overload
    def sigmoid(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand: ...
    @overload
    def sigmoid(self, input: MLOperatorOptions | None = None, *, label: str = "") -> MLActivation: ...
    @with_options()
    def sigmoid(
        self, input: MLOperand | MLOperatorOptions | None = None, options: MLOperatorOptions = {}, *, label: str = ""
    ) -> MLOperand | MLActivation:
        """1 / (1 + exp(-x)).

        Args:
            input: float32 or float16, with any shape. Without it the method returns an MLActivation.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`. Without `input`, an MLActivation.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            The result reaches 0 and 1 without overflow.

        Example:
            >>> b.sigmoid(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-sigmoid-method
        """
        return self._activate("sigmoid", input, {}, label)

    @overload
    def softplus(
        self, input: MLOperand, options: MLSoftplusOptions = {}, *, steepness: float = 1.0, label: str = ""
    ) -> MLOperand: ...
    @overload
    def softplus(self, input: MLSoftplusOptions | None = None, *, steepness: float = 1.0, label: str = "") -> MLActivation: ...
    @with_options()
    def softplus(
        self,
        input: MLOperand | MLSoftplusOptions | None = None,
        options: MLSoftplusOptions = {},
        *,
        steepness: float = 1.0,
        label: str = "",
    ) -> MLOperand | MLActivation:
        """ln(1 + exp(steepness * x)) / steepness.

        Args:
            input: float32 or float16, with any shape. Without it the method returns an MLActivation.
            options: The options that follow, as one dictionary.
            steepness: A finite number. It is an option of the 2024 text.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`. Without `input`, an MLActivation.

        Raises:
            MLTypeError: An option is not finite, the data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Large elements do not overflow.

        Example:
            >>> b.softplus(x, steepness=2).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-softplus-method
        """
        return self._activate("softplus", input, {"steepness": steepness}, label)

    @overload
    def softsign(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand: ...
    @overload
    def softsign(self, input: MLOperatorOptions | None = None, *, label: str = "") -> MLActivation: ...
    @with_options()
    def softsign(
        self, input: MLOperand | MLOperatorOptions | None = None, options: MLOperatorOptions = {}, *, label: str = ""
    ) -> MLOperand | MLActivation:
        """`x / (1 + |x|)`.

        Args:
            input: float32 or float16, with any shape. Without it the method returns an MLActivation.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`. Without `input`, an MLActivation.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            1 and -1 at the infinities.

        Example:
            >>> b.softsign(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-softsign-method
        """
        return self._activate("softsign", input, {}, label)

    @overload
    def tanh(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand: ...
    @overload
    def tanh(self, input: MLOperatorOptions | None = None, *, label: str = "") -> MLActivation: ...
    @with_options()
    def tanh(
        self, input: MLOperand | MLOperatorOptions | None = None, options: MLOperatorOptions = {}, *, label: str = ""
    ) -> MLOperand | MLActivation:
        """Hyperbolic tangent of each element.

        Args:
            input: float32 or float16, with any shape. Without it the method returns an MLActivation.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`. Without `input`, an MLActivation.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.tanh(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-tanh-method
        """
        return self._activate("tanh", input, {}, label)
