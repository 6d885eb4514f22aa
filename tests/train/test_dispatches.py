"""Training steps take few dispatches beside their forward pass."""

from __future__ import annotations

import pytest

from tests.support import Sketch
from tests.train.dispatches import plans
from tests.train.networks import LAYERS
from tests.unit.plans import caps_of
from tests.unit.test_gradient_passes import added
from webnn_wgpu import train
from webnn_wgpu.costs import Target
from webnn_wgpu.kernels.templates import render
from webnn_wgpu.passes.added_products import merge_added_products


@pytest.mark.parametrize("device", ["amd", "nvidia"])
def test_a_step_of_a_transformer_takes_few_dispatches(device: str) -> None:
    for optimizer in (train.SGD(), train.AdamW()):
        forward, step = plans(device, optimizer)
        assert len(step.dispatches) <= 3.5 * len(forward.dispatches)


def test_attention_is_two_kernels_backward() -> None:
    _, step = plans("amd", train.SGD())
    templates = [d.spec.template for d in step.dispatches]
    assert templates.count("attention_gradient") == 2 * templates.count("attention.tiled") == 8


@pytest.mark.parametrize(("device", "sums"), [("amd", LAYERS), ("nvidia", LAYERS), ("apple", 0), ("lavapipe", 0)])
def test_large_gpus_compute_the_gradients_of_queries_keys_and_values_together(device: str, sums: int) -> None:
    _, step = plans(device, train.SGD())
    parts = [node for node in step.graph.nodes if node.op == "reduceSum" and step.graph.type(node.operands[0]).rank == 3]
    assert sum(step.graph.type(node.operands[0]).shape[0] == 3 for node in parts) == sums


def test_results_of_float16_are_not_rounded_before_they_are_added_up() -> None:
    # Graphs of the tests of passes become golden plans, where kernels of float16 would lower the budgets of those of float32.
    for data_type, count in (("float32", 1), ("float16", 0)):
        after = merge_added_products(added(Sketch(), data_type=data_type), Target.of(caps_of("nvidia")))
        assert [node.op for node in after.nodes].count("reduceSum") == count


@pytest.mark.parametrize("device", ["amd", "lavapipe"])
def test_products_store_gelu_and_its_derivative(device: str) -> None:
    _, step = plans(device, train.SGD())
    texts = [render(d.spec) for d in step.dispatches]
    using = [d for d, text in zip(step.dispatches, texts, strict=True) if "= gelu_f32(" in text]
    slopes = [d for d, text in zip(step.dispatches, texts, strict=True) if "= gelu_slope(" in text]
    assert using == slopes
    assert len(using) == LAYERS
    assert {d.spec.template.partition(".")[0] for d in using} == {"matmul"}
    assert not any("erf_f32" in text for text in texts)


@pytest.mark.parametrize("device", ["amd", "lavapipe"])
@pytest.mark.parametrize("optimizer", [train.Adam(), train.AdamW(), train.SGD(momentum=0.9)])
def test_one_kernel_updates_parameters_and_states(device: str, optimizer: train.Optimizer) -> None:
    _, step = plans(device, optimizer)
    *before, last = step.dispatches
    arenas = {b.key for b in last.bindings if b.kind == "input"}
    assert last.spec.template == "elementwise"
    assert sum(b.access == "write" for b in last.spec.bindings) == 1 + len(optimizer.slots)
    assert not any(
        b.access == "write" and r.key in arenas for d in before for b, r in zip(d.spec.bindings, d.bindings, strict=True)
    )


def test_software_adapters_keep_the_weights_of_attention_for_its_gradient() -> None:
    forward, step = plans("lavapipe", train.SGD())
    templates = [d.spec.template for d in step.dispatches]
    assert templates.count("attention_weights") == templates.count("weights_gradient") == LAYERS
    assert templates.count("softmax") == 1  # that of the loss
    assert "attention.subgroup" not in templates
    assert [d.spec.template for d in forward.dispatches].count("attention.subgroup") == LAYERS


def test_products_of_software_adapters_read_and_write_heads_where_they_are() -> None:
    _, step = plans("lavapipe", train.SGD())
    products = [d.spec for d in step.dispatches if d.spec.template == "matmul.subgroup"]
    assert sum("output" in spec.param("spread") for spec in products) == 4 * LAYERS
    assert not any(d.spec.template == "strided" for d in step.dispatches)
