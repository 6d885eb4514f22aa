"""Kernels that add up the parts of a product's sums and normalize the rows: they change no bit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ops.products import in_tiles
from tests.ops.rows import as_hardware
from tests.support import Sketch, random_array
from tests.unit.normalized_rows import GPU, Rows, planned, templates
from webnn_wgpu.accuracy.judging import judge
from webnn_wgpu.costs import Target
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.plan import ExecutionPlan
    from webnn_wgpu.runtime.device import Device

APART = ("fuse_normalizations",)


def run(device: Device, plan: ExecutionPlan, feeds: Mapping[str, Array]) -> dict[str, Array]:
    program = Program(device, plan)
    try:
        return program.start(feeds, list(plan.outputs)).result()
    finally:
        program.destroy()


@pytest.fixture(autouse=True)
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    in_tiles(monkeypatch, (32, 32), 3)


CASES: dict[str, dict[str, Any]] = {
    "residual": {},
    "nothing between": {"chain": ()},
    "few rows": {"shape": (9, 64)},
    "batches": {"shape": (2, 3, 17, 132)},
    "ragged": {"shape": (9, 300), "chain": ("bias", "gelu", "residual")},
    "long rows": {"shape": (9, 1028)},
    "no parameters": {"parameters": ()},
    "scale alone": {"parameters": ("scale",)},
    "bias alone": {"parameters": ("bias",), "chain": ("relu",)},
    "root mean square": {"op": "x.rms_normalization", "parameters": ("scale",)},
    "float16": {"data_type": "float16"},
    "float16 without operators between": {"data_type": "float16", "chain": ()},
}


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
@pytest.mark.parametrize("subgroups", [True, False], ids=["subgroups", "workgroups"])
@pytest.mark.parametrize("case", CASES)
def test_no_bit_changes(device: Device, case: str, subgroups: bool, stored: bool) -> None:
    rows = Rows(**CASES[case])
    graph, caps = rows.both if stored else rows.alone, as_hardware(device.caps)
    target = Target.of(caps if subgroups else replace(caps, features=caps.features - {"subgroup"}))
    together, apart = planned(graph, target), planned(graph, target, APART)
    assert templates(together) == ["matmul.tiled", "normalized_sums"]
    assert templates(apart) == ["matmul.tiled", "partial_sums", "normalization"]
    found, wanted = run(device, together, rows.sketch.feeds), run(device, apart, rows.sketch.feeds)
    for name, result in found.items():
        np.testing.assert_array_equal(result, wanted[name])
    node = together.graph.nodes[-1]
    names = {value: name for name, value in together.graph.inputs.items()}
    operands = [
        together.graph.constants[v] if v in together.graph.constants else rows.sketch.feeds[names[v]] for v in node.operands
    ]
    judged = judge(together.graph, node, operands, list(found.values()))
    assert judged is not None
    assert not any(each.wrong.any() for each in judged)


@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_normalize_pixels(device: Device, groups: int) -> None:
    rng = np.random.default_rng(8)
    s = Sketch()
    weights = random_array(rng, "float32", (40, 3, 2, 12 // groups), 1)
    attrs = {"groups": groups, "padding": (1, 1, 1, 1), "input_layout": "nhwc", "filter_layout": "ohwi"}
    channels = [s.constant(random_array(rng, "float32", (40,), 1)) for _ in range(3)]
    y = s.apply("conv2d", s.input(random_array(rng, "float32", (2, 7, 5, 12), 1)), s.constant(weights), channels[0], **attrs)
    y = s.apply("gelu", y)
    graph = s.graph(y, s.apply("layerNormalization", y, *channels[1:], axes=(3,)))
    target = Target.of(as_hardware(device.caps))
    together, apart = planned(graph, target), planned(graph, target, APART)
    # Channels of one of several groups are no whole rows.
    assert templates(together)[1:] == (["normalized_sums"] if groups == 1 else ["partial_sums", "normalization"])
    found, wanted = run(device, together, s.feeds), run(device, apart, s.feeds)
    for name, result in found.items():
        np.testing.assert_array_equal(result, wanted[name])


def test_a_residual_is_replaced_by_the_rows(device: Device) -> None:
    rng = np.random.default_rng(6)
    s = Sketch()
    x, residual = s.input(random_array(rng, "float32", (37, 203), 1)), s.input(random_array(rng, "float32", (37, 300), 1))
    scale = s.constant(random_array(rng, "float32", (300,), 1))
    y = s.apply("exp", residual)
    for _ in range(3):
        product = s.apply("matmul", x, s.constant(random_array(rng, "float32", (203, 300), 1)))
        y = s.apply("add", product, y)
        x = s.apply(
            "matmul",
            s.apply("layerNormalization", y, scale, axes=(1,)),
            s.constant(random_array(rng, "float32", (300, 203), 1)),
        )
    graph = s.graph(s.apply("neg", y), x)
    target = Target.of(as_hardware(device.caps))
    together, apart = planned(graph, target), planned(graph, target, APART)
    assert any(
        dict(d.spec.params).get("extra_reads") == ("own",) and d.spec.template == "normalized_sums" for d in together.dispatches
    )
    found, wanted = run(device, together, s.feeds), run(device, apart, s.feeds)
    for name, result in found.items():
        np.testing.assert_array_equal(result, wanted[name])


@pytest.mark.parametrize(("parts", "shape"), [(16, (9, 8192)), (3, (9, 12288))], ids=["many parts", "many quads"])
def test_few_long_rows_keep_a_dispatch(parts: int, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    in_tiles(monkeypatch, (32, 32), parts)
    assert templates(planned(Rows(shape, 1024).both, GPU))[-2:] == ["partial_sums", "normalization"]


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
def test_a_forced_kernel_keeps_a_dispatch(device: Device, stored: bool) -> None:
    rows, target = Rows(), Target.of(as_hardware(device.caps))
    graph = rows.both if stored else rows.alone
    wanted = interpret(graph, rows.sketch.feeds)
    for forced, found in (
        ({"layerNormalization": "plain"}, ["matmul.tiled", "partial_sums", "normalization"]),
        ({"matmul": "plain"}, ["matmul.plain", "normalization"]),
    ):
        plan = planned(graph, target, forced=forced)
        assert templates(plan) == found
        for name, result in run(device, plan, rows.sketch.feeds).items():
            np.testing.assert_allclose(result, wanted[name], rtol=1e-4, atol=1e-4)
