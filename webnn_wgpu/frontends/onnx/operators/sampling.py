"""Resizing, and sampling at positions between elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from webnn_wgpu import MLOperand

from ..call import NodeCall
from ..tensors import OnnxTensor
from ..types import BOOL, DType, is_float
from ._registry import Result, lowers

MOST_ALONG = 1 << 31
"""The maximum size of a result's dimension."""
EXACT_IN_FLOAT32 = ("int8", "uint8", "int16", "uint16", "bool")
"""Types of at most 24 bits, which float32 represents exactly."""


@lowers("Upsample")
def upsample(call: NodeCall) -> Result:
    """The input resized along each dimension by scales."""
    scales = call.attribute("scales", list[float]()) if call.version < 9 else call.floats(1)
    return _scaled(call, scales)


@lowers("Resize", since=10)
def resize_by_scales(call: NodeCall) -> Result:
    """The first form of Resize, like Upsample."""
    return _scaled(call, call.floats(1))


def _scaled(call: NodeCall, scales: Sequence[float]) -> Result:
    """Resize as versions before 11 did: output element o is element o / scale, rounded up where elements are left out."""
    x = call.tensor(0)
    sizes = _scaled_sizes(call, x.shape, scales)
    mode = call.attribute("mode", "nearest")
    operand = call.operand(0)
    if mode == "nearest":
        for axis, scale in enumerate(scales):
            rounding = "ceil" if scale < 1 else "floor"
            operand = _resample(call, operand, [axis], [sizes[axis]], [scale], mode, "asymmetric", rounding)
        return operand
    return _resample(call, operand, range(x.rank), sizes, scales, "linear", "asymmetric")


def _scaled_sizes(call: NodeCall, shape: Sequence[int], scales: Sequence[float]) -> list[int]:
    if len(scales) != len(shape) or min(scales, default=1) <= 0:
        call.fail(f"scales {list(scales)} do not fit sizes {list(shape)}")
    sizes = [float(np.float32(d)) * float(np.float32(s)) for d, s in zip(shape, scales, strict=True)]
    if max(sizes, default=0) > MOST_ALONG:
        call.fail(f"scales {list(scales)} of sizes {list(shape)} are too large")
    # The product is rounded to float32 before its fraction is removed.
    return [int(np.floor(np.float32(size))) for size in sizes]


