"""Convolution and transposed convolution.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..options import with_options
from ._forms import OperatorForms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..activation import MLActivation
    from ..operand import MLOperand
    from .dictionaries import MLConv2dOptions, MLConvTranspose2dOptions


class ConvolutionOperators(OperatorForms):
    """conv2d, conv_transpose2d. Sums are kept in float32."""

    @with_options(
        positions=("strides", "dilations", "padding", "groups", "input_layout", "filter_layout", "bias"), pads="padding"
    )
    def conv2d(
        self,
        input: MLOperand,
        filter: MLOperand,
        options: MLConv2dOptions = {},
        *,
        bias: MLOperand | None = None,
        padding: Sequence[int] = (0, 0, 0, 0),
        strides: Sequence[int] = (1, 1),
        dilations: Sequence[int] = (1, 1),
        groups: int = 1,
        input_layout: Literal["nchw", "nhwc"] = "nchw",
        filter_layout: Literal["oihw", "hwio", "ohwi", "ihwo"] = "oihw",
        activation: MLActivation | None = None,
        label: str = "",
    ) -> MLOperand:
        """2-D convolution: each output pixel is the sum of the products of the filter with the input around it.

        The filter is not flipped. With groups, the output channels of a group see only the input channels of that group.

        Args:
            input: float32 or float16, with the shape [N, C, H, W] or in the order of `input_layout`.
            filter: The input's data type, with the shape [O, C / groups, h, w] or in the order of `filter_layout`.
            options: The options that follow, as one dictionary.
            bias: The input's data type, with the shape [O]. The default is 0 for all channels.
            padding: Rows and columns of zeros around the input: [top, bottom, left, right]. The option may also be written
                `pads`.
            strides: [height, width]: the distance in pixels of the input from one output pixel to the next.
            dilations: [height, width]: the distance in pixels of the input from one tap of the filter to the next.
            groups: A divisor of C and of O. C groups make a depthwise convolution.
            input_layout: "nchw" or "nhwc", of the input and of the result.
            filter_layout: "oihw", "hwio", "ohwi" or "ihwo".
            activation: Activation of the result (an option of the 2024 text).
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and layout, and with O channels. Each extent is `(size + padding - (taps - 1)
            * dilation - 1) // stride + 1`.

        Raises:
            MLTypeError: The ranks are not 4, 4 and 1, or the channels do not fit the groups or the filter. A list has another
                length, or a stride, a dilation or `groups` is 0. The filter does not fit into the padded input. A layout is
                unknown, data types differ or are not allowed, or an operand or activation belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            A filter of 3 x 3 taps may be multiplied by Winograd's algorithm. Infinity or NaN in the input then makes NaN of
            neighboring pixels that it would not reach otherwise.

        Example:
            >>> weights = b.constant(np.ones((8, 2, 3, 3), np.float32))
            >>> b.conv2d(image, weights, padding=[1, 1, 1, 1], strides=[2, 2], activation=b.relu()).shape
            (1, 8, 2, 2)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-conv2d
        """
        return self._activated(
            "conv2d",
            [input, filter, bias],
            {
                "padding": padding,
                "strides": strides,
                "dilations": dilations,
                "groups": groups,
                "input_layout": input_layout,
                "filter_layout": filter_layout,
            },
            activation,
            label,
        )

    @with_options(
        positions=(
            "strides",
            "dilations",
            "padding",
            "output_padding",
            "output_sizes",
            "groups",
            "input_layout",
            "filter_layout",
            "bias",
        ),
        pads="padding",
    )
    def conv_transpose2d(
        self,
        input: MLOperand,
        filter: MLOperand,
        options: MLConvTranspose2dOptions = {},
        *,
        bias: MLOperand | None = None,
        padding: Sequence[int] = (0, 0, 0, 0),
        strides: Sequence[int] = (1, 1),
        dilations: Sequence[int] = (1, 1),
        output_padding: Sequence[int] = (0, 0),
        output_sizes: Sequence[int] | None = None,
        groups: int = 1,
        input_layout: Literal["nchw", "nhwc"] = "nchw",
        filter_layout: Literal["iohw", "hwoi", "ohwi"] = "iohw",
        activation: MLActivation | None = None,
        label: str = "",
    ) -> MLOperand:
        """2-D transposed convolution: every input pixel adds the filter, times itself, to the output around it.

        Args:
            input: float32 or float16, with the shape [N, C, H, W] or in the order of `input_layout`.
            filter: The input's data type, with the shape [C, O / groups, h, w] or in the order of `filter_layout`.
            options: The options that follow, as one dictionary.
            bias: The input's data type, with the shape [O]. The default is 0 for all channels.
            padding: Rows and columns that are cut off the output: [top, bottom, left, right]. The option may also be written
                `pads`.
            strides: [height, width]: the distance in pixels of the output from one input pixel to the next.
            dilations: [height, width]: the distance in pixels of the output from one tap of the filter to the next.
            output_padding: [height, width]: additional rows at the bottom and columns on the right, fewer than the strides.
            output_sizes: [height, width] of the output, in place of `output_padding`. The sizes must be at least the computed
                ones and less than those plus the strides.
            groups: A divisor of C.
            input_layout: "nchw" or "nhwc", of the input and of the result.
            filter_layout: "iohw", "hwoi" or "ohwi".
            activation: Activation of the result (an option of the 2024 text).
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and layout, and with O channels. Each extent is `(size - 1) * stride + (taps -
            1) * dilation + 1 - padding + output_padding`.

        Raises:
            MLTypeError: The ranks are not 4, 4 and 1, or the channels do not fit the groups or the filter. A list has another
                length, or a stride, a dilation or `groups` is 0. An output padding or size is out of its range, or the output
                has no pixels. A layout is unknown, data types differ or are not allowed, or an operand or activation belongs to
                another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Infinity or NaN in the filter also makes NaN of pixels that its tap does not reach.

        Example:
            >>> weights = b.constant(np.ones((2, 8, 3, 3), np.float32))
            >>> b.conv_transpose2d(image, weights, strides=[2, 2], output_padding=[1, 1]).shape
            (1, 8, 10, 10)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-convtranspose2d
        """
        return self._activated(
            "convTranspose2d",
            [input, filter, bias],
            {
                "padding": padding,
                "strides": strides,
                "dilations": dilations,
                "output_padding": output_padding,
                "output_sizes": output_sizes,
                "groups": groups,
                "input_layout": input_layout,
                "filter_layout": filter_layout,
            },
            activation,
            label,
        )

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        convTranspose2d = conv_transpose2d
