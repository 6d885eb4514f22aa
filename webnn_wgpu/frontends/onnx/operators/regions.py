"""Pooling of regions, and the inverse that adds patches to images."""

from __future__ import annotations

import math

import numpy as np

from webnn_wgpu import MLOperand

from ..call import NodeCall
from ..types import Array
from ._registry import Result, lowers
from ._windows import strides_of

MOST_CELLS = 1024
"""The maximum number of cells along a dimension for `MaxRoiPool`, which has a kernel for each."""
MOST_WEIGHED = 1 << 26
"""The maximum number of elements of an intermediate result of `_weighed_regions`."""


@lowers("RoiAlign", folds=False, ranks={0: (4,), 1: (2,), 2: (1,)})
def roi_align(call: NodeCall) -> Result:
    """Means, or maxima, of values at regular positions within the cells of regions."""
    x, build = call.operand(0), call.build
    samples, mean = call.attribute("sampling_ratio", 0), call.attribute("mode", "avg") == "avg"
    n, channels, height, width = (int(d) for d in x.shape)
    rows, columns = call.attribute("output_height", 1), call.attribute("output_width", 1)
    if min(rows, columns) < 1 or max(samples, 1) ** 2 * rows * columns * channels > MOST_WEIGHED:
        call.fail(f"{rows} x {columns} cells of {samples} x {samples} samples")
    shifted = call.attribute("coordinate_transformation_mode", "half_pixel" if call.version >= 16 else "output_half_pixel")
    offset = 0.5 if shifted == "half_pixel" else 0.0
    rois = build.mul(call.cast(call.operand(1), "float32"), call.constant(call.attribute("spatial_scale", 1.0), "float32"))
    count = int(rois.shape[0])
    left, top, right, bottom = (build.sub(edge, call.constant(offset, "float32")) for edge in build.split(rois, 4, axis=1))

    def cell(start: MLOperand, end: MLOperand, cells: int) -> MLOperand:
        """Return the length of a region's cells."""
        length = build.sub(end, start)
        if not offset:
            length = build.max(length, call.like(1, length))
        return build.div(length, call.like(cells, length))

    if samples <= 0:
        if not mean:
            call.on_host("the number of samples that a maximum is taken of depends on elements")
        down = _sample_weights(call, top, cell(top, bottom, rows), rows, height)
        across = _sample_weights(call, left, cell(left, right, columns), columns, width)
        return _weighed_regions(call, x, down, across)

    def along(start: MLOperand, end: MLOperand, cells: int, size: int) -> tuple[MLOperand, MLOperand, MLOperand, MLOperand]:
        """Return the elements before and after each position, its distance from the first, and whether it counts."""
        places = ((np.arange(cells * samples) + 0.5) / samples)[None]
        step = cell(start, end, cells)
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
    # The maximum is that of the weighted elements, as in all versions of the operator.
    value = call.fold(build.add if mean else build.max, corners)
    inside = build.logical_and(call.reshape(inside_y, [*tall, 1]), call.reshape(inside_x, [*wide, 1]))
    value = build.where(inside, value, call.like(0, value))
    value = call.reshape(value, [count, rows, samples, columns, samples, channels])
    value = (build.reduce_mean if mean else build.reduce_max)(value, axes=[2, 4])
    return call.transpose(call.cast(value, x.data_type), [0, 3, 1, 2])


def _sample_weights(call: NodeCall, start: MLOperand, cell: MLOperand, cells: int, size: int) -> MLOperand:
    """Return the weight of each element of a dimension in the mean of each cell of each region, [regions, cells, size].

    A cell has as many samples as its length, rounded up, at regular distances, and each is interpolated between two elements.
    Several samples of a cell are more than half an element apart. An element therefore contributes to at most 5 samples: those
    at a distance below 1, or beyond the border if the element is there.

    Args:
        call: the node.
        start: the starts of the regions, [regions, 1].
        cell: the length of their cells, [regions, 1].
        cells: the number of cells of a region.
        size: the number of elements along the dimension.
    """
    build, shape = call.build, [int(start.shape[0]), 1, 1, 1]

    def number(value: float | Array) -> MLOperand:
        return call.constant(value, "float32")

    count = build.max(build.ceil(cell), number(0))
    divisor = build.max(count, number(1))
    step = build.div(cell, divisor)
    step = build.where(build.greater(step, number(0)), step, number(1))
    count, step, length = (call.reshape(each, shape) for each in (count, step, cell))
    begin = build.add(call.reshape(start, shape), build.mul(length, number(np.arange(cells).reshape(cells, 1, 1))))
    elements = number(np.arange(size).reshape(size, 1))
    # The last sample too far before an element, and the samples that follow it.
    before = build.div(build.sub(build.sub(elements, number(1)), begin), step)
    first = build.max(build.floor(build.sub(before, number(0.5))), number(0))
    sample = build.add(first, number(np.arange(6)))
    place = build.add(begin, build.mul(build.add(sample, number(0.5)), step))
    counts = build.logical_and(
        build.lesser(sample, count),
        build.logical_and(build.greater_or_equal(place, number(-1)), build.lesser_or_equal(place, number(size))),
    )
    distance = build.abs(build.sub(build.clamp(place, min_value=0, max_value=size - 1), elements))
    weight = build.where(counts, build.relu(build.sub(number(1), distance)), number(0))
    return build.div(build.reduce_sum(weight, axes=[3]), call.reshape(divisor, shape[:3]))


