"""The arguments of conv2d and convTranspose2d: operands, options, layouts and checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.data_types import FLOATS
from ._attrs import Attr
from ._def import Operand

if TYPE_CHECKING:
    from ..core.errors import MLTypeError
    from ..ir.graph import Array, Attrs
    from ._def import OpCall

INPUT_LAYOUTS = ("nchw", "nhwc")

OPERANDS = (
    Operand(name="input", data_types=FLOATS, min_rank=4, max_rank=4),
    Operand(name="filter", data_types=FLOATS, same_as="input", min_rank=4, max_rank=4),
    Operand(name="bias", data_types=FLOATS, same_as="input", min_rank=1, max_rank=1, required=False),
)


def attributes(filter_layouts: tuple[str, ...], *others: Attr) -> tuple[Attr, ...]:
    """Return the options of a convolution. The first of `filter_layouts` is the default."""
    return (
        Attr("padding", "uints", (0, 0, 0, 0)),
        Attr("strides", "uints", (1, 1)),
        Attr("dilations", "uints", (1, 1)),
        *others,
        Attr("groups", "uint", 1),
        Attr("input_layout", "enum", "nchw", allowed=INPUT_LAYOUTS),
        Attr("filter_layout", "enum", filter_layouts[0], allowed=filter_layouts),
    )


def channel_axis(attrs: Attrs) -> int:
    """Return the dimension of the channels, counted from the end."""
    return -1 if attrs["input_layout"] == "nhwc" else -3


def sizes_of(shape: Sequence[int], layout: str) -> dict[str, int]:
    """Return a shape's dimensions by the letters of its layout.

    >>> sizes_of((8, 3, 5, 5), "oihw")
    {'o': 8, 'i': 3, 'h': 5, 'w': 5}
    """
    return dict(zip(layout, shape, strict=True))


def laid_out(layout: str, n: int, c: int, h: int, w: int) -> tuple[int, ...]:
    """Return the shape of an image in a layout."""
    return tuple({"n": n, "c": c, "h": h, "w": w}[letter] for letter in layout)


def check_options(call: OpCall) -> None:
    """Check the lengths and values of the options that both convolutions have."""
    attrs = call.attrs
    for name, length, meaning in (
        ("padding", 4, "[top, bottom, left, right]"),
        ("strides", 2, "[height, width]"),
        ("dilations", 2, "[height, width]"),
    ):
        values = attrs[name]
        call.require(len(values) == length, f"{name} must have {length} items", got=f"{name}={list(values)}", allowed=meaning)
        if name != "padding":
            call.require(
                all(v > 0 for v in values), f"every item of {name} must be > 0", got=f"{name}={list(values)}", allowed=">= 1"
            )
    call.require(attrs["groups"] > 0, "groups must be > 0", got=f"groups={attrs['groups']}", allowed=">= 1")


def check_bias(call: OpCall, channels: int) -> None:
    """Check that a bias has one element per output channel."""
    bias = call.inputs[2]
    call.require(
        bias is None or bias.shape == (channels,), "bias must have one element per output channel", allowed=f"[{channels}]"
    )


def not_divisible(call: OpCall, operator: str, channels: int) -> MLTypeError:
    """Return the error for input channels that do not divide into groups."""
    groups = call.attrs["groups"]
    return call.fail(
        f"{operator} input channels ({channels}) must be divisible by groups ({groups})",
        got=f"groups={groups}, {call.describe()}",
        allowed=f"a divisor of {channels}",
    )


def products_of(attrs: Attrs, operands: Sequence[Array | None]) -> int:
    """Return the maximum number of terms in the sum of an output element. The bias counts as one term."""
    weights = operands[1]
    assert weights is not None
    return weights.size // weights.shape[attrs["filter_layout"].index("o")] + 1
