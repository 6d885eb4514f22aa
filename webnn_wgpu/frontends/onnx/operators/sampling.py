"""Resizing, sampling at positions between elements, and what joins patches into images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from webnn_wgpu import MLOperand

from ..call import Call
from ..tensors import Tensor
from ..types import BOOL, Array, DType, is_float
from ._registry import Result, lowers

EXACT_IN_FLOAT32 = ("int8", "uint8", "int16", "uint16", "bool")
"""Types of at most 24 bits, which float32 holds."""


@lowers("Upsample")
def upsample(call: Call) -> Result:
    """Another number of elements along each dimension, by scales."""
    scales = call.attribute("scales") if call.version < 9 else call.value(1).tolist()
    return _scaled(call, scales)


@lowers("Resize", since=10)
def resize_by_scales(call: Call) -> Result:
    """The first form of Resize, like Upsample."""
    return _scaled(call, call.value(1).tolist())


def _scaled(call: Call, scales: Sequence[float]) -> Result:
    """Resize as versions before 11 did: output element o is element o / scale, rounded up where elements are left out."""
    x = call.tensor(0)
    sizes = _scaled_sizes(x.shape, scales)
    mode = call.attribute("mode", "nearest")
    operand = call.operand(0)
    if mode == "nearest":
        for axis, scale in enumerate(scales):
            rounding = "ceil" if scale < 1 else "floor"
            operand = _resample(call, operand, [axis], [sizes[axis]], [scale], mode, "asymmetric", rounding)
        return operand
    return _resample(call, operand, range(x.rank), sizes, scales, "linear", "asymmetric")


def _scaled_sizes(shape: Sequence[int], scales: Sequence[float]) -> list[int]:
    return [int(np.floor(np.float32(d) * np.float32(s))) for d, s in zip(shape, scales, strict=True)]


@lowers("Resize", since=11, empty=True)
def resize(call: Call) -> Result:
    """Another number of elements along some dimensions."""
    x = call.tensor(0)
    axes = call.axes(call.attribute("axes") or range(x.rank), x.rank)
    shape = [x.shape[a] for a in axes]
    if call.has(3) and call.tensor(3).size:
        sizes = [int(v) for v in call.value(3)]
        scales = [new / max(old, 1) for new, old in zip(sizes, shape, strict=True)]
        policy = call.attribute("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            scales = [min(scales) if policy == "not_larger" else max(scales)] * len(axes)
            sizes = [math.floor(scale * old + 0.5) for scale, old in zip(scales, shape, strict=True)]
    else:
        scales = [float(v) for v in call.value(2)]
        sizes = _scaled_sizes(shape, scales)
    result = list(x.shape)
    for axis, new in zip(axes, sizes, strict=True):
        result[axis] = new
    if 0 in result:
        return Tensor.known(np.zeros(result, x.dtype))
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
        options["roi"] = [float(v) for v in call.value(1)]
    mode = options.pop("mode")
    return _resample(call, call.operand(0), axes, sizes, scales, mode, **options)


def _resample(
    call: Call,
    operand: MLOperand,
    axes: Sequence[int],
    sizes: Sequence[int],
    scales: Sequence[float],
    mode: str,
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
        plain = "nearest-neighbor" if mode == "nearest" else mode
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
    """Whether WebNN's resample2d computes the same."""
    before = [int(operand.shape[a]) for a in axes]
    if len(operand.shape) != 4 or len(axes) != 2 or operand.data_type not in ("float32", "float16"):
        return False
    if any(scale != new / old for scale, new, old in zip(scales, sizes, before, strict=True)):
        return False
    if mode == "nearest" and all(new % old == 0 for new, old in zip(sizes, before, strict=True)):
        # Whole repetitions: no position is halfway between two elements.
        return (coordinates == "half_pixel" and "round" in nearest_mode) or (coordinates, nearest_mode) == (
            "asymmetric",
            "floor",
        )
    if coordinates == "pytorch_half_pixel" and 1 not in sizes:
        coordinates = "half_pixel"
    return coordinates == "half_pixel" and (mode == "linear" or (mode, nearest_mode) == ("nearest", "round_prefer_floor"))


