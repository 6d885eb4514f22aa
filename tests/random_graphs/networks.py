"""How to draw calls of the operators of networks: products, convolutions, poolings, normalizations, recurrent networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from webnn_wgpu.core.data_types import DATA_TYPES, FLOATS
from webnn_wgpu.ops import OPS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.random_graphs.drawing import Drawing
    from tests.random_graphs.source import Source

SMALL = 1024


def matmul(d: Drawing, name: str) -> None:
    s = d.source
    a = d.operand(FLOATS, min_rank=2, tame=True)
    *batch, _, depth = d.shape(a)
    if s.chance(2):
        batch = [1 if one else n for n, one in zip(batch, s.flags(len(batch)), strict=True)]
    batch = batch[s.integer(0, len(batch)) if s.chance(2) else 0 :]
    b = d.like(d.type(a).data_type, [*batch, depth, s.choice((1, 3, 4, 8, 17, 32))], "tame")
    d.apply(name, a, b)


def gemm(d: Drawing, name: str) -> None:
    s = d.source
    a = d.operand(FLOATS, min_rank=2, max_rank=2, tame=True)
    flags = {"a_transpose": s.chance(2), "b_transpose": s.chance(2)}
    rows, depth = d.shape(a)[:: -1 if flags["a_transpose"] else 1]
    columns = s.choice((1, 3, 4, 8, 17))
    data_type = d.type(a).data_type
    b = d.like(data_type, (columns, depth) if flags["b_transpose"] else (depth, columns), "tame")
    shapes = ((), (columns,), (1, columns), (rows, 1), (rows, columns))
    c = d.like(data_type, s.choice(shapes), "tame") if s.chance(2) else None
    scales = {n: s.choice((0.5, 2.0, -1.0, 0.0)) for n in ("alpha", "beta") if s.chance(3)}
    d.apply(name, a, b, c, **flags, **scales)


# Images ---------------------------------------------------------------------------------------------------------------


def _laid_out(layout: str, **sizes: int) -> list[int]:
    return [sizes[letter] for letter in layout]


def _channels(s: Source, channels: int) -> int:
    """Choose a number of groups: 1, one per channel, or some in between."""
    return s.choice((1, channels, s.divisor(channels)))


def _window(s: Source, size: int, before: int, after: int) -> tuple[int, int]:
    """Choose elements and dilation of a window that fits a padded dimension."""
    count = min(s.choice((3, 2, 1, 1, 4)), size + before + after)
    most = (size + before + after - 1) // (count - 1) if count > 1 else 2
    return count, s.choice((1, 1, min(2, most)))


def convolution(d: Drawing, name: str) -> None:
    s = d.source
    x = d.operand(FLOATS, min_rank=4, max_rank=4, tame=True, elements=4, most=SMALL)
    layout = s.choice(("nchw", "nhwc"))
    n = dict(zip(layout, d.shape(x), strict=True))
    groups = _channels(s, n["c"])
    columns = s.choice((1, 2, 3, 4, 8) if groups < 4 else (1, 1, 2))
    padding = [s.choice((0, 0, 1, 2)) for _ in range(4)]
    forward = name == "conv2d"
    taps, dilations, strides = [0, 0], [1, 1], [s.choice((1, 1, 2, 3)) for _ in range(2)]
    attrs: dict[str, Any] = {"groups": groups, "input_layout": layout, "strides": strides}
    for i, size in enumerate((n["h"], n["w"])):
        if forward:
            taps[i], dilations[i] = _window(s, size, padding[2 * i], padding[2 * i + 1])
            continue
        taps[i], dilations[i] = s.choice((3, 2, 1, 4)), s.choice((1, 1, 2))
        reach = (size - 1) * strides[i] + (taps[i] - 1) * dilations[i] + 1
        while padding[2 * i] + padding[2 * i + 1] >= reach:
            padding[2 * i] //= 2
            padding[2 * i + 1] //= 2
        extra = s.integer(0, strides[i] - 1)
        attrs.setdefault("output_padding", []).append(extra)
        attrs.setdefault("output_sizes", []).append(reach - padding[2 * i] - padding[2 * i + 1] + extra)
    attrs |= {"padding": padding, "dilations": dilations}
    for left_out in ("output_padding", "output_sizes") if s.chance(2) else ("output_sizes", "output_padding"):
        if left_out in attrs and "output_padding" in attrs and "output_sizes" in attrs:
            del attrs[left_out]
    layouts = ("oihw", "hwio", "ohwi", "ihwo") if forward else ("iohw", "hwoi", "ohwi")
    attrs["filter_layout"] = s.choice(layouts)
    outputs, inputs = (groups * columns, n["c"] // groups) if forward else (columns, n["c"])
    data_type = d.type(x).data_type
    weights = d.like(data_type, _laid_out(attrs["filter_layout"], o=outputs, i=inputs, h=taps[0], w=taps[1]), "tame")
    d.apply(name, x, weights, d.like(data_type, (groups * columns,), "tame") if s.chance(2) else None, **attrs)


def pooling(d: Drawing, name: str) -> None:
    s = d.source
    x = d.operand(OPS[name].operands[0].data_types, min_rank=4, max_rank=4, tame=name != "maxPool2d", elements=4)
    layout = s.choice(("nchw", "nhwc"))
    if s.chance(6):
        d.apply(name, x, layout=layout)  # over the whole image
        return
    n = dict(zip(layout, d.shape(x), strict=True))
    padding = [s.choice((0, 0, 1, 2)) for _ in range(4)]
    windows = [_window(s, n[axis], padding[2 * i], padding[2 * i + 1]) for i, axis in enumerate("hw")]
    d.apply(
        name,
        x,
        window_dimensions=[count for count, _ in windows],
        padding=padding,
        strides=[s.choice((1, 2, 3)) for _ in windows],
        dilations=[dilation for _, dilation in windows],
        layout=layout,
        output_shape_rounding=s.choice(("floor", "ceil")),
    )


def resample(d: Drawing, name: str) -> None:
    s = d.source
    x = d.operand(OPS[name].operands[0].data_types, min_rank=4, max_rank=4, tame=True, most=SMALL)
    axes = s.choice(((2, 3), (1, 2), (3, 2), (0, 1)))
    mode = s.choice(("nearest-neighbor", "linear"))
    if s.chance(2):
        d.apply(name, x, mode=mode, axes=axes, sizes=[s.choice((1, 2, 3, 4, 6, 7)) for _ in axes])
    else:
        d.apply(name, x, mode=mode, axes=axes, scales=[s.choice((1.0, 2.0, 1.5, 3.0)) for _ in axes])


# Normalizations -------------------------------------------------------------------------------------------------------


def _optional(d: Drawing, data_type: str, shape: Sequence[int], count: int) -> list[int | None]:
    return [d.like(data_type, shape, "tame") if given else None for given in d.source.flags(count)]


def batch_normalization(d: Drawing, name: str) -> None:
    x = d.operand(FLOATS, min_rank=1, tame=True)
    axis = d.source.integer(0, d.type(x).rank - 1)
    shape, data_type = (d.shape(x)[axis],), d.type(x).data_type
    mean, variance = d.like(data_type, shape, "tame"), d.new(data_type, shape, "positive")
    epsilon = {"epsilon": 0.25} if d.source.chance(2) else {}
    d.apply(name, x, mean, variance, *_optional(d, data_type, shape, 2), axis=axis, **epsilon)


def instance_normalization(d: Drawing, name: str) -> None:
    x = d.operand(FLOATS, min_rank=4, max_rank=4, tame=True)
    layout = d.source.choice(("nchw", "nhwc"))
    parameters = _optional(d, d.type(x).data_type, (d.shape(x)[layout.index("c")],), 2)
    d.apply(name, x, *parameters, layout=layout, epsilon=d.source.choice((1e-5, 0.25)))


def layer_normalization(d: Drawing, name: str) -> None:
    s = d.source
    x = d.operand(FLOATS, tame=True)
    axes = s.permutation(s.subset(range(d.type(x).rank)))
    default = s.chance(3)
    shape = [d.shape(x)[a] for a in (range(1, d.type(x).rank) if default else axes)]
    parameters = _optional(d, d.type(x).data_type, shape, 2)
    d.apply(name, x, *parameters, axes=None if default else axes, epsilon=s.choice((1e-5, 0.25)))


# Recurrent networks ---------------------------------------------------------------------------------------------------

ACTIVATIONS = ("tanh", "sigmoid", "relu", ("leakyRelu", {"alpha": 0.1}), ("hardSigmoid", {}), ("clamp", {"max_value": 1}))


def recurrent(d: Drawing, name: str) -> None:
    s, family, cell = d.source, name.removesuffix("Cell"), name.endswith("Cell")
    gates, layouts, places = {"gru": (3, ("zrn", "rzn"), 2), "lstm": (4, ("iofg", "ifgo"), 3)}[family]
    x = d.operand(FLOATS, min_rank=2 if cell else 3, max_rank=2 if cell else 3, tame=True, most=256)
    data_type, hidden = d.type(x).data_type, s.choice((1, 2, 4, 5, 8))
    *steps, batch, inputs = d.shape(x)
    attrs: dict[str, Any] = {"hidden_size": hidden, "layout": s.choice(layouts)}
    lead: tuple[int, ...] = ()
    if not cell:
        direction = s.choice(("forward", "backward", "both"))
        lead = (2 if direction == "both" else 1,)
        attrs |= {"steps": steps[0], "direction": direction, "return_sequence": s.chance(2)}
    if family == "gru":
        attrs["reset_after"] = s.chance(2)
    if s.chance(3):
        attrs["activations"] = [s.choice(ACTIVATIONS) for _ in range(places)]
    shapes = {
        "weight": (*lead, gates * hidden, inputs),
        "recurrentWeight": (*lead, gates * hidden, hidden),
        "bias": (*lead, gates * hidden),
        "recurrentBias": (*lead, gates * hidden),
        "peepholeWeight": (*lead, 3 * hidden),
    }
    operands: list[int | None] = [x]
    for operand in OPS[name].operands[1:]:
        shape = shapes.get(operand.name, (*lead, batch, hidden))
        if operand.name in ("weight", "recurrentWeight"):
            operands.append(d.given(_weights(s, data_type, shape)))
        elif operand.required or s.chance(2):
            operands.append(d.like(data_type, shape, "tame", computed="tate" in operand.name))
        else:
            operands.append(None)
    d.apply(name, *operands, **attrs)


def _weights(s: Source, data_type: str, shape: Sequence[int]) -> Any:
    """Return weights with which states stay of ordinary size, however many units and steps there are."""
    scale = 0.5 / np.sqrt(shape[-1])
    return (s.generator().standard_normal(shape) * scale).astype(DATA_TYPES[data_type].numpy)


NETWORKS: dict[str, Callable[[Drawing, str], None]] = {
    "matmul": matmul,
    "gemm": gemm,
    "conv2d": convolution,
    "convTranspose2d": convolution,
    "averagePool2d": pooling,
    "l2Pool2d": pooling,
    "maxPool2d": pooling,
    "resample2d": resample,
    "batchNormalization": batch_normalization,
    "instanceNormalization": instance_normalization,
    "layerNormalization": layer_normalization,
    "gru": recurrent,
    "gruCell": recurrent,
    "lstm": recurrent,
    "lstmCell": recurrent,
}
