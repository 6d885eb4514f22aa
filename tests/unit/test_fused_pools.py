"""Global average pools: which of them the kernel of the convolution before them computes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support import Sketch
from tests.targets import SOFTWARE
from tests.unit.normalized_rows import GPU, planned, templates
from tests.unit.plans import DEVICES, caps_of, check_plan
from tests.unit.pooled_images import Pooled
from tests.unit.projections import convolved
from tests.unit.rewrites import normal
from webnn_wgpu.accuracy.bounds import computed
from webnn_wgpu.costs import Choice, ProductSize, Target
from webnn_wgpu.costs.tiles import BLOCK_TILES
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops.fused import FUSED, members_of, steps_of
from webnn_wgpu.passes import run_passes
from webnn_wgpu.passes.fused_pools import fuse_pools
from webnn_wgpu.reference import interpret

GPUS = [name for name in DEVICES if name != "lavapipe"]


@pytest.mark.parametrize("record", GPUS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shape": (1, 7, 7, 512), "columns": 2048, "chain": ("residual", "relu")},
        {"chain": ("quantized",), "behind": ("quantized",)},
        {"data_type": "float16"},
        {"op": "reduceMean", "chain": ()},
        {"op": "reduceMean", "keep_dimensions": True, "bias": False, "behind": ("relu",)},
        {"shape": (3, 7, 7, 320)},
    ],
    ids=["MobileNet", "residual", "8 bits", "float16", "reduction", "kept dimensions", "batch"],
)
def test_gpus_store_means_alone(record: str, options: dict[str, Any]) -> None:
    target = Target.of(caps_of(record))
    plan = planned(Pooled(**options).alone, target)
    assert templates(plan) == ["matmul.tiled"]
    assert plan.dispatches[0].spec.param("pooled")
    check_plan(plan, target.caps, rendered=True)


def test_a_fused_node_has_the_mean_as_result() -> None:
    pooled = Pooled(chain=("relu", "residual"), behind=("tanh",))
    after, _ = run_passes(pooled.alone, GPU)
    (node,) = after.nodes
    assert (node.op, node.outputs) == (FUSED.name, (pooled.mean,))
    members = members_of(node, OPS)
    assert members.anchor is not None
    assert members.pool is not None
    assert (members.anchor.op, members.pool.op) == ("conv2d", "averagePool2d")
    assert [[each.op for each in part] for part in (members.chain, members.behind)] == [["relu", "add"], ["tanh"]]
    assert len(steps_of(node, OPS)) == 3
    assert len(node.origins) == len(pooled.sketch.nodes)
    np.testing.assert_array_equal(interpret(after, pooled.sketch.feeds)["0"], interpret(pooled.alone, pooled.sketch.feeds)["0"])


def test_steps_behind_a_mean_have_names_of_their_own() -> None:
    (dispatch,) = planned(Pooled(chain=("relu", "tanh"), behind=("sigmoid", "tanh")).alone, GPU).dispatches
    before, behind = (dispatch.spec.param(name) for name in ("expression", "behind"))
    assert [step.name for step in (*before.steps, *behind.steps)] == ["y0", "y1", "h0", "h1"]
    assert len(dispatch.steps) == 4


@pytest.mark.parametrize(
    "options",
    [
        {"shape": (1, 13, 13, 512)},
        {"shape": (1, 2, 2, 320)},
        {"columns": 1282},
        {"shape": (1, 7, 7, 3072), "columns": 768},
        {"options": {"groups": 2}},
        {"options": {"taps": 3, "padding": [1, 1, 1, 1]}},
        {"window_dimensions": (7, 6)},
        {"padding": (1, 1, 1, 1)},
        {"op": "maxPool2d"},
        {"op": "reduceMean", "axes": (1,)},
        {"op": "reduceMean", "axes": (2, 3)},
        {"behind": ("channels",)},
        {"behind": ("cast",)},
    ],
    ids=[
        *("many pixels", "few pixels", "no whole quads", "long sums", "groups", "3 x 3 taps", "a part of the image", "padding"),
        *("maximum", "lines", "channels", "an operand behind", "another type behind"),
    ],
)
def test_other_pools_keep_a_dispatch(options: dict[str, Any]) -> None:
    plan = planned(Pooled(**options).alone, GPU)
    assert not any("pooled" in dict(dispatch.spec.params) for dispatch in plan.dispatches)
    assert len(plan.dispatches) > 1


def test_means_of_several_images_have_kernels_of_their_own() -> None:
    s = Sketch()
    images = [convolved(s, s.input(normal(1, 7, 7, 32, seed=seed)), 64) for seed in range(2)]
    means = [s.apply("averagePool2d", y, layout="nhwc") for y in (images[0], s.apply("relu", images[1]))]
    plan = planned(s.graph(*means), GPU)
    assert [len(spec.bindings) for spec in {dispatch.spec for dispatch in plan.dispatches}] == [4, 4]
    check_plan(plan, GPU.caps, rendered=True)


def test_images_with_other_readers_are_stored() -> None:
    graph = run_passes(Pooled().both, GPU, ("fuse_pools",))[0]
    assert fuse_pools(graph, GPU) is graph


def test_an_image_may_be_divided_among_few_cores_alone() -> None:
    costs, size = GPU.costs.products, ProductSize(49, 1280, 320)
    tile = costs.pooling_tile(Choice("tiled", ""), size)
    assert tile is not None
    assert tile.rows >= size.M
    for sides in ((16, 32, 4), (32, 64)):
        assert costs.pooling_tile(Choice("tiled", "", sides), size) is None
    assert costs.pooling_tile(Choice("tiled", "", (64, 64)), replace(size, K=16)) is not None


def test_every_tile_has_room_for_the_sums_of_its_rows() -> None:
    for tile in BLOCK_TILES:
        assert tile.splits * tile.rows // tile.own_rows <= 2 * tile.depth
        assert tile.columns // 4 <= tile.invocations


@pytest.mark.parametrize(("op", "attrs"), [("averagePool2d", {"layout": "nhwc"}), ("reduceMean", {"axes": (1, 2)})])
def test_errors_of_pixels_move_means_within_their_reach(op: str, attrs: dict[str, Any]) -> None:
    rng = np.random.default_rng(7)
    pooled = Pooled((2, 7, 7, 8), 8, op=op, chain=(), **attrs)
    graph, image = pooled.alone, rng.standard_normal((2, 7, 7, 8)).astype(np.float32)
    node, stated = graph.nodes[-1], OPS[op].bounds
    assert stated is not None
    assert stated.reached is not None
    axes = (1, 2)
    off = rng.random(image.shape)
    found = computed(graph, node, [image], [np.zeros(graph.type(node.outputs[0]).shape, np.float32)])
    (reach,) = stated.reached(found, off)
    for signs in (*rng.choice((-1, 1), (50, *image.shape)), np.ones(image.shape)):
        assert np.all(np.abs((signs * off).mean(axes)) <= reach.reshape(2, 8) * (1 + 1e-6))


def test_software_adapters_keep_a_dispatch() -> None:
    graph = run_passes(Pooled().alone, Target.of(SOFTWARE), ("fuse_pools",))[0]
    assert fuse_pools(graph, Target.of(SOFTWARE)) is graph
