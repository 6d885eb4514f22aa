"""Convolutions of tensors larger than a binding: the elements that parts of the work touch, and the division of long sums."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..core.data_types import DATA_TYPES
from ..ir.graph import Value
from ..ir.types import TensorType
from ..kernels.element import QUAD, STORAGE_ALIGNMENT_BYTES, padded_bytes
from ..kernels.spec import Temp, Work, grid_1d
from ._product import HIGHEST_TILE
from ._strided_copy import strided_call

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.caps import Caps
    from ..costs import ConvolutionSize, Target
    from ..kernels.spec import Grid, Interval, KernelCall, Operand, Reach
    from ._def import Lowering
    from ._product_kernel import ProductKernel, Read

NHWC = (0, 2, 3, 1)
"""The dimensions of an nchw image in the order nhwc."""


# Elements that parts of the work touch -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Images:
    """The elements that runs of output pixels touch, of the input and of all tensors with the layout of the output."""

    size: ConvolutionSize

    def input(self, first: int, end: int) -> Interval:
        """Return the elements of the input that output pixels first..end-1 read. Pixels are numbered image by image."""
        size = self.size
        (height, width), pixels, columns = size.input, math.prod(size.output), size.output[1]
        in_image = height * width * size.groups * size.depth
        low, high = first // pixels, (end - 1) // pixels
        if not size.nhwc:
            return low * in_image, (high + 1) * in_image
        row = width * size.groups * size.depth
        top, _ = self.rows(first % pixels // columns, first % pixels // columns)
        _, bottom = self.rows((end - 1) % pixels // columns, (end - 1) % pixels // columns)
        start = low * in_image + top * row
        return start, max(start + row, high * in_image + bottom * row)

    def rows(self, first: int, last: int) -> Interval:
        """Return the rows of an input image that rows first..last of its output read, at least one row."""
        size = self.size
        height, stride, reach = size.input[0], size.strides[0], (size.kernel[0] - 1) * size.dilations[0]
        if size.transposed:
            top, bottom = -(-(first + size.padding[0] - reach) // stride), (last + size.padding[0]) // stride
        else:
            top, bottom = first * stride - size.padding[0], last * stride - size.padding[0] + reach
        top = max(0, min(height - 1, top))
        return top, max(top, min(height - 1, bottom)) + 1

    def output(self, first: int, end: int) -> Interval:
        """Return the elements of output pixels first..end-1, with all their channels."""
        size = self.size
        if size.nhwc:
            return first * size.channels, end * size.channels
        pixels = math.prod(size.output)
        return first // pixels * pixels * size.channels, ((end - 1) // pixels + 1) * pixels * size.channels

    def fit(self, input_bytes: int, output_bytes: int, pixels: int, caps: Caps) -> bool:
        """Return whether a device can bind all elements that a run of `pixels` neighboring output pixels touches."""
        size = self.size
        total = size.images * math.prod(size.output)
        tensors: tuple[tuple[Callable[[int, int], Interval], int, int], ...] = (
            (self.input, input_bytes, size.images * math.prod(size.input) * size.groups * size.depth),
            (self.output, output_bytes, total * size.channels),
        )
        for touched, data_bytes, count in tensors:
            if padded_bytes(count * data_bytes) > _limit(caps):
                widest = max(past - low for low, past in (touched(*run) for run in self._runs(min(pixels, total))))
                if widest * data_bytes > _room(caps):
                    return False
        return True

    def _runs(self, pixels: int) -> list[Interval]:
        """Return the runs of `pixels` output pixels that touch the most elements: those that start at the end of a row.

        Rows far from the edges differ only by the stride.
        """
        (height, width), total = self.size.output, self.size.images * math.prod(self.size.output)
        near = {row + k for row in (0, height // 4, height // 2, height - 1) for k in range(-32, 33)}
        rows = sorted(row for row in near if 0 <= row < height)
        starts = {min(row * width + width - 1, total - pixels) for row in rows} | {0}
        return [(start, start + pixels) for start in starts]


def _limit(caps: Caps) -> int:
    return caps.limit("max-storage-buffer-binding-size")


def _room(caps: Caps) -> int:
    """Return the maximum size in bytes of a part of a tensor that a binding holds at any offset."""
    return _limit(caps) - caps.limit("min-storage-buffer-offset-alignment") - STORAGE_ALIGNMENT_BYTES


def tile_work(kernel: ProductKernel, size: ConvolutionSize, rows: int, caps: Caps) -> Work:
    """Return the division of a product of patches with the filter. Its tiles have `rows` output pixels."""
    uniforms = {name: int(value) for name, _, value in kernel.fields if name in ("blocks", "panels", "tiles", "K", "N")}
    blocks, panels, images = uniforms["blocks"], uniforms["panels"], Images(size)
    M = size.product.M

    def reach(first: int, end: int) -> list[Interval | None]:
        """Return the elements that tiles first..end-1 touch. Tiles are numbered by group, then block of pixels, then panel."""
        groups = first // (blocks * panels), (end - 1) // (blocks * panels) + 1
        pixels = 0, M
        if groups[1] - groups[0] == 1:
            pixels = first // panels % blocks * rows, min(M, ((end - 1) // panels % blocks + 1) * rows)
        filter_ = uniforms["K"] * uniforms["N"]
        touched: dict[str, Interval] = {
            "input": images.input(*pixels),
            "weights": (groups[0] * filter_, groups[1] * filter_),
            "full": images.output(*pixels),
        }
        return [touched.get(kernel.reads.get(binding.name, binding.name)) for binding in kernel.bindings]

    return Work(uniforms["tiles"], lambda tiles: ({"tiles": tiles}, grid_1d(tiles, caps)), reach)


def row_work(kernel: ProductKernel, size: ConvolutionSize, per_row: int, height: int, workgroup: int, caps: Caps) -> Work:
    """Return the division of a convolution with one input channel per group.

    Args:
        kernel: the kernel.
        size: the sizes of the convolution.
        per_row: the number of items: of `height` rows of all channels in nhwc, or of a row of one channel in nchw.
        height: the number of these rows. The last rows of an image may be fewer.
        workgroup: the number of invocations of a workgroup.
        caps: the caps of the device.
    """
    out_height, out_width = size.output
    images = Images(size)
    planes = _planes(size)
    blocks = -(-out_height // height)
    items = size.images * blocks * per_row * (1 if size.nhwc else size.channels)

    def row_at(block: int) -> int:
        """Return the first row of a block of rows, numbered through all images."""
        return block // blocks * out_height + block % blocks * height

    def reach(first: int, end: int) -> list[Interval | None]:
        rows = row_at(first // per_row), row_at((end - 1) // per_row + 1)
        pixels = rows[0] * out_width, rows[1] * out_width
        if size.nhwc:
            touched = {"input": images.input(*pixels), "full": images.output(*pixels)}
        elif size.columns == 1:
            touched = {"input": planes.input(*pixels), "full": pixels}
        else:
            touched = {"input": _shared_planes(size, rows), "full": pixels}
        return [touched.get(kernel.reads.get(binding.name, binding.name)) for binding in kernel.bindings]

    def launch(count: int) -> tuple[dict[str, int], Grid]:
        return {"items": count}, grid_1d(-(-count // workgroup), caps)

    work: Reach = reach
    return Work(items, launch, work)


def depthwise_fits(low: Lowering, size: ConvolutionSize, output: TensorType) -> bool:
    """Return whether a kernel for one input channel per group can bind a filter and an output row, and its loops end."""
    input_bytes, output_bytes = (DATA_TYPES[t.data_type].size_bytes for t in (low.input(), output))
    if padded_bytes(low.input(1).num_elements * input_bytes) > _limit(low.caps):
        return False
    if size.kernel[0] + size.taps > low.target.costs.launches.most_iterations:
        return False
    images = Images(size) if size.nhwc else _planes(size)
    return images.fit(input_bytes, output_bytes, size.output[1], low.caps)


def _planes(size: ConvolutionSize) -> Images:
    """Return the planes of nchw images, each as a separate image. Output channels of one group share an input plane."""
    return Images(replace(size, nhwc=True, groups=1, depth=1, columns=1, images=size.images * size.channels))


def _shared_planes(size: ConvolutionSize, rows: tuple[int, int]) -> Interval:
    """Return the input planes of rows of output planes, of which several belong to one input plane."""
    plane = math.prod(size.input)
    low, high = (r // size.output[0] // size.columns for r in (rows[0], rows[1] - 1))
    return low * plane, (high + 1) * plane


# Sums that are too long --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PartialSum:
    """A part of the sums: steps first..end-1 along the taps' rows and columns, and along the channels of a group."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    channels: tuple[int, int]

    def of(self, size: ConvolutionSize) -> ConvolutionSize:
        """Return the sizes of the convolution with this part of the filter."""
        taps = self.rows, self.columns
        return replace(
            size,
            depth=self.channels[1] - self.channels[0],
            kernel=tuple(end - first for first, end in taps),
            padding=tuple(p - first * d for p, (first, _), d in zip(size.padding, taps, size.dilations, strict=True)),
        )


