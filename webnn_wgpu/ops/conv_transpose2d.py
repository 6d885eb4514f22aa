"""The operator convTranspose2d: every input pixel adds the filter, times itself, to the output.

The kernels gather: an output pixel sums over the input pixels that reach it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.data_types import MAX_DIMENSION
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.select_convolution import VARIANTS, WINOGRAD
from ..kernels.spec import KernelCall
from ._attrs import Attr
from ._convolution import TEMPLATES, convolution_calls
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
    call.require(
        taps["i"] == x["c"],
        "the filter's input channels must equal the input's channels",
        got=f"layouts {layout} and {attrs['filter_layout']}, {call.describe()}",
        allowed=f"{x['c']}",
    )
    if x["c"] % groups:
        raise not_divisible(call, "ConvTranspose2d", x["c"])
    channels = taps["o"] * groups
    call.require(
        channels <= MAX_DIMENSION,
        "the output's channels must be a valid dimension",
        got=f"{taps['o']} * groups={groups}",
        allowed=f"1..{MAX_DIMENSION}",
    )
    check_bias(call, channels)
    extent = _extent(call, x, taps)
    return (call.output(x_type.data_type, laid_out(layout, x["n"], channels, extent[0], extent[1])),)


def _extent(call: OpCall, x: dict[str, int], taps: dict[str, int]) -> tuple[int, int]:
    """Return the output's height and width, and make both options that decide them agree."""
    attrs = call.attrs
    sizes, extra, strides = attrs["output_sizes"], attrs["output_padding"], attrs["strides"]
    call.require(len(extra) == 2, "output_padding must have 2 items", got=f"output_padding={list(extra)}")
    if sizes is not None:
        call.require(len(sizes) == 2, "output_sizes must have 2 items", got=f"output_sizes={list(sizes)}")
    top, bottom, left, right = attrs["padding"]
    computed = tuple(
        (x[name] - 1) * strides[i] + (taps[name] - 1) * attrs["dilations"][i] + 1 - pads
        for i, (name, pads) in enumerate((("h", top + bottom), ("w", left + right)))
    )
    if sizes is None:
        call.require(
            all(e < s for e, s in zip(extra, strides, strict=True)),
            "every item of output_padding must be less than the stride",
            got=f"output_padding={list(extra)}, strides={list(strides)}",
            allowed=", ".join(f"0..{s - 1}" for s in strides),
        )
        sizes = tuple(c + e for c, e in zip(computed, extra, strict=True))
    call.require(
        all(c <= size < c + s for c, size, s in zip(computed, sizes, strides, strict=True)),
        "every item of output_sizes must be at least the computed size and less than that plus the stride",
        got=f"output_sizes={list(sizes)}, computed {list(computed)}, strides={list(strides)}",
        allowed=", ".join(f"{c}..{c + s - 1}" for c, s in zip(computed, strides, strict=True)),
    )
    attrs["output_sizes"] = sizes
    attrs["output_padding"] = tuple(size - c for size, c in zip(sizes, computed, strict=True))
    return sizes[0], sizes[1]


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, weights, bias = arrays
    assert x is not None
    assert weights is not None
    layout, groups = attrs["input_layout"], attrs["groups"]
    x = wide(x).transpose([layout.index(letter) for letter in "nchw"])
    weights = wide(weights).transpose([attrs["filter_layout"].index(letter) for letter in "iohw"])
    (n, channels, height, width), per_group = x.shape, weights.shape[1]
    weights = weights.reshape(groups, channels // groups, *weights.shape[1:])
    x = x.reshape(n, groups, channels // groups, height * width)
    top, _, left, _ = attrs["padding"]
    (stride_y, stride_x), (dilation_y, dilation_x) = attrs["strides"], attrs["dilations"]
    y = sizes_of(out[0].shape, layout)
    # The sums of all pixels, before padding cuts some off. Pixels beyond this area belong to no input pixel.
    reach_y = max((height - 1) * stride_y + (weights.shape[3] - 1) * dilation_y + 1, top + y["h"])
    reach_x = max((width - 1) * stride_x + (weights.shape[4] - 1) * dilation_x + 1, left + y["w"])
    result = np.zeros((n, groups, per_group, reach_y, reach_x))
    with np.errstate(all="ignore"):
        for ky, kx in np.ndindex(*weights.shape[3:]):
            rows = slice(ky * dilation_y, ky * dilation_y + (height - 1) * stride_y + 1, stride_y)
            columns = slice(kx * dilation_x, kx * dilation_x + (width - 1) * stride_x + 1, stride_x)
            part = weights[..., ky, kx].swapaxes(1, 2) @ x
            result[..., rows, columns] += part.reshape(n, groups, per_group, height, width)
        result = result[..., top : top + y["h"], left : left + y["w"]].reshape(n, groups * per_group, y["h"], y["w"])
        if bias is not None:
            result += wide(bias)[:, None, None]
    return [to_type(result.transpose(["nchw".index(letter) for letter in layout]), out[0])]


def _lower(low: Lowering) -> list[KernelCall]:
    return convolution_calls(low, transposed=True)


def _operations(attrs: Attrs, types: Sequence[TensorType], output: TensorType) -> int:
    channels = types[0].shape[1 if attrs["input_layout"] == "nchw" else -1]
    return 2 * types[0].num_elements * (types[1].num_elements // channels)


CONV_TRANSPOSE2D = OpDef(
    name="convTranspose2d",
    operands=OPERANDS,
    infer=_infer,
    reference=_reference,
    lower=_lower,
    attrs=attributes(("iohw", "hwoi", "ohwi"), Attr("output_padding", "uints", (0, 0)), Attr("output_sizes", "uints", None)),
    templates=TEMPLATES,
    spec="#api-mlgraphbuilder-convtranspose2d",
    family=Family.CONVOLUTION,
    without=("elementwise", "movement"),
    epilogue=TakesEpilogue(axis=channel_axis),
    layout=option("input_layout"),
    precision=Precision(weights=(1,)),
    cost=Cost(_operations),
    bounds=sums(products_of),
    rank_phrase="ConvTranspose2d input must be 4D, as must its filter, and bias 1D",
    variants=tuple(v for v in VARIANTS if v not in WINOGRAD),
    documentation=Documentation(
        group=CONVOLUTION,
        summary="2-D transposed convolution: every input pixel adds the filter, times itself, to the output around it.",
        arguments={
            "input": "{types}, with the shape [N, C, H, W] or in the order of `input_layout`.",
            "filter": "The input's data type, with the shape [C, O / groups, h, w] or in the order of `filter_layout`.",
            "bias": "The input's data type, with the shape [O]. The default is 0 for all channels.",
            "padding": (
                "Rows and columns that are cut off the output: [top, bottom, left, right]. The option may also be written "
                "`pads`."
            ),
            "strides": "[height, width]: the distance in pixels of the output from one input pixel to the next.",
            "dilations": "[height, width]: the distance in pixels of the output from one tap of the filter to the next.",
            "output_padding": (
                "[height, width]: additional rows at the bottom and columns on the right, fewer than the strides."
            ),
            "output_sizes": (
                "[height, width] of the output, in place of `output_padding`. The sizes must be at least the computed ones "
                "and less than those plus the strides."
            ),
            "groups": "A divisor of C.",
            "input_layout": '"nchw" or "nhwc", of the input and of the result.',
            "filter_layout": '"iohw", "hwoi" or "ohwi".',
            "activation": "Activation of the result (an option of the 2024 text).",
        },
        returns=(
            "An operand with the input's data type and layout, and with O channels. Each extent is `(size - 1) * stride + "
            "(taps - 1) * dilation + 1 - padding + output_padding`."
        ),
        raises=(
            "The ranks are not 4, 4 and 1, or the channels do not fit the groups or the filter. A list has another length, or "
            "a stride, a dilation or `groups` is 0. An output padding or size is out of its range, or the output has no "
            "pixels. A layout is unknown, data types differ or are not allowed"
        ),
        numerics="Infinity or NaN in the filter also makes NaN of pixels that its tap does not reach.",
        example="""
            >>> weights = b.constant(np.ones((2, 8, 3, 3), np.float32))
            >>> b.conv_transpose2d(image, weights, strides=[2, 2], output_padding=[1, 1]).shape
            (1, 8, 10, 10)
        """,
        method=Method(
            parameters=(ACTIVATION,),
            aliases={"pads": "padding"},
            pywebnn=(
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
        ),
    ),
    gradient=convolution_gradients.conv_transpose2d,
)

OPS = (CONV_TRANSPOSE2D,)
