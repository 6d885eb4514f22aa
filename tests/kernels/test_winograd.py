"""Winograd's convolutions in parts: what is computed one after the other in the same memory is what was computed at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ops.convolutions import INPUT_LAYOUTS, WINOGRAD, Case
from tests.ops.rows import run_plan
from tests.support import Sketch, op_graph, random_array, run_graph
from tests.targets import DEFAULT_TARGET
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.costs import ProductCosts, Target
from webnn_wgpu.costs.tiles import BLOCK_TILES
from webnn_wgpu.ops import _winograd
from webnn_wgpu.passes import run_passes
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.plan import ExecutionPlan
    from webnn_wgpu.runtime.device import Device

LAYOUT = pytest.mark.parametrize("layout", INPUT_LAYOUTS)
FORCED = {"conv2d": "winograd"}
SAME: dict[str, Any] = {"padding": (1, 1, 1, 1)}


def parts(plan: ExecutionPlan) -> int:
    return [d.spec.template for d in plan.dispatches].count("winograd.output")


@LAYOUT
@pytest.mark.parametrize("data_type", ["float32", "float16"])
def test_parts_change_no_number(device: Device, layout: str, data_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They begin in any row and image."""
    # Another tile would add up the products in another order.
    monkeypatch.setattr(ProductCosts, "tile_and_parts", lambda *_, **__: (BLOCK_TILES[-1], 1))  # pyright: ignore[reportUnknownLambdaType]
    rng = np.random.default_rng(12)
    for case in WINOGRAD:
        s = Sketch()
        x, weights, bias = (random_array(rng, data_type, shape, 1) for shape in case.shapes("conv2d", layout))
        result = s.apply("conv2d", s.input(x), s.constant(weights), s.constant(bias), **case.attrs(layout))
        gate = s.input(random_array(rng, data_type, s.type(result).shape, 1))
        graph = s.graph(s.apply("mul", s.apply("tanh", result), gate))
        whole = run_graph(device, graph, s.feeds, forced=FORCED)
        with monkeypatch.context() as patch:
            patch.setattr(_winograd, "_patches_of_part", lambda *sizes: min(7, sizes[-1]))  # pyright: ignore[reportUnknownLambdaType]
            plan = make_plan(run_passes(graph, device.target)[0], device.target, FORCED)
            found = run_graph(device, graph, s.feeds, forced=FORCED)
        reasons = [d.reason for d in plan.dispatches if d.spec.template == "winograd.input"]
        count = [5, 2, 1][WINOGRAD.index(case)]
        assert reasons == [f"forced, part {i} of {count}" if count > 1 else "forced" for i in range(1, count + 1)]
        np.testing.assert_array_equal(found["0"], whole["0"], strict=True)


def test_a_device_that_can_bind_little(device: Device) -> None:
    inputs = Case(1, 1, 8, 12, (18, 18), (3, 3)).operands(np.random.default_rng(13), "conv2d", "nhwc")
    assert inputs[0] is not None
    graph = op_graph("conv2d", inputs, Case().attrs("nhwc"), constants={1, 2})
    limits = tuple((n, 12288 if n == "max-storage-buffer-binding-size" else v) for n, v in device.caps.limits)
    plan = make_plan(graph, Target.of(replace(device.caps, limits=limits)), FORCED)
    # A patch of 12 channels takes 768 bytes: 16 of the 64 patches fit.
    assert parts(plan) == 4
    np.testing.assert_array_equal(run_plan(device, plan, inputs[:1]), interpret(graph, {"0": inputs[0]})["0"])


def test_a_sum_replaces_its_operand_in_all_parts(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_winograd, "_patches_of_part", lambda *sizes: 40)  # pyright: ignore[reportUnknownLambdaType]
    s = Sketch()
    image, weights, _ = Case(1, 1, 8, 8, (20, 20), (3, 3)).operands(np.random.default_rng(14), "conv2d", "nhwc")
    assert image is not None
    assert weights is not None
    x = s.apply("reverse", s.input(image))
    result = s.apply("conv2d", s.apply("reverse", x, axes=(1,)), s.constant(weights), input_layout="nhwc", **SAME)
    graph = s.graph(s.apply("reverse", s.apply("add", result, x)))
    plan = make_plan(run_passes(graph, device.target)[0], device.target, FORCED)
    assert sum(d.reason.endswith("replaces an operand") for d in plan.dispatches) == 3
    np.testing.assert_array_equal(run_plan(device, plan, [image]), interpret(graph, s.feeds)["0"])


def test_parts_take_less_memory_and_touch_as_much() -> None:
    """Of a convolution's input and result each part touches its share, of the filter all."""
    rng = np.random.default_rng(15)
    inputs = Case(1, 1, 128, 128, (24, 32), (3, 3)).operands(rng, "conv2d", "nhwc", bias=False)
    graph = op_graph("conv2d", inputs, {"input_layout": "nhwc", **SAME}, constants={1})
    software = make_plan(graph, Target.of(Caps(adapter_type="CPU")), FORCED)  # its tiles have 64 rows, a third of the patches
    hardware = make_plan(graph, DEFAULT_TARGET, FORCED)
    assert (parts(software), parts(hardware)) == (3, 1)
    assert software.slot_bytes < 0.34 * hardware.slot_bytes

    def touched(plan: ExecutionPlan, template: str) -> int:
        return sum(d.touched_bytes for d in plan.dispatches if d.spec.template == template)

    for template in ("winograd.input", "winograd.output"):
        assert abs(touched(software, template) - touched(hardware, template)) <= 3


def test_hardware_does_large_images_in_as_many_parts_as_keep_its_cores_busy() -> None:
    s = Sketch()
    image, weights = s.input(np.empty((1, 512, 512, 64), np.float32)), s.constant(np.empty((64, 64, 3, 3), np.float32))
    plan = make_plan(s.graph(s.apply("conv2d", image, weights, input_layout="nhwc", **SAME)), DEFAULT_TARGET, FORCED)
    assert parts(plan) == 16
    assert plan.slot_bytes == 2 * DEFAULT_TARGET.costs.convolutions.winograd_part_bytes
