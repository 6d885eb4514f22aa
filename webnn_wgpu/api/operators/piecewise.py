"""Piecewise linear activations.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from ..options import with_options
from ._forms import OperatorForms

if TYPE_CHECKING:
    from ..activation import MLActivation
    from ..operand import MLOperand
    from .dictionaries import MLClampOptions, MLHardSigmoidOptions, MLLeakyReluOptions, MLLinearOptions, MLOperatorOptions


class PiecewiseActivations(OperatorForms):
    """Piecewise linear activations.

    clamp, hard_sigmoid, hard_swish, leaky_relu, linear, prelu, relu. Without an operand, each method except prelu returns an
    `MLActivation`.
    """

    @overload
    def clamp(
        self,
        input: MLOperand,
        options: MLClampOptions = {},
        *,
        min_value: float | None = None,
        max_value: float | None = None,
        label: str = "",
    ) -> MLOperand: ...
    @overload
    def clamp(
        self,
        input: MLClampOptions | None = None,
        *,
        min_value: float | None = None,
        max_value: float | None = None,
        label: str = "",
    ) -> MLActivation: ...
    @with_options(positions=("min_value", "max_value"))
    def clamp(
        self,
        input: MLOperand | MLClampOptions | None = None,
        options: MLClampOptions = {},
        *,
        min_value: float | None = None,
        max_value: float | None = None,
        label: str = "",
    ) -> MLOperand | MLActivation:
        """Limit each element to a range.

        Args:
            input: Any data type, with any shape. Without it the method returns an MLActivation.
            options: The options that follow, as one dictionary.
            min_value: Least result. By default there is no lower bound.
            max_value: Greatest result. By default there is no upper bound.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`. Without `input`, an MLActivation.

        Raises:
            MLTypeError: min_value is above max_value, the data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            NaN elements stay NaN. A bound that is NaN has no effect. Bounds are cast to the data type of the input: rounded and
            saturated.

        Example:
            >>> b.clamp(x, min_value=0, max_value=6).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-clamp
        """
        return self._activate("clamp", input, {"min_value": min_value, "max_value": max_value}, label)

    @overload
    def hard_sigmoid(
        self, input: MLOperand, options: MLHardSigmoidOptions = {}, *, alpha: float = 0.2, beta: float = 0.5, label: str = ""
    ) -> MLOperand: ...
    @overload
    def hard_sigmoid(
        self, input: MLHardSigmoidOptions | None = None, *, alpha: float = 0.2, beta: float = 0.5, label: str = ""
    ) -> MLActivation: ...
    @with_options(positions=("alpha", "beta"))
    def hard_sigmoid(
        self,
        input: MLOperand | MLHardSigmoidOptions | None = None,
        options: MLHardSigmoidOptions = {},
        *,
        alpha: float = 0.2,
        beta: float = 0.5,
        label: str = "",
    ) -> MLOperand | MLActivation:
        """max(0, min(1, alpha * x + beta)).

        Args:
            input: float32 or float16, with any shape. Without it the method returns an MLActivation.
            options: The options that follow, as one dictionary.
            alpha: Finite.
            beta: Finite.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`. Without `input`, an MLActivation.

        Raises:
            MLTypeError: An option is not finite, the data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.hard_sigmoid(x, alpha=0.1).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-hard-sigmoid
        """
        return self._activate("hardSigmoid", input, {"alpha": alpha, "beta": beta}, label)

    @overload
    def hard_swish(
        self, input: MLOperand, options: MLHardSigmoidOptions = {}, *, alpha: float = 1 / 6, beta: float = 0.5, label: str = ""
    ) -> MLOperand: ...
    @overload
    def hard_swish(
        self, input: MLHardSigmoidOptions | None = None, *, alpha: float = 1 / 6, beta: float = 0.5, label: str = ""
    ) -> MLActivation: ...
    @with_options(positions=("alpha", "beta"))
    def hard_swish(
        self,
        input: MLOperand | MLHardSigmoidOptions | None = None,
        options: MLHardSigmoidOptions = {},
        *,
        alpha: float = 1 / 6,
        beta: float = 0.5,
        label: str = "",
    ) -> MLOperand | MLActivation:
        """`x * max(0, min(6, x + 3)) / 6`.

        Args:
            input: float32 or float16, with any shape. Without it the method returns an MLActivation.
            options: The options that follow, as one dictionary.
            alpha: Finite. This option is not in the specification. If alpha or beta differs from its default, the method
                computes x * hard_sigmoid(x, alpha, beta).
            beta: Finite.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`. Without `input`, an MLActivation.

        Raises:
            MLTypeError: An option is not finite, the data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            -0 for -infinity.

        Example:
            >>> b.hard_swish(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-hard-swish
        """
        return self._hard_swish(input, alpha, beta, label)

    @overload
    def leaky_relu(
        self, input: MLOperand, options: MLLeakyReluOptions = {}, *, alpha: float = 0.01, label: str = ""
    ) -> MLOperand: ...
    @overload
    def leaky_relu(self, input: MLLeakyReluOptions | None = None, *, alpha: float = 0.01, label: str = "") -> MLActivation: ...
    @with_options(positions=("alpha",))
    def leaky_relu(
        self,
        input: MLOperand | MLLeakyReluOptions | None = None,
        options: MLLeakyReluOptions = {},
        *,
        alpha: float = 0.01,
        label: str = "",
    ) -> MLOperand | MLActivation:
        """`alpha * x` for x below 0, else x.

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
            >>> b.leaky_relu(x, alpha=0.1).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-leakyrelu
        """
        return self._activate("leakyRelu", input, {"alpha": alpha}, label)

    @overload
    def linear(
        self, input: MLOperand, options: MLLinearOptions = {}, *, alpha: float = 1.0, beta: float = 0.0, label: str = ""
    ) -> MLOperand: ...
    @overload
    def linear(
        self, input: MLLinearOptions | None = None, *, alpha: float = 1.0, beta: float = 0.0, label: str = ""
    ) -> MLActivation: ...
    @with_options()
    def linear(
        self,
        input: MLOperand | MLLinearOptions | None = None,
        options: MLLinearOptions = {},
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        label: str = "",
    ) -> MLOperand | MLActivation:
        """`alpha * x + beta`.

        Args:
            input: float32 or float16, with any shape. Without it the method returns an MLActivation.
            options: The options that follow, as one dictionary.
            alpha: Finite.
            beta: Finite.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`. Without `input`, an MLActivation.

        Raises:
            MLTypeError: An option is not finite, the data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.linear(x, alpha=2, beta=1).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-linear
        """
        return self._activate("linear", input, {"alpha": alpha, "beta": beta}, label)

    @with_options()
    def prelu(self, input: MLOperand, slope: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """`slope * x` for x below 0, else x.

        Args:
            input: float32, float16, int64, int32 or int8, with any shape.
            slope: The data type of `input`, with a shape that broadcasts with that of `input`.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of their data type with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.prelu(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-prelu
        """
        return self._output("prelu", [input, slope], {}, label)

    @overload
    def relu(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand: ...
    @overload
    def relu(self, input: MLOperatorOptions | None = None, *, label: str = "") -> MLActivation: ...
    @with_options()
    def relu(
        self, input: MLOperand | MLOperatorOptions | None = None, options: MLOperatorOptions = {}, *, label: str = ""
    ) -> MLOperand | MLActivation:
        """max(0, x).

        Args:
            input: float32, float16, int64, int32 or int8, with any shape. Without it the method returns an MLActivation.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`. Without `input`, an MLActivation.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            NaN stays NaN.

        Example:
            >>> b.relu(x).shape
            (2, 3)
            >>> b.relu()
            MLActivation(relu)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-relu-method
        """
        return self._activate("relu", input, {}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        hardSigmoid = hard_sigmoid
        hardSwish = hard_swish
        leakyRelu = leaky_relu
