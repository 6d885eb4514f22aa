"""Tiles of products: the facts of a kernel call that depend on the tile of its kernel.

Kernels in the registers of a subgroup exist in tiles of many sizes. A call whose right factor is in a texture has a `Tiling`,
from which `retiled` makes the same call in other tiles.
"""

from __future__ import annotations

from dataclasses import replace

from ..core.caps import Caps
from ..costs import ProductSize, Tile
from .element import QUAD
from .packing import Chain, PanelTexture
from .spec import KernelCall, Packed, Packing, grid_1d


def tile_uniforms(size: ProductSize, rows: int, columns: int) -> dict[str, int]:
    """Return the uniforms that number the tiles of a product, given the rows and columns of a tile."""
    blocks, panels = -(-size.M // rows), -(-size.N // columns)
    return {"blocks": blocks, "panels": panels, "tiles": blocks * panels * size.matrices}


def texture_uniforms(packing: PanelTexture, depth: int) -> dict[str, int]:
    """Return the uniforms that locate the panels of matrices of `depth` rows in a texture."""
    return {"wraps": packing.wraps(depth), "wrap_steps": packing.wrap_steps(depth)}


def rest_of(K: int, quads: float) -> int | None:
    """Return the number of steps behind the quads of steps in sums over K, or None if the kernel's text does not depend on it.

    The text depends on it if no step is left, and for tiles of half quads, whose last steps it spells out.
    """
    left = K % QUAD
    return left if left == 0 or quads % 1 else None


def retiled(call: KernelCall, tile: Tile, caps: Caps) -> KernelCall | None:
    """Return the equivalent call in other tiles, or None if no texture has the right factor in panels for these.

    Args:
        call: a call with a `tiling`, divided if necessary.
        tile: the rows, and the quads of columns for each lane.
        caps: the device.
    """
    spec, tiling = call.spec, call.tiling
    assert tiling is not None
    rows, quads, size, depth = int(tile[0]), tile[1], tiling.size, tiling.depth
    position = next(i for i, binding in enumerate(spec.bindings) if binding.is_texture)
    operand = call.operands[position]
    assert isinstance(operand, Packed)
    before = _panels(operand.packing)
    packing = replace(before, quads=quads, least_wraps=1)
    if tiling.convolution:
        params = {"rows": rows, "quads": quads, "one_row": packing.wraps(depth) == 1}
    else:
        packing = packing.smallest(depth, size.N, tiling.held)
        params = {"rows": rows, "quads": quads, "rest": rest_of(size.K, quads)}
    if packing.height(depth, size.N, tiling.held) > packing.width:
        return None
    uniforms = dict(zip((name for name, _ in spec.uniforms), call.uniforms, strict=True))
    uniforms |= tile_uniforms(size, rows, packing.columns) | texture_uniforms(packing, depth)
    for name in uniforms:
        if name.startswith("b_stride_"):  # from matrix to matrix, in rows of the texture
            uniforms[name] = uniforms[name] // before.height(depth, size.N, 1) * packing.height(depth, size.N, 1)
    packed = Packed(operand.value, _with_panels(operand.packing, packing))
    return replace(
        call,
        spec=replace(spec, params=tuple((name, params.get(name, value)) for name, value in spec.params)),
        operands=(*call.operands[:position], packed, *call.operands[position + 1 :]),
        uniforms=tuple(uniforms.values()),
        grid=grid_1d(int(uniforms["tiles"]), caps),
        work=None,
        tiling=replace(tiling, tile=tile),
    )


def _panels(packing: Packing) -> PanelTexture:
    """Return the last step of a packing: the panels that a texture holds."""
    last = _panels(packing.second) if isinstance(packing, Chain) else packing
    assert isinstance(last, PanelTexture)
    return last


def _with_panels(packing: Packing, panels: PanelTexture) -> Packing:
    """Return a packing with other panels as its last step."""
    return replace(packing, second=_with_panels(packing.second, panels)) if isinstance(packing, Chain) else panels
