"""Extension operators that combine elements with updates at places that indices name."""

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
        """A copy in which elements, named by an index along one dimension, are combined with updates: ONNX's ScatterElements.

        Args:
            input: Any data type; rank 1 to 8.
            indices: int32, uint32 or int64; the rank of `input`, and in no dimension but `axis` larger. Negative ones count
                from the end of the dimension; then they are clamped to it.
            updates: The data type of `input`; the shape of `indices`.
            axis: The dimension; negative numbers count from the last.
            reduction: "none" (the update takes the element's place), "add", "mul", "max" or "min".
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: Shapes or data types that do not fit, an unknown reduction, or an operand of another builder.

        Numerics: Updates of one element are taken in their order, whatever the device. Floats are combined in float32 and
            rounded once; integers wrap; the larger or smaller of a number and NaN is NaN.

        Example:
            >>> places = b.constant(np.int32([[0, 0]]))
            >>> b.ext.scatter_elements(x, places, b.constant(np.float32([[1, 2]])), axis=1, reduction="add").shape
            (2, 3)
        """
        options = {"axis": axis, "reduction": reduction}
        return self._output("x.scatter_elements", [input, indices, updates], options, label)

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
        """A copy in which slices, named by their leading coordinates, are combined with updates: ONNX's ScatterND.

        Args:
            input: Any data type; rank 1 to 8.
            indices: int32, uint32 or int64; the last dimension holds the coordinates. Negative ones count from the end of
                their dimension; then they are clamped to it.
            updates: The data type of `input`; the shape of `indices` without its last dimension, followed by the input's
                dimensions behind the coordinates.
            reduction: "none" (the update takes the slice's place), "add", "mul", "max" or "min".
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: Shapes or data types that do not fit, an unknown reduction, or an operand of another builder.

        Numerics: As for `scatter_elements`.

        Example:
            >>> rows = b.constant(np.int32([[1], [1]]))
            >>> b.ext.scatter_nd(x, rows, b.constant(np.ones((2, 3), np.float32)), reduction="add").shape
            (2, 3)
        """
        return self._output("x.scatter_nd", [input, indices, updates], {"reduction": reduction}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        scatterElements = scatter_elements
        scatterND = scatter_nd
