"""Extension operators that interpolate between elements.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ...options import with_options
from .._base import OperatorMethods

if TYPE_CHECKING:
    from ...operand import MLOperand


class SamplingExtensions(OperatorMethods):
    """grid_sample, weighted_gather."""

    @with_options()
    def grid_sample(
        self,
        input: MLOperand,
        grid: MLOperand,
        *,
        mode: Literal["nearest", "linear", "cubic"] = "linear",
        padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
        align_corners: bool = False,
        label: str = "",
    ) -> MLOperand:
        """Values of images or volumes at positions between their elements, as ONNX's GridSample computes them.

        Args:
            input: float32 or float16, with the shape [batch, channels, height, width] or [batch, channels, depth, height,
                width].
            grid: float32 or float16, with the shape [batch, new height, new width, 2] or [batch, new depth, new height, new
                width, 3]. It holds coordinates, that of the width first, from -1 at one end of the input to 1 at the other.
            mode: "linear", "nearest" or "cubic".
            padding_mode: Values beyond the ends: "zeros", "border" (the elements at the ends) or "reflection".
            align_corners: Whether -1 and 1 are the middles of the elements at the ends instead of their outer edges.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and the shape [batch, channels, new height, new width], or with a new depth.

        Raises:
            MLTypeError: The shapes do not fit, a data type or option is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Coordinates, weights and sums are float32. With the mode "nearest" halves are rounded to even. The cubic kernel has
            a = -0.75. Coordinates that are NaN lie beyond the first element.

        Example:
            >>> places = b.constant(np.zeros((1, 3, 5, 2), np.float32))
            >>> b.ext.grid_sample(image, places, padding_mode="border").shape
            (1, 2, 3, 5)
        """
        return self._output(
            "x.grid_sample", [input, grid], {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}, label
        )

    @with_options()
    def weighted_gather(
        self, input: MLOperand, indices: MLOperand, weights: MLOperand, *, axis: int = 0, label: str = ""
    ) -> MLOperand:
        """Weighted sums of elements: output[..., o, ...] = sum over t of weights[o, t] input[..., indices[o, t], ...].

        Args:
            input: float32 or float16, with rank 1 to 8.
            indices: int32, uint32 or int64, with the shape [new size, elements per sum] and at most 15000 elements. Negative
                indices count from the end of the dimension, and are then clamped to it.
            weights: float32, with the shape of `indices`.
            axis: The dimension.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape, and with the new size along `axis`.

        Raises:
            MLTypeError: Shapes or data types do not fit, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Sums are in float32 and in the order of the indices. Elements of weight 0 do not count, even NaN.

        Example:
            >>> pairs = b.constant(np.int32([[0, 1], [1, 2]]))
            >>> b.ext.weighted_gather(x, pairs, b.constant(np.full((2, 2), 0.5, np.float32)), axis=1).shape
            (2, 2)
        """
        return self._output("x.weighted_gather", [input, indices, weights], {"axis": axis}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        gridSample = grid_sample
        weightedGather = weighted_gather
