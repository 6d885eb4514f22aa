"""The position of the greatest and of the least element."""

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

    @with_options()
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
            input: Any data type; rank 1 or more where `axis` is given.
            axis: The dimension. Required by the draft; without it the rules of the 2024 text hold.
            options: The options below as one dictionary.
            axes: Several dimensions, in place of `axis`, all where absent: the position is then counted over them in
                row-major order.
            keep_dimensions: Whether the reduced dimensions stay, with size 1.
            select_last_index: Whether the last of equal elements counts, not the first.
            output_data_type: "int32" or "int64"; where absent int32 with `axis`, else int64.
            label: The operator's name in messages.

        Returns:
            An operand of int32 or int64 and the shape without the reduced dimensions.

        Raises:
            MLTypeError: Both axis and axes, an axis that is no dimension of the input or stands twice, another output
                data type, or an operand of another builder.

        Numerics: The first NaN wins.

        Example:
            >>> b.arg_max(x, 1)
            MLOperand(int32[2])
            >>> b.arg_max(x, axes=[0, 1])
            MLOperand(int64[])

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-argminmax
        """
        attrs = {
            "axis": axis,
            "axes": axes,
            "keep_dimensions": keep_dimensions,
            "select_last_index": select_last_index,
            "output_data_type": output_data_type,
        }
        return self._output("argMax", [input], attrs, label)

    @with_options()
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
            input: Any data type; rank 1 or more where `axis` is given.
            axis: The dimension. Required by the draft; without it the rules of the 2024 text hold.
            options: The options below as one dictionary.
            axes: Several dimensions, in place of `axis`, all where absent: the position is then counted over them in
                row-major order.
            keep_dimensions: Whether the reduced dimensions stay, with size 1.
            select_last_index: Whether the last of equal elements counts, not the first.
            output_data_type: "int32" or "int64"; where absent int32 with `axis`, else int64.
            label: The operator's name in messages.

        Returns:
            An operand of int32 or int64 and the shape without the reduced dimensions.

        Raises:
            MLTypeError: Both axis and axes, an axis that is no dimension of the input or stands twice, another output
                data type, or an operand of another builder.

        Numerics: The first NaN wins.

        Example:
            >>> b.arg_min(x, 1)
            MLOperand(int32[2])
            >>> b.arg_min(x, axes=[0, 1])
            MLOperand(int64[])

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-argminmax
        """
        attrs = {
            "axis": axis,
            "axes": axes,
            "keep_dimensions": keep_dimensions,
            "select_last_index": select_last_index,
            "output_data_type": output_data_type,
        }
        return self._output("argMin", [input], attrs, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        argMax = arg_max
        argMin = arg_min
