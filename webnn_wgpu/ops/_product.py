"""Lowering of matrix products, for matmul and gemm: the choice of the kernel, and the form of the factors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..core.caps import Caps
from ..core.data_types import DATA_TYPES
from ..core.errors import OperationError
from ..core.wording import counted
from ..costs import Choice, ProductSize
from ..costs.few_rows import MOST_ROWS
from ..costs.tiles import BLOCK_TILES, BlockTile
from ..kernels import select
from ..kernels.element import QUAD, STORAGE_ALIGNMENT_BYTES, padded_bytes
from ..kernels.packing import Chain, Columns, PanelTexture
from ..kernels.spec import Binding, Grid, Interval, KernelCall, KernelTemplate, Temp, Tiling, Work, grid_1d, texel_element
from ..kernels.tiles import rest_of, texture_uniforms, tile_uniforms
from ..kernels.windows import strided_span
from ._def import Lowering
from ._factors import ColumnRange, Factor, columns_of, heads_first, is_constant, packed, row_major, rows_first, steps_of
from ._partial_sums import TEMPLATES as PARTIAL_SUMS
from ._partial_sums import PartialSums, most_parts, operands_fit
from ._pixel_means import PooledImages
from ._product_kernel import Addend, ProductKernel, Read, factor_buffer, finish
from ._quads import OCTET
from ._shapes import broadcast, merge_dimensions, strides_of

_OWN_PARAMS = {
    "subgroup": ("lanes", "rows", "quads", "b_texture", "rest", "turned", "spread", "triangle"),
    "tiled": ("tile", "parted", "rest", "turned", "normal", "projection", "strided"),
    "gemv": ("tile", "ahead", "subgroups"),
    "plain": ("rows",),
}
_COMMON_PARAMS = ("batch_rank", "alpha", "c_read", "beta", "expression", "extra_reads", "block")
_OPTIONAL_PARAMS = {"tiled": ("pooled", "behind")}
_TEMPLATES = {
    v: KernelTemplate(
        f"matmul.{v}",
        (*_OWN_PARAMS[v], *_COMMON_PARAMS, *_OPTIONAL_PARAMS.get(v, ())),
        optional=_OPTIONAL_PARAMS.get(v, ()),
    )
    for v in select.VARIANTS
}
TEMPLATES = (*_TEMPLATES.values(), *PARTIAL_SUMS)
"""The templates of the variants, and that of sums in parts."""
NORMALIZING = (_TEMPLATES["tiled"],)
"""The template that may normalize the rows of the left factor."""
PROJECTING = (_TEMPLATES["tiled"], *PARTIAL_SUMS)
"""The templates of products that add a projection."""

FORCED = "forced"
"""Why a forced variant is taken."""

_STEPS_AT_ONCE = {"subgroup": 4, "tiled": 16, "gemv": 16, "plain": 4}
"""Steps of the sums that an iteration of each variant's loop makes."""

PANEL, HIGHEST_TILE = 128, 64
"""Columns of the widest tile of any variant, and rows of the highest that is taken where higher ones do not fit a binding."""

HIGHEST_BLOCK = max(tile.rows for tile in BLOCK_TILES)
"""Rows of the tiled kernel's highest tile."""


@dataclass(frozen=True)
class _Steps:
    """How the number of a result's matrix leads to each factor's: dimensions, and each factor's step along them."""

    dims: tuple[int, ...]
    a: tuple[int, ...]
    b: tuple[int, ...]


class Triangle(NamedTuple):
    """The elements of matrices that do not count: those whose column exceeds their row by more than `diagonal`.

    Attributes:
        of: "left" for zeros of the left factor as it is stored, or "result" for elements without readers.
        diagonal: the largest distance of elements that count.
    """

    of: str
    diagonal: int


class Normal(NamedTuple):
    """How a product normalizes the rows of its left factor.

    Attributes:
        of: "layer" to subtract the mean and divide by the deviation around it, or "rms" to divide by that around 0.
        epsilon: is added to the variance.
    """

    of: str
    epsilon: float

    @property
    def rows(self) -> str:
        """The rows that are multiplied, for people."""
        return "normalized rows"


