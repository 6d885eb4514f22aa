"""Pooling over windows, helpers that pool whole images, and resampling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ...core.data_types import ANY, FLOATS
from ...ops._attrs import Attr
from ...ops._def import Operand, Signature
from ...ops.pool2d import LAYOUTS
from ..options import with_options
from ._base import OperatorMethods, require_operands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..operand import MLOperand
    from .dictionaries import MLPool2dOptions, MLResample2dOptions


def _helper(name: str, data_types: tuple[str, ...]) -> Signature:
    return Signature(
        name,
        (Operand("input", data_types, min_rank=4, max_rank=4),),
        lambda call: (call.input(),),
        attrs=(Attr("layout", "enum", "nchw", LAYOUTS),),
        spec="#api-mlgraphbuilder-pool2d",
        rank_phrase="Global pooling input must be 4D",
    )


# The helpers are checked as operators are, but are none: what they add to the graph is a pooling without options.
_GLOBAL = {
    "averagePool2d": _helper("globalAveragePool", FLOATS),
    "l2Pool2d": _helper("globalL2Pool", FLOATS),
    "maxPool2d": _helper("globalMaxPool", ANY),
}


class PoolingOperators(OperatorMethods):
    """average_pool2d, l2_pool2d, max_pool2d, and the same over whole images; resample2d."""

    @with_options(pads="padding", rounding_type="output_shape_rounding")
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
            input: float32 or float16 of rank 4, laid out as `layout` says.
            options: The options below as one dictionary.
            window_dimensions: Height and width of the window in elements; those of the input where absent.
            padding: Elements added to the input on its top, bottom, left and right side; 0 where absent.
            strides: Steps from one window to the next, down and across; 1 where absent.
            dilations: Steps from one element of a window to the next, down and across; 1 where absent.
            layout: "nchw" or "nhwc", of input and output.
            output_shape_rounding: "floor" or "ceil": what is done with a last window that fits in part.
            output_sizes: The output's height and width, both rounded down or both rounded up; overrides
                `output_shape_rounding`.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and layout, its height and width
            `(padded - ((window - 1) * dilation + 1)) / stride + 1`, rounded.

        Raises:
            MLTypeError: A rank other than 4, a list of another length, a window, stride or dilation of 0, a window that
                does not fit the padded input, output sizes that are neither rounding's, another layout or rounding, a
                data type that is not allowed, or an operand of another builder.

        Numerics: Padding does not count: a mean is over the elements that lie within the input, and 0 where none
            does.

        Example:
            >>> b.average_pool2d(image, window_dimensions=[2, 2], strides=[2, 2]).shape
            (1, 2, 2, 2)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-pool2d
        """
        attrs = {
            "window_dimensions": window_dimensions,
            "padding": padding,
            "strides": strides,
            "dilations": dilations,
            "layout": layout,
            "output_shape_rounding": output_shape_rounding,
            "output_sizes": output_sizes,
        }
        return self._output("averagePool2d", [input], attrs, label)

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
            input: float32 or float16 of rank 4, laid out as `layout` says.
            options: The options below as one dictionary.
            window_dimensions: Height and width of the window in elements; those of the input where absent.
            padding: Elements added to the input on its top, bottom, left and right side; 0 where absent.
            strides: Steps from one window to the next, down and across; 1 where absent.
            dilations: Steps from one element of a window to the next, down and across; 1 where absent.
            layout: "nchw" or "nhwc", of input and output.
            output_shape_rounding: "floor" or "ceil": what is done with a last window that fits in part.
            output_sizes: The output's height and width, both rounded down or both rounded up; overrides
                `output_shape_rounding`.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and layout, its height and width
            `(padded - ((window - 1) * dilation + 1)) / stride + 1`, rounded.

        Raises:
            MLTypeError: A rank other than 4, a list of another length, a window, stride or dilation of 0, a window that
                does not fit the padded input, output sizes that are neither rounding's, another layout or rounding, a
                data type that is not allowed, or an operand of another builder.

        Numerics: 0 where no element of a window lies within the input.

        Example:
            >>> b.l2_pool2d(image, window_dimensions=[2, 2], strides=[2, 2]).shape
            (1, 2, 2, 2)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-pool2d
        """
        attrs = {
            "window_dimensions": window_dimensions,
            "padding": padding,
            "strides": strides,
            "dilations": dilations,
            "layout": layout,
            "output_shape_rounding": output_shape_rounding,
            "output_sizes": output_sizes,
        }
        return self._output("l2Pool2d", [input], attrs, label)

    @with_options(pads="padding", rounding_type="output_shape_rounding")
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
            input: Any data type of rank 4, laid out as `layout` says.
            options: The options below as one dictionary.
            window_dimensions: Height and width of the window in elements; those of the input where absent.
            padding: Elements added to the input on its top, bottom, left and right side; 0 where absent.
            strides: Steps from one window to the next, down and across; 1 where absent.
            dilations: Steps from one element of a window to the next, down and across; 1 where absent.
            layout: "nchw" or "nhwc", of input and output.
            output_shape_rounding: "floor" or "ceil": what is done with a last window that fits in part.
            output_sizes: The output's height and width, both rounded down or both rounded up; overrides
                `output_shape_rounding`.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and layout, its height and width
            `(padded - ((window - 1) * dilation + 1)) / stride + 1`, rounded.

        Raises:
            MLTypeError: A rank other than 4, a list of another length, a window, stride or dilation of 0, a window that
                does not fit the padded input, output sizes that are neither rounding's, another layout or rounding, a
                data type that is not allowed, or an operand of another builder.

        Numerics: NaN where any element of the window is. Where none lies within the input, -infinity or the least integer.

        Example:
            >>> b.max_pool2d(image, window_dimensions=[2, 2], strides=[2, 2]).shape
            (1, 2, 2, 2)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-pool2d
        """
        attrs = {
            "window_dimensions": window_dimensions,
            "padding": padding,
            "strides": strides,
            "dilations": dilations,
            "layout": layout,
            "output_shape_rounding": output_shape_rounding,
            "output_sizes": output_sizes,
        }
        return self._output("maxPool2d", [input], attrs, label)

    @with_options()
    def global_average_pool(self, input: MLOperand, *, layout: Literal["nchw", "nhwc"] = "nchw", label: str = "") -> MLOperand:
        """Mean over height and width: a helper over `average_pool2d`.

        Args:
            input: float32 or float16 of rank 4, laid out as `layout` says.
            layout: "nchw" or "nhwc", of input and output.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and layout, its height and width 1.

        Raises:
            MLTypeError: A rank other than 4, another layout, a data type that is not allowed, or an operand of another
                builder.

        Example:
            >>> b.global_average_pool(image).shape
            (1, 2, 1, 1)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-pool2d
        """
        return self._global("averagePool2d", input, layout, label)

    @with_options()
    def global_l2_pool(self, input: MLOperand, *, layout: Literal["nchw", "nhwc"] = "nchw", label: str = "") -> MLOperand:
        """Square root of the sum of squares over height and width: a helper over `l2_pool2d`.

        Args:
            input: float32 or float16 of rank 4, laid out as `layout` says.
            layout: "nchw" or "nhwc", of input and output.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and layout, its height and width 1.

        Raises:
            MLTypeError: A rank other than 4, another layout, a data type that is not allowed, or an operand of another
                builder.

        Example:
            >>> b.global_l2_pool(image).shape
            (1, 2, 1, 1)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-pool2d
        """
        return self._global("l2Pool2d", input, layout, label)

    @with_options()
    def global_max_pool(self, input: MLOperand, *, layout: Literal["nchw", "nhwc"] = "nchw", label: str = "") -> MLOperand:
        """Greatest element over height and width: a helper over `max_pool2d`.

        Args:
            input: Any data type of rank 4, laid out as `layout` says.
            layout: "nchw" or "nhwc", of input and output.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and layout, its height and width 1.

        Raises:
            MLTypeError: A rank other than 4, another layout, a data type that is not allowed, or an operand of another
                builder.

        Example:
            >>> b.global_max_pool(image).shape
            (1, 2, 1, 1)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-pool2d
        """
        return self._global("maxPool2d", input, layout, label)

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
            input: float32, float16, uint8 or int8 of rank 4.
            options: The options below as one dictionary.
            mode: "nearest-neighbor", or "linear" between the two nearest elements along each dimension.
            scales: Output size by input size for each of `axes`; the size is rounded down. Positive 32-bit floats.
            sizes: Output sizes for each of `axes`; overrides `scales`.
            axes: Two dimensions, in any order.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type, and its shape but for the two sizes.

        Raises:
            MLTypeError: A rank other than 4, a list of another length, a scale or size that is not positive, a scale that
                makes a size 0, an axis that is no dimension or stands twice, another mode, a data type that is not allowed,
                or an operand of another builder.

        Numerics: Output element o is read from coordinate (o + 1/2) * input size / output size - 1/2, computed exactly and
            moved inside the input where it is outside; of two elements as near, the nearest is the one before. Integers are
            rounded to the nearest, halves to even. Shrinking does not smooth.

        Example:
            >>> b.resample2d(image, mode="linear", scales=[2, 1.5]).shape
            (1, 2, 8, 6)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-resample2d-method
        """
        return self._output("resample2d", [input], {"mode": mode, "scales": scales, "sizes": sizes, "axes": axes}, label)

    def _global(self, name: str, input: MLOperand, layout: str, label: str) -> MLOperand:
        helper = _GLOBAL[name]
        require_operands(helper, [input], label)
        self._require_own(helper, [input], label)
        helper.check([input.type], {"layout": layout}, label)
        return self._output(name, [input], {"layout": layout}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        averagePool2d = average_pool2d
        l2Pool2d = l2_pool2d
        maxPool2d = max_pool2d
        globalAveragePool = global_average_pool
        globalL2Pool = global_l2_pool
        globalMaxPool = global_max_pool
