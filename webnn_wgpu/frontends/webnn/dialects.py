"""Differences between the writers of graph files, rewritten to calls of the builder.

Each function takes the operands and the options of a call by name and returns them as the builder takes them. It reads only the
values that it rewrites. The builder checks all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

from webnn_wgpu import MLOperand
from webnn_wgpu.api.signatures import camel

Options = dict[str, Any]
Operands = Mapping[str, MLOperand]

RENAMED: Mapping[str, Mapping[str, str]] = {
    "cast": {"to": "data_type", "type": "data_type"},
    "triangular": {"k": "diagonal"},
    "averagePool2d": {"roundingType": "output_shape_rounding"},
    "l2Pool2d": {"roundingType": "output_shape_rounding"},
    "maxPool2d": {"roundingType": "output_shape_rounding"},
}
"""Options that some writers call otherwise."""

IGNORED: Mapping[str, frozenset[str]] = {
    "gather": frozenset({"shape"}),
    "globalAveragePool": frozenset(
        {"dilations", "outputShapeRounding", "outputSizes", "padding", "strides", "windowDimensions", "roundingType"}
    ),
}
"""Options without a meaning that some writers add. `metadata` is one of every operator."""

EMPTY_IS_ABSENT = frozenset(
    {"padding", "strides", "dilations", "output_padding", "output_sizes", "window_dimensions", "permutation"}
)
"""Options whose empty list means that the option is not given."""

AUTO_PADDED = frozenset({"conv2d", "convTranspose2d", "averagePool2d", "l2Pool2d", "maxPool2d"})


class Refusal(Exception):
    """A call that cannot be rewritten.

    Attributes:
        rule, got, allowed: the parts of the message.
    """

    def __init__(self, rule: str, got: str = "", allowed: str = "") -> None:
        super().__init__(rule)
        self.rule, self.got, self.allowed = rule, got, allowed


def rewritten(operator: str, operands: Operands, options: Options) -> Options:
    """Return the options of a call in the specification's form."""
    rewrite = _REWRITES.get(operator)
    options = rewrite(operands, options) if rewrite else options
    return _explicit_padding(operator, operands, options) if operator in AUTO_PADDED else options


def _from_end(index: Any, rank: int) -> Any:
    return index + rank if isinstance(index, int) and -rank <= index < 0 else index


def _list(options: Options, name: str) -> list[Any] | None:
    """Return an option that is a list, or None for any other."""
    value = options.get(name)
    return cast("list[Any]", value) if isinstance(value, list) else None


def _integers(options: Options, name: str) -> list[int]:
    """Return an option that is a list of integers, and refuse any other."""
    found = _list(options, name)
    if found is None or not all(isinstance(item, int) for item in found):
        raise Refusal(f"{camel(name)} must be a list of integers", got=repr(options.get(name)))
    return found


def _rank(operands: Operands) -> int:
    return len(next(iter(operands.values())).shape)


def _axis(operands: Operands, options: Options) -> Options:
    """Count negative axes from the end."""
    rank = _rank(operands)
    if "axis" in options:
        options["axis"] = _from_end(options["axis"], rank)
    axes = _list(options, "axes")
    if axes is not None:
        options["axes"] = [_from_end(axis, rank) for axis in axes]
    return options


def _unsqueeze(operands: Operands, options: Options) -> Options:
    axes = _list(options, "axes")
    if axes is not None:
        options["axes"] = [_from_end(axis, _rank(operands) + len(axes)) for axis in axes]
    return options


