"""Matrix products and softmax.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from ..options import with_options
from ._forms import OperatorForms

if TYPE_CHECKING:
    from ..activation import MLActivation
    from ..operand import MLOperand
    from .dictionaries import MLGemmOptions, MLOperatorOptions


class MatrixOperators(OperatorForms):
    """gemm, matmul, softmax. Sums are kept in float32."""

    @with_options(positions=("c", "alpha", "beta", "a_transpose", "b_transpose"))
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
        """`alpha * (A @ B) + beta * C`, where A and B are `a` and `b`, transposed if an option says so.

        Args:
            a: float32 or float16, with the shape [M, K], or [K, M] with `a_transpose`.
            b: The data type of `a`, with the shape [K, N], or [N, K] with `b_transpose`.
            options: The options that follow, as one dictionary.
            c: The data type of `a`, with a shape that broadcasts to [M, N]. A vector has one element per column.
            alpha: Finite.
            beta: Finite.
            a_transpose: Whether `a` is transposed.
            b_transpose: Whether `b` is transposed.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with their data type and the shape [M, N].

        Raises:
            MLTypeError: A rank is not 2, the two values of K differ, `c` does not broadcast to [M, N], data types differ or are
                not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.gemm(x, y, b_transpose=True).shape
            (2, 2)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-gemm
        """
        return self._output(
            "gemm", [a, b, c], {"alpha": alpha, "beta": beta, "a_transpose": a_transpose, "b_transpose": b_transpose}, label
        )

    @with_options()
    def matmul(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Matrix product over the last two dimensions. The other dimensions broadcast as in numpy.

        Args:
            a: float32 or float16, with the shape [..., M, K].
            b: The data type of `a`, with the shape [..., K, N].
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with their data type and the shape [..., M, N].

        Raises:
            MLTypeError: A rank is below 2, the two values of K differ, the other dimensions do not broadcast, data types differ
                or are not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.matmul(x, b.transpose(y)).shape
            (2, 2)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-matmul
        """
        return self._output("matmul", [a, b], {}, label)

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
            input: float32 or float16, with rank 1 or more. Without it the method returns an MLActivation, which can be applied
                to 2-D results only.
            axis: The dimension, counted from 0. It may be left out for a 2-D input, where it is 1.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape. Without `input`, an MLActivation.

        Raises:
            MLTypeError: The axis is not a dimension of the input or is left out, the data type is not allowed, or an operand
                belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Exponentials do not overflow. All of a row is NaN if it holds NaN or infinity, or only -infinity.

        Example:
            >>> b.softmax(x, 1).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-softmax-method
        """
        return self._softmax(input, axis, label)