def _floating(operand: MLOperand) -> str:
    return operand.data_type if operand.data_type == "float16" else "float32"


def _whole(call: Call, operand: MLOperand, dtype: DType) -> MLOperand:
    """Return the nearest integers of a type, halves to even, the type's ends for what is beyond them."""
    info = np.iinfo(dtype) if dtype != BOOL else np.iinfo(np.uint8)
    return call.build.clamp(call.build.round_even(operand), min_value=int(info.min), max_value=int(info.max))


@lowers("GridSample")
def grid_sample(call: Call) -> Result:
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


@lowers("RoiAlign")
def roi_align(call: Call) -> Result:
    """Means, or maxima, of values at regular positions within the cells of regions."""
    x, build = call.operand(0), call.build
    samples = call.attribute("sampling_ratio", 0)
    if samples <= 0:
        call.on_host("the number of samples depends on elements")
    n, channels, height, width = (int(d) for d in x.shape)
    rows, columns = call.attribute("output_height", 1), call.attribute("output_width", 1)
    shifted = call.attribute("coordinate_transformation_mode", "half_pixel" if call.version >= 16 else "output_half_pixel")
    offset = 0.5 if shifted == "half_pixel" else 0.0
    rois = build.mul(call.cast(call.operand(1), "float32"), call.constant(call.attribute("spatial_scale", 1.0), "float32"))
    count = int(rois.shape[0])
    left, top, right, bottom = (build.sub(edge, call.constant(offset, "float32")) for edge in build.split(rois, 4, axis=1))

    def along(start: MLOperand, end: MLOperand, cells: int, size: int) -> tuple[MLOperand, MLOperand, MLOperand, MLOperand]:
        """Return the elements before and after each position, the position's distance from the first, and whether it counts."""
        length = build.sub(end, start)
        if not offset:
            length = build.max(length, call.like(1, length))
        places = ((np.arange(cells * samples) + 0.5) / samples)[None]
        step = build.div(length, call.like(cells, length))
        place = build.add(start, build.mul(step, call.constant(places, "float32")))
        inside = build.logical_and(
            build.greater_or_equal(place, call.like(-1, place)), build.lesser_or_equal(place, call.like(size, place))
        )
        place = build.clamp(place, min_value=0, max_value=size - 1)
        low = build.floor(place)
        high = build.min(build.add(low, call.like(1, low)), call.like(size - 1, low))
        return call.cast(low, "int32"), call.cast(high, "int32"), build.sub(place, low), inside

    y0, y1, y, inside_y = along(top, bottom, rows, height)
    x0, x1, x_, inside_x = along(left, right, columns, width)
    tall, wide = [count, rows * samples, 1], [count, 1, columns * samples]
    table = call.reshape(call.transpose(x, [0, 2, 3, 1]), [n * height * width, channels])
    base = build.mul(call.cast(call.operand(2), "int32"), call.constant(height, "int32"))
    base = call.reshape(base, [count, 1, 1])
    corners: list[MLOperand] = []
    for row, upper in ((y0, True), (y1, False)):
        for column, before in ((x0, True), (x1, False)):
            line = build.mul(build.add(base, call.reshape(row, tall)), call.constant(width, "int32"))
            values = build.gather(table, build.add(line, call.reshape(column, wide)), axis=0)
            weight_y = build.sub(call.like(1, y), y) if upper else y
            weight_x = build.sub(call.like(1, x_), x_) if before else x_
            weight = build.mul(call.reshape(weight_y, [*tall, 1]), call.reshape(weight_x, [*wide, 1]))
            corners.append(build.mul(call.cast(values, "float32"), weight))
    mean = call.attribute("mode", "avg") == "avg"
    # The maximum is that of the weighted elements themselves, as it has been since the operator came to be.
    value = call.fold(build.add if mean else build.max, corners)
    inside = build.logical_and(call.reshape(inside_y, [*tall, 1]), call.reshape(inside_x, [*wide, 1]))
    value = build.where(inside, value, call.like(0, value))
    value = call.reshape(value, [count, rows, samples, columns, samples, channels])
    value = (build.reduce_mean if mean else build.reduce_max)(value, axes=[2, 4])
    return call.transpose(call.cast(value, x.data_type), [0, 3, 1, 2])