def parts_of_sums(target: Target, size: ConvolutionSize, element_bytes: int, pixels: int) -> list[PartialSum]:
    """Return the parts of the sums of a convolution. There is one part if a kernel can compute the sums whole.

    The loops of a part stay within the iteration limit of the target. A quad of its filter's columns fits a binding, and so do
    the elements that a run of `pixels` reads.
    """
    caps, most_iterations = target.caps, target.costs.launches.most_iterations
    lengths = [*size.kernel, size.depth]
    counts = [1, 1, 1]

    def part(numbers: Sequence[int]) -> PartialSum:
        bounds: list[tuple[int, int]] = []
        for length, count, number in zip(lengths, counts, numbers, strict=True):
            step = _step(length, count)
            bounds.append((number * step, min(length, (number + 1) * step)))
        return PartialSum(*bounds)

    def fits() -> bool:
        own = part((0, 0, 0)).of(size)
        steps = own.taps * own.depth
        if _iterations(own, single=size.depth % QUAD > 0) > most_iterations:
            return False
        if padded_bytes(steps * min(QUAD, size.columns) * element_bytes) > _room(caps):
            return False
        return Images(own).fit(element_bytes, 0, pixels, caps)

    while not fits():
        # Channels first: their parts read no element of the input twice.
        along = next((d for d in (2, 0, 1) if _step(lengths[d], counts[d]) > (QUAD if d == 2 else 1)), None)
        if along is None:
            break
        counts[along] *= 2
    numbers = [range(-(-length // _step(length, count))) for length, count in zip(lengths, counts, strict=True)]
    return [part((y, x, c)) for c in numbers[2] for y in numbers[0] for x in numbers[1]]


def _step(length: int, count: int) -> int:
    """Return the length of each of `count` parts. Long parts hold whole quads."""
    step = -(-length // count)
    return step if step <= QUAD else -(-step // QUAD) * QUAD


def _iterations(size: ConvolutionSize, *, single: bool) -> int:
    """Return the maximum number of loop iterations of one invocation, for any of the kernels.

    Each tap has quads of channels, three single channels, and rows of a texture. If channels are not whole quads (`single`), a
    kernel that loads its factors into workgroup memory loads channels one by one.
    """
    of_tap = size.depth // QUAD + size.depth // 256 + 6
    one_by_one = 9 * (size.depth // 16 + 1) if single else 0
    return size.kernel[0] + size.taps * max(of_tap, one_by_one) + 100


def part_of_input(low: Lowering, size: ConvolutionSize, part: PartialSum, calls: list[KernelCall]) -> Operand:
    """Return the channels of a part of an nhwc input, side by side, or the input itself if the part has all channels."""
    first, end = part.channels
    if end - first == size.depth:
        return low.value(0)
    data_type, pixels = low.input().data_type, size.images * math.prod(size.input)
    dims = (pixels, size.groups, end - first)
    temp = Temp(f"channels {first}", math.prod(dims) * DATA_TYPES[data_type].size_bytes)
    strides = (size.groups * size.depth, size.depth, 1)
    reason = f"channels {first} to {end}"
    if temp.key not in {o.key for call in calls for o in call.operands if isinstance(o, Temp)}:
        calls.append(strided_call(low.value(0), data_type, first, dims, strides, temp, low.target, reason))
    return temp


def blocks_of_columns(size: ConvolutionSize, element_bytes: int, caps: Caps) -> list[tuple[int, int]]:
    """Return the blocks of a group's output channels, as large as a binding of their filter allows. One block may hold all."""
    columns, steps = size.columns, size.product.K
    total = padded_bytes(size.groups * steps * columns * element_bytes)
    width = columns
    if total > _limit(caps):
        most = _room(caps) // (steps * element_bytes)
        width = columns if columns <= most else max(QUAD, most // QUAD * QUAD)
    return [(first, min(columns, first + width)) for first in range(0, columns, width)]


# Images that are too large for nchw --------------------------------------------------------------------------------------


def nchw_fits(low: Lowering, size: ConvolutionSize, output: TensorType) -> bool:
    """Return whether a convolution of nchw images can be divided. A binding must hold an image with all channels."""
    input_bytes, output_bytes = (DATA_TYPES[t.data_type].size_bytes for t in (low.input(), output))
    return Images(size).fit(input_bytes, output_bytes, HIGHEST_TILE, low.caps)


def in_nhwc(
    low: Lowering, output: TensorType, read: Read, convolution: Callable[[Lowering], list[KernelCall]]
) -> list[KernelCall]:
    """Return the calls that compute a node with nchw images in nhwc: its kernels, between transposes.

    Args:
        low: the node, with its epilogue.
        output: the type of the result.
        read: returns the way of reading an operand of the epilogue, from its shape.
        convolution: returns the calls of a node with nhwc images.
    """
    values = dict(low.graph.values)
    temps: dict[int, Temp] = {}
    calls: list[KernelCall] = []

    def turned(type_: TensorType, name: str) -> int:
        value = max(values) + 1
        values[value] = Value(value, TensorType(type_.data_type, tuple(type_.shape[d] for d in NHWC)))
        temps[value] = Temp(name, type_.size_bytes)
        return value

    def taken(value: int, name: str) -> int:
        type_ = low.graph.type(value)
        result = turned(type_, name)
        calls.append(_transpose(low, value, type_, NHWC, temps[result], f"{name}: nchw to nhwc"))
        return result

    inputs = (taken(low.value(0), "input"), *low.node.inputs[1:])
    epilogue = low.epilogue
    result = turned(output, "result")
    own = result
    if epilogue:
        own = turned(low.output(), "unused")
        operands = tuple(
            taken(value, f"operand {i}") if read(low.graph.type(value).shape) == "full" else value
            for i, value in enumerate(epilogue.operands)
        )
        epilogue = replace(epilogue, operands=operands, output=result)
    attrs = MappingProxyType({**low.attrs, "input_layout": "nhwc"})
    node = replace(low.node, inputs=inputs, outputs=(own,), attrs=attrs)
    graph = replace(low.graph, values=values)

    def placed(call: KernelCall) -> KernelCall:
        return replace(call, operands=tuple(temps.get(o, o) if isinstance(o, int) else o for o in call.operands))

    calls += [placed(call) for call in convolution(replace(low, node=node, graph=graph, epilogue=epilogue))]
    shape = values[result].type
    target = low.epilogue.output if low.epilogue else low.node.outputs[0]
    calls.append(_transpose(low, temps[result], shape, (0, 3, 1, 2), target, "nhwc to nchw"))
    return calls


def _transpose(
    low: Lowering, value: Operand, type_: TensorType, order: Sequence[int], target: Operand, reason: str
) -> KernelCall:
    strides = [math.prod(type_.shape[d + 1 :]) for d in range(len(type_.shape))]
    dims, steps = [type_.shape[d] for d in order], [strides[d] for d in order]
    return strided_call(value, type_.data_type, 0, dims, steps, target, low.target, reason)
