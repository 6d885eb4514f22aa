"""Operators that move elements to or from places that indices name: gathering and scattering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..options import with_options
from ._base import OperatorMethods

if TYPE_CHECKING:
    from ..operand import MLOperand
    from .dictionaries import MLGatherOptions, MLOperatorOptions, MLScatterOptions


class IndexingOperators(OperatorMethods):
    """gather, gatherElements, gatherND, scatterElements, scatterND. Elements keep all their bits."""

    @with_options()
    def gather(
        self, input: MLOperand, indices: MLOperand, options: MLGatherOptions = {}, *, axis: int = 0, label: str = ""
    ) -> MLOperand:
        """Take the slices along a dimension that `indices` names.

        Args:
            input: Any data type; rank 1 or more.
            indices: int32, uint32 or int64; any shape.
            options: The options below as one dictionary.
            axis: The dimension of `input`.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type; its shape has that of `indices` in place of dimension `axis`.

        Raises:
            MLTypeError: An axis that is no dimension of the input, indices of another data type, or an operand of another
                builder.

        Numerics: A negative index counts from the end; one that is out of range is limited to the first or last.

        Example:
            >>> b.gather(x, b.arg_max(x, 0), axis=1).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-gather
        """
        return self._output("gather", [input, indices], {"axis": axis}, label)

    @with_options()
    def gather_elements(
        self, input: MLOperand, indices: MLOperand, options: MLGatherOptions = {}, *, axis: int = 0, label: str = ""
    ) -> MLOperand:
        """Take single elements, whose coordinate along a dimension is replaced by an index.

        Args:
            input: Any data type; rank 1 or more.
            indices: int32, uint32 or int64; the input's shape, but for dimension `axis`.
            options: The options below as one dictionary.
            axis: The dimension.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and the shape of `indices`. With axis 1 its element [i, j, k] is
            `input[i, indices[i, j, k], k]`.

        Raises:
            MLTypeError: An axis that is no dimension of the input, indices of another data type or shape, or an operand of
                another builder.

        Numerics: A negative index counts from the end; one that is out of range is limited to the first or last.

        Example:
            >>> indices = b.constant(np.array([[2, 0, 0, -1], [1, 1, 1, 0]], np.int32))
            >>> b.gather_elements(x, indices, axis=1).shape
            (2, 4)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-gatherelements
        """
        return self._output("gatherElements", [input, indices], {"axis": axis}, label)

    @with_options()
    def gather_nd(self, input: MLOperand, indices: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Take the slices at coordinates.

        Args:
            input: Any data type; rank 1 or more.
            indices: int32, uint32 or int64; rank 1 or more. Its last dimension holds the leading coordinates of a slice:
                as many as the input has dimensions, for single elements, or fewer.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type; its shape is that of `indices` without the last dimension, followed by the
            dimensions of `input` behind the coordinates.

        Raises:
            MLTypeError: More coordinates than the input has dimensions, indices of another data type, or an operand of
                another builder.

        Numerics: A negative index counts from the end; one that is out of range is limited to the first or last.

        Example:
            >>> indices = b.constant(np.array([[1, 2], [0, 0]], np.int32))
            >>> b.gather_nd(x, indices).shape
            (2,)
            >>> b.gather_nd(x, b.constant(np.array([[1], [0], [1]], np.int32))).shape
            (3, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-gathernd
        """
        return self._output("gatherND", [input, indices], label=label)

    @with_options()
    def scatter_elements(
        self,
        input: MLOperand,
        indices: MLOperand,
        updates: MLOperand,
        options: MLScatterOptions = {},
        *,
        axis: int = 0,
        label: str = "",
    ) -> MLOperand:
        """Copy the input and replace single elements, whose coordinate along a dimension is an index.

        Args:
            input: Any data type; rank 1 or more.
            indices: int32, uint32 or int64; the input's shape, but for dimension `axis`.
            updates: The input's data type; the shape of `indices`. With axis 1 element [i, j, k] replaces
                `input[i, indices[i, j, k], k]`.
            options: The options below as one dictionary.
            axis: The dimension.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: An axis that is no dimension of the input, indices of another data type or shape, updates of another
                data type or shape, or an operand of another builder.

        Numerics: A negative index counts from the end; one that is out of range is limited to the first or last. Of several
            updates of one element the last in row-major order wins, on every device.

        Example:
            >>> indices = b.constant(np.array([[2], [0]], np.int32))
            >>> b.scatter_elements(x, indices, b.constant(np.float32([[5], [6]])), axis=1).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-scatterelements
        """
        return self._output("scatterElements", [input, indices, updates], {"axis": axis}, label)

    @with_options()
    def scatter_nd(
        self, input: MLOperand, indices: MLOperand, updates: MLOperand, options: MLOperatorOptions = {}, *, label: str = ""
    ) -> MLOperand:
        """Copy the input and replace the slices at coordinates.

        Args:
            input: Any data type; rank 1 or more.
            indices: int32, uint32 or int64; rank 1 or more. Its last dimension holds the leading coordinates of a slice:
                as many as the input has dimensions, for single elements, or fewer.
            updates: The input's data type; the shape of `indices` without its last dimension, followed by the dimensions of
                `input` behind the coordinates.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: More coordinates than the input has dimensions, indices of another data type, updates of another
                data type or shape, or an operand of another builder.

        Numerics: A negative index counts from the end; one that is out of range is limited to the first or last. Of several
            updates of one slice the last in row-major order wins, on every device.

        Example:
            >>> row = b.constant(np.array([[-1]], np.int32))
            >>> b.scatter_nd(x, row, b.constant(np.float32([[7, 8, 9]]))).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-scatternd
        """
        return self._output("scatterND", [input, indices, updates], label=label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        gatherElements = gather_elements
        gatherND = gather_nd
        scatterElements = scatter_elements
        scatterND = scatter_nd
