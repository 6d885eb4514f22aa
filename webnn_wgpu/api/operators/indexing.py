"""Operators that move elements to or from places that indices name: gathering and scattering.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..options import with_options
from ._base import OperatorMethods

if TYPE_CHECKING:
    from ..operand import MLOperand
    from .dictionaries import MLGatherOptions, MLOperatorOptions, MLScatterOptions


class IndexingOperators(OperatorMethods):
    """gather, gather_elements, gather_nd, scatter_elements, scatter_nd. Elements keep all their bits."""

    @with_options(positions=("axis",))
    def gather(
        self, input: MLOperand, indices: MLOperand, options: MLGatherOptions = {}, *, axis: int = 0, label: str = ""
    ) -> MLOperand:
        """Take the slices along a dimension that `indices` names.

        Args:
            input: Any data type, with rank 1 or more.
            indices: int32, uint32 or int64, with any shape.
            options: The options that follow, as one dictionary.
            axis: The dimension of `input`.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type. Its shape is the input's, with the shape of `indices` in place of dimension
            `axis`.

        Raises:
            MLTypeError: The axis is not a dimension of the input, the data type of the indices is not allowed, or an operand
                belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            A negative index counts from the end. An index out of range is limited to the first or last.

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
        """Take single elements, whose coordinate along one dimension is replaced by an index.

        Args:
            input: Any data type, with rank 1 or more.
            indices: int32, uint32 or int64, with the input's shape except in dimension `axis`.
            options: The options that follow, as one dictionary.
            axis: The dimension.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and the shape of `indices`. With axis 1 its element [i, j, k] is `input[i,
            indices[i, j, k], k]`.

        Raises:
            MLTypeError: The axis is not a dimension of the input, the data type or shape of the indices is not allowed, or an
                operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            A negative index counts from the end. An index out of range is limited to the first or last.

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
            input: Any data type, with rank 1 or more.
            indices: int32, uint32 or int64, with rank 1 or more. The last dimension holds the leading coordinates of a slice.
                There are as many as the input has dimensions for single elements, or fewer.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type. Its shape is that of `indices` without the last dimension, followed by the
            dimensions of `input` behind the coordinates.

        Raises:
            MLTypeError: There are more coordinates than the input has dimensions, the data type of the indices is not allowed,
                or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            A negative index counts from the end. An index out of range is limited to the first or last.

        Example:
            >>> indices = b.constant(np.array([[1, 2], [0, 0]], np.int32))
            >>> b.gather_nd(x, indices).shape
            (2,)
            >>> b.gather_nd(x, b.constant(np.array([[1], [0], [1]], np.int32))).shape
            (3, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-gathernd
        """
        return self._output("gatherND", [input, indices], {}, label)

    @with_options(positions=("axis",))
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
        """Copy the input and replace single elements, whose coordinate along one dimension is an index.

        Args:
            input: Any data type, with rank 1 or more.
            indices: int32, uint32 or int64, with the input's shape except in dimension `axis`.
            updates: The input's data type and the shape of `indices`. With axis 1, element [i, j, k] replaces `input[i,
                indices[i, j, k], k]`.
            options: The options that follow, as one dictionary.
            axis: The dimension.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape.

        Raises:
            MLTypeError: The axis is not a dimension of the input, the data type or shape of indices or updates is not allowed,
                or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            A negative index counts from the end. An index out of range is limited to the first or last. Of several updates of
            one element, the last in row-major order wins on every device.

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
            input: Any data type, with rank 1 or more.
            indices: int32, uint32 or int64, with rank 1 or more. The last dimension holds the leading coordinates of a slice.
                There are as many as the input has dimensions for single elements, or fewer.
            updates: The input's data type. The shape is that of `indices` without its last dimension, followed by the
                dimensions of `input` behind the coordinates.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape.

        Raises:
            MLTypeError: The number of coordinates exceeds the number of dimensions of the input. The data type of the indices
                is not allowed, the data type or shape of the updates is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            A negative index counts from the end. An index out of range is limited to the first or last. Of several updates of
            one slice, the last in row-major order wins on every device.

        Example:
            >>> row = b.constant(np.array([[-1]], np.int32))
            >>> b.scatter_nd(x, row, b.constant(np.float32([[7, 8, 9]]))).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-scatternd
        """
        return self._output("scatterND", [input, indices, updates], {}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        gatherElements = gather_elements
        gatherND = gather_nd
        scatterElements = scatter_elements
        scatterND = scatter_nd
