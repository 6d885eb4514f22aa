"""Programs that train."""

from collections.abc import Mapping
from typing import assert_type

import numpy as np

import webnn_wgpu as wn
from webnn_wgpu import train
from webnn_wgpu.typing import MLOperandDescriptor

Operands = Mapping[str, wn.MLOperand]


def loss(b: wn.MLGraphBuilder, parameters: Operands, inputs: Operands) -> wn.MLOperand:
    return b.reduce_mean(b.matmul(inputs["x"], parameters["w"]))


def with_metrics(b: wn.MLGraphBuilder, parameters: Operands, inputs: Operands) -> dict[str, wn.MLOperand]:
    return {"loss": loss(b, parameters, inputs), "size": b.reduce_l2(parameters["w"])}


def program(context: wn.MLContext) -> None:
    inputs: dict[str, MLOperandDescriptor] = {"x": {"dataType": "float32", "shape": [4, 2]}}
    optimizer: train.Optimizer = train.SGD(learning_rate=train.CosineSchedule(initial=0.1, steps=10), momentum=0.9)
    with train.Step(context, with_metrics, {"w": np.ones((2, 3))}, optimizer, inputs=inputs) as step:
        assert_type(step, train.Step)
        assert_type(step({"x": np.ones((4, 2), np.float32)}), dict[str, float])
        step.set_parameters({"w": np.zeros((2, 3))})
        assert step.parameters()["w"].shape == (2, 3)
    weights = {"w": np.ones((2, 3))}
    other = wn.train.Step(context, loss, weights, train.Adam(), inputs={"x": {"dataType": "float32", "shape": [4, 2]}})
    assert_type(other.steps, int)
    other.destroy()
