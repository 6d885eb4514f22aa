"""Training steps take few dispatches beside their forward pass."""

from __future__ import annotations

import pytest

from tests.train.dispatches import plans
from webnn_wgpu import train


@pytest.mark.parametrize("device", ["amd", "nvidia"])
def test_a_step_of_a_transformer_takes_few_dispatches(device: str) -> None:
    for optimizer in (train.SGD(), train.AdamW()):
        forward, step = plans(device, optimizer)
        assert len(step.dispatches) <= 3.5 * len(forward.dispatches)


def test_attention_is_two_kernels_backward() -> None:
    _, step = plans("amd", train.SGD())
    templates = [d.spec.template for d in step.dispatches]
    assert templates.count("attention_gradient") == 2 * templates.count("attention.tiled") == 8
