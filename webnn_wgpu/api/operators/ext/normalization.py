"""Extension operators that normalize."""

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
            input: float32 or float16 of rank 1 or more.
            axis: The dimension, counted from 0.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: An axis that is no dimension of the input, a data type that is not allowed, or an operand of another
                builder.

        Numerics: Finite where softmax is too small for a number. All of a row is NaN where it holds NaN or infinity, or
            -infinity alone.

        Example:
            >>> b.ext.log_softmax(x, 1)
            MLOperand(float32[2, 3])
        """
        return self._output("x.log_softmax", [input], {"axis": axis}, label=label)

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
        """`scale * x / sqrt(mean(x * x) + epsilon)`, the mean taken along `axes`.

        Args:
            input: float32 or float16 of rank 1 or more.
            scale: The same data type, shape `[input.shape[axis] for axis in axes]`; 1 where absent.
            axes: Dimensions of the input; the last one where absent.
            epsilon: Finite; cast to the input's data type.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: An axis that is no dimension of the input or stands twice, a scale of another shape, data types that
                differ or are not allowed, or an operand of another builder.

        Example:
            >>> b.ext.rms_normalization(x, epsilon=1e-6)
            MLOperand(float32[2, 3])
        """
        return self._output("x.rms_normalization", [input, scale], {"axes": axes, "epsilon": epsilon}, label=label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        logSoftmax = log_softmax
        rmsNormalization = rms_normalization
