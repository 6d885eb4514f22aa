"""Programs that train."""

from collections.abc import Mapping

import numpy as np

import webnn_wgpu as wn
from webnn_wgpu import train
from webnn_wgpu.typing import MLOperandDescriptor

Operands = Mapping[str, wn.MLOperand]


def loss(b: wn.MLGraphBuilder, parameters: Operands, inputs: Operands) -> wn.MLOperand:
    return b.reduce_mean(b.matmul(inputs["x"], parameters["w"]))


def with_metrics(b: wn.MLGraphBuilder, parameters: Operands, inputs: Operands) -> dict[str, wn.MLOperand]:
    return {"loss": loss(b, parameters, inputs), "size": b.reduce_l2(parameters["w"])}


inputs: dict[str, MLOperandDescriptor] = {"x": {"dataType": "float32", "shape": [4, 2]}}
optimizer: train.Optimizer = train.SGD(learning_rate=train.CosineSchedule(initial=0.1, steps=10), momentum=0.9)
context = wn.ml.create_context()
with train.Step(context, with_metrics, {"w": np.ones((2, 3))}, optimizer, inputs=inputs) as step:
    results: dict[str, float] = step({"x": np.ones((4, 2), np.float32)})
    weights = step.parameters()["w"] + results["loss"]
    step.set_parameters({"w": [[1.0, 2, 3], [4, 5, 6]]})
step = wn.train.Step(
    context, loss, {"w": np.ones((2, 3))}, wn.train.Adam(), inputs={"x": {"dataType": "float32", "shape": [4, 2]}}
)
step.save("training.safetensors")
