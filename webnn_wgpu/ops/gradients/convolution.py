"""Gradients of convolutions: convolutions of the other kind for the input, and of transposed operands for the filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ..interfaces.gradient import GradientCall, GradientTerm

_FORWARD_OF: Mapping[str, str] = MappingProxyType({"iohw": "oihw", "hwoi": "hwio", "ohwi": "ihwo"})
"""Layouts of filters of a transposed convolution, and the same layout for a convolution, whose input is the other's result."""

_TRANSPOSED_OF: Mapping[str, str] = MappingProxyType({forward: other for other, forward in _FORWARD_OF.items()})


def _ordered(term: GradientTerm, layout: str, wanted: str) -> GradientTerm:
    """Return a tensor whose dimensions are letters of `layout` in the order of `wanted`."""
    return term.permuted([layout.index(letter) for letter in wanted])


def conv2d(call: GradientCall) -> Sequence[GradientTerm | None]:
    """Return the gradients of a convolution."""
    x, weights, g, attrs = call.x, call.given(1), call.gradient, call.attrs
    layout, order = attrs["input_layout"], attrs["filter_layout"]
    found: list[GradientTerm | None] = [None] * len(call.operands)
    if call.wants(0):
        if order not in _TRANSPOSED_OF:
            weights, order = _ordered(weights, order, "oihw"), "oihw"
        found[0] = g.apply(
            "convTranspose2d",
            weights,
            **_common(call),
            output_sizes=[x.shape[layout.index(d)] for d in "hw"],
            filter_layout=_TRANSPOSED_OF[order],
        )
    if call.wants(1):
        found[1] = _ordered(_filter_gradient(call, x, g), "oihw", attrs["filter_layout"])
    return _with_bias(call, found)


def conv_transpose2d(call: GradientCall) -> Sequence[GradientTerm | None]:
    """Return the gradients of a transposed convolution."""
    found: list[GradientTerm | None] = [None] * len(call.operands)
    order = call.attrs["filter_layout"]
    if call.wants(0):
        gradient = call.gradient.apply("conv2d", call.given(1), **_common(call), filter_layout=_FORWARD_OF[order])
        found[0] = gradient
    if call.wants(1):
        # The input takes the part of the result in the convolution that this one is the transpose of.
        found[1] = _ordered(_filter_gradient(call, call.gradient, call.x), "iohw", order)
    return _with_bias(call, found)


def _common(call: GradientCall) -> dict[str, object]:
    return {name: call.attrs[name] for name in ("padding", "strides", "dilations", "groups", "input_layout")}


def _with_bias(call: GradientCall, found: list[GradientTerm | None]) -> list[GradientTerm | None]:
    if call.wants(2):
        channels = call.attrs["input_layout"].index("c")
        found[2] = call.gradient.summed([d for d in range(4) if d != channels])
    return found


def _filter_gradient(call: GradientCall, x: GradientTerm, g: GradientTerm) -> GradientTerm:
    """Return the gradient of the filter, [channels of the result, channels of the input, height, width].

    The result of the convolution of `x` has the gradient `g`. The filter's gradient is a convolution of `x` by `g` with stride
    and dilation exchanged. It sums over images as over channels, and the input channels of a group are its images.
    """
    attrs, groups = call.attrs, call.attrs["groups"]
    x, g = (_ordered(term, attrs["input_layout"], "nchw") for term in (x, g))
    images, channels, *size = x.shape
    each = channels // groups
    by_group = x.reshaped((images, groups, each, *size)).permuted((2, 1, 0, 3, 4)).reshaped((each, groups * images, *size))
    gradient = by_group.apply(
        "conv2d",
        g.permuted((1, 0, 2, 3)),
        padding=attrs["padding"],
        strides=attrs["dilations"],
        dilations=attrs["strides"],
        groups=groups,
    )
    # Further results belong to elements that the strides leave out.
    order: str = attrs["filter_layout"]
    for axis, letter in ((2, "h"), (3, "w")):
        gradient = gradient.sliced(axis, 0, call.given(1).shape[order.index(letter)])
    return gradient.permuted((1, 0, 2, 3))
