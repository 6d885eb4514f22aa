"""Calls in other tiles are made from data, and are those that lowering in these tiles gives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import op_graph
from tests.unit.plans import caps_of
from webnn_wgpu.core.caps import DEFAULT_LIMITS
from webnn_wgpu.costs import Choice, Target
from webnn_wgpu.costs.tiles import BLOCK_TILES, BlockTile, block_tile
from webnn_wgpu.kernels.select import spelled, unspelled, with_tiles
from webnn_wgpu.kernels.tiles import retiled
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._def import Lowering

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from webnn_wgpu.core.caps import Caps
    from webnn_wgpu.costs import Tile
    from webnn_wgpu.ir.graph import Graph
    from webnn_wgpu.kernels.spec import KernelCall

TILES = [unspelled(name)[1] for name in with_tiles("subgroup", texture=True)]


@dataclass(frozen=True)
class TileChosen:
    """Stands in for a tuning that has measured a variant in one tile to be the fastest."""

    variant: str
    tile: Tile

    def choice(self, operator: str, candidates: Collection[str]) -> Choice | None:
        """Return the variant in that tile if it is a candidate."""
        name = spelled(self.variant, self.tile)
        return Choice(self.variant, "measured", self.tile) if name in candidates else None


def lowered(graph: Graph, caps: Caps, variant: str = "", tile: Tile = ()) -> KernelCall:
    """Return the call of a product, in a tile of its own or in a given one of a variant."""
    tuning: Any = TileChosen(variant, tile) if tile else None
    lower = OPS[graph.nodes[0].op].lower
    assert lower is not None
    return lower(Lowering(node=graph.nodes[0], graph=graph, target=Target.of(caps), ops=OPS, tuning=tuning))[-1]


def product(a: Sequence[int], b: Sequence[int], data_type: str = "float32") -> Graph:
    return op_graph("matmul", [np.zeros(a, data_type), np.zeros(b, data_type)], constants=[1])


def convolution(x: Sequence[int], weights: Sequence[int], **attrs: Any) -> Graph:
    arrays = [np.zeros(x, np.float32), np.zeros(weights, np.float32), np.zeros(weights[0], np.float32)]
    return op_graph("conv2d", arrays, {"input_layout": "nhwc", **attrs}, constants=[1])


GRAPHS = {
    "product": product((33, 48), (48, 70)),
    "sums with a rest": product((33, 50), (50, 70)),
    "halves": product((33, 50), (50, 72), "float16"),
    "matrices": product((3, 20, 12), (3, 12, 40)),
    "matrices that are broadcast": product((2, 3, 20, 12), (3, 12, 40)),
    "matrices of long sums": product((5, 20, 3000), (5, 3000, 33)),
    "transposed": op_graph(
        "gemm",
        [np.zeros(shape, np.float32) for shape in ((33, 50), (70, 50), (70,))],
        {"b_transpose": True, "alpha": 0.5},
        constants=[1],
    ),
    "convolution": convolution((2, 9, 9, 8), (24, 8, 3, 3)),
    "groups": convolution((1, 9, 9, 8), (24, 4, 3, 3), groups=2),
    "wide filter": convolution((1, 9, 9, 2000), (24, 2000, 2, 2)),
    "nchw": convolution((1, 8, 9, 9), (24, 8, 3, 3), input_layout="nchw"),
    "pixels": convolution((1, 9, 9, 30), (24, 30, 1, 1)),
}


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("name", GRAPHS)
def test_calls_in_other_tiles_are_those_of_lowering_in_these(name: str, lanes: int) -> None:
    caps = replace(caps_of("lavapipe"), subgroup_size=lanes)
    call = lowered(GRAPHS[name], caps)
    assert call.tiling is not None
    other = call.tiling.tile
    assert other in TILES
    for tile in TILES:
        found, wanted = retiled(call, tile, caps), lowered(GRAPHS[name], caps, call.spec.variant, tile)
        assert found is not None
        assert found.tiling == replace(call.tiling, tile=tile)
        for part in ("spec", "operands", "uniforms", "grid"):
            assert getattr(found, part) == getattr(wanted, part), (tile, part)
            assert getattr(retiled(found, other, caps), part) == getattr(call, part), (tile, part)


@pytest.mark.parametrize(
    "graph", [product((22, 33, 48), (22, 48, 100)), convolution((1, 9, 9, 8), (600, 8, 3, 3))], ids=["matrices", "convolution"]
)
def test_tiles_whose_panels_fit_no_texture_are_refused(graph: Graph) -> None:
    full = caps_of("lavapipe")
    caps = replace(full, limits=tuple({**dict(full.limits), "max-texture-dimension-2d": 256}.items()))
    whole, refused = lowered(graph, full), 0
    assert whole.tiling is not None
    call = replace(lowered(graph, caps, whole.spec.variant, (16, 2)), tiling=replace(whole.tiling, tile=(16, 2)))
    for tile in TILES:
        found, wanted = retiled(call, tile, caps), lowered(graph, caps, whole.spec.variant, tile)
        if found is None:
            refused += 1
            assert not any(binding.is_texture for binding in wanted.spec.bindings)
        else:
            assert found.spec == wanted.spec
    assert 0 < refused < len(TILES)


def test_a_slice_has_fewer_steps_at_the_start_if_quads_are_whole() -> None:
    tile = block_tile((32, 32))
    assert tile.depth == 8
    rests = [tile.rest(steps, whole=whole) for steps in (16, 12, 4) for whole in (True, False)]
    assert rests == ["", "", "start", "end", "end", "end"]


@pytest.mark.parametrize("tile", BLOCK_TILES, ids=str)
def test_tiles_of_workgroups_fit_default_limits(tile: BlockTile) -> None:
    assert block_tile(tile.sides) is tile
    assert tile.invocations <= DEFAULT_LIMITS["max-compute-invocations-per-workgroup"]
    for element_bytes in (2, 4):
        # Two slices of both factors, and float32 sums beside float16.
        sums = 2 * tile.depth * tile.columns * 4 if tile.splits > 1 and element_bytes < 4 else 0
        local_bytes = 2 * tile.depth * (tile.rows + tile.columns) * element_bytes + sums
        assert local_bytes <= DEFAULT_LIMITS["max-compute-workgroup-storage-size"]
    # The exchange of sums needs room for two quads of each invocation, in two slices.
    quads = 2 * tile.step * tile.columns // 4
    assert tile.splits == 1 or quads // (tile.invocations // tile.splits) >= 2
