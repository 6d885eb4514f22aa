from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.ops.movers import refusal, typed
from tests.ops.rows import as_hardware
from tests.support import check_op, op_graph
from webnn_wgpu.costs import Target
from webnn_wgpu.plan import make_plan
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device


def parameters(device: Device, x: Array) -> tuple[float, int]:
    scale, zero_point = check_op(device, "x.quantization_parameters", [x])
    assert scale.shape == zero_point.shape == (1,) * x.ndim
    return float(scale.reshape(())), int(zero_point.reshape(()))


def as_gpu(device: Device, x: Array, subgroups: bool) -> tuple[float, int]:
    """Return the same of the kernel for GPUs, whose workgroup combines values by subgroup operations or not."""
    caps = as_hardware(device.caps)
    caps = caps if subgroups else replace(caps, features=caps.features - {"subgroup"})
    plan = make_plan(op_graph("x.quantization_parameters", [x], {}), Target.of(caps))
    for dispatch in plan.dispatches:
        assert dispatch.spec.template == "quantization_range"
        assert ("subgroup" in dispatch.spec.features) == subgroups
    program = Program(device, plan)
    try:
        found = program.start({"0": x}, ["0", "1"]).result()
    finally:
        program.destroy()
    return float(found["0"].reshape(())), int(found["1"].reshape(()))


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (2, 3, 4, 8), (1, 30_000), (70, 1003), (300_000,)])
def test_range(device: Device, shape: Sequence[int]) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    for given in (x, x + np.float32(9), -np.abs(x), x * np.float32(1e-30)):
        scale, zero_point = parameters(device, np.asarray(given, np.float32))
        low, high = min(float(np.min(given)), 0), max(float(np.max(given)), 0)
        assert scale == pytest.approx((high - low) / 255)
        assert zero_point == pytest.approx(-low / scale, abs=0.501)


@pytest.mark.parametrize("size", [30_000, 300_000])
def test_the_extremes_are_found_wherever_they_are(device: Device, size: int) -> None:
    for place in (0, 4095, 4096, size // 2 + 3, size - 1):
        x = np.ones(size, np.float32)
        x[place] = -50
        assert parameters(device, x) == (np.float32(51) / np.float32(255), 250)
        assert parameters(device, -x) == (np.float32(51) / np.float32(255), 5)
        if size < 100_000:
            # Whole quads, and single elements.
            for count in (size, max(size - 1, place + 1)):
                assert as_gpu(device, x[:count], subgroups=True) == (np.float32(51) / np.float32(255), 250)


@pytest.mark.parametrize(
    ("values", "scale", "zero_point"),
    [
        ([0, 0, -0.0], 1, 0),
        ([np.nan, 1, -1], np.nan, 0),
        ([np.inf, -1], np.inf, 0),
        ([-np.inf, 1], np.inf, 0),
        ([255, 0], 1, 0),
        ([-255, 0], 1, 255),
        # Halves go to the even neighbor.
        ([-0.5, 254.5], 1, 0),
        ([-1.5, 253.5], 1, 2),
    ],
)
def test_special_values(device: Device, values: list[float], scale: float, zero_point: int) -> None:
    for repeats in (1, 40_000):
        found = parameters(device, np.repeat(np.float32(values), repeats))
        np.testing.assert_equal(found, (scale, zero_point))
        for subgroups in (True, False):
            np.testing.assert_equal(as_gpu(device, np.repeat(np.float32(values), repeats), subgroups), (scale, zero_point))


def test_profiles(profile_device: Device) -> None:
    for shape in ((5,), (3, 4000), (300_000,)):
        parameters(profile_device, np.random.default_rng(2).standard_normal(shape).astype(np.float32))


def test_refusals() -> None:
    assert refusal("x.quantization_parameters", [typed("float16", 3)], {}) == (
        "ext.quantization_parameters('here'): input data type is not allowed; got input float16[3]; allowed: float32"
    )
