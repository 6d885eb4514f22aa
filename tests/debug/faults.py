"""Faults planted in kernels, and the networks they are planted in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

import webnn_wgpu as wn
from examples import models
from webnn_wgpu.frontends.timing import watched

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

RNG = np.random.default_rng(3)

FEEDS: dict[str, dict[str, Any]] = {
    "mlp": {"x": RNG.standard_normal((2, 4)).astype(np.float32)},
    "mobilenet_v2": {"image": RNG.standard_normal((1, 3, 64, 64)).astype(np.float32)},
    "bert": {"input_ids": RNG.integers(0, 256, (2, 7)), "attention_mask": np.int64([[1] * 7, [1] * 4 + [0] * 3])},
    "gpt": {
        "input_ids": RNG.integers(0, 64, (1, 5)),
        "attention_mask": np.ones((1, 8), np.int64),
        **{
            f"past.{layer}.{kind}": RNG.standard_normal((1, 4, 3, 8)).astype(np.float32)
            for layer in range(2)
            for kind in ("key", "value")
        },
    },
    "detector": {"image": RNG.standard_normal((1, 3, 32, 32)).astype(np.float32)},
    "quantized_8bit": {"x": RNG.standard_normal((3, 32)).astype(np.float32)},
    "quantized_4bit": {"x": RNG.standard_normal((3, 32)).astype(np.float32)},
}


def graph_of(name: str, context: wn.MLContext) -> tuple[wn.Model, wn.MLGraph, Mapping[str, Any]]:
    """Return an example's model, the graph of its first stage, and what that is given."""
    model = wn.load_onnx(models.MODELS[name](), context, fallback="host")
    with watched() as watch:
        model.run(FEEDS[name])
    graph, feeds = next(iter(watch.inputs.items()))
    return model, graph, feeds


def wrong_index(wgsl: str) -> str:
    """Return a kernel that stores every quad, or element, in its neighbor's place."""
    broken = re.sub(r"\boutput\[(\w+)\] =", r"output[\1 ^ 1u] =", wgsl)
    assert broken != wgsl
    return broken
