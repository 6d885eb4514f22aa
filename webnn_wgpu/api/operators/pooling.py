"""Pooling over windows, and resampling.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..options import with_options
from ._base import OperatorMethods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..operand import MLOperand
    from .dictionaries import MLPool2dOptions, MLResample2dOptions


class PoolingOperators(OperatorMethods):
    """average_pool2d, l2_pool2d, max_pool2d, resample2d."""

    @with_options(
        positions=("window_dimensions", "strides", "dilations", "padding", "layout"),
        pads="padding",
        rounding_type="output_shape_rounding",
    )
    def average_pool2d(
        self,
        input: MLOperand,
        options: MLPool2dOptions = {},
        *,
        window_dimensions: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        layout: Literal["nchw", "nhwc"] = "nchw",
        output_shape_rounding: Literal["floor", "ceil"] = "floor",
        output_sizes: Sequence[int] | None = None,
        label: str = "",
    ) -> MLOperand:
        """Mean of the elements in each window.

        Args:
            input: float32 or float16, with rank 4 in the order of `layout`.
            options: The options that follow, as one dictionary.
            window_dimensions: Height and width of the window in elements. The default is those of the input.
            padding: Elements that are added to the input on its top, bottom, left and right side. The default is 0.
            strides: Steps from one window to the next, down and across. The default is 1.
            dilations: Steps from one element of a window to the next, down and across. The default is 1.
            layout: "nchw" or "nhwc", of input and output.
            output_shape_rounding: "floor" leaves out a last window that fits only in part, "ceil" takes it. The option may also
                be written `rounding_type`, as in the 2024 text.
            output_sizes: The output's height and width, both rounded down or both rounded up. They take the place of
                `output_shape_rounding`.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and layout. Its height and width are `(padded - ((window - 1) * dilation + 1))
            / stride + 1`, rounded.

        Raises:
            MLTypeError: The rank is not 4, or a list has another length. A window, stride or dilation is 0, or a window does
                not fit into the padded input. The output sizes are those of neither rounding. The layout or rounding is
                unknown, the data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Padding does not count: a mean is taken over the elements that lie within the input, and is 0 if there is none.

        Example:
            >>> b.average_pool2d(image, window_dimensions=[2, 2], strides=[2, 2]).shape
            (1, 2, 2, 2)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-pool2d
        """
        return self._output(
            "averagePool2d",
            [input],
            {
                "window_dimensions": window_dimensions,
                "padding": padding,
                "strides": strides,
                "dilations": dilations,
                "layout": layout,
                "output_shape_rounding": output_shape_rounding,
                "output_sizes": output_sizes,
            },
            label,
        )

    @with_options(pads="padding", rounding_type="output_shape_rounding")
    def l2_pool2d(
        self,
        input: MLOperand,
        options: MLPool2dOptions = {},
        *,
        window_dimensions: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        layout: Literal["nchw", "nhwc"] = "nchw",
        output_shape_rounding: Literal["floor", "ceil"] = "floor",
        output_sizes: Sequence[int] | None = None,
        label: str = "",
    ) -> MLOperand:
        """Square root of the sum of squares of the elements in each window.

        Args:
            input: float32 or float16, with rank 4 in the order of `layout`.
            options: The options that follow, as one dictionary.
            window_dimensions: Height and width of the window in elements. The default is those of the input.
            padding: Elements that are added to the input on its top, bottom, left and right side. The default is 0.
            strides: Steps from one window to the next, down and across. The default is 1.
            dilations: Steps from one element of a window to the next, down and across. The default is 1.
            layout: "nchw" or "nhwc", of input and output.
            output_shape_rounding: "floor" leaves out a last window that fits only in part, "ceil" takes it. The option may also
                be written `rounding_type`, as in the 2024 text.
            output_sizes: The output's height and width, both rounded down or both rounded up. They take the place of
                `output_shape_rounding`.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and layout. Its height and width are `(padded - ((window - 1) * dilation + 1))
            / stride + 1`, rounded.

        Raises:
            MLTypeError: The rank is not 4, or a list has another length. A window, stride or dilation is 0, or a window does
                not fit into the padded input. The output sizes are those of neither rounding. The layout or rounding is
                unknown, the data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            The result is 0 if no element of a window lies within the input.

        Example:
            >>> b.l2_pool2d(image, window_dimensions=[2, 2], strides=[2, 2]).shape
            (1, 2, 2, 2)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-pool2d
        """
        return self._output(
            "l2Pool2d",
            [input],
            {
                "window_dimensions": window_dimensions,
                "padding": padding,
                "strides": strides,
                "dilations": dilations,
                "layout": layout,
                "output_shape_rounding": output_shape_rounding,
                "output_sizes": output_sizes,
            },
            label,
        )

    @with_options(
        positions=("window_dimensions", "strides", "dilations", "padding", "layout"),
        pads="padding",
        rounding_type="output_shape_rounding",
    )
    def max_pool2d(
        self,
        input: MLOperand,
        options: MLPool2dOptions = {},
        *,
        window_dimensions: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
        layout: Literal["nchw", "nhwc"] = "nchw",
        output_shape_rounding: Literal["floor", "ceil"] = "floor",
        output_sizes: Sequence[int] | None = None,
        label: str = "",
    ) -> MLOperand:
        """Greatest element in each window.

        Args:
            input: Any data type, with rank 4 in the order of `layout`.
            options: The options that follow, as one dictionary.
            window_dimensions: Height and width of the window in elements. The default is those of the input.
            padding: Elements that are added to the input on its top, bottom, left and right side. The default is 0.
            strides: Steps from one window to the next, down and across. The default is 1.
            dilations: Steps from one element of a window to the next, down and across. The default is 1.
            layout: "nchw" or "nhwc", of input and output.
            output_shape_rounding: "floor" leaves out a last window that fits only in part, "ceil" takes it. The option may also
                be written `rounding_type`, as in the 2024 text.
            output_sizes: The output's height and width, both rounded down or both rounded up. They take the place of
                `output_shape_rounding`.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and layout. Its height and width are `(padded - ((window - 1) * dilation + 1))
            / stride + 1`, rounded.

        Raises:
            MLTypeError: The rank is not 4, or a list has another length. A window, stride or dilation is 0, or a window does
                not fit into the padded input. The output sizes are those of neither rounding. The layout or rounding is
                unknown, the data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            NaN if any element of the window is NaN. Without an element within the input, -infinity or the least integer.

        Example:
            >>> b.max_pool2d(image, window_dimensions=[2, 2], strides=[2, 2]).shape
            (1, 2, 2, 2)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-pool2d
        """
        return self._output(
            "maxPool2d",
            [input],
            {
                "window_dimensions": window_dimensions,
                "padding": padding,
                "strides": strides,
                "dilations": dilations,
                "layout": layout,
                "output_shape_rounding": output_shape_rounding,
                "output_sizes": output_sizes,
            },
            label,
        )

    @with_options()
    def resample2d(
        self,
        input: MLOperand,
        options: MLResample2dOptions = {},
        *,
        mode: Literal["nearest-neighbor", "linear"] = "nearest-neighbor",
        scales: Sequence[float] = (1.0, 1.0),
        sizes: Sequence[int] | None = None,
        axes: Sequence[int] = (2, 3),
        label: str = "",
    ) -> MLOperand:
        """Resize two dimensions.

        Args:
            input: float32, float16, uint8 or int8, with rank 4.
            options: The options that follow, as one dictionary.
            mode: "nearest-neighbor", or "linear" between the two nearest elements along each dimension.
            scales: Output size divided by input size for each of `axes`, positive 32-bit floats. The size is rounded down.
            sizes: Output sizes for each of `axes`, in place of `scales`.
            axes: Two dimensions, in any order.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type, and with its shape except for the two sizes.

        Raises:
            MLTypeError: The rank is not 4, or a list has another length. A scale or size is not positive, or a scale makes a
                size 0. An axis is not a dimension or is repeated. The mode is unknown, the data type is not allowed, or an
                operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Output element o is read from the coordinate (o + 1/2) * input size / output size - 1/2. The coordinate is computed
            exactly, and moved inside the input if it lies outside. Of two equally near elements the nearest is the first.
            Integers are rounded to the nearest, halves to even. Shrinking does not smooth.

        Example:
            >>> b.resample2d(image, mode="linear", scales=[2, 1.5]).shape
            (1, 2, 8, 6)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-resample2d-method
        """
        return self._output("resample2d", [input], {"mode": mode, "scales": scales, "sizes": sizes, "axes": axes}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        averagePool2d = average_pool2d
        l2Pool2d = l2_pool2d
        maxPool2d = max_pool2d