@dataclass(frozen=True, kw_only=True)
class Projection:
    """An image whose channels come behind those of the left factor. A row of the product has a pixel of it.

    Attributes:
        value: the image, [images, height, width, channels].
        channels: its channels, a multiple of 4.
        input: its height and width.
        output: those of the left factor.
        strides: the distance of the pixels that are read, down and to the right.
    """

    value: int
    channels: int
    input: tuple[int, int]
    output: tuple[int, int]
    strides: tuple[int, int]

    @property
    def rows(self) -> str:
        """The rows that are multiplied, for people."""
        return "rows and a projection"

    def declare(self, kernel: ProductKernel, size: ProductSize, tile: BlockTile, rest: str) -> None:
        """Declare how the kernel finds the steps of a sum: those of the left factor come first."""
        steps = size.K - self.channels
        strided = self.strides != (1, 1)
        kernel.params["projection"] = "slices" if not rest and steps % tile.depth == 0 else "quads"
        kernel.params["strided"] = strided
        kernel.uniforms(own_steps=steps, image_steps=self.channels)
        if strided:
            kernel.uniforms(pixels=math.prod(self.output), out_width=self.output[1])
            kernel.uniforms(in_height=self.input[0], in_width=self.input[1])
            kernel.uniforms(stride_y=self.strides[0], stride_x=self.strides[1])


def product_calls(
    low: Lowering,
    a: Factor,
    b: Factor,
    *,
    alpha: float = 1.0,
    addend: Addend | None = None,
    read: Read | None = None,
    into: Temp | None = None,
    triangle: Triangle | None = None,
    heads: int = 0,
) -> list[KernelCall]:
    """Return the kernel calls that compute `alpha` a b + addend, with the epilogue of `low`.

    Args:
        low: the node. The name of its operator may force a variant.
        a: the left factor, matrices of [M, K].
        b: the right factor, matrices of [K, N]. Its leading dimensions and those of `a` broadcast.
        alpha: a factor of every element.
        addend: the addend, or None. Without `read`, it requires factors without leading dimensions.
        read: returns how the kernel addresses the addend and the epilogue's operands. None derives that from their shapes.
        into: scratch memory for a float32 result without an epilogue, or None for the node's result.
        triangle: the elements that the kernel may skip, or None.
        heads: the last leading dimensions of the result whose matrices lie beside each other in rows. Only the subgroup kernel
            stores them so, and only if the right factor has several matrices.

    Raises:
        OperationError: the device cannot run the forced variant.
    """
    size, batch = _size(a, b)
    choice = _choose(low, size, constant=is_constant(low, b.value))
    if heads and choice.variant != "subgroup":
        choice = Choice("subgroup", "heads beside each other")
    read = read or (lambda shape: _read(shape, size))
    most = _longest_sum(low, a, b, size, choice.variant)
    if size.K > most:
        return _parts_of_sums(low, a, b, most, alpha, addend, read, into)
    if choice.reason != FORCED and not _rows_fit(low, a, size, HIGHEST_TILE):
        choice = Choice("gemv", "rows so long that a tile's do not fit a binding")
    calls: list[KernelCall] = []
    if not a.transposed and into is None and (pooled := PooledImages.of(low, a, b, size, choice)):
        a, size, batch, choice = pooled.a, pooled.size, pooled.batch, pooled.choice
        whole = ColumnRange(0, size.N, size.N)
        return _block_calls(low, a, b, size, batch, choice, whole, alpha, addend, read, None, None, 0, pooled=pooled)
    flattened = math.prod(a.batch) > 1 and not batch
    # Beside a constant, which a texture holds, the subgroup kernel reads rows.
    beside_constant = choice.variant == "subgroup" and is_constant(low, b.value)
    if flattened or beside_constant or not _reads_stored(low, choice, a, size, "a"):
        triangle = None if a.transposed or flattened else triangle
        a = _copied(low, a, "a", calls)
    if b.heads and not _reads_stored(low, choice, b, size, "b"):
        b = _copied(low, b, "b", calls)
    width = _block_width(low, b, size, choice)
    for first in range(0, size.N, width):
        block = ColumnRange(first, min(size.N, first + width), size.N)
        calls += _block_calls(low, a, b, size, batch, choice, block, alpha, addend, read, into, triangle, heads)
    return calls


