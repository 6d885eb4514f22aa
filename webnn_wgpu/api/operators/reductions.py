"""Reductions over dimensions, and the cumulative sum.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..options import with_options
from ._base import OperatorMethods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..operand import MLOperand
    from .dictionaries import MLCumulativeSumOptions, MLReduceOptions


class ReductionOperators(OperatorMethods):
    """Reductions over dimensions, and the cumulative sum.

    cumulative_sum, reduce_l1, reduce_l2, reduce_log_sum, reduce_log_sum_exp, reduce_max, reduce_mean, reduce_min,
    reduce_product, reduce_sum, reduce_sum_square. Sums of float16 are kept in float32.
    """

    @with_options()
    def cumulative_sum(
        self,
        input: MLOperand,
        axis: int,
        options: MLCumulativeSumOptions = {},
        *,
        exclusive: bool = False,
        reversed: bool = False,
        label: str = "",
    ) -> MLOperand:
        """Sum of all elements up to each element, along a dimension.

        Args:
            input: float32, float16, int32, uint32, int64 or uint64, with rank 1 or more.
            axis: The dimension.
            options: The options that follow, as one dictionary.
            exclusive: Whether an element's own value is left out of its sum, so that the first sum is 0.
            reversed: Whether sums run from the last element to the first.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape.

        Raises:
            MLTypeError: The axis is not a dimension of the input, the data type is not allowed, or an operand belongs to
                another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Integers wrap around. After a NaN, or after infinities of both signs, all sums are NaN.

        Example:
            >>> b.cumulative_sum(x, 1, exclusive=True).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-cumulativesum
        """
        return self._output("cumulativeSum", [input], {"axis": axis, "exclusive": exclusive, "reversed": reversed}, label)

    @with_options(positions=("axes", "keep_dimensions"))
    def reduce_l1(
        self,
        input: MLOperand,
        options: MLReduceOptions = {},
        *,
        axes: Sequence[int] | None = None,
        keep_dimensions: bool = False,
        label: str = "",
    ) -> MLOperand:
        """Sum of absolute values over dimensions.

        Args:
            input: float32, float16, int32, uint32, int64 or uint64, with any shape.
            options: The options that follow, as one dictionary.
            axes: Dimensions to reduce, each once. The default is all dimensions. With [] the function is applied to each
                element.
            keep_dimensions: Whether the reduced dimensions stay, with size 1.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type, and with its shape without the reduced dimensions.

        Raises:
            MLTypeError: An axis is not a dimension of the input or is repeated, the data type is not allowed, or an operand
                belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Integers wrap around.

        Example:
            >>> b.reduce_l1(x, axes=[1], keep_dimensions=True).shape
            (2, 1)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reduce
        """
        return self._output("reduceL1", [input], {"axes": axes, "keep_dimensions": keep_dimensions}, label)

    @with_options(positions=("axes", "keep_dimensions"))
    def reduce_l2(
        self,
        input: MLOperand,
        options: MLReduceOptions = {},
        *,
        axes: Sequence[int] | None = None,
        keep_dimensions: bool = False,
        label: str = "",
    ) -> MLOperand:
        """Square root of the sum of squares over dimensions.

        Args:
            input: float32 or float16, with any shape.
            options: The options that follow, as one dictionary.
            axes: Dimensions to reduce, each once. The default is all dimensions. With [] the function is applied to each
                element.
            keep_dimensions: Whether the reduced dimensions stay, with size 1.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type, and with its shape without the reduced dimensions.

        Raises:
            MLTypeError: An axis is not a dimension of the input or is repeated, the data type is not allowed, or an operand
                belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.reduce_l2(x, axes=[1], keep_dimensions=True).shape
            (2, 1)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reduce
        """
        return self._output("reduceL2", [input], {"axes": axes, "keep_dimensions": keep_dimensions}, label)

    @with_options(positions=("axes", "keep_dimensions"))
    def reduce_log_sum(
        self,
        input: MLOperand,
        options: MLReduceOptions = {},
        *,
        axes: Sequence[int] | None = None,
        keep_dimensions: bool = False,
        label: str = "",
    ) -> MLOperand:
        """Natural logarithm of the sum over dimensions.

        Args:
            input: float32 or float16, with any shape.
            options: The options that follow, as one dictionary.
            axes: Dimensions to reduce, each once. The default is all dimensions. With [] the function is applied to each
                element.
            keep_dimensions: Whether the reduced dimensions stay, with size 1.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type, and with its shape without the reduced dimensions.

        Raises:
            MLTypeError: An axis is not a dimension of the input or is repeated, the data type is not allowed, or an operand
                belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            -infinity for a sum of 0, NaN for a negative sum.

        Example:
            >>> b.reduce_log_sum(x, axes=[1], keep_dimensions=True).shape
            (2, 1)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reduce
        """
        return self._output("reduceLogSum", [input], {"axes": axes, "keep_dimensions": keep_dimensions}, label)

    @with_options(positions=("axes", "keep_dimensions"))
    def reduce_log_sum_exp(
        self,
        input: MLOperand,
        options: MLReduceOptions = {},
        *,
        axes: Sequence[int] | None = None,
        keep_dimensions: bool = False,
        label: str = "",
    ) -> MLOperand:
        """Natural logarithm of the sum of exponentials over dimensions.

        Args:
            input: float32 or float16, with any shape.
            options: The options that follow, as one dictionary.
            axes: Dimensions to reduce, each once. The default is all dimensions. With [] the function is applied to each
                element.
            keep_dimensions: Whether the reduced dimensions stay, with size 1.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type, and with its shape without the reduced dimensions.

        Raises:
            MLTypeError: An axis is not a dimension of the input or is repeated, the data type is not allowed, or an operand
                belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            The result is finite even if an exponential would overflow.

        Example:
            >>> b.reduce_log_sum_exp(x, axes=[1], keep_dimensions=True).shape
            (2, 1)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reduce
        """
        return self._output("reduceLogSumExp", [input], {"axes": axes, "keep_dimensions": keep_dimensions}, label)

    @with_options(positions=("axes", "keep_dimensions"))
    def reduce_max(
        self,
        input: MLOperand,
        options: MLReduceOptions = {},
        *,
        axes: Sequence[int] | None = None,
        keep_dimensions: bool = False,
        label: str = "",
    ) -> MLOperand:
        """Greatest element over dimensions.

        Args:
            input: Any data type, with any shape.
            options: The options that follow, as one dictionary.
            axes: Dimensions to reduce, each once. The default is all dimensions. With [] the function is applied to each
                element.
            keep_dimensions: Whether the reduced dimensions stay, with size 1.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type, and with its shape without the reduced dimensions.

        Raises:
            MLTypeError: An axis is not a dimension of the input or is repeated, the data type is not allowed, or an operand
                belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            NaN if any element is NaN.

        Example:
            >>> b.reduce_max(x, axes=[1], keep_dimensions=True).shape
            (2, 1)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reduce
        """
        return self._output("reduceMax", [input], {"axes": axes, "keep_dimensions": keep_dimensions}, label)

    @with_options(positions=("axes", "keep_dimensions"))
    def reduce_mean(
        self,
        input: MLOperand,
        options: MLReduceOptions = {},
        *,
        axes: Sequence[int] | None = None,
        keep_dimensions: bool = False,
        label: str = "",
    ) -> MLOperand:
        """Mean over dimensions.

        Args:
            input: float32 or float16, with any shape.
            options: The options that follow, as one dictionary.
            axes: Dimensions to reduce, each once. The default is all dimensions. With [] the function is applied to each
                element.
            keep_dimensions: Whether the reduced dimensions stay, with size 1.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type, and with its shape without the reduced dimensions.

        Raises:
            MLTypeError: An axis is not a dimension of the input or is repeated, the data type is not allowed, or an operand
                belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.reduce_mean(x, axes=[1], keep_dimensions=True).shape
            (2, 1)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reduce
        """
        return self._output("reduceMean", [input], {"axes": axes, "keep_dimensions": keep_dimensions}, label)

    @with_options(positions=("axes", "keep_dimensions"))
    def reduce_min(
        self,
        input: MLOperand,
        options: MLReduceOptions = {},
        *,
        axes: Sequence[int] | None = None,
        keep_dimensions: bool = False,
        label: str = "",
    ) -> MLOperand:
        """Least element over dimensions.

        Args:
            input: Any data type, with any shape.
            options: The options that follow, as one dictionary.
            axes: Dimensions to reduce, each once. The default is all dimensions. With [] the function is applied to each
                element.
            keep_dimensions: Whether the reduced dimensions stay, with size 1.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type, and with its shape without the reduced dimensions.

        Raises:
            MLTypeError: An axis is not a dimension of the input or is repeated, the data type is not allowed, or an operand
                belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            NaN if any element is NaN.

        Example:
            >>> b.reduce_min(x, axes=[1], keep_dimensions=True).shape
            (2, 1)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reduce
        """
        return self._output("reduceMin", [input], {"axes": axes, "keep_dimensions": keep_dimensions}, label)

    @with_options(positions=("axes", "keep_dimensions"))
    def reduce_product(
        self,
        input: MLOperand,
        options: MLReduceOptions = {},
        *,
        axes: Sequence[int] | None = None,
        keep_dimensions: bool = False,
        label: str = "",
    ) -> MLOperand:
        """Product over dimensions.

        Args:
            input: float32, float16, int32, uint32, int64 or uint64, with any shape.
            options: The options that follow, as one dictionary.
            axes: Dimensions to reduce, each once. The default is all dimensions. With [] the function is applied to each
                element.
            keep_dimensions: Whether the reduced dimensions stay, with size 1.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type, and with its shape without the reduced dimensions.

        Raises:
            MLTypeError: An axis is not a dimension of the input or is repeated, the data type is not allowed, or an operand
                belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Integers wrap around.

        Example:
            >>> b.reduce_product(x, axes=[1], keep_dimensions=True).shape
            (2, 1)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reduce
        """
        return self._output("reduceProduct", [input], {"axes": axes, "keep_dimensions": keep_dimensions}, label)

    @with_options(positions=("axes", "keep_dimensions"))
    def reduce_sum(
        self,
        input: MLOperand,
        options: MLReduceOptions = {},
        *,
        axes: Sequence[int] | None = None,
        keep_dimensions: bool = False,
        label: str = "",
    ) -> MLOperand:
        """Sum over dimensions.

        Args:
            input: float32, float16, int32, uint32, int64 or uint64, with any shape.
            options: The options that follow, as one dictionary.
            axes: Dimensions to reduce, each once. The default is all dimensions. With [] the function is applied to each
                element.
            keep_dimensions: Whether the reduced dimensions stay, with size 1.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type, and with its shape without the reduced dimensions.

        Raises:
            MLTypeError: An axis is not a dimension of the input or is repeated, the data type is not allowed, or an operand
                belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Integers wrap around.

        Example:
            >>> b.reduce_sum(x, axes=[1], keep_dimensions=True).shape
            (2, 1)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reduce
        """
        return self._output("reduceSum", [input], {"axes": axes, "keep_dimensions": keep_dimensions}, label)

    @with_options(positions=("axes", "keep_dimensions"))
    def reduce_sum_square(
        self,
        input: MLOperand,
        options: MLReduceOptions = {},
        *,
        axes: Sequence[int] | None = None,
        keep_dimensions: bool = False,
        label: str = "",
    ) -> MLOperand:
        """Sum of squares over dimensions.

        Args:
            input: float32, float16, int32, uint32, int64 or uint64, with any shape.
            options: The options that follow, as one dictionary.
            axes: Dimensions to reduce, each once. The default is all dimensions. With [] the function is applied to each
                element.
            keep_dimensions: Whether the reduced dimensions stay, with size 1.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type, and with its shape without the reduced dimensions.

        Raises:
            MLTypeError: An axis is not a dimension of the input or is repeated, the data type is not allowed, or an operand
                belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Integers wrap around.

        Example:
            >>> b.reduce_sum_square(x, axes=[1], keep_dimensions=True).shape
            (2, 1)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reduce
        """
        return self._output("reduceSumSquare", [input], {"axes": axes, "keep_dimensions": keep_dimensions}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        cumulativeSum = cumulative_sum
        reduceL1 = reduce_l1
        reduceL2 = reduce_l2
        reduceLogSum = reduce_log_sum
        reduceLogSumExp = reduce_log_sum_exp
        reduceMax = reduce_max
        reduceMean = reduce_mean
        reduceMin = reduce_min
        reduceProduct = reduce_product
        reduceSum = reduce_sum
        reduceSumSquare = reduce_sum_square
