"""Extension operators along one dimension."""

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
        """Product of all elements up to each, along one dimension.

        Args:
            input: float32, float16, int32, uint32, int64 or uint64; rank 1 to 8.
            axis: The dimension.
            exclusive: Whether an element's own value is left out of its product; the first is 1 then.
            reversed: Whether products start at the end of the dimension.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: An axis or data type that is not allowed, or an operand of another builder.

        Numerics: Floats are multiplied in float32, in blocks, and rounded once; integers wrap.

        Example:
            >>> b.ext.cumulative_product(x, 1).shape
            (2, 3)
        """
        options = {"axis": axis, "exclusive": exclusive, "reversed": reversed}
        return self._output("x.cumulative_product", [input], options, label)

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
        """The k largest or smallest elements along a dimension, and where they are. With k its size this sorts.

        Args:
            input: Any data type; rank 1 to 8.
            k: How many, 1 to the size of the dimension.
            axis: The dimension; negative numbers count from the last.
            largest: Whether the largest elements are wanted, else the smallest.
            sorted: Whether they must be in order, the largest or the smallest first. They are in any case.
            indices_data_type: "int64" or "int32".
            label: The operator's name in messages.

        Returns:
            The values, of the input's data type, and their indices along `axis`. Both have the input's shape with k in place
            of the dimension's size.

        Raises:
            MLTypeError: k or axis out of range, a data type that is not allowed, or an operand of another builder.

        Numerics: As numpy's stable sort: of equal elements the one with the lowest index comes first, both zeros are equal,
            and NaN counts as larger than all numbers.

        Example:
            >>> values, indices = b.ext.top_k(x, 2)
            >>> values, indices
            (MLOperand(float32[2, 2]), MLOperand(int64[2, 2]))
        """
        options = {"axis": axis, "largest": largest, "sorted": sorted, "indices_data_type": indices_data_type}
        return self._outputs("x.top_k", [input], {"k": k, **options}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        cumulativeProduct = cumulative_product
        topK = top_k
