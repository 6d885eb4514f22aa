"""Losses against onnx's reference implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn

from .agreement import agree, values


@pytest.mark.parametrize("op", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("ignored", [None, 2, -100])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(4, 5), (2, 5, 3, 2)])
def test_loss(
    context: wn.MLContext, op: str, reduction: str, ignored: int | None, weighted: bool, shape: tuple[int, ...]
) -> None:
    targets = np.random.default_rng(1).integers(0, shape[1], (shape[0], *shape[2:]))
    attributes: dict[str, Any] = {"reduction": reduction}
    if ignored is not None:
        attributes["ignore_index"] = ignored
        targets.reshape(-1)[::3] = ignored
    inputs = {"x": values("float32", shape), "t": targets}
    if weighted:
        inputs["w"] = np.random.default_rng(2).uniform(0.5, 2, shape[1]).astype(np.float32)
    outputs = 2 if op == "SoftmaxCrossEntropyLoss" else 1
    agree(context, op, inputs, attributes, opset=13, oracle="reference", outputs=outputs)
