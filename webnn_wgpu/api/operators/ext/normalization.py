"""Extension operators that normalize.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...options import with_options
from .._base import OperatorMethods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...operand import MLOperand


class NormalizationExtensions(OperatorMethods):
    """log_softmax, normalization_gradient, rms_normalization."""

    @with_options()
    def log_softmax(self, input: MLOperand, axis: int, *, label: str = "") -> MLOperand:
        """The logarithm of softmax: `x - max - log(sum(exp(x - max)))` along a dimension.

        Args:
            input: float32 or float16, with rank 1 or more.
            axis: The dimension, counted from 0.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape.

        Raises:
            MLTypeError: The axis is not a dimension of the input, the data type is not allowed, or an operand belongs to
                another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            The result is finite even if softmax is too small for a number. All of a row is NaN if it holds NaN or infinity, or
            only -infinity.

        Example:
            >>> b.ext.log_softmax(x, 1)
            MLOperand(float32[2, 3])
        """
        return self._output("x.log_softmax", [input], {"axis": axis}, label)

    @with_options()
    def normalization_gradient(
        self,
        gradient: MLOperand,
        input: MLOperand,
        axes: Sequence[int],
        *,
        scale: MLOperand | None = None,
        addend: MLOperand | None = None,
        epsilon: float = 1e-05,
        centered: bool = True,
        products: bool = False,
        label: str = "",
    ) -> list[MLOperand]:
        """The gradient of a normalization of rows with respect to its input, for `gradients`.

        With n = (x - mean) / sqrt(variance + epsilon) and h = gradient * scale, it is `(h - mean(h) - n * mean(h * n)) /
        sqrt(variance + epsilon) + addend`, with the means along `axes`.

        Args:
            gradient: float32 or float16, the gradient of the result.
            input: The data type and shape of `gradient`: the input of the normalization.
            axes: Dimensions that are normalized.
            scale: The same data type, with a shape that broadcasts to the input's. The default is 1.
            addend: The same data type and shape as the input: another gradient of it. The default is 0.
            epsilon: Finite. It is cast to the input's data type.
            centered: Whether the normalization subtracts the mean. RMS normalization does not.
            products: Whether `gradient * n` is a second result. Its sums are the gradient of the scale.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            A list of the gradient of the input, with its data type and shape. With `products` a float32 operand of that shape
            follows.

        Raises:
            MLTypeError: An axis is not a dimension of the input or is repeated, shapes do not fit, data types differ, or an
                operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.ext.normalization_gradient(x, x, axes=[1])
            [MLOperand(float32[2, 3])]
        """
        return self._outputs(
            "x.normalization_gradient",
            [gradient, input, scale, addend],
            {"axes": axes, "epsilon": epsilon, "centered": centered, "products": products},
            label,
        )

    @with_options()
    def rms_normalization(
        self,
        input: MLOperand,
        *,
        scale: MLOperand | None = None,
        axes: Sequence[int] | None = None,
        epsilon: float = 1e-05,
        label: str = "",
    ) -> MLOperand:
        """`scale * x / sqrt(mean(x * x) + epsilon)`, with the mean along `axes`.

        Args:
            input: float32 or float16, with rank 1 or more.
            scale: The input's data type, with the shape `[input.shape[axis] for axis in axes]`. The default is 1 for all
                elements.
            axes: Dimensions of the input. The default is the last one.
            epsilon: Finite. It is cast to the input's data type.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape.

        Raises:
            MLTypeError: An axis is not a dimension of the input or is repeated, the scale has another shape, data types differ
                or are not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.ext.rms_normalization(x, epsilon=1e-6)
            MLOperand(float32[2, 3])
        """
        return self._output("x.rms_normalization", [input, scale], {"axes": axes, "epsilon": epsilon}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        logSoftmax = log_softmax
        normalizationGradient = normalization_gradient
        rmsNormalization = rms_normalization
