"""Operators that move elements: transpose, concat, split, slice, expand, pad, tile, reverse; and triangular."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Literal, overload

from ...core.errors import MLTypeError, quoted
from ...ops import operator
from ...ops._attrs import Attr
from ...ops.strided import MAX_PARTS
from ..operand import MLOperand
from ..options import with_options
from ._base import OperatorMethods, require_operands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .dictionaries import (
        MLOperatorOptions,
        MLPadOptions,
        MLReverseOptions,
        MLSliceOptions,
        MLSplitOptions,
        MLTransposeOptions,
        MLTriangularOptions,
    )


class MovementOperators(OperatorMethods):
    """concat, expand, pad, reverse, slice, split, tile, transpose, triangular. Elements keep all their bits."""

    @with_options()
    def concat(self, inputs: Sequence[MLOperand], axis: int, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """Join operands along a dimension.

        Args:
            inputs: One or more operands of one data type, whose shapes differ along `axis` at most; rank 1 or more.
            axis: The dimension.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of their data type; the sizes along `axis` add up.

        Raises:
            MLTypeError: No operands, data types or shapes that differ, an axis that is no dimension, or an operand of
                another builder.

        Example:
            >>> b.concat([x, y], 0).shape
            (4, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-concat
        """
        try:
            # One more than is allowed tells that there are too many, also of an iterable without end.
            operands = list(islice(iter(inputs), MAX_PARTS + 1))
        except TypeError:
            raise MLTypeError(
                "inputs must be a list of operands",
                operator="concat",
                label=label,
                got=f"{quoted(inputs)} ({type(inputs).__name__})",
                allowed="a sequence of MLOperand",
                spec="#api-mlgraphbuilder-concat",
            ) from None
        return self._output("concat", operands, {"axis": axis}, label)

    @with_options()
    def expand(
        self, input: MLOperand, new_shape: Sequence[int], options: MLOperatorOptions = {}, *, label: str = ""
    ) -> MLOperand:
        """Repeat dimensions of size 1, and add dimensions in front, until the shape is `new_shape`.

        Args:
            input: Any data type; a shape that broadcasts to `new_shape`.
            new_shape: The output's shape.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape `new_shape`.

        Raises:
            MLTypeError: A shape that does not broadcast to `new_shape`, or an operand of another builder.

        Example:
            >>> b.expand(x, [4, 2, 3]).shape
            (4, 2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-expand
        """
        return self._output("expand", [input], {"new_shape": new_shape}, label)

    @with_options(padding="beginning_padding")
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
            input: Any data type and shape.
            beginning_padding: How many elements to add before, for each dimension. Without `ending_padding` the numbers
                for the end follow in the same list, which may then be given as `padding=`.
            ending_padding: How many elements to add after, for each dimension. A string here is the mode, as in pywebnn.
            options: The options below as one dictionary.
            mode: "constant", "edge" (repeat the last element), "reflection" (mirror without it) or "symmetric" (mirror
                with it; an option of the 2024 text).
            value: The element for "constant", cast to the input's data type.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and the greater shape.

        Raises:
            MLTypeError: Another number of items than the input has dimensions, more padding than "reflection" allows,
                another mode, or an operand of another builder.

        Example:
            >>> b.pad(x, [0, 1], [0, 2], value=-1).shape
            (2, 6)
            >>> b.pad(x, padding=[0, 1, 0, 2]).shape
            (2, 6)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-pad
        """
        if isinstance(ending_padding, str):
            mode, ending_padding = ending_padding, None
        if ending_padding is None:
            beginning_padding, ending_padding = self._split_padding(input, beginning_padding, label)
        attrs = {
            "beginning_padding": beginning_padding,
            "ending_padding": ending_padding,
            "mode": mode,
            "value": value,
        }
        return self._output("pad", [input], attrs, label)

    def _split_padding(self, input: MLOperand, padding: Sequence[int], label: str) -> tuple[Sequence[int], Sequence[int]]:
        require_operands(operator("pad"), [input], label)
        rank = input.rank
        fail = partial(MLTypeError, operator="pad", label=label, spec="#api-mlgraphbuilder-pad")
        items: tuple[int, ...] = Attr("padding", "uints").convert(padding, fail)
        if len(items) != 2 * rank:
            raise fail(
                "without ending_padding, padding must hold all beginnings and then all ends",
                got=f"{quoted(padding)}, input {input.type}",
                allowed=f"{2 * rank} items",
            )
        return items[:rank], items[rank:]

    @with_options()
    def reverse(
        self, input: MLOperand, options: MLReverseOptions = {}, *, axes: Sequence[int] | None = None, label: str = ""
    ) -> MLOperand:
        """Turn the order of the elements around along dimensions.

        Args:
            input: Any data type and shape.
            options: The options below as one dictionary.
            axes: The dimensions, each once; all where absent.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: An axis that is no dimension of the input or stands twice, or an operand of another builder.

        Example:
            >>> b.reverse(x, axes=[1]).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reverse-method
        """
        return self._output("reverse", [input], {"axes": axes}, label)

    @with_options()
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
            input: Any data type and shape.
            starts: First position of the window, for each dimension.
            sizes: Size of the window before `strides`, 1 or more, for each dimension.
            options: The options below as one dictionary.
            strides: Step within the window, 1 or more, for each dimension; 1 where absent.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type; size ceil(size / stride) along each dimension.

        Raises:
            MLTypeError: Another number of items than the input has dimensions, a window that leaves the input, a size or
                stride of 0, or an operand of another builder.

        Example:
            >>> b.slice(x, [0, 1], [2, 2]).shape
            (2, 2)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-slice
        """
        return self._output("slice", [input], {"starts": starts, "sizes": sizes, "strides": strides}, label)

    @with_options()
    def split(
        self, input: MLOperand, splits: int | Sequence[int], options: MLSplitOptions = {}, *, axis: int = 0, label: str = ""
    ) -> list[MLOperand]:
        """Cut the input into parts along a dimension.

        Args:
            input: Any data type; rank 1 or more.
            splits: Number of equal parts, or the size of each part.
            options: The options below as one dictionary.
            axis: The dimension.
            label: The operator's name in messages.

        Returns:
            A list of operands of the input's data type, in order.

        Raises:
            MLTypeError: A number that does not divide the input's size along `axis`, sizes that do not add up to it or
                hold 0, an axis that is no dimension of the input, or an operand of another builder.

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
            input: Any data type and shape.
            repetitions: How many times, 1 or more, for each dimension.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type; sizes are multiplied by `repetitions`.

        Raises:
            MLTypeError: Another number of items than the input has dimensions, a 0, or an operand of another builder.

        Example:
            >>> b.tile(x, [1, 2]).shape
            (2, 6)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-tile
        """
        return self._output("tile", [input], {"repetitions": repetitions}, label)

    @with_options()
    def transpose(
        self, input: MLOperand, options: MLTransposeOptions = {}, *, permutation: Sequence[int] | None = None, label: str = ""
    ) -> MLOperand:
        """Reorder the dimensions.

        Args:
            input: Any data type and shape.
            options: The options below as one dictionary.
            permutation: For each dimension of the output, the input's dimension; reversed order where absent.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and the permuted shape.

        Raises:
            MLTypeError: Something other than a permutation of the input's dimensions, or an operand of another builder.

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
        """Keep the upper or the lower triangle of the last two dimensions; the rest becomes 0.

        Args:
            input: Any data type; rank 2 or more.
            upper: Whether the upper triangle is kept, not the lower one.
            diagonal: The diagonal the triangle ends with: 0 the main one, above 0 further up and right.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: A rank below 2, a diagonal that is no 32-bit integer, or an operand of another builder.

        Numerics: What is removed is 0 exactly, also where it was NaN.

        Example:
            >>> b.triangular(x, upper=False, diagonal=-1).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-triangular
        """
        return self._output("triangular", [input], {"upper": upper, "diagonal": diagonal}, label)
