"""The position of the greatest and of the least element.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..options import with_options
from ._base import OperatorMethods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..operand import MLOperand
    from .dictionaries import MLArgMinMaxOptions


class ArgMinMaxOperators(OperatorMethods):
    """arg_max, arg_min."""

    @with_options(positions=("keep_dimensions", "output_data_type"))
    def arg_max(
        self,
        input: MLOperand,
        axis: int | None = None,
        options: MLArgMinMaxOptions = {},
        *,
        axes: Sequence[int] | None = None,
        keep_dimensions: bool = False,
        select_last_index: bool = False,
        output_data_type: Literal["int32", "int64"] | None = None,
        label: str = "",
    ) -> MLOperand:
        """Position of the greatest element along a dimension.

        Args:
            input: Any data type, with any shape. The rank must be 1 or more if `axis` is given.
            axis: The dimension. The draft requires it. Without it the rules of the 2024 text hold.
            options: The options that follow, as one dictionary.
            axes: Several dimensions, in place of `axis`. Without both, all dimensions. The position is then counted over them
                in row-major order.
            keep_dimensions: Whether the reduced dimensions stay, with size 1.
            select_last_index: Whether the last of several equal elements counts instead of the first.
            output_data_type: Data type of the positions. The default is int32 with `axis`, else int64.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of int32 or int64, with the input's shape without the reduced dimensions.

        Raises:
            MLTypeError: Both axis and axes are given, an axis is not a dimension of the input or is repeated, the output data
                type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            The first NaN wins.

        Example:
            >>> b.arg_max(x, 1)
            MLOperand(int32[2])
            >>> b.arg_max(x, axes=[0, 1])
            MLOperand(int64[])

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-argminmax
        """
        return self._output(
            "argMax",
            [input],
            {
                "axis": axis,
                "axes": axes,
                "keep_dimensions": keep_dimensions,
                "select_last_index": select_last_index,
                "output_data_type": output_data_type,
            },
            label,
        )

    @with_options(positions=("keep_dimensions", "output_data_type"))
    def arg_min(
        self,
        input: MLOperand,
        axis: int | None = None,
        options: MLArgMinMaxOptions = {},
        *,
        axes: Sequence[int] | None = None,
        keep_dimensions: bool = False,
        select_last_index: bool = False,
        output_data_type: Literal["int32", "int64"] | None = None,
        label: str = "",
    ) -> MLOperand:
        """Position of the least element along a dimension.

        Args:
            input: Any data type, with any shape. The rank must be 1 or more if `axis` is given.
            axis: The dimension. The draft requires it. Without it the rules of the 2024 text hold.
            options: The options that follow, as one dictionary.
            axes: Several dimensions, in place of `axis`. Without both, all dimensions. The position is then counted over them
                in row-major order.
            keep_dimensions: Whether the reduced dimensions stay, with size 1.
            select_last_index: Whether the last of several equal elements counts instead of the first.
            output_data_type: Data type of the positions. The default is int32 with `axis`, else int64.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of int32 or int64, with the input's shape without the reduced dimensions.

        Raises:
            MLTypeError: Both axis and axes are given, an axis is not a dimension of the input or is repeated, the output data
                type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            The first NaN wins.

        Example:
            >>> b.arg_min(x, 1)
            MLOperand(int32[2])
            >>> b.arg_min(x, axes=[0, 1])
            MLOperand(int64[])

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-argminmax
        """
        return self._output(
            "argMin",
            [input],
            {
                "axis": axis,
                "axes": axes,
                "keep_dimensions": keep_dimensions,
                "select_last_index": select_last_index,
                "output_data_type": output_data_type,
            },
            label,
        )

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        argMax = arg_max
        argMin = arg_min
