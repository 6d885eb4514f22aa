"""Piecewise linear activations. Without an operand each but prelu gives an `MLActivation`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast, overload

from ...ir.types import TensorType
from ...ops import operator
from ..activation import MLActivation
from ..options import with_options
from ._base import OperatorMethods, require_operands

if TYPE_CHECKING:
    from ..operand import MLOperand
    from .dictionaries import MLClampOptions, MLHardSigmoidOptions, MLLeakyReluOptions, MLLinearOptions, MLOperatorOptions

# hard_swish takes hard_sigmoid's options, which the specification's does not have. They are checked under its own name.
HARD_SWISH = replace(operator("hardSwish"), attrs=operator("hardSigmoid").attrs)


class PiecewiseActivations(OperatorMethods):
    """clamp, hard_sigmoid, hard_swish, leaky_relu, linear, relu, prelu."""

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
    @with_options()
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
            input: Any data type and shape. None makes an MLActivation.
            options: The options below as one dictionary.
            min_value: Least result; no bound where absent.
            max_value: Greatest result; no bound where absent.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape; an MLActivation without `input`.

        Raises:
            MLTypeError: min_value above max_value, a data type that is not allowed, or an operand of another builder.

        Numerics: NaN elements stay NaN. A bound that is NaN is none. Bounds are cast to the data type of the input:
        rounded and saturated.

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
    @with_options()
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
            input: float32 or float16; any shape. None makes an MLActivation.
            options: The options below as one dictionary.
            alpha: Finite.
            beta: Finite.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape; an MLActivation without `input`.

        Raises:
            MLTypeError: An option that is not finite, a data type that is not allowed, or an operand of another
                builder.

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
    @with_options()
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
            input: float32 or float16; any shape. None makes an MLActivation.
            options: The options below as one dictionary.
            alpha: Finite. Not in the specification: where alpha or beta differs from its default, x * hard_sigmoid(x,
                alpha, beta) is computed.
            beta: Finite.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape; an MLActivation without `input`.

        Raises:
            MLTypeError: An option that is not finite, a data type that is not allowed, or an operand of another
                builder.

        Numerics: -0 for -infinity.

        Example:
            >>> b.hard_swish(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-hard-swish
        """
        # A dictionary in place of the operand has become alpha and beta.
        operand = cast("MLOperand | None", input)
        if operand is not None:
            require_operands(HARD_SWISH, [operand], label)
            self._require_own(HARD_SWISH, [operand], label)
        checked = TensorType("float32", ()) if operand is None else operand.type
        _, numbers = HARD_SWISH.check([checked], {"alpha": alpha, "beta": beta}, label)
        if numbers == {"alpha": 1 / 6, "beta": 0.5}:
            return self._activate("hardSwish", operand, {}, label)
        if operand is None:
            return MLActivation(self, "hard_swish", numbers, label)
        gate = self._output("hardSigmoid", [operand], numbers, label)
        return self._output("mul", [operand, gate], label=label)

    @overload
    def leaky_relu(
        self, input: MLOperand, options: MLLeakyReluOptions = {}, *, alpha: float = 0.01, label: str = ""
    ) -> MLOperand: ...
    @overload
    def leaky_relu(self, input: MLLeakyReluOptions | None = None, *, alpha: float = 0.01, label: str = "") -> MLActivation: ...
    @with_options()
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
            input: float32 or float16; any shape. None makes an MLActivation.
            options: The options below as one dictionary.
            alpha: Finite.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape; an MLActivation without `input`.

        Raises:
            MLTypeError: An option that is not finite, a data type that is not allowed, or an operand of another
                builder.

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
            input: float32 or float16; any shape. None makes an MLActivation.
            options: The options below as one dictionary.
            alpha: Finite.
            beta: Finite.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape; an MLActivation without `input`.

        Raises:
            MLTypeError: An option that is not finite, a data type that is not allowed, or an operand of another
                builder.

        Example:
            >>> b.linear(x, alpha=2, beta=1).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-linear
        """
        return self._activate("linear", input, {"alpha": alpha, "beta": beta}, label)

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
            input: float32, float16, int64, int32 or int8; any shape. None makes an MLActivation.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape; an MLActivation without `input`.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Numerics: NaN stays NaN.

        Example:
            >>> b.relu(x).shape
            (2, 3)
            >>> b.relu()
            MLActivation(relu)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-relu-method
        """
        return self._activate("relu", input, {}, label)

    @with_options()
    def prelu(self, input: MLOperand, slope: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """`slope * x` for x below 0, else x.

        Args:
            input: float32, float16, int64, int32 or int8; any shape.
            slope: The same data type; a shape that broadcasts with that of `input`.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of their data type and the broadcast shape.

        Raises:
            MLTypeError: A data type that is not allowed, shapes that do not broadcast, or an operand of another
                builder.

        Example:
            >>> b.prelu(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-prelu
        """
        return self._output("prelu", [input, slope], label=label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        hardSigmoid = hard_sigmoid
        hardSwish = hard_swish
        leakyRelu = leaky_relu