@lowers("Col2Im")
def col2im(call: Call) -> Result:
    """Images that patches are added up to."""
    x = call.tensor(0)
    image, block = call.ints(1) or [], call.ints(2) or []
    rank = len(image)
    dilations, strides = call.attribute("dilations") or [1] * rank, call.attribute("strides") or [1] * rank
    pads = call.attribute("pads") or [0] * (2 * rank)
    patches = [(image[i] + pads[i] + pads[rank + i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(rank)]
    if math.prod(patches) != x.shape[2]:
        call.fail(f"{x.shape[2]} patches, not the {patches} that the image takes")
    # For each place of the image, the patches' elements that land on it; what lands on none is added from a zero at the end.
    grid: Array = np.indices([*block, *patches]).reshape(2 * rank, -1)
    places = [grid[rank + i] * strides[i] - pads[i] + grid[i] * dilations[i] for i in range(rank)]
    valid = np.logical_and.reduce([(p >= 0) & (p < d) for p, d in zip(places, image, strict=True)])
    targets: Array = np.asarray(np.ravel_multi_index([p[valid] for p in places], image))
    sources = np.flatnonzero(valid)
    order = np.argsort(targets, kind="stable")
    targets, sources = targets[order], sources[order]
    counts = np.bincount(targets, minlength=math.prod(image))
    table = np.full((math.prod(image), max(int(counts.max()), 1)), grid.shape[1])
    starts = np.cumsum(counts) - counts
    table[targets, np.arange(len(targets)) - starts[targets]] = sources
    channels = x.shape[1] // math.prod(block)
    flat = call.reshape(call.operand(0), [x.shape[0], channels, grid.shape[1]])
    padded = call.build.pad(flat, [0, 0, 0], [0, 0, 1])
    parts = call.build.gather(padded, call.constant(table, "int32"), axis=2)
    total = parts if table.shape[1] == 1 else _added(call, parts)
    return call.reshape(total, [x.shape[0], channels, *image])


def _added(call: Call, parts: MLOperand) -> MLOperand:
    """Return the sums along the last axis, of any data type."""
    narrow = parts.data_type
    held = call.cast(parts, "int32") if narrow in ("int8", "uint8") else parts
    return call.cast(call.build.reduce_sum(held, axes=[len(parts.shape) - 1]), narrow)


@lowers("MaxUnpool", moves=True)
def max_unpool(call: Call) -> Result:
    """What max pooling kept, put where it was; 0 elsewhere."""
    x = call.tensor(0)
    kernel = call.attribute("kernel_shape")
    strides, pads = call.attribute("strides") or [1] * len(kernel), call.attribute("pads") or [0] * (2 * len(kernel))
    inner = [(d - 1) * strides[i] - pads[i] - pads[len(kernel) + i] + kernel[i] for i, d in enumerate(x.shape[2:])]
    shape = [*x.shape[:2], *inner]
    zeros = call.build.expand(call.like(0, call.operand(0)), [math.prod(shape)])
    flat, places = call.reshape(call.operand(0), [x.size]), call.reshape(call.operand(1), [x.size])
    filled = call.reshape(call.build.scatter_elements(zeros, places, flat, axis=0), shape)
    wanted = call.ints(2) or shape
    if wanted == shape:
        return filled
    return call.build.pad(filled, [0] * len(shape), [w - s for w, s in zip(wanted, shape, strict=True)])