@lowers("Resize", since=11, empty=True)
def resize(call: NodeCall) -> Result:
    """The input resized along some dimensions."""
    x = call.tensor(0)
    axes = call.axes(call.integers("axes") or range(x.rank), x.rank)
    shape = [x.shape[a] for a in axes]
    if call.has(3) and call.tensor(3).size:
        sizes = call.ints(3) or []
        if len(sizes) != len(axes) or min(sizes, default=0) < 0:
            call.fail(f"sizes {sizes} for {len(axes)} axes")
        scales = [new / max(old, 1) for new, old in zip(sizes, shape, strict=True)]
        policy = call.attribute("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            scales = [min(scales) if policy == "not_larger" else max(scales)] * len(axes)
            sizes = [math.floor(scale * old + 0.5) for scale, old in zip(scales, shape, strict=True)]
    else:
        scales = call.floats(2)
        sizes = _scaled_sizes(call, shape, scales)
    result = list(x.shape)
    for axis, new in zip(axes, sizes, strict=True):
        result[axis] = new
    if 0 in result:
        return OnnxTensor.known(np.zeros(result, x.dtype))
    if not x.size:
        call.fail(f"nothing can be made of {x.shape}")
    options: dict[str, Any] = {
        "mode": call.attribute("mode", "nearest"),
        "nearest_mode": call.attribute("nearest_mode", "round_prefer_floor"),
        "coordinates": call.attribute("coordinate_transformation_mode", "half_pixel"),
        "cubic_coeff_a": call.attribute("cubic_coeff_a", -0.75),
        "antialias": bool(call.attribute("antialias", 0)),
        "exclude_outside": bool(call.attribute("exclude_outside", 0)),
        "extrapolation_value": call.attribute("extrapolation_value", 0.0),
    }
    if options["coordinates"] == "tf_crop_and_resize":
        options["roi"] = call.floats(1)
    mode = options.pop("mode")
    return _resample(call, call.operand(0), axes, sizes, scales, mode, **options)


def _resample(
    call: NodeCall,
    operand: MLOperand,
    axes: Sequence[int],
    sizes: Sequence[int],
    scales: Sequence[float],
    mode: Literal["nearest", "linear", "cubic"],
    coordinates: str,
    nearest_mode: str = "floor",
    antialias: bool = False,
    **options: Any,
) -> MLOperand:
    """Resample an operand of any type along some dimensions."""
    moving = [i for i, a in enumerate(axes) if sizes[i] != operand.shape[a] or scales[i] != 1]
    if coordinates != "tf_crop_and_resize":
        axes, sizes, scales = [axes[i] for i in moving], [sizes[i] for i in moving], [scales[i] for i in moving]
    if not axes:
        return operand
    simple = not antialias and not (mode == "linear" and options.get("exclude_outside"))
    if simple and _plain(operand, axes, sizes, scales, mode, coordinates, nearest_mode):
        plain = "nearest-neighbor" if mode == "nearest" else "linear"
        return call.build.resample2d(operand, mode=plain, sizes=list(sizes), axes=list(axes))
    options |= {"axes": axes, "sizes": sizes, "scales": scales, "nearest_mode": nearest_mode}
    options["coordinate_transformation_mode"] = coordinates
    if mode == "nearest":
        return call.build.ext.resample(operand, mode=mode, **options)
    dtype = call.tensor(0).dtype
    if not is_float(dtype) and dtype.name not in EXACT_IN_FLOAT32:
        call.on_host(f"float32 does not hold {dtype}")
    result = call.build.ext.resample(call.cast(operand, _floating(operand)), mode=mode, antialias=antialias, **options)
    return result if is_float(dtype) else _whole(call, result, dtype)


def _plain(
    operand: MLOperand,
    axes: Sequence[int],
    sizes: Sequence[int],
    scales: Sequence[float],
    mode: str,
    coordinates: str,
    nearest_mode: str,
) -> bool:
    """Return whether WebNN's resample2d computes the same result."""
    before = [int(operand.shape[a]) for a in axes]
    if len(operand.shape) != 4 or len(axes) != 2 or operand.data_type not in ("float32", "float16"):
        return False
    if any(scale != new / old for scale, new, old in zip(scales, sizes, before, strict=True)):
        return False
    if mode == "nearest" and all(new % old == 0 for new, old in zip(sizes, before, strict=True)):
        # With integer scales, no position is halfway between two elements.
        return (coordinates == "half_pixel" and "round" in nearest_mode) or (coordinates, nearest_mode) == (
            "asymmetric",
            "floor",
        )
    if coordinates == "pytorch_half_pixel" and 1 not in sizes:
        coordinates = "half_pixel"
    return coordinates == "half_pixel" and (mode == "linear" or (mode, nearest_mode) == ("nearest", "round_prefer_floor"))


def _floating(operand: MLOperand) -> Literal["float32", "float16"]:
    return "float16" if operand.data_type == "float16" else "float32"


def _whole(call: NodeCall, operand: MLOperand, dtype: DType) -> MLOperand:
    """Return the nearest integers of a data type, halves to even, clamped to the range of the type."""
    info = np.iinfo(dtype) if dtype != BOOL else np.iinfo(np.uint8)
    return call.build.clamp(call.build.round_even(operand), min_value=int(info.min), max_value=int(info.max))


@lowers("GridSample")
def grid_sample(call: NodeCall) -> Result:
    """Values of an image at given positions."""
    x, dtype = call.operand(0), call.tensor(0).dtype
    mode = call.attribute("mode", "bilinear" if call.version < 20 else "linear").removeprefix("bi")
    if not is_float(dtype):
        if mode != "nearest" or dtype.name not in EXACT_IN_FLOAT32:
            call.on_host(f"values between elements of type {dtype}")
        x = call.cast(x, "float32")
    return call.build.ext.grid_sample(
        x,
        call.operand(1),
        mode=mode,
        padding_mode=call.attribute("padding_mode", "zeros"),
        align_corners=bool(call.attribute("align_corners", 0)),
    )


@lowers("AffineGrid")
def affine_grid(call: NodeCall) -> Result:
    """The positions of elements of images or volumes under affine maps. ONNX's own function body fails for a single image."""
    theta, sizes = call.tensor(0), call.ints(1) or []
    count = len(sizes) - 2
    if count not in (2, 3) or theta.shape != (sizes[0], count, count + 1):
        call.fail(f"maps of shape {theta.shape} do not fit a size of {sizes}")
    columns = call.build.split(call.cast(call.operand(0), "float32"), count + 1, axis=2)
    *factors, grid = (call.reshape(column, [sizes[0], *[1] * count, count]) for column in columns)
    # A map's first column is that of the last dimension.
    for axis, factor in zip(range(count, 0, -1), factors, strict=True):
        size = sizes[1 + axis]
        places = np.linspace(-1, 1, size) if call.attribute("align_corners", 0) else (2 * np.arange(size) + 1) / size - 1
        along = [size if i == axis else 1 for i in range(count + 2)]
        grid = call.build.add(grid, call.build.mul(factor, call.constant(places.reshape(along), "float32")))
    return grid
