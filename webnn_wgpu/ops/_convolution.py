"""The lowering of conv2d and convTranspose2d: which kernels compute them, from which form of the filter."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.data_types import DATA_TYPES
from ..core.errors import OperationError
from ..costs import Choice, ConvolutionSize
from ..kernels import select
from ..kernels.element import QUAD
from ..kernels.packing import Chain, Columns, PanelTexture
from ..kernels.select_convolution import obstacle, possible
from ..kernels.spec import KernelCall, KernelTemplate, Packed, Temp, Tiling, grid_1d
from ..kernels.spec import Operand as KernelOperand
from ..kernels.tiles import texture_uniforms, tile_uniforms
from ._convolution_operands import FilterOrder, bias_of, element_bytes_of, filter_in, read_at, start_kernel
from ._convolution_options import sizes_of
from ._convolution_tile import WorkgroupTile
from ._factors import Factor
from ._large_convolution import (
    Images,
    PartialSum,
    blocks_of_columns,
    depthwise_fits,
    in_nhwc,
    nchw_fits,
    part_of_input,
    parts_of_sums,
    row_work,
    tile_work,
)
from ._partial_sums import PartialSums, most_parts, operands_fit
from ._patches import Patches
from ._phases import Phases, phases_of
from ._product import FORCED, HIGHEST_TILE, product_calls
from ._product import TEMPLATES as PRODUCTS
from ._product_kernel import Addend, finish
from ._quads import fits_binding
from ._strided_copy import STRIDED, strided_call
from ._winograd import TEMPLATES as WINOGRAD
from ._winograd import winograd_call, winograd_calls

if TYPE_CHECKING:
    from ..ir.types import TensorType
    from ._def import Lowering

_OWN_PARAMS = {
    "implicit": ("lanes", "rows", "quads", "b_texture", "rest", "short", "one_row", "block"),
    "tiled": ("tile", "parted", "phased", "planes", "rest", "taps", "depth", "width", "dilations", "nhwc", "block"),
    "plain": ("rows", "block"),
    "depthwise": ("height", "width", "rows", "columns", "step", "multiplied", "b_texture"),
}
_COMMON_PARAMS = ("transposed", "form", "c_read", "expression", "extra_reads")
_TEMPLATES = {v: KernelTemplate(f"conv2d.{v}", (*own, *_COMMON_PARAMS)) for v, own in _OWN_PARAMS.items()}
TEMPLATES = (*_TEMPLATES.values(), *PRODUCTS, STRIDED)
"""The templates of a convolution's variants, but for those of Winograd's algorithm."""
FORWARD_TEMPLATES = (*TEMPLATES, *WINOGRAD)
"""All templates, as conv2d has them."""

LOWEST_TILE = 8
"""Pixels of the lowest tile among all variants."""


def convolution_size(low: Lowering, *, transposed: bool) -> ConvolutionSize:
    """Return the sizes of a node."""
    attrs = low.attrs
    layout, groups = attrs["input_layout"], attrs["groups"]
    x, y = sizes_of(low.input().shape, layout), sizes_of(low.output().shape, layout)
    taps = sizes_of(low.input(1).shape, attrs["filter_layout"])
    top, _, left, _ = attrs["padding"]
    return ConvolutionSize(
        transposed=transposed,
        nhwc=layout == "nhwc",
        images=x["n"],
        groups=groups,
        depth=x["c"] // groups,
        columns=y["c"] // groups,
        input=(x["h"], x["w"]),
        output=(y["h"], y["w"]),
        kernel=(taps["h"], taps["w"]),
        strides=attrs["strides"],
        dilations=attrs["dilations"],
        padding=(top, left),
    )


def convolution_calls(low: Lowering, *, transposed: bool) -> list[KernelCall]:
    """Return the kernel calls that compute a convolution, with the epilogue of `low`.

    Raises:
        OperationError: a variant is forced that cannot compute it on the device.
    """
    size = convolution_size(low, transposed=transposed)
    choice = _choose(low, size)
    output = low.graph.type(low.epilogue.output) if low.epilogue else low.output()
    if choice.variant == "depthwise" and choice.reason != FORCED and not depthwise_fits(low, size, output):
        choice = Choice("plain", "one input channel per group, too large for the kernel of those")
    if choice.variant in _OWN_PARAMS and choice.variant != "depthwise" and not size.nhwc:
        longer = len(parts_of_sums(low.target, size, element_bytes_of(low), HIGHEST_TILE)) > 1
        if longer or not nchw_fits(low, size, output):
            read = read_at(size, "columns")
            return in_nhwc(low, output, read, lambda inner: convolution_calls(inner, transposed=transposed))
    calls: list[KernelCall] = []
    match choice.variant:
        case "pointwise":
            return _pointwise_calls(low, size, calls, choice.reason)
        case "winograd":
            weights = filter_in(low, size, "ghwio", calls)
            assert isinstance(weights, Packed)
            return winograd_calls(low, size, weights, bias_of(low), read_at(size, "columns"), choice.reason)
        case "winograd_tiled":
            weights = filter_in(low, size, "ghwio", calls)
            assert isinstance(weights, Packed)
            return [winograd_call(low, size, weights, bias_of(low), read_at(size, "columns"), choice)]
        case "depthwise":
            calls.append(_depthwise_call(low, size, calls, choice.reason))
            return calls
        case _:
            return _product_calls(low, size, choice, output)


def _choose(low: Lowering, size: ConvolutionSize) -> Choice:
    constant = low.is_constant(low.value(1))
    able = possible(low.caps, size, constant_filter=constant)
    forced = low.forced_variant
    if forced is None:
        costs = low.target.costs.convolutions
        tiles = [tile.sides for tile in costs.winograd_tiles(size)]
        candidates = [name for v in able for name in select.with_tiles(v, texture=constant, winograd=tiles)]
        return low.measured(candidates) or costs.choose(size, able)
    why = obstacle(low.caps, size, forced, constant_filter=constant)
    if why:
        raise OperationError(
            "the forced kernel variant cannot be had",
            operator=low.ops[low.node.op].python_name,
            label=low.node.label,
            got=f"{forced}: {why}",
            allowed=", ".join(able),
        )
    return Choice(forced, FORCED)


def _pointwise_calls(low: Lowering, size: ConvolutionSize, calls: list[KernelCall], reason: str) -> list[KernelCall]:
    """Return the matrix products of a convolution with one tap: nhwc pixels x filter, nchw filter x pixels."""
    (data_type, weights_type), pixels = (low.input(i).data_type for i in range(2)), math.prod(size.output)
    if size.nhwc:
        a = Factor(low.value(0), data_type, (size.images * pixels, size.depth))
        b = Factor(filter_in(low, size, "ghwio", calls), weights_type, (size.depth, size.columns), zero_point=low.zero_point(1))
        vector = "columns"
    else:
        a = Factor(filter_in(low, size, "goihw", calls), weights_type, (size.columns, size.depth))
        b = Factor(low.value(0), data_type, (size.images, size.depth, pixels))
        vector = "rows"
    products = product_calls(low, a, b, addend=bias_of(low), read=read_at(size, vector))
    return calls + [replace(call, reason=f"{reason}, {call.reason}") for call in products]


def _whole_bound(low: Lowering) -> bool:
    """Return whether the input fits a binding, so that kernels never see a part of it."""
    return fits_binding(low.input(), low.caps)


def _product_calls(low: Lowering, size: ConvolutionSize, choice: Choice, output: TensorType) -> list[KernelCall]:
    """Return the calls of kernels that compute matrix products of patches with the filter.

    There is one call, unless the filter or the sums must be divided. Then there is one call for each part of the sums and
    each block of output channels. The calls of a later part of the sums add to the results of the preceding part.
    """
    calls: list[KernelCall] = []
    element_bytes = element_bytes_of(low)
    output_bytes = max(DATA_TYPES[output.data_type].size_bytes, element_bytes)
    lowest = not Images(size).fit(element_bytes, output_bytes, HIGHEST_TILE, low.caps)
    if lowest and choice.reason != FORCED:
        choice = Choice("plain", "runs of few pixels: those of more do not fit a binding")
    parts = parts_of_sums(
        low.target, size, element_bytes, LOWEST_TILE if lowest and choice.variant == "plain" else HIGHEST_TILE
    )
    phases = phases_of(size) if choice.variant == "tiled" and len(parts) == 1 else None
    if phases and low.is_constant(low.value(1)) and _phases_fit(low, phases):
        return [_phased_call(low, phases, choice)]
    addend = bias_of(low)
    sums = [Temp(f"sums {i}", low.output().num_elements * 4) for i in range(2)]

    for number, part in enumerate(parts):
        last = part is parts[-1]
        own = part.of(size)
        source = part_of_input(low, size, part, calls)
        if low.channels_first is not None and source == low.value(0) and _whole_bound(low):
            source = low.channels_first
        into = None if last else sums[number % 2]
        for block in blocks_of_columns(own, element_bytes, low.caps):
            patches = Patches.of(own, nhwc=size.nhwc and source != low.channels_first)
            if choice.variant == "tiled" and own.product == size.product and block == (0, size.columns):
                patches = patches.of_rows() or patches
            weights, packing = _part_of_filter(low, size, choice, part, block, patches.filter_order, calls)
            kernel, *adds = _product_call(low, own, choice, source, weights, packing, block, addend, into, lowest, patches)
            if packing and not choice.tile:
                tile, held = low.target.costs.products.tile_of(choice, size.product, texture=True), size.groups * size.taps
                tiling = Tiling(tile=tile, size=size.product, depth=size.depth, held=held, convolution=True)
                kernel = replace(kernel, tiling=tiling)
            calls.append(kernel if len(parts) == 1 else replace(kernel, reason=f"{kernel.reason}, part {number} of the sums"))
            calls += adds
        addend = Addend(sums[number % 2], "float32", low.output().shape, 1)
    return calls


def _part_of_filter(
    low: Lowering,
    size: ConvolutionSize,
    choice: Choice,
    part: PartialSum,
    block: tuple[int, int],
    whole_order: str,
    calls: list[KernelCall],
) -> tuple[KernelOperand, PanelTexture | None]:
    """Return a part of the filter in the order of its steps, and how it is packed into a texture if it is.

    The whole filter is in `whole_order`, which `filter_in` describes.
    """
    own = part.of(size)
    columns = block[1] - block[0]
    if own.product == size.product and columns == size.columns:
        weights = filter_in(low, size, whole_order, calls)
        packing = _panel_texture(low, size, choice) if choice.variant == "implicit" else None
        if packing:
            assert isinstance(weights, Packed)
            return Packed(weights.value, Chain(weights.packing, packing)), packing
        return weights, None
    order = FilterOrder.of(low, size)
    if low.is_constant(low.value(1)) and size.groups == 1 and own.product == size.product:
        return Packed(low.value(1), Chain(order.packing("ghwio"), Columns(*block, size.product.K))), None
    starts = {"h": part.rows[0], "w": part.columns[0], "i": part.channels[0], "o": block[0]}
    sizes = {"g": size.groups, "h": own.kernel[0], "w": own.kernel[1], "i": own.depth, "o": columns}
    strides = order.strides()
    base = sum(start * strides[letter] for letter, start in starts.items())
    dims, steps = [sizes[letter] for letter in "ghwio"], [strides[letter] for letter in "ghwio"]
    data_type = low.input(1).data_type
    temp = Temp(f"filter {part} {block}", math.prod(dims) * DATA_TYPES[data_type].size_bytes)
    calls.append(strided_call(low.value(1), data_type, base, dims, steps, temp, low.target, f"{part} of the filter"))
    return temp, None


def _product_call(
    low: Lowering,
    size: ConvolutionSize,
    choice: Choice,
    source: KernelOperand,
    weights: KernelOperand,
    packing: PanelTexture | None,
    block: tuple[int, int],
    addend: Addend | None,
    into: Temp | None,
    lowest: bool,
    patches: Patches,
) -> list[KernelCall]:
    """Return the calls that compute a block of output channels of each group, in the `lowest` tiles if need be.

    There is one, or a second one that adds parts of the sums.
    """
    first, end = block
    product, reason = replace(size.product, N=end - first), choice.reason
    M, N, K = product.M, product.N, product.K
    whole = N == size.columns
    own: dict[str, Hashable] = {}
    found: WorkgroupTile | None = None
    partial: PartialSums | None = None
    costs = low.target.costs.products
    if choice.variant == "implicit":
        lanes = low.caps.subgroup_size
        rows, quads = costs.tile_of(choice, product, texture=packing is not None)
        reason += ", filter packed in a texture" if packing else ""
        tile = (rows, int(lanes * quads * QUAD))
        own = {"lanes": lanes, "rows": rows, "quads": quads, "b_texture": packing is not None}
        one_row = packing is not None and packing.wraps(size.depth) == 1
        own |= {"rest": size.depth % QUAD, "short": size.depth < QUAD, "one_row": one_row}
    elif choice.variant == "tiled":
        found = WorkgroupTile.of(low, size, patches, choice, product, most=most_parts(low, product) if whole else 1)
        patches, tile, partial = found.patches, found.sides, found.partial
    else:
        rows = 1 if lowest else int(choice.tile[0]) if choice.tile else costs.plain_rows(product)
        tile = (8 * rows, 8 * QUAD)
        own = {"rows": rows}
    kernel = start_kernel(low, size, source, weights, packing is not None, N % QUAD == 0, patches)
    kernel.params |= own
    if found:
        found.declare(kernel)
    if choice.variant == "implicit":
        kernel.features.append("subgroup")
    tiles = tile_uniforms(replace(product, matrices=product.matrices * (partial.count if partial else 1)), *tile)
    kernel.uniforms(M=M, N=N, K=K, **tiles)
    if packing:
        kernel.uniforms(**texture_uniforms(packing, size.depth))
    if not whole:
        kernel.uniforms(first_column=first, width=size.columns)
        reason += f", channels {first} to {end} of {size.columns}"
    form, read = "nhwc" if size.nhwc else "nchw", read_at(size, "columns")
    quads = size.nhwc and N % QUAD == 0 and size.columns % QUAD == 0
    template, grid = _TEMPLATES[choice.variant], grid_1d(tiles["tiles"], low.caps)
    kernel.params["block"] = not whole
    if partial:
        kernel.params["form"] = "matrix"
        partial.declare(kernel, low, read)
        computed = kernel.call(template, grid, f"{reason}, sums in {partial.count} parts")
        half = low.input().data_type == "float16"
        places = {"pixels": math.prod(size.output), "channels": size.channels}
        added = partial.added(low, read, addend, half=half, whole=quads, row=size.channels, into=into, form=form, **places)
        return [computed, added]
    kernel.params["form"] = form
    finish(kernel, low, quads, read, addend, row=size.channels, into=into)
    return [kernel.call(template, grid, reason, tile_work(kernel, size, tile[0], low.caps))]


def _phases_fit(low: Lowering, phases: Phases) -> bool:
    """Return whether a binding holds each operand of a convolution in phases."""
    size = phases.product
    sizes = size.matrices * size.K * size.N, size.matrices * size.M * size.N
    return operands_fit(low, (n * 4 for n in sizes))


def _phased_call(low: Lowering, phases: Phases, choice: Choice) -> KernelCall:
    """Return the call of the kernel that computes a transposed convolution in phases."""
    size, product = phases.forward, phases.product
    filter_order = FilterOrder.of(low, phases.size).packing("ghwio")
    source = low.value(0) if low.channels_first is None else low.channels_first
    weights = Packed(low.value(1), Chain(filter_order, phases.packing(low.zero_point(1))))
    whole = product.N % QUAD == 0
    found = WorkgroupTile.of(low, size, Patches.of(size, nhwc=low.channels_first is None), choice, product, most=1)
    kernel = start_kernel(low, size, source, weights, False, whole, found.patches)
    found.declare(kernel)
    kernel.params |= {"phased": True, "block": False, "form": "nhwc"}
    tiles = tile_uniforms(product, *found.sides)
    kernel.uniforms(M=product.M, N=product.N, K=product.K, **tiles, **phases.uniforms)
    finish(kernel, low, whole, read_at(phases.size, "columns"), bias_of(low), row=size.channels)
    reason = f"{choice.reason}, {phases.count} phases of pixels with taps of their own"
    return kernel.call(_TEMPLATES["tiled"], grid_1d(tiles["tiles"], low.caps), reason)


def _panel_texture(low: Lowering, size: ConvolutionSize, choice: Choice) -> PanelTexture | None:
    """Return the packing of a constant filter in a texture, one matrix per group and tap. None means that no texture fits."""
    if not low.is_constant(low.value(1)):
        return None
    _, quads = low.target.costs.products.tile_of(choice, size.product, texture=True)
    width = low.caps.limit("max-texture-dimension-2d")
    packing = PanelTexture(lanes=low.caps.subgroup_size, quads=quads, width=width)
    return packing if packing.height(size.depth, size.columns, size.groups * size.taps) <= width else None


def _depthwise_call(low: Lowering, size: ConvolutionSize, calls: list[KernelCall], reason: str) -> KernelCall:
    """Return the call of the kernel for one input channel per group."""
    channels, (out_height, out_width) = size.channels, size.output
    multiplied = size.columns > 1
    whole = channels % QUAD == 0 if size.nhwc else out_width % QUAD == 0
    costs = low.target.costs.convolutions
    width = size.kernel[1] if size.kernel[1] <= costs.written_width else 0
    step = size.strides[1] if set(size.dilations) == {1} and not size.transposed else 0
    step = step if size.strides[0] == step <= (2 if width else 1) else 0
    pixels = [(1, QUAD)]
    if size.nhwc and width:
        pixels += [(1, QUAD // 2), (1, 1)]
    if size.nhwc and step:
        columns = 2 * QUAD if width >= costs.wide_taps and out_width > QUAD else QUAD
        pixels.insert(0, (2 if out_height > 1 and width and step == 1 else 1, columns))
    rows, columns = costs.depthwise_pixels(size, step, pixels)
    # The four channels of a quad read an element each where a group has several of them: four times the code of a tap.
    loads = size.taps * (QUAD if multiplied and size.nhwc else 1)
    height = size.kernel[0] if width and costs.writes_out_taps(loads, rows * columns) else 0
    weights = filter_in(low, size, "hwigo", calls)
    packing = _tap_texture(low, size) if size.nhwc and whole else None
    if packing:
        assert isinstance(weights, Packed)
        matrix = Columns(0, channels, size.taps)
        weights = Packed(weights.value, Chain(Chain(weights.packing, matrix), packing))
        reason += ", filter packed in a texture"
    kernel = start_kernel(low, size, low.value(0), weights, packing is not None, size.nhwc and whole)
    kernel.bindings[0] = replace(kernel.bindings[0], quad=size.nhwc and whole and not multiplied)
    row_steps, row_blocks, channel_quads = -(-out_width // columns), -(-out_height // rows), -(-channels // QUAD)
    per_row = row_steps * (channel_quads if size.nhwc else 1)
    items = size.images * row_blocks * per_row * (1 if size.nhwc else channels)
    kernel.uniforms(row_steps=row_steps, row_blocks=row_blocks, channel_quads=channel_quads, items=items)
    kernel.uniforms(multiplier=size.columns)
    if size.nhwc:
        kernel.uniforms(M=size.product.M, N=channels)
    else:
        kernel.uniforms(M=channels, N=out_height * out_width)
    form, vector = ("nhwc", "columns") if size.nhwc else ("matrix", "rows")
    kernel.params |= {"form": form, "height": height, "width": width, "rows": rows, "columns": columns, "step": step}
    kernel.params |= {"multiplied": multiplied, "b_texture": packing is not None}
    row = channels if size.nhwc else out_height * out_width
    finish(kernel, low, whole, read_at(size, vector), bias_of(low), row=row)
    work = row_work(kernel, size, per_row, rows, 64, low.caps)
    return kernel.call(_TEMPLATES["depthwise"], grid_1d(-(-items // 64), low.caps), reason, work)


def _tap_texture(low: Lowering, size: ConvolutionSize) -> PanelTexture | None:
    """Return the packing of a constant filter with one input channel per group in a texture, or None without a texture.

    The texture holds a matrix of taps x channels, cut into panels of four columns.
    """
    width = low.caps.limit("max-texture-dimension-2d")
    packing = PanelTexture(lanes=1, quads=1, width=width)
    fits = packing.wraps(size.taps) == 1 and packing.height(size.taps, size.channels, 1) <= width
    return packing if fits and low.target.costs.convolutions.taps_in_texture and low.is_constant(low.value(1)) else None