def tiled_product_calls(low: Lowering, a: Factor, b: Factor, left: Normal | Projection) -> list[KernelCall]:
    """Return the kernel calls of the tiled kernel for a product whose left factor it changes while it reads the rows.

    Args:
        low: the node. All of its operands and the result fit a binding each.
        a: the left factor, with the columns that a projection adds.
        b: the right factor. Its columns add up to 0 if the kernel subtracts the mean of rows.
        left: the change.
    """
    size, batch = _size(a, b)
    candidates = select.with_tiles("tiled", texture=False)
    choice = low.measured(candidates) or Choice("tiled", f"tiles in workgroup memory, of {left.rows}")
    whole = ColumnRange(0, size.N, size.N)
    return _block_calls(
        low, a, b, size, batch, choice, whole, 1, None, lambda shape: _read(shape, size), None, None, 0, left=left
    )


def _bind_left(kernel: ProductKernel, low: Lowering, a: Factor, size: ProductSize, rows: int, *, in_subgroup: bool) -> None:
    """Bind the left factor of a kernel with tiles of so many rows."""
    # Neighboring invocations of the tiled kernel read neighboring elements of a transposed left factor, one each.
    quad = in_subgroup if a.transposed else size.K % QUAD == 0
    # Where its rows and those of a tile are whole pairs of quads, each lane reads two of them at once.
    pairs = in_subgroup and a.transposed and size.K % QUAD == 0 and all(n % OCTET == 0 for n in (size.M, rows))
    kernel.bind(factor_buffer(low, "a", a.data_type, in_subgroup=in_subgroup, quad=quad, pairs=pairs), a.value)


def _bind_right(
    kernel: ProductKernel,
    low: Lowering,
    b: Factor,
    size: ProductSize,
    block: ColumnRange,
    packing: PanelTexture | None,
    calls: list[KernelCall],
    *,
    turned: bool,
    in_subgroup: bool,
) -> None:
    """Bind a block of columns of the right factor, in a texture or a buffer. `turned` says whether it stays transposed."""
    N, K = size.N, size.K
    if packing:
        whole = replace(packing, transposed=b.transposed)
        part = Chain(Columns(block.first, block.end, K, b.transposed), packing)
        binding = Binding(name="b", access="texture", element=texel_element(b.data_type))
        kernel.bind_weights(binding, packed(low, b, whole if block.whole else part), b.zero_point)
        return
    copied = row_major(low, b, "b", calls) if block.whole and b.transposed and not turned else b.value
    operand = copied if block.whole else columns_of(low, b, block, calls)
    # Each lane reads two neighboring quads at once if the tile has two for it, and rows have whole pairs of them.
    pairs = kernel.params.get("quads") == 2 and not turned and N % OCTET == 0
    quad = (K if turned else N) % QUAD == 0
    binding = factor_buffer(low, "b", b.data_type, in_subgroup=in_subgroup, quad=quad, pairs=pairs)
    kernel.bind_weights(binding, operand, b.zero_point)


def _declare_spread(kernel: ProductKernel, a: Factor, b: Factor, heads: int) -> tuple[str, ...]:
    """Declare and return the operands of a kernel whose matrices lie beside each other."""
    spread = tuple(name for name, beside in (("a", a.heads), ("b", b.heads), ("output", heads)) if beside)
    kernel.params["spread"] = spread
    kernel.uniforms(**{f"{name}_row": factor.strides[-2] for name, factor in (("a", a), ("b", b)) if factor.heads})
    return spread


def _copied(low: Lowering, factor: Factor, side: str, calls: list[KernelCall]) -> Factor:
    """Return a factor whose matrices are row-major and follow each other: itself or a copy."""
    shape = (*factor.batch, factor.rows, factor.columns)
    return replace(factor, value=row_major(low, factor, side, calls), transposed=False, heads=0, shape=shape)


