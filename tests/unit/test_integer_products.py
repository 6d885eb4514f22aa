"""Products of quantized numbers that GPUs make of integers: which products, and that results keep every bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.ops.rows import as_hardware
from tests.support import Sketch, assert_same, run_graph
from tests.unit.plans import caps_of
from tests.unit.rewrites import normal, number
from webnn_wgpu.costs import Target
from webnn_wgpu.passes import run_passes
from webnn_wgpu.plan import make_plan

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Graph
    from webnn_wgpu.runtime.device import Device


def quantized_products(rows: int, K: int = 32, most: int = 127, zero: int | None = None) -> tuple[Sketch, Graph]:
    """Return two products of the same quantized rows, as exporters write them; `zero` is a zero point that is known."""
    s = Sketch()
    x = s.input(normal(rows, K))
    if zero is None:
        scale, point = s.apply_all("x.quantization_parameters", [x])
    else:
        scale, point = number(s, 0.02, shape=(1, 1)), s.constant(np.int8([[zero]]))
    rng = np.random.default_rng(2)
    steps = s.apply("cast", s.apply("quantizeLinear", x, scale, point), data_type="float32")
    centered = s.apply("sub", steps, s.apply("cast", point, data_type="float32"))
    results: dict[str, int] = {}
    for name, N in (("a", 12), ("b", 15)):
        weights = s.constant(rng.integers(-most, most + 1, (K, N)).astype(np.float32))
        sums = s.apply("cast", s.apply("cast", s.apply("matmul", centered, weights), data_type="int32"), data_type="float32")
        results[name] = s.apply("add", s.apply("mul", sums, scale), s.constant(normal(N)))
    return s, s.graph(**results)


@pytest.mark.parametrize("rows", [1, 8])
@pytest.mark.parametrize("zero", [None, 3])
def test_few_rows_are_multiplied_by_a_kernel_of_integers_on_gpus(zero: int | None, rows: int) -> None:
    _, graph = quantized_products(rows, zero=zero)
    target = Target.of(caps_of("nvidia"))
    plan = make_plan(run_passes(graph, target)[0], target)
    templates = [dispatch.spec.template for dispatch in plan.dispatches]
    # Both products read the same integers, or are one.
    assert templates.count("elementwise") == 1
    assert "integer_product" in templates
    assert not any(template.startswith("matmul") for template in templates)


@pytest.mark.parametrize("zero", [None, 3])
def test_integer_products_keep_every_bit(device: Device, zero: int | None) -> None:
    for rows in (1, 8):
        s, graph = quantized_products(rows, zero=zero)
        target = Target.of(as_hardware(device.caps))
        before = run_graph(device, graph, s.feeds)
        after, _ = run_passes(graph, target)
        assert_same(run_graph(device, after, s.feeds), before)


@pytest.mark.parametrize(
    ("reason", "rows", "options"),
    [
        ("many rows", 9, {}),
        ("sums that are no whole steps", 2, {"K": 40}),
        ("weights of more than 8 bits", 2, {"most": 300}),
        ("sums that float32 does not hold", 2, {"K": 4096}),
    ],
)
def test_other_products_stay_as_they_are(reason: str, rows: int, options: dict[str, int]) -> None:
    _, graph = quantized_products(rows, **options)
    after, _ = run_passes(graph, Target.of(caps_of("nvidia")))
    assert "quantizeLinear" not in [node.op for node in after.nodes], reason
    assert "quantizeCentered" in [node.op for node in after.nodes]


def test_software_adapters_multiply_floats(device: Device) -> None:
    _, graph = quantized_products(2)
    assert "quantizeCentered" in [node.op for node in run_passes(graph, device.target)[0].nodes]
