"""Convolution and transposed convolution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ...ops import operator
from ..activation import MLActivation, require_activation
from ..options import with_options
from ._base import OperatorMethods, require_operands

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..operand import MLOperand
    from .dictionaries import MLConv2dOptions, MLConvTranspose2dOptions


class ConvolutionOperators(OperatorMethods):
    """conv2d, conv_transpose2d. Sums are kept in float32."""

    @with_options(pads="padding")
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

        The filter is not flipped. With groups, output channels of a group see the input channels of that group alone.

        Args:
            input: float32 or float16 [N, C, H, W], or as `input_layout` says.
            filter: The same data type [O, C / groups, h, w], or as `filter_layout` says.
            options: The options below as one dictionary.
            bias: The same data type [O]; 0 where absent.
            padding: Rows and columns of zeros around the input: [top, bottom, left, right]. May be written `pads`.
            strides: [height, width], pixels of the input from one output pixel to the next.
            dilations: [height, width], pixels of the input from one tap of the filter to the next.
            groups: A divisor of C and of O; C of them make a depthwise convolution.
            input_layout: "nchw" or "nhwc", of the input and of the result.
            filter_layout: "oihw", "hwio", "ohwi" or "ihwo".
            activation: Applied to the result; an option of the 2024 text.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type in its layout, with O channels; each extent is
            `(size + padding - (taps - 1) * dilation - 1) // stride + 1`.

        Raises:
            MLTypeError: Ranks other than 4, 4 and 1, channels that do not fit the groups or the filter, lists of another
                length, strides, dilations or groups of 0, a filter that does not fit into the padded input, another
                layout, data types that differ or are not allowed, or an operand or activation of another builder.

        Numerics: A filter of 3 x 3 taps may be multiplied by Winograd's algorithm; then infinity or NaN in the input
        makes NaN of neighbouring pixels that it would not reach otherwise.

        Example:
            >>> weights = b.constant(np.ones((8, 2, 3, 3), np.float32))
            >>> b.conv2d(image, weights, padding=[1, 1, 1, 1], strides=[2, 2], activation=b.relu()).shape
            (1, 8, 2, 2)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-conv2d
        """
        attrs = {
            "padding": padding,
            "strides": strides,
            "dilations": dilations,
            "groups": groups,
            "input_layout": input_layout,
            "filter_layout": filter_layout,
        }
        return self._convolution("conv2d", [input, filter, bias], attrs, activation, label)

    @with_options(pads="padding")
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
            input: float32 or float16 [N, C, H, W], or as `input_layout` says.
            filter: The same data type [C, O / groups, h, w], or as `filter_layout` says.
            options: The options below as one dictionary.
            bias: The same data type [O]; 0 where absent.
            padding: Rows and columns cut off the output: [top, bottom, left, right]. May be written `pads`.
            strides: [height, width], pixels of the output from one input pixel to the next.
            dilations: [height, width], pixels of the output from one tap of the filter to the next.
            output_padding: [height, width], rows and columns more at the bottom and on the right, less than the strides.
            output_sizes: [height, width] of the output instead, at least the computed sizes and less than those plus the
                strides.
            groups: A divisor of C.
            input_layout: "nchw" or "nhwc", of the input and of the result.
            filter_layout: "iohw", "hwoi" or "ohwi".
            activation: Applied to the result; an option of the 2024 text.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type in its layout, with O channels; each extent is
            `(size - 1) * stride + (taps - 1) * dilation + 1 - padding + output_padding`.

        Raises:
            MLTypeError: Ranks other than 4, 4 and 1, channels that do not fit the groups or the filter, lists of another
                length, strides, dilations or groups of 0, an output padding or size out of its range, an output without
                pixels, another layout, data types that differ or are not allowed, or an operand or activation of another
                builder.

        Numerics: Infinity or NaN in the filter makes NaN also of pixels that its tap does not reach.

        Example:
            >>> weights = b.constant(np.ones((2, 8, 3, 3), np.float32))
            >>> b.conv_transpose2d(image, weights, strides=[2, 2], output_padding=[1, 1]).shape
            (1, 8, 10, 10)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-convtranspose2d
        """
        attrs = {
            "padding": padding,
            "strides": strides,
            "dilations": dilations,
            "output_padding": output_padding,
            "output_sizes": output_sizes,
            "groups": groups,
            "input_layout": input_layout,
            "filter_layout": filter_layout,
        }
        return self._convolution("convTranspose2d", [input, filter, bias], attrs, activation, label)

    def _convolution(
        self,
        name: str,
        operands: list[MLOperand | None],
        attrs: Mapping[str, object],
        activation: MLActivation | None,
        label: str,
    ) -> MLOperand:
        op = operator(name)
        require_operands(op, operands, label)
        if activation is not None:
            require_activation(activation, self, op.python_name, 4, label)
        output = self._output(name, operands, attrs, label)
        return output if activation is None else activation.apply(output)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        convTranspose2d = conv_transpose2d
