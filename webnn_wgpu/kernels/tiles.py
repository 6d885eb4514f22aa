"""Tiles of products: what of a kernel call depends on the tile that its kernel is written for.

Kernels in the registers of a subgroup come in tiles of many sizes. A call whose right factor lies in a texture carries a
`Tiling`, from which `retiled` makes the same call in other tiles.
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
    """Return the uniforms that tell where a texture holds the panels of matrices of `depth` rows."""
    return {"wraps": packing.wraps(depth), "wrap_steps": packing.wrap_steps(depth)}


def rest_of(K: int, quads: float) -> int | None:
    """Return how many steps of sums over K are left behind their quads, where the kernel's text knows it; None elsewhere.

    It knows where nothing is left, and it is written out for tiles of half quads.
    """
    left = K % QUAD
    return left if left == 0 or quads % 1 else None


def retiled(call: KernelCall, tile: Tile, caps: Caps) -> KernelCall | None:
    """Return the call that does the same in other tiles; None where no texture holds the right factor in panels for these.

    Args:
        call: a call with a `tiling`, which has been divided if need be.
        tile: rows, and quads of columns for each lane.
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
