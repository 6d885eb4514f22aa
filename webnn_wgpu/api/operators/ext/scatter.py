"""Extension operators that combine elements with updates at places that indices name.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ...options import with_options
from .._base import OperatorMethods

if TYPE_CHECKING:
    from ...operand import MLOperand


class ScatterExtensions(OperatorMethods):
    """scatter_elements, scatter_nd."""

    @with_options()
    def scatter_elements(
        self,
        input: MLOperand,
        indices: MLOperand,
        updates: MLOperand,
        *,
        axis: int = 0,
        reduction: Literal["none", "add", "mul", "max", "min"] = "none",
        label: str = "",
    ) -> MLOperand:
        """Copy the input and combine single elements with updates, as ONNX's ScatterElements does.

        An index along one dimension names each element.

        Args:
            input: Any data type, with rank 1 to 8.
            indices: int32, uint32 or int64, with the rank of `input`, and larger than it in no dimension except `axis`.
                Negative indices count from the end of the dimension, and are then clamped to it.
            updates: The input's data type and the shape of `indices`.
            axis: The dimension. Negative numbers count from the last.
            reduction: "none" (the update takes the element's place), "add", "mul", "max" or "min".
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape.

        Raises:
            MLTypeError: Shapes or data types do not fit, the reduction is unknown, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Updates of one element are applied in their order, on every device. Floats are combined in float32 and rounded once.
            Integers wrap around. The larger or smaller of a number and NaN is NaN.

        Example:
            >>> places = b.constant(np.int32([[0, 0]]))
            >>> b.ext.scatter_elements(x, places, b.constant(np.float32([[1, 2]])), axis=1, reduction="add").shape
            (2, 3)
        """
        return self._output("x.scatter_elements", [input, indices, updates], {"axis": axis, "reduction": reduction}, label)

    @with_options()
    def scatter_nd(
        self,
        input: MLOperand,
        indices: MLOperand,
        updates: MLOperand,
        *,
        reduction: Literal["none", "add", "mul", "max", "min"] = "none",
        label: str = "",
    ) -> MLOperand:
        """Copy the input and combine slices with updates, as ONNX's ScatterND does.

        The leading coordinates name each slice.

        Args:
            input: Any data type, with rank 1 to 8.
            indices: int32, uint32 or int64. The last dimension holds the coordinates. Negative coordinates count from the end
                of their dimension, and are then clamped to it.
            updates: The input's data type. The shape is that of `indices` without its last dimension, followed by the input's
                dimensions behind the coordinates.
            reduction: "none" (the update takes the slice's place), "add", "mul", "max" or "min".
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape.

        Raises:
            MLTypeError: Shapes or data types do not fit, the reduction is unknown, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Updates of one element are applied in their order, on every device. Floats are combined in float32 and rounded once.
            Integers wrap around. The larger or smaller of a number and NaN is NaN.

        Example:
            >>> rows = b.constant(np.int32([[1], [1]]))
            >>> b.ext.scatter_nd(x, rows, b.constant(np.ones((2, 3), np.float32)), reduction="add").shape
            (2, 3)
        """
        return self._output("x.scatter_nd", [input, indices, updates], {"reduction": reduction}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        scatterElements = scatter_elements
        scatterNd = scatter_nd