def _reshape(operands: Operands, options: Options) -> Options:
    """Compute the one dimension that is given as -1."""
    if -1 not in (_list(options, "new_shape") or ()):
        return options
    shape = _integers(options, "new_shape")
    if shape.count(-1) > 1:
        raise Refusal("newShape may have one -1", got=str(shape))
    count = math.prod(operands["input"].shape)
    known = math.prod(n for n in shape if n != -1)
    if known < 1 or count % known:
        raise Refusal("the -1 of newShape has no size", got=f"{shape} for {count} elements")
    options["new_shape"] = [count // known if n == -1 else n for n in shape]
    return options


def _slice(operands: Operands, options: Options) -> Options:
    """Rewrite ONNX's starts, ends, axes and steps."""
    if not options.keys() & {"ends", "steps"} and "axes" not in options:
        return options
    shape = operands["input"].shape
    starts, ends = _integers(options, "starts"), _integers(options, "ends")
    axes: list[int] = _integers(options, "axes") if "axes" in options else list(range(len(starts)))
    axes = [_from_end(axis, len(shape)) for axis in axes]
    steps = _integers(options, "steps") if "steps" in options else [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise Refusal("starts, ends, axes and steps must have the same length")
    first, sizes, strides = [0] * len(shape), list(shape), [1] * len(shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if not 0 <= axis < len(shape):
            raise Refusal("an axis is out of range", got=str(axis), allowed=f"0..{len(shape) - 1}")
        if step < 1:
            raise Refusal("negative steps cannot be read", got=str(step), allowed="at least 1")
        low, high, _ = slice(start, end).indices(shape[axis])
        if high <= low:
            raise Refusal("the slice is empty", got=f"{start}..{end} of {shape[axis]}")
        first[axis], sizes[axis], strides[axis] = low, high - low, step
    return {"starts": first, "sizes": sizes, "strides": strides} | {n: options[n] for n in ("label",) if n in options}


def _layer_normalization(operands: Operands, options: Options) -> Options:
    """Without axes normalize as many of the last dimensions as the scale or the bias has."""
    options = _axis(operands, options)
    factor = operands.get("scale") or operands.get("bias")
    if "axes" not in options and factor is not None:
        rank, own = _rank(operands), len(factor.shape)
        options["axes"] = list(range(rank - own, rank))
    return options


def _explicit_padding(operator: str, operands: Operands, options: Options) -> Options:
    kind = options.pop("autoPad", None)
    if kind in (None, "explicit", ""):
        return options
    if kind not in ("same-upper", "same-lower"):
        raise Refusal("unknown autoPad", got=repr(kind), allowed="explicit, same-upper, same-lower")
    sizes = _image_of(operands["input"].shape, options.get("input_layout") or options.get("layout") or "nchw")
    if "filter" in operands:
        layout = options.get("filter_layout") or ("iohw" if operator == "convTranspose2d" else "oihw")
        window = _image_of(operands["filter"].shape, layout)
    else:
        window = _pair(options, "window_dimensions", sizes)
    strides, dilations = _pair(options, "strides", [1, 1]), _pair(options, "dilations", [1, 1])
    if sizes is None or window is None or strides is None or dilations is None:
        return options
    padding: list[int] = []
    for size, taps, stride, dilation in zip(sizes, window, strides, dilations, strict=True):
        if operator == "convTranspose2d":
            total = max((taps - 1) * dilation + 1 - stride, 0)
        else:
            total = max((math.ceil(size / stride) - 1) * stride + (taps - 1) * dilation + 1 - size, 0)
        small, large = total // 2, total - total // 2
        padding += [small, large] if kind == "same-upper" else [large, small]
    options["padding"] = padding
    return options


def _image_of(shape: tuple[int, ...], layout: Any) -> list[int] | None:
    """Return height and width of a shape, or None where the rank or the layout is wrong."""
    sizes = dict(zip(layout, shape, strict=False)) if isinstance(layout, str) and len(shape) == len(layout) else {}
    return [sizes["h"], sizes["w"]] if sizes.keys() >= {"h", "w"} else None


def _pair(options: Options, name: str, default: list[int] | None) -> list[int] | None:
    """Return an option of two positive integers, or None where it has others."""
    if name not in options:
        return default
    found = _integers(options, name)
    return found if len(found) == 2 and min(found) > 0 else None


_REWRITES: Mapping[str, Callable[[Operands, Options], Options]] = {
    **{
        name: _axis
        for name in (
            "softmax",
            "argMax",
            "argMin",
            "concat",
            "split",
            "gather",
            "gatherElements",
            "scatterElements",
            "cumulativeSum",
            "batchNormalization",
            "reverse",
            "squeeze",
            *(f"reduce{n}" for n in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Product", "Sum", "SumSquare")),
        )
    },
    "unsqueeze": _unsqueeze,
    "reshape": _reshape,
    "slice": _slice,
    "layerNormalization": _layer_normalization,
}
