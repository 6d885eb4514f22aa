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
    """log_softmax, rms_normalization."""

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
        rmsNormalization = rms_normalization
