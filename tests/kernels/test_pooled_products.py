"""Kernels of products that store the mean over the pixels of each image."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ops.rows import as_hardware
from tests.unit.normalized_rows import planned, templates
from tests.unit.pooled_images import Pooled
from webnn_wgpu.accuracy.judging import judge
from webnn_wgpu.costs import Target
from webnn_wgpu.costs.products import ProductCosts
from webnn_wgpu.costs.tiles import BLOCK_TILES, BlockTile
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.plan import ExecutionPlan
    from webnn_wgpu.runtime.device import Device

SIDES: dict[int, tuple[int, int]] = {16: (4, 3), 32: (5, 6), 64: (7, 7), 128: (9, 13)}
"""Heights and widths of images that nearly fill the rows of a tile."""


def run(device: Device, plan: ExecutionPlan, feeds: dict[str, Array]) -> Array:
    program = Program(device, plan)
    try:
        return program.start(feeds, ["0"]).result()["0"]
    finally:
        program.destroy()


def in_tile(monkeypatch: pytest.MonkeyPatch, tile: BlockTile) -> None:
    """Have means taken in one tile, whatever the costs are."""
    monkeypatch.setattr(ProductCosts, "pooling_tile", lambda *_: tile)


def check(device: Device, pooled: Pooled, tile: BlockTile, *, without: str = "") -> ExecutionPlan:
    """Check that one kernel computes a graph, with errors within the bounds, and return the plan.

    Args:
        device: the device.
        pooled: the graph.
        tile: the tile of the kernel.
        without: a feature of the device that the kernel must not use.
    """
    caps = as_hardware(device.caps)
    plan = planned(pooled.alone, Target.of(replace(caps, features=caps.features - {without})))
    assert templates(plan) == ["matmul.tiled"]
    assert (plan.dispatches[0].spec.param("tile"), plan.dispatches[0].spec.param("pooled")) == (tile, True)
    found = run(device, plan, pooled.sketch.feeds)
    (node,), constants = plan.graph.nodes, plan.graph.constants
    names = {value: name for name, value in plan.graph.inputs.items()}
    operands = [constants[v] if v in constants else pooled.sketch.feeds[names[v]] for v in node.operands]
    judged = judge(plan.graph, node, operands, [found])
    assert judged is not None
    assert not any(each.wrong.any() for each in judged)
    return plan


@pytest.mark.parametrize("tile", BLOCK_TILES, ids=str)
@pytest.mark.parametrize(("images", "data_type"), [(1, "float32"), (3, "float32"), (2, "float16")])
def test_whole_numbers_have_exact_means(
    device: Device, tile: BlockTile, images: int, data_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_tile(monkeypatch, tile)
    height, width = SIDES[tile.rows]
    pooled = Pooled((images, height, width, 20), 140, data_type=data_type, whole=True, bias=False, chain=("relu",))
    plan = check(device, pooled, tile)
    wanted = interpret(pooled.alone, pooled.sketch.feeds)["0"]
    found = run(device, plan, pooled.sketch.feeds)
    # The sum is exact. Its quotient may be off by 2.5 ULP.
    np.testing.assert_array_max_ulp(found, wanted, 2 if data_type == "float32" else 1)


CASES: dict[str, dict[str, Any]] = {
    "nothing between": {"chain": (), "bias": False},
    "bias alone": {"chain": ()},
    "residual": {"chain": ("residual", "relu")},
    "residuals of images": {"shape": (2, 7, 7, 24), "chain": ("channels", "residual", "gelu")},
    "rest": {"shape": (1, 7, 7, 37)},
    "short sums": {"shape": (1, 6, 8, 3)},
    "reduction": {"op": "reduceMean"},
    "kept dimensions": {"op": "reduceMean", "keep_dimensions": True},
    "behind": {"behind": ("tanh", "relu")},
    "8 bits": {"chain": ("relu", "quantized"), "behind": ("quantized",)},
    "float16": {"data_type": "float16", "chain": ("residual", "relu"), "behind": ("tanh",)},
    "float16 without operators": {"data_type": "float16", "chain": (), "bias": False},
    "a row of pixels": {"shape": (2, 1, 50, 40)},
}

TILES = [tile for tile in BLOCK_TILES if tile.sides in ((64, 32), (64, 64, 4), (64, 128))]


@pytest.mark.parametrize("tile", TILES, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_means_are_those_of_stored_images(device: Device, case: str, tile: BlockTile, monkeypatch: pytest.MonkeyPatch) -> None:
    in_tile(monkeypatch, tile)
    check(device, Pooled(**({"shape": (1, 7, 7, 48), "columns": 72} | CASES[case])), tile)


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_halves_of_words_are_rounded_as_float16_is(device: Device, tile: BlockTile, monkeypatch: pytest.MonkeyPatch) -> None:
    in_tile(monkeypatch, tile)
    pooled = Pooled((2, 7, 7, 24), 72, data_type="float16", chain=("residual", "relu"), behind=("tanh",))
    plan = check(device, pooled, tile, without="shader-f16")
    assert {binding.element for binding in plan.dispatches[0].spec.bindings} == {"half"}


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_a_pixel_that_is_not_finite_makes_the_mean_of_its_image_so(
    device: Device, tile: BlockTile, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_tile(monkeypatch, tile)
    pooled = Pooled((3, 7, 7, 8), 72, chain=())
    feeds = pooled.sketch.feeds
    feeds["0"][0, 6, 6, 0], feeds["0"][2, 0, 3, 5] = np.inf, np.nan
    plan = planned(pooled.alone, Target.of(as_hardware(device.caps)))
    wanted = interpret(pooled.alone, feeds)["0"]
    np.testing.assert_allclose(run(device, plan, feeds), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("forced", [{"averagePool2d": "plain"}, {"matmul": "plain"}, {"conv2d": "plain"}], ids=str)
def test_a_forced_kernel_keeps_a_dispatch(device: Device, forced: dict[str, str]) -> None:
    pooled, target = Pooled(behind=("tanh",)), Target.of(as_hardware(device.caps))
    plan = planned(pooled.alone, target, forced=forced)
    assert len(plan.dispatches) > 1
    assert not any("pooled" in dict(dispatch.spec.params) for dispatch in plan.dispatches)
    wanted = interpret(pooled.alone, pooled.sketch.feeds)["0"]
    np.testing.assert_allclose(run(device, plan, pooled.sketch.feeds), wanted, rtol=1e-5, atol=1e-5)
