"""The operator conv2d: cross-correlation of images with a filter, with padding by zeros."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.select_convolution import VARIANTS
from ..kernels.spec import KernelCall
from ._convolution import FORWARD_TEMPLATES, convolution_calls
from ._convolution_options import (
    OPERANDS,
    attributes,
    channel_axis,
    check_bias,
    check_options,
    laid_out,
    not_divisible,
    products_of,
    sizes_of,
)
from ._def import Lowering, OpCall, OpDef
from ._rows import to_type, wide
from .gradients import convolution as convolution_gradients
from .interfaces.bounds import sums
from .interfaces.cost import Cost
from .interfaces.documentation import ACTIVATION, CONVOLUTION, Documentation, Method
from .interfaces.epilogue import TakesEpilogue
from .interfaces.family import Family
from .interfaces.layout import option
from .interfaces.precision import Precision


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    check_options(call)
    attrs, x_type = call.attrs, call.input()
    layout, groups = attrs["input_layout"], attrs["groups"]
    x, taps = sizes_of(x_type.shape, layout), sizes_of(call.input(1).shape, attrs["filter_layout"])
    if x["c"] % groups:
        raise not_divisible(call, "Conv2d", x["c"])
    got = f"groups={groups}, layouts {layout} and {attrs['filter_layout']}, {call.describe()}"
    call.require(
        taps["i"] == x["c"] // groups,
        "the filter's input channels must equal the input's channels divided by groups",
        got=got,
        allowed=f"{x['c'] // groups}",
    )
    call.require(
        taps["o"] % groups == 0, "the filter's output channels must be divisible by groups", got=got, allowed=f"k * {groups}"
    )
    check_bias(call, taps["o"])
    top, bottom, left, right = attrs["padding"]
    extent: list[int] = []
    for i, (name, pads) in enumerate((("h", top + bottom), ("w", left + right))):
        padded, window = x[name] + pads, (taps[name] - 1) * attrs["dilations"][i] + 1
        call.require(
            window <= padded,
            "the dilated filter must fit into the padded input: the output's dimensions must be valid dimensions",
            got=f"{window} taps along {name}, {call.describe()}, padding={list(attrs['padding'])}",
            allowed=f"1..{padded}",
        )
        extent.append((padded - window) // attrs["strides"][i] + 1)
    return (call.output(x_type.data_type, laid_out(layout, x["n"], taps["o"], extent[0], extent[1])),)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, weights, bias = arrays
    assert x is not None
    assert weights is not None
    layout, groups = attrs["input_layout"], attrs["groups"]
    x = wide(x).transpose([layout.index(letter) for letter in "nchw"])
    weights = wide(weights).transpose([attrs["filter_layout"].index(letter) for letter in "oihw"])
    top, bottom, left, right = attrs["padding"]
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    y = sizes_of(out[0].shape, layout)
    height, width = y["h"], y["w"]
    n, outputs, per_group = x.shape[0], weights.shape[0], weights.shape[1]
    weights = weights.reshape(groups, outputs // groups, per_group, *weights.shape[2:])
    result = np.zeros((n, groups, outputs // groups, height * width))
    (stride_y, stride_x), (dilation_y, dilation_x) = attrs["strides"], attrs["dilations"]
    with np.errstate(all="ignore"):
        for ky, kx in np.ndindex(*weights.shape[3:]):
            rows = slice(ky * dilation_y, ky * dilation_y + (height - 1) * stride_y + 1, stride_y)
            columns = slice(kx * dilation_x, kx * dilation_x + (width - 1) * stride_x + 1, stride_x)
            result += weights[..., ky, kx] @ x[:, :, rows, columns].reshape(n, groups, per_group, height * width)
        result = result.reshape(n, outputs, height, width)
        if bias is not None:
            result += wide(bias)[:, None, None]
    return [to_type(result.transpose(["nchw".index(letter) for letter in layout]), out[0])]


def _lower(low: Lowering) -> list[KernelCall]:
    return convolution_calls(low, transposed=False)


def _operations(attrs: Attrs, types: Sequence[TensorType], output: TensorType) -> int:
    # Each element of the output takes one of the filter's products for every channel of its group and place in the window.
    channels = output.shape[1 if attrs["input_layout"] == "nchw" else -1]
    return 2 * output.num_elements * (types[1].num_elements // channels)


CONV2D = OpDef(
    name="conv2d",
    operands=OPERANDS,
    infer=_infer,
    reference=_reference,
    lower=_lower,
    attrs=attributes(("oihw", "hwio", "ohwi", "ihwo")),
    templates=FORWARD_TEMPLATES,
    spec="#api-mlgraphbuilder-conv2d",
    family=Family.CONVOLUTION,
    without=("elementwise", "movement"),
    epilogue=TakesEpilogue(axis=channel_axis),
    layout=option("input_layout"),
    precision=Precision(weights=(1,)),
    cost=Cost(_operations),
    bounds=sums(products_of),
    rank_phrase="Conv2d input must be 4D, as must its filter, and bias 1D",
    variants=VARIANTS,
    documentation=Documentation(
        group=CONVOLUTION,
        summary="2-D convolution: each output pixel is the sum of the products of the filter with the input around it.",
        details=(
            "The filter is not flipped. With groups, the output channels of a group see only the input channels of that group."
        ),
        arguments={
            "input": "{types}, with the shape [N, C, H, W] or in the order of `input_layout`.",
            "filter": "The input's data type, with the shape [O, C / groups, h, w] or in the order of `filter_layout`.",
            "bias": "The input's data type, with the shape [O]. The default is 0 for all channels.",
            "padding": (
                "Rows and columns of zeros around the input: [top, bottom, left, right]. The option may also be written `pads`."
            ),
            "strides": "[height, width]: the distance in pixels of the input from one output pixel to the next.",
            "dilations": "[height, width]: the distance in pixels of the input from one tap of the filter to the next.",
            "groups": "A divisor of C and of O. C groups make a depthwise convolution.",
            "input_layout": '"nchw" or "nhwc", of the input and of the result.',
            "filter_layout": '"oihw", "hwio", "ohwi" or "ihwo".',
            "activation": "Activation of the result (an option of the 2024 text).",
        },
        returns=(
            "An operand with the input's data type and layout, and with O channels. Each extent is `(size + padding - "
            "(taps - 1) * dilation - 1) // stride + 1`."
        ),
        raises=(
            "The ranks are not 4, 4 and 1, or the channels do not fit the groups or the filter. A list has another length, or "
            "a stride, a dilation or `groups` is 0. The filter does not fit into the padded input. A layout is unknown, data "
            "types differ or are not allowed"
        ),
        numerics=(
            "A filter of 3 x 3 taps may be multiplied by Winograd's algorithm. Infinity or NaN in the input then makes NaN "
            "of neighboring pixels that it would not reach otherwise."
        ),
        example="""
            >>> weights = b.constant(np.ones((8, 2, 3, 3), np.float32))
            >>> b.conv2d(image, weights, padding=[1, 1, 1, 1], strides=[2, 2], activation=b.relu()).shape
            (1, 8, 2, 2)
        """,
        method=Method(
            parameters=(ACTIVATION,),
            aliases={"pads": "padding"},
            pywebnn=("strides", "dilations", "padding", "groups", "input_layout", "filter_layout", "bias"),
        ),
    ),
    gradient=convolution_gradients.conv2d,
)

OPS = (CONV2D,)