def _parts_of_sums(
    low: Lowering,
    a: Factor,
    b: Factor,
    most: int,
    alpha: float,
    addend: Addend | None,
    read: Read,
    into: Temp | None,
) -> list[KernelCall]:
    """Return the calls that compute a product whose sums are too long for one kernel: the products of parts, added up."""
    size, batch = _size(a, b)
    K, unit = size.K, QUAD if most >= QUAD else 1
    count = -(-K // (most // unit * unit))
    step = -(-K // (count * unit)) * unit
    shape = (*batch, size.M, size.N)
    sums = [Temp(f"sums {i}", math.prod(shape) * 4) for i in range(2)]
    calls: list[KernelCall] = []
    for number, first in enumerate(range(0, K, step)):
        end = min(K, first + step)
        factors = [steps_of(low, f, side, first, end, calls) for f, side in ((a, "a"), (b, "b"))]
        # The last part's call gives the result.
        target = sums[number % 2] if end < K else into
        epilogue = low if end == K else replace(low, epilogue=None)
        calls += product_calls(epilogue, *factors, alpha=alpha, addend=addend, read=read, into=target)
        addend = Addend(sums[number % 2], "float32", shape, 1)
    return calls


def _longest_sum(low: Lowering, a: Factor, b: Factor, size: ProductSize, variant: str) -> int:
    """Return how many steps the sums of one kernel may have, so that loops end and a row of `a` and a quad of columns fit."""
    caps = low.caps
    limit = caps.limit("max-storage-buffer-binding-size")
    spare = limit - caps.limit("min-storage-buffer-offset-alignment") - STORAGE_ALIGNMENT_BYTES
    most = min(size.K, (low.target.costs.launches.most_iterations - 2000) * _STEPS_AT_ONCE[variant])
    for factor, lines in ((a, 1), (b, min(QUAD, size.N))):
        line_bytes = lines * DATA_TYPES[factor.data_type].size_bytes
        if padded_bytes(factor.size_bytes) > limit:
            most = min(most, spare // line_bytes)
    return max(1, most)


def _block_calls(
    low: Lowering,
    a: Factor,
    b: Factor,
    size: ProductSize,
    batch: tuple[int, ...],
    choice: Choice,
    block: ColumnRange,
    alpha: float,
    addend: Addend | None,
    read: Read,
    into: Temp | None,
    triangle: Triangle | None,
    heads: int,
    left: Normal | Projection | None = None,
    pooled: PooledImages | None = None,
) -> list[KernelCall]:
    """Return the calls that compute a block of columns, in most cases all columns. `left` changes rows of the left factor.

    With `pooled`, the rows of each matrix are the pixels of an image, of which the kernel stores the mean.
    """
    own, kernel, calls = replace(size, N=block.columns), ProductKernel(), list[KernelCall]()
    M, N, K = own.M, own.N, own.K
    packing = _panel_texture(low, b, own, choice) if choice.variant == "subgroup" else None
    reason = choice.reason + (", b packed in a texture" if packing else "")
    may_be_parted = block.whole and not isinstance(left, Normal) and pooled is None
    parts_at_most = most_parts(low, own, [f.size_bytes for f in (a, b)]) if may_be_parted else 1
    turned_b = b.transposed and _reads_stored(low, choice, b, own, "b")
    turned = "a" * a.transposed + "b" * turned_b
    tile, parts = _tile(
        kernel,
        low,
        (a, b),
        own,
        choice,
        turned,
        triangle if packing is None and block.whole else None,
        texture=packing is not None,
        width=size.N,
        most=parts_at_most,
        left=left,
    )
    in_subgroup = choice.variant == "subgroup"
    _bind_left(kernel, low, a, own, tile[0], in_subgroup=in_subgroup)
    _bind_right(kernel, low, b, own, block, packing, calls, turned=turned_b, in_subgroup=in_subgroup)
    if isinstance(left, Projection):
        kernel.bind(factor_buffer(low, "image", a.data_type, in_subgroup=False, quad=True), left.value)
    tiles = tile_uniforms(replace(own, matrices=own.matrices * (parts.count if parts else 1)), *tile)
    kernel.uniforms(M=M, N=N, K=K, **tiles)
    if packing:
        kernel.uniforms(**texture_uniforms(packing, K))
    kernel.params["block"] = not block.whole
    if not block.whole:
        kernel.uniforms(first_column=block.first, width=size.N)
        reason += f", columns {block.first} to {block.end}"
    spread = _declare_spread(kernel, a, b, heads) if in_subgroup else ()
    factors = (a.batch, a.strides[:-2]), (b.batch, _matrix_strides(b, packing, own, whole=block.whole))
    steps = _number_batches(kernel, batch, *factors, rows=size.M, heads=heads)
    quads = size.N % QUAD == 0
    if parts:
        reason += f", sums in {parts.count} parts"
        kernel.params |= {"alpha": False, "beta": False}
        parts.declare(kernel, low, read)
        computed = kernel.call(_TEMPLATES[choice.variant], grid_1d(tiles["tiles"], low.caps), reason)
        half = a.data_type == "float16"
        return [
            *calls,
            computed,
            parts.added(low, read, addend, half=half, whole=quads, row=size.N, into=into, alpha=alpha),
        ]
    kernel.params |= {"alpha": alpha != 1, "beta": addend is not None and addend.beta != 1}
    if alpha != 1:
        kernel.uniform("alpha", alpha, "f32")
    # Lanes store what they have of two neighboring quads. Parts of larger operands may be bound in other words.
    octets = kernel.bindings[1].words == 4 and not turned_b and operands_fit(low, [f.size_bytes for f in (a, b)])
    finish(
        kernel,
        low,
        quads,
        read,
        addend,
        row=size.N,
        scaled=alpha != 1 or isinstance(left, Normal),
        into=into,
        octets=octets,
    )
    if pooled:
        pooled.finish(kernel)
        reason += f", mean of {counted(M, 'row')}"
    whole_bound = turned or spread or pooled or isinstance(left, Projection)
    work = None if whole_bound else _work(kernel, own, block.width, tile[0], steps, low.caps)
    call = kernel.call(_TEMPLATES[choice.variant], grid_1d(tiles["tiles"], low.caps), reason, work)
    if packing is None or choice.tile:
        return [*calls, call]
    tiling = Tiling(tile=_subgroup_tile(low, own, choice, texture=True), size=own, depth=K, held=math.prod(b.batch))
    return [*calls, replace(call, tiling=tiling)]


def _reads_stored(low: Lowering, choice: Choice, factor: Factor, size: ProductSize, side: str) -> bool:
    """Return whether the kernel reads a factor as it is stored, transposed or beside others, instead of a copy.

    Constants are copied at build time. Calls with operands larger than a binding are divided along the rows of both factors.
    """
    if not factor.transposed and not factor.heads:
        return True
    variants = ("subgroup",) if factor.heads else ("tiled", "subgroup")
    if choice.variant not in variants or is_constant(low, factor.value):
        return False
    if choice.variant == "subgroup" and not factor.transposed:
        if factor.columns % QUAD:
            return False
    elif choice.variant == "subgroup":
        # Lanes read whole quads: of rows of the left factor, or of steps of the right one.
        if (size.M if side == "a" else size.K) % QUAD:
            return False
        if side == "a" and _subgroup_tile(low, size, choice, texture=False)[0] % QUAD:
            return False
    return operands_fit(low, [factor.size_bytes])


def _tile(
    kernel: ProductKernel,
    low: Lowering,
    factors: tuple[Factor, Factor],
    size: ProductSize,
    choice: Choice,
    turned: str,
    triangle: Triangle | None,
    *,
    texture: bool,
    width: int,
    most: int,
    left: Normal | Projection | None,
) -> tuple[tuple[int, int], PartialSums | None]:
    """Declare the parameters of a variant, and return the rows and columns of its tiles with the parts of its sums.

    Args:
        kernel: the kernel, which receives the parameters.
        low: the node.
        factors: the left and the right factor.
        size: the sizes of the product.
        choice: the variant, with a tile if the choice names one.
        turned: the factors, "a" and "b", that the kernel reads as they are stored: transposed.
        triangle: the elements that the kernel may skip, or None.
        texture: whether the right factor is in a texture.
        width: columns of the result, of which the product may be a block.
        most: how many parts there may be.
        left: how the kernel changes the rows of the left factor, if it does.
    """
    a, b = factors
    if choice.variant == "subgroup":
        rows, quads = _subgroup_tile(low, size, choice, texture=texture)
        lanes = low.caps.subgroup_size
        kernel.params |= {"lanes": lanes, "rows": rows, "quads": quads, "b_texture": texture, "rest": rest_of(size.K, quads)}
        kernel.params |= {"turned": turned, "triangle": ""}
        if triangle and size.K % QUAD == 0:
            kernel.params["triangle"] = triangle.of
            kernel.uniform("diagonal", triangle.diagonal % 2**32)
        kernel.features.append("subgroup")
        return (rows, int(lanes * quads * QUAD)), None
    if choice.variant == "tiled":
        rows = most_rows(lambda rows: _rows_fit(low, a, replace(size, N=width), rows))
        tile, count = low.target.costs.products.tile_and_parts(
            choice,
            size,
            most_rows=rows,
            most_parts=most,
            normalized=isinstance(left, Normal),
            projected=isinstance(left, Projection),
        )
        parts = PartialSums.of(size, tile, count)
        rest = tile.rest(size.K, whole=size.K % QUAD == 0 and not turned)
        kernel.params |= {"tile": tile, "parted": parts is not None, "rest": rest, "turned": turned}
        kernel.params |= {"normal": "", "projection": "", "strided": False}
        if isinstance(left, Normal):
            kernel.params["normal"] = left.of
            kernel.uniform("epsilon", left.epsilon, "f32")
        elif left:
            left.declare(kernel, size, tile, rest)
        return (tile.rows, tile.columns), parts
    if choice.variant == "gemv":
        most = next(rows for rows in (MOST_ROWS, 4, 2, 1) if rows == 1 or _rows_fit(low, a, replace(size, N=width), rows))
        lane_bytes = QUAD * DATA_TYPES[b.data_type].size_bytes
        tile = low.target.costs.products.row_tile(
            size, steps=size.K // QUAD, most_rows=most, lane_bytes=lane_bytes, may_be_narrow=True
        )
        kernel.params |= {"tile": tile, "ahead": tile.ahead(size.K if tile.narrow else size.K // QUAD)}
        declare_subgroups(kernel, low.caps)
        return (tile.rows, tile.columns), None
    rows = int(choice.tile[0]) if choice.tile else low.target.costs.products.plain_rows(size)
    kernel.params["rows"] = rows
    return (8 * rows, 8 * QUAD), None


def declare_subgroups(kernel: ProductKernel, caps: Caps) -> None:
    """Declare whether a kernel for few rows adds up sums by shuffles, which work for subgroups of any size."""
    kernel.params["subgroups"] = "subgroup" in caps.features
    if kernel.params["subgroups"]:
        kernel.features.append("subgroup")


def _subgroup_tile(low: Lowering, size: ProductSize, choice: Choice, *, texture: bool) -> tuple[int, float]:
    """Return the rows and the quads of columns per lane of the subgroup kernel's tiles. Convolutions use no wider tiles."""
    convolution = bool(low.ops[low.node.op].variants)  # they have variants of their own, products those of their templates
    return low.target.costs.products.tile_of(choice, size, texture=texture, wide=not convolution)


def _work(kernel: ProductKernel, size: ProductSize, width: int, rows: int, steps: _Steps, caps: Caps) -> Work:
    """Return the division of a product with tiles of `rows` rows and a result of `width` columns."""
    M, N, K = size.M, size.N, size.K
    uniforms = {name: int(value) for name, _, value in kernel.fields if name in ("blocks", "panels", "tiles")}
    blocks, panels = uniforms["blocks"], uniforms["panels"]

    def reach(first: int, end: int) -> list[Interval | None]:
        """Return the elements that tiles first..end-1 touch. Tiles are numbered by matrix, then block of rows, then panel."""
        matrices = first // (blocks * panels), (end - 1) // (blocks * panels) + 1
        top, bottom = 0, M
        if matrices[1] - matrices[0] == 1:
            top = first // panels % blocks * rows
            bottom = min(M, ((end - 1) // panels % blocks + 1) * rows)
        (low_a, past_a), (low_b, past_b) = (strided_span(steps.dims, own, *matrices) for own in (steps.a, steps.b))
        touched: dict[str, Interval] = {
            "a": (low_a + top * K, past_a - 1 + bottom * K),
            "b": (low_b, past_b - 1 + K * N),
            "full": ((matrices[0] * M + top) * width, ((matrices[1] - 1) * M + bottom) * width),
        }
        return [touched.get(kernel.reads.get(binding.name, binding.name)) for binding in kernel.bindings]

    def launch(units: int) -> tuple[dict[str, int], Grid]:
        return {"tiles": units}, grid_1d(units, caps)

    return Work(uniforms["tiles"], launch, reach)


def _size(a: Factor, b: Factor) -> tuple[ProductSize, tuple[int, ...]]:
    """Return the sizes of a product, and the dimensions its matrices are numbered by."""
    batch = broadcast(a.batch, b.batch)
    assert batch is not None
    if math.prod(b.batch) == 1:
        # One matrix for all of a: the matrices of a are taken as one of many rows.
        return ProductSize(a.rows * math.prod(batch), b.columns, a.columns), ()
    return ProductSize(a.rows, b.columns, a.columns, math.prod(batch)), batch


def _choose(low: Lowering, size: ProductSize, *, constant: bool) -> Choice:
    """Return the variant to take: the forced one, the one measured to be the fastest, or the best by device and sizes.

    Args:
        low: the node.
        size: sizes of the product.
        constant: whether its right factor is a constant.
    """
    op = low.ops[low.node.op]
    # An operator with variants of its own, such as conv2d, may be computed by products: those go by the templates' name.
    forced = low.forced.get("matmul") if op.variants else low.forced_variant
    possible = select.possible(low.caps)
    if forced is None:
        candidates = [name for v in possible for name in select.with_tiles(v, texture=constant)]
        measured = low.measured(candidates, "matmul" if op.variants else "")
        return measured or low.target.costs.products.choose(size, possible)
    if forced not in possible:
        raise OperationError(
            "the forced kernel variant cannot be had",
            operator=op.python_name,
            label=low.node.label,
            got=f"{forced}, subgroup size {low.caps.subgroup_size}",
            allowed=", ".join(possible),
        )
    return Choice(forced, FORCED)


def _panel_texture(low: Lowering, b: Factor, size: ProductSize, choice: Choice) -> PanelTexture | None:
    """Return the packing of a constant `b`, row-major, in a texture. None if `b` is no constant or does not fit."""
    if not is_constant(low, b.value):
        return None
    _, quads = _subgroup_tile(low, size, choice, texture=True)
    width = low.caps.limit("max-texture-dimension-2d")
    packing = PanelTexture(lanes=low.caps.subgroup_size, quads=quads, width=width)
    matrices = math.prod(b.batch)
    return packing.smallest(size.K, size.N, matrices) if packing.height(size.K, size.N, matrices) <= width else None


def most_rows(fit: Callable[[int], bool]) -> int:
    """Return how many rows a tile of the tiled kernel may have, so that the rows it reads and writes fit a binding.

    Args:
        fit: returns whether so many rows fit.
    """
    return HIGHEST_BLOCK if fit(HIGHEST_BLOCK) else HIGHEST_TILE


def _rows_fit(low: Lowering, a: Factor, size: ProductSize, rows: int) -> bool:
    """Return whether the rows that a tile of so many rows reads and writes fit a binding."""
    limit = low.caps.limit("max-storage-buffer-binding-size")
    rows = min(size.M, rows)
    bytes_of = [(rows * n + QUAD) * DATA_TYPES[a.data_type].size_bytes for n in (size.K, size.N)]
    return max(bytes_of) + low.caps.limit("min-storage-buffer-offset-alignment") <= limit or max(bytes_of) * size.M <= limit


def _block_width(low: Lowering, b: Factor, size: ProductSize, choice: Choice) -> int:
    """Return how many columns a kernel call computes: all, unless so much of `b` fits neither a texture nor a binding."""
    N, K, limit = size.N, size.K, low.caps.limit("max-storage-buffer-binding-size")
    single = math.prod(b.batch) == 1
    if choice.variant == "subgroup" and is_constant(low, b.value):
        _, quads = _subgroup_tile(low, size, choice, texture=True)
        texture_side = low.caps.limit("max-texture-dimension-2d")
        packing = PanelTexture(lanes=low.caps.subgroup_size, quads=quads, width=texture_side)
        if packing.height(K, N, math.prod(b.batch)) <= texture_side:
            return N
        panels = texture_side // packing.wraps(K)
        if single and panels:
            return panels * packing.columns
    column_bytes = K * DATA_TYPES[b.data_type].size_bytes
    # One of several matrices may start between two aligned offsets of a binding.
    room = limit - (0 if single else low.caps.limit("min-storage-buffer-offset-alignment"))
    if min(padded_bytes(math.prod(b.batch) * N * column_bytes) - limit, padded_bytes(N * column_bytes) - room) <= 0:
        return N
    # Whole panels, or at least whole quads. If not even one quad fits, the planner refuses the binding.
    columns = (room - STORAGE_ALIGNMENT_BYTES) // column_bytes
    return min(N, columns // PANEL * PANEL or max(QUAD, columns // QUAD * QUAD))


def _number_batches(
    kernel: ProductKernel, batch: Sequence[int], *factors: tuple[Sequence[int], Sequence[int]], rows: int, heads: int
) -> _Steps:
    """Declare how the number of a result's matrix leads to each factor's, given its leading dimensions and their strides.

    Args:
        kernel: the kernel, which receives the parameters.
        batch: the dimensions that matrices are numbered by.
        *factors: the leading dimensions of each factor, and their strides.
        rows: rows of a matrix.
        heads: the last of these dimensions whose matrices lie beside each other in the rows of the result.
    """
    strides = [_strides_in(own, steps, batch) for own, steps in factors]
    if heads:
        # The numbers of the first rows.
        strides.append(list(heads_first(strides_of(rows_first((*batch, rows, 1), heads)), heads)[:-2]))
    dims, (_, *merged) = merge_dimensions(batch, [strides_of(batch), *strides])
    rank = len(dims) if math.prod(dims) > 1 else 0
    kernel.params["batch_rank"] = rank
    for d in range(rank):
        kernel.uniform(f"dim_{d}", dims[d])
        for name, own in zip(("a", "b", "output"), merged, strict=False):
            kernel.uniform(f"{name}_stride_{d}", own[d])
    if heads:
        kernel.uniform("output_step", math.prod(batch[-heads:]))
    return _Steps(dims, *merged[:2])


def _matrix_strides(b: Factor, packing: PanelTexture | None, size: ProductSize, *, whole: bool) -> Sequence[int]:
    """Return the strides of the right factor's leading dimensions, in rows of the texture that holds it if there is one.

    A copy holds a block of columns that is not `whole`, whose matrices follow each other.
    """
    if packing is None and whole:
        return b.strides[:-2]
    step = packing.height(size.K, size.N, 1) if packing else size.K * size.N
    return [step * stride for stride in strides_of((*b.batch, 1, 1))[:-2]]


def _strides_in(own: Sequence[int], strides: Sequence[int], batch: Sequence[int]) -> list[int]:
    """Return strides of a factor's leading dimensions along the dimensions that matrices are numbered by."""
    if not batch:
        return []
    padded = [(1, 0)] * (len(batch) - len(own)) + list(zip(own, strides, strict=True))
    return [0 if dim == 1 else stride for dim, stride in padded]


def _read(shape: Sequence[int], size: ProductSize) -> str:
    """Return how the kernel addresses an operand of this shape for an element of the result."""
    count = math.prod(shape)
    if count == 1:
        return "one"
    if count == size.matrices * size.M * size.N:
        return "full"
    if shape[-1] != size.N:
        return "rows"
    return "vectors" if count > size.N else "columns"
