"""Operators that move elements.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from ..options import with_options
from ._forms import OperatorForms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..operand import MLOperand
    from .dictionaries import (
        MLOperatorOptions,
        MLPadOptions,
        MLReverseOptions,
        MLSliceOptions,
        MLSplitOptions,
        MLTransposeOptions,
        MLTriangularOptions,
    )


class MovementOperators(OperatorForms):
    """concat, expand, pad, reverse, slice, split, tile, transpose, triangular. Elements keep all their bits."""

    @with_options()
    def concat(self, inputs: Sequence[MLOperand], axis: int, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Join operands along a dimension.

        Args:
            inputs: One or more operands of one data type and of rank 1 or more. Their shapes may differ along `axis` only.
            axis: The dimension.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with their data type. The sizes along `axis` add up.

        Raises:
            MLTypeError: There is no operand, the data types or shapes differ, the axis is not a dimension, or an operand
                belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.concat([x, y], 0).shape
            (4, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-concat
        """
        return self._variadic("concat", inputs, {"axis": axis}, label)

    @with_options()
    def expand(
        self, input: MLOperand, new_shape: Sequence[int], options: MLOperatorOptions = {}, *, label: str = ""
    ) -> MLOperand:
        """Repeat dimensions of size 1, and add dimensions in front, until the shape is `new_shape`.

        Args:
            input: Any data type, with a shape that broadcasts to `new_shape`.
            new_shape: The output's shape.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and the shape `new_shape`.

        Raises:
            MLTypeError: The input's shape does not broadcast to `new_shape`, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.expand(x, [4, 2, 3]).shape
            (4, 2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-expand
        """
        return self._output("expand", [input], {"new_shape": new_shape}, label)

    @with_options(positions=("value",), padding="beginning_padding")
    def pad(
        self,
        input: MLOperand,
        beginning_padding: Sequence[int],
        ending_padding: Sequence[int] | Literal["constant", "edge", "reflection", "symmetric"] | None = None,
        options: MLPadOptions = {},
        *,
        mode: Literal["constant", "edge", "reflection", "symmetric"] = "constant",
        value: float = 0,
        label: str = "",
    ) -> MLOperand:
        """Add elements before and after the input along each dimension.

        Args:
            input: Any data type, with any shape.
            beginning_padding: Number of elements to add before the input, for each dimension. Without `ending_padding`, the
                numbers for the end follow in the same list, which may then be given as `padding=`.
            ending_padding: Number of elements to add after the input, for each dimension. A string here is the mode, as in
                pywebnn.
            options: The options that follow, as one dictionary.
            mode: "constant", "edge" (repeats the last element), "reflection" (mirrors without the last element) or "symmetric"
                (mirrors with the last element, a mode of the 2024 text).
            value: The added element for "constant". It is cast to the input's data type.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and the larger shape.

        Raises:
            MLTypeError: A list does not have one item per dimension, there is more padding than reflection allows, the mode is
                unknown, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.pad(x, [0, 1], [0, 2], value=-1).shape
            (2, 6)
            >>> b.pad(x, padding=[0, 1, 0, 2]).shape
            (2, 6)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-pad
        """
        return self._pad(input, beginning_padding, ending_padding, mode, value, label)

    @with_options()
    def reverse(
        self, input: MLOperand, options: MLReverseOptions = {}, *, axes: Sequence[int] | None = None, label: str = ""
    ) -> MLOperand:
        """Reverse the order of the elements along dimensions.

        Args:
            input: Any data type, with any shape.
            options: The options that follow, as one dictionary.
            axes: The dimensions, each once. The default is all dimensions.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape.

        Raises:
            MLTypeError: An axis is not a dimension of the input or is repeated, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.reverse(x, axes=[1]).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reverse-method
        """
        return self._output("reverse", [input], {"axes": axes}, label)

    @with_options(positions=("strides",))
    def slice(
        self,
        input: MLOperand,
        starts: Sequence[int],
        sizes: Sequence[int],
        options: MLSliceOptions = {},
        *,
        strides: Sequence[int] | None = None,
        label: str = "",
    ) -> MLOperand:
        """Take a window of the input, or every n-th element of it.

        Args:
            input: Any data type, with any shape.
            starts: First position of the window, for each dimension.
            sizes: Size of the window before `strides` apply, 1 or more, for each dimension.
            options: The options that follow, as one dictionary.
            strides: Step within the window, 1 or more, for each dimension. The default is 1 everywhere.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type. Its size is ceil(size / stride) along each dimension.

        Raises:
            MLTypeError: A list does not have one item per dimension, the window leaves the input, a size or stride is 0, or an
                operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.slice(x, [0, 1], [2, 2]).shape
            (2, 2)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-slice
        """
        return self._output("slice", [input], {"starts": starts, "sizes": sizes, "strides": strides}, label)

    @with_options(positions=("axis",))
    def split(
        self, input: MLOperand, splits: int | Sequence[int], options: MLSplitOptions = {}, *, axis: int = 0, label: str = ""
    ) -> list[MLOperand]:
        """Cut the input into parts along a dimension.

        Args:
            input: Any data type, with rank 1 or more.
            splits: Number of equal parts, or the size of each part.
            options: The options that follow, as one dictionary.
            axis: The dimension.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            A list of operands with the input's data type, in order.

        Raises:
            MLTypeError: The number does not divide the input's size along `axis`, or the sizes do not add up to it. A size is
                0, the axis is not a dimension of the input, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> [part.shape for part in b.split(x, [1, 2], axis=1)]
            [(2, 1), (2, 2)]

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-split
        """
        return self._outputs("split", [input], {"splits": splits, "axis": axis}, label)

    @with_options()
    def tile(
        self, input: MLOperand, repetitions: Sequence[int], options: MLOperatorOptions = {}, *, label: str = ""
    ) -> MLOperand:
        """Repeat the whole input along each dimension.

        Args:
            input: Any data type, with any shape.
            repetitions: Number of repetitions, 1 or more, for each dimension.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type. Its sizes are those of the input times `repetitions`.

        Raises:
            MLTypeError: The list does not have one item per dimension, an item is 0, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.tile(x, [1, 2]).shape
            (2, 6)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-tile
        """
        return self._output("tile", [input], {"repetitions": repetitions}, label)

    @with_options(positions=("permutation",))
    def transpose(
        self, input: MLOperand, options: MLTransposeOptions = {}, *, permutation: Sequence[int] | None = None, label: str = ""
    ) -> MLOperand:
        """Reorder the dimensions.

        Args:
            input: Any data type, with any shape.
            options: The options that follow, as one dictionary.
            permutation: For each dimension of the output, the input's dimension. The default reverses the order.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and the permuted shape.

        Raises:
            MLTypeError: The permutation is not one of the input's dimensions, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.transpose(x).shape
            (3, 2)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-transpose
        """
        return self._output("transpose", [input], {"permutation": permutation}, label)

    @overload
    def triangular(
        self, input: MLOperand, upper: bool = True, diagonal: int = 0, options: MLTriangularOptions = {}, *, label: str = ""
    ) -> MLOperand: ...
    @overload
    def triangular(self, input: MLOperand, options: MLTriangularOptions, /, *, label: str = "") -> MLOperand: ...
    @with_options()
    def triangular(
        self,
        input: MLOperand,
        upper: bool | MLTriangularOptions = True,
        diagonal: int = 0,
        options: MLTriangularOptions = {},
        *,
        label: str = "",
    ) -> MLOperand:
        """Keep the upper or the lower triangle of the last two dimensions and set the rest to 0.

        Args:
            input: Any data type, with rank 2 or more.
            upper: Whether the upper triangle is kept instead of the lower one.
            diagonal: The diagonal where the triangle ends: 0 is the main diagonal, and larger numbers lie further up and right.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape.

        Raises:
            MLTypeError: The rank is below 2, the diagonal is not a 32-bit integer, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Removed elements become exactly 0, even if they are NaN.

        Example:
            >>> b.triangular(x, upper=False, diagonal=-1).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-triangular
        """
        return self._output("triangular", [input], {"upper": upper, "diagonal": diagonal}, label)
