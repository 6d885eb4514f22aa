"""Extension operators along one dimension.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ...options import with_options
from .._base import OperatorMethods

if TYPE_CHECKING:
    from ...operand import MLOperand


class SortingExtensions(OperatorMethods):
    """cumulative_product, top_k."""

    @with_options()
    def cumulative_product(
        self, input: MLOperand, axis: int, *, exclusive: bool = False, reversed: bool = False, label: str = ""
    ) -> MLOperand:
        """Product of all elements up to each element, along a dimension.

        Args:
            input: float32, float16, int32, uint32, int64 or uint64, with rank 1 to 8.
            axis: The dimension.
            exclusive: Whether an element's own value is left out of its product, so that the first product is 1.
            reversed: Whether products start at the end of the dimension.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape.

        Raises:
            MLTypeError: The axis or the data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Floats are multiplied in float32, in blocks, and rounded once. Integers wrap around.

        Example:
            >>> b.ext.cumulative_product(x, 1).shape
            (2, 3)
        """
        return self._output(
            "x.cumulative_product", [input], {"axis": axis, "exclusive": exclusive, "reversed": reversed}, label
        )

    @with_options()
    def top_k(
        self,
        input: MLOperand,
        k: int,
        *,
        axis: int = -1,
        largest: bool = True,
        sorted: bool = True,
        indices_data_type: Literal["int32", "int64"] = "int64",
        label: str = "",
    ) -> list[MLOperand]:
        """The k largest or smallest elements along a dimension, and their positions.

        If k is the size of the dimension, this sorts it.

        Args:
            input: Any data type, with rank 1 to 8.
            k: Number of elements, 1 to the size of the dimension.
            axis: The dimension. Negative numbers count from the last.
            largest: Whether the largest elements are taken instead of the smallest.
            sorted: Whether the results must be in order, the largest or the smallest first. They are in any case.
            indices_data_type: "int64" or "int32".
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            The values, with the input's data type, and their indices along `axis`. Both have the input's shape with k in place
            of the dimension's size.

        Raises:
            MLTypeError: k or the axis is out of range, a data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            The order is that of numpy's stable sort. Of equal elements, the one with the lowest index comes first. Both zeros
            are equal, and NaN counts as larger than all numbers.

        Example:
            >>> values, indices = b.ext.top_k(x, 2)
            >>> values, indices
            (MLOperand(float32[2, 2]), MLOperand(int64[2, 2]))
        """
        return self._outputs(
            "x.top_k",
            [input],
            {"k": k, "axis": axis, "largest": largest, "sorted": sorted, "indices_data_type": indices_data_type},
            label,
        )

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        cumulativeProduct = cumulative_product
        topK = top_k