def _weighed_regions(call: NodeCall, x: MLOperand, down: MLOperand, across: MLOperand) -> MLOperand:
    """Return the sums of regions' elements by their weights along both dimensions, [regions, channels, cells, cells]."""
    build = call.build
    n, channels, height, width = (int(d) for d in x.shape)
    count, rows, columns = int(down.shape[0]), int(down.shape[1]), int(across.shape[1])
    if count * channels * width * (rows if n == 1 else max(rows, height)) > MOST_WEIGHED:
        call.on_host("regions whose number of samples depends on elements are too many")
    images = x if n == 1 else build.gather(x, call.cast(call.operand(2), "int32"), axis=0)
    tall = build.matmul(call.reshape(down, [count, 1, rows, height]), call.cast(images, "float32"))
    wide = build.transpose(call.reshape(across, [count, 1, columns, width]), permutation=[0, 1, 3, 2])
    return call.cast(build.matmul(tall, wide), x.data_type)


@lowers("MaxRoiPool", ranks={0: (4,), 1: (2,)})
def max_roi_pool(call: NodeCall) -> Result:
    """The largest elements of the cells of regions, 0 for cells without elements."""
    x, build = call.operand(0), call.build
    shape = call.integers("pooled_shape") or []
    if len(shape) != 2 or not 1 <= min(shape) <= max(shape) <= MOST_CELLS:
        call.fail(f"a pooled_shape of {shape}")
    rows, columns = shape
    batch, *corners = build.split(call.operand(1), 5, axis=1)
    scale = call.constant(call.attribute("spatial_scale", 1.0), "float32")
    half = call.constant(0.5, "float32")
    left, top, right, bottom = (
        # Halves are rounded up: no corner is negative.
        call.cast(build.floor(build.add(build.mul(call.cast(corner, "float32"), scale), half)), "int32")
        for corner in corners
    )
    count = int(batch.shape[0])
    regions = build.gather(x, call.reshape(call.cast(batch, "int32"), [count]), axis=0)
    lowest = call.like(-math.inf, x)

    def along(values: MLOperand, start: MLOperand, end: MLOperand, cells: int, axis: int) -> MLOperand:
        """Reduce one dimension to cells, one after the other."""
        size = int(values.shape[axis])
        length = build.max(build.add(build.sub(end, start), call.like(1, end)), call.like(1, end))
        shape = [1] * len(values.shape)
        shape[axis] = size
        places = call.constant(np.arange(size).reshape(shape), "int32")
        found: list[MLOperand] = []
        for cell in range(cells):
            # Quotients of whole numbers, that of the end rounded up.
            first = build.mul(length, call.like(cell, length))
            last = build.add(build.mul(length, call.like(cell + 1, length)), call.like(cells - 1, length))
            edges = (build.add(start, build.div(edge, call.like(cells, edge))) for edge in (first, last))
            low, high = (call.reshape(edge, [count, 1, 1, 1]) for edge in edges)
            inside = build.logical_and(build.greater_or_equal(places, low), build.lesser(places, high))
            found.append(build.reduce_max(build.where(inside, values, lowest), axes=[axis], keep_dimensions=True))
        return found[0] if cells == 1 else build.concat(found, axis)

    pooled = along(along(regions, top, bottom, rows, 2), left, right, columns, 3)
    return build.where(build.equal(pooled, lowest), call.like(0, pooled), pooled)


@lowers("Col2Im", ranks={0: (3,)})
def col2im(call: NodeCall) -> Result:
    """Images as sums of patches."""
    x = call.tensor(0)
    image, block = call.ints(1) or [], call.ints(2) or []
    rank = len(image)
    if len(block) != rank or min([*image, *block], default=0) < 1 or x.shape[1] % math.prod(block):
        call.fail(f"blocks of {block} do not fit images of {image} and {x.shape[1]} channels")
    strides, dilations, pads = strides_of(call, rank)
    patches = [(image[i] + pads[i] + pads[rank + i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(rank)]
    if math.prod(patches) != x.shape[2]:
        call.fail(f"{x.shape[2]} patches, not the {patches} that the image takes")
    # For each position of the image, the patches' elements for it. Positions with fewer elements add a zero from the end.
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


def _added(call: NodeCall, parts: MLOperand) -> MLOperand:
    """Return the sums along the last axis, of any data type."""
    narrow = parts.data_type
    held = call.cast(parts, "int32") if narrow in ("int8", "uint8") else parts
    return call.cast(call.build.reduce_sum(held, axes=[len(parts.shape) - 1]), narrow)
