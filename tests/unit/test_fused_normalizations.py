"""Fused normalizations: which of them the kernel computes that adds up the parts of a product's sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ops.products import in_tiles
from tests.support import op_graph, random_array
from tests.targets import DEFAULT_TARGET, SOFTWARE
from tests.unit.normalized_rows import GPU, Rows, planned, templates
from tests.unit.plans import DEVICES, caps_of, check_plan
from webnn_wgpu.accuracy.bounds import computed
from webnn_wgpu.accuracy.judging import judge
from webnn_wgpu.costs import Target
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._normalization import normalized
from webnn_wgpu.ops.fused import FUSED
from webnn_wgpu.passes import run_passes
from webnn_wgpu.reference.interpreter import evaluate

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array

SPLIT: dict[str, Any] = {"shape": (32, 36), "K": 4096}
"""A product so narrow that workgroups divide its sums on all GPUs."""


@pytest.mark.parametrize("record", [name for name in DEVICES if name != "lavapipe"])
@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
def test_sums_in_parts_are_normalized_on_gpus(record: str, stored: bool) -> None:
    rows, target = Rows(**SPLIT), Target.of(caps_of(record))
    plan = planned(rows.both if stored else rows.alone, target)
    assert templates(plan) == ["matmul.tiled", "normalized_sums"]
    check_plan(plan, target.caps, rendered=True)


def test_a_fused_node_has_the_rows_as_result_if_others_read_them() -> None:
    rows = Rows(**SPLIT)
    (both,), (alone,) = (run_passes(graph, GPU)[0].nodes for graph in (rows.both, rows.alone))
    assert (both.op, both.outputs) == (FUSED.name, (rows.result, rows.normalized))
    assert (alone.op, alone.outputs) == (FUSED.name, (rows.normalized,))
    assert [node.op for node in alone.attrs["body"].nodes] == ["matmul", "add", "add", "layerNormalization"]
    assert len(alone.origins) == len(rows.sketch.nodes)


def test_rows_that_only_the_normalization_reads_take_no_memory() -> None:
    rows = Rows(**SPLIT)
    bound = [binding.name for binding in planned(rows.alone, GPU).dispatches[-1].spec.bindings]
    assert bound == ["partial", "scale", "bias", "extra0", "extra1", "output"]
    assert "normalized" in [binding.name for binding in planned(rows.both, GPU).dispatches[-1].spec.bindings]


@pytest.mark.parametrize(
    "options",
    [
        {"axes": (0,)},
        {"axes": (0, 1)},
        {"shape": (37, 70)},
        {"shape": (37, 16)},
        {"late_scale": True},
    ],
    ids=["other axis", "all axes", "no whole quads", "short rows", "scale computed from the rows"],
)
def test_other_normalizations_keep_a_dispatch(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    in_tiles(monkeypatch, (32, 32), 3)
    assert "normalized_sums" not in templates(planned(Rows(**options).alone, GPU))


def test_whole_sums_keep_a_dispatch(monkeypatch: pytest.MonkeyPatch) -> None:
    in_tiles(monkeypatch, (32, 32), 1)
    assert templates(planned(Rows().both, GPU)) == ["matmul.tiled", "normalization"]


def test_as_many_tensors_are_read_as_the_device_binds(monkeypatch: pytest.MonkeyPatch) -> None:
    in_tiles(monkeypatch, (32, 32), 3)
    rows = Rows(chain=("bias", "residual", "residual", "residual"))
    last = planned(rows.alone, DEFAULT_TARGET).dispatches[-1].spec
    assert (last.template, len(last.bindings)) == ("normalized_sums", 8)
    assert "normalized_sums" not in templates(planned(rows.both, DEFAULT_TARGET))


def test_stored_rows_are_judged_apart_from_their_normalization() -> None:
    rows = Rows(**SPLIT)
    optimized, _ = run_passes(rows.both, GPU)
    (node,), names = optimized.nodes, {value: name for name, value in optimized.inputs.items()}
    operands = [optimized.constants[v] if v in optimized.constants else rows.sketch.feeds[names[v]] for v in node.operands]
    found = evaluate(optimized, node, operands)

    def wrong(*results: Array) -> list[bool]:
        judged = judge(optimized, node, operands, results)
        assert judged is not None
        return [bool(each.wrong.any()) for each in judged]

    assert wrong(*found) == [False, False]
    assert wrong(found[0], found[1] * np.float32(1.001)) == [False, True]
    # Errors of the rows within their bounds are no errors of the normalization.
    off = found[0] + np.float32(1e-3)
    assert wrong(off, found[1]) == [False, False]
    assert wrong(2 * found[0], found[1]) == [True, False]


@pytest.mark.parametrize("name", ["layerNormalization", "x.rms_normalization"])
def test_errors_of_rows_move_results_within_their_reach(name: str) -> None:
    rng = np.random.default_rng(7)
    rows, scale = random_array(rng, "float32", (6, 40), 1), random_array(rng, "float32", (40,), 1)
    rows[0] = 1 + 1e-3 * rows[0]
    operands: list[Array | None] = [rows, scale]
    operands += [None] * (len(OPS[name].operands) - 2)
    graph = op_graph(name, operands, {"axes": (1,)})
    stated, (node,) = OPS[name].bounds, graph.nodes
    assert stated is not None
    assert stated.reached is not None

    def results(x: Array) -> Array:
        type_, centered = graph.type(node.outputs[0]), name == "layerNormalization"
        return normalized(x, (1,), scale.astype(np.float64), None, node.attrs, type_, centered=centered)

    exact = rows.astype(np.float64)
    expected = results(exact)
    found = computed(graph, node, operands, [expected])
    for size in (1e-6, 1e-4, 1e-2):
        off = size * rng.random(rows.shape)
        (reach,) = stated.reached(found, off)
        for signs in (*rng.choice((-1, 1), (50, *rows.shape)), np.sign(rows)):
            assert np.all(np.abs(results(exact + signs * off) - expected) <= reach * (1 + 1e-9))
        assert np.all(reach[1:] < 100 * size)


def test_plans_of_software_adapters_keep_a_dispatch() -> None:
    assert run_passes(Rows().both, Target.of(SOFTWARE))[0].nodes[-1].op == "layerNormalization"
