"""Matrix products and softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, overload

from ...core.errors import MLTypeError
from ...ops import operator
from ..activation import MLActivation, make_activation
from ..options import with_options
from ._base import OperatorMethods, require_operands

if TYPE_CHECKING:
    from ..operand import MLOperand
    from .dictionaries import MLGemmOptions, MLOperatorOptions

SOFTMAX = "#api-mlgraphbuilder-softmax-method"


class MatrixOperators(OperatorMethods):
    """gemm, matmul, softmax. Sums are kept in float32."""

    @with_options()
    def gemm(
        self,
        a: MLOperand,
        b: MLOperand,
        options: MLGemmOptions = {},
        *,
        c: MLOperand | None = None,
        alpha: float = 1.0,
        beta: float = 1.0,
        a_transpose: bool = False,
        b_transpose: bool = False,
        label: str = "",
    ) -> MLOperand:
        """`alpha * (A @ B) + beta * C`, where A and B are `a` and `b`, transposed if so wanted.

        Args:
            a: float32 or float16 [M, K]; [K, M] with `a_transpose`.
            b: The same data type [K, N]; [N, K] with `b_transpose`.
            options: The options below as one dictionary.
            c: The same data type, a shape that broadcasts to [M, N]: a vector lies along the columns.
            alpha: Finite.
            beta: Finite.
            a_transpose: Whether `a` is transposed.
            b_transpose: Whether `b` is transposed.
            label: The operator's name in messages.

        Returns:
            An operand of their data type, [M, N].

        Raises:
            MLTypeError: Ranks other than 2, values of K that differ, a `c` that does not broadcast to [M, N], data types
                that differ or are not allowed, or an operand of another builder.

        Example:
            >>> b.gemm(x, y, b_transpose=True).shape
            (2, 2)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-gemm
        """
        attrs = {"alpha": alpha, "beta": beta, "a_transpose": a_transpose, "b_transpose": b_transpose}
        return self._output("gemm", [a, b, c], attrs, label)

    @with_options()
    def matmul(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Matrix product over the last two dimensions; the others broadcast as in numpy.

        Args:
            a: float32 or float16 [..., M, K].
            b: The same data type [..., K, N].
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of their data type, [..., M, N].

        Raises:
            MLTypeError: Ranks below 2, values of K that differ, other dimensions that do not broadcast, data types that
                differ or are not allowed, or an operand of another builder.

        Example:
            >>> b.matmul(x, b.transpose(y)).shape
            (2, 2)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-matmul
        """
        return self._output("matmul", [a, b], label=label)

    @overload
    def softmax(
        self, input: MLOperand, axis: int | None = None, options: MLOperatorOptions = {}, *, label: str = ""
    ) -> MLOperand: ...
    @overload
    def softmax(self, input: MLOperatorOptions | None = None, axis: None = None, *, label: str = "") -> MLActivation: ...
    @with_options()
    def softmax(
        self,
        input: MLOperand | MLOperatorOptions | None = None,
        axis: int | None = None,
        options: MLOperatorOptions = {},
        *,
        label: str = "",
    ) -> MLOperand | MLActivation:
        """exp(x - max) / sum(exp(x - max)) along a dimension.

        Args:
            input: float32 or float16 of rank 1 or more. None makes an MLActivation, which takes 2-D results only.
            axis: The dimension, counted from 0. May be left out for a 2-D input, where it is 1.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape; an MLActivation without `input`.

        Raises:
            MLTypeError: An axis that is no dimension of the input or is left out, a data type that is not allowed, or an
                operand of another builder.

        Numerics: Does not overflow. All of a row is NaN where it holds NaN or infinity, or -infinity alone.

        Example:
            >>> b.softmax(x, 1).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-softmax-method
        """
        # A dictionary in place of the operand holds a label alone, which has become `label`.
        operand = cast("MLOperand | None", input)
        if operand is None:
            if axis is not None:
                raise MLTypeError(
                    "an activation has no axis: it is applied to the last dimension of a 2-D result",
                    operator="softmax",
                    label=label,
                    got=f"axis={axis}",
                    spec=SOFTMAX,
                )
            return make_activation(self, "softmax", {}, label)
        require_operands(operator("softmax"), [operand], label)
        if axis is None and operand.rank != 2:
            raise MLTypeError(
                "axis is required unless rank(input) is 2",
                operator="softmax",
                label=label,
                got=f"input {operand.type}",
                spec=SOFTMAX,
            )
        return self._output("softmax", [operand], {"axis": 1 if axis is None else axis}, label)
