"""The documentation of poolings."""

from __future__ import annotations

from ..core.names import method_name
from .interfaces.documentation import POOLING, Documentation, Method, Parameter

_LISTS = tuple(Parameter(name, "Sequence[int] | None", "None") for name in ("padding", "strides", "dilations"))
"""Options whose defaults the specification leaves out of its dictionary."""


def pooling_documentation(name: str, summary: str, numerics: str) -> Documentation:
    """Return the documentation of a pooling.

    Args:
        name: name of the operator.
        summary: the first line.
        numerics: results for special values.
    """
    return Documentation(
        group=POOLING,
        summary=summary,
        arguments={
            "input": "{types}, with rank 4 in the order of `layout`.",
            "window_dimensions": "Height and width of the window in elements. The default is those of the input.",
            "padding": "Elements that are added to the input on its top, bottom, left and right side. The default is 0.",
            "strides": "Steps from one window to the next, down and across. The default is 1.",
            "dilations": "Steps from one element of a window to the next, down and across. The default is 1.",
            "layout": '"nchw" or "nhwc", of input and output.',
            "output_shape_rounding": (
                '"floor" leaves out a last window that fits only in part, "ceil" takes it. The option may also be written '
                "`rounding_type`, as in the 2024 text."
            ),
            "output_sizes": (
                "The output's height and width, both rounded down or both rounded up. They take the place of "
                "`output_shape_rounding`."
            ),
        },
        returns=(
            "An operand with the input's data type and layout. Its height and width are "
            "`(padded - ((window - 1) * dilation + 1)) / stride + 1`, rounded."
        ),
        raises=(
            "The rank is not 4, or a list has another length. A window, stride or dilation is 0, or a window does not fit into "
            "the padded input. The output sizes are those of neither rounding. The layout or rounding is unknown, the data "
            "type is not allowed"
        ),
        numerics=numerics,
        example=f"""
            >>> b.{method_name(name)}(image, window_dimensions=[2, 2], strides=[2, 2]).shape
            (1, 2, 2, 2)
        """,
        method=Method(
            parameters=_LISTS,
            dictionary="MLPool2dOptions",
            aliases={"pads": "padding", "rounding_type": "output_shape_rounding"},
            pywebnn=() if name == "l2Pool2d" else ("window_dimensions", "strides", "dilations", "padding", "layout"),
        ),
    )
