"""Buffers of a step, and batches of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
from webnn_wgpu import train

INPUTS: dict[str, Any] = {"x": {"dataType": "float32", "shape": [4, 2]}}


def forward(b: wn.MLGraphBuilder, parameters: Any, inputs: Any) -> dict[str, wn.MLOperand]:
    """The mean of a product, and a buffer that adds up the means of the rows."""
    mean = b.reduce_mean(inputs["x"], axes=[0])
    return {"loss": b.reduce_mean(b.matmul(inputs["x"], parameters["w"])), "sum": b.add(inputs["sum"], mean)}


def _step(context: wn.MLContext, **options: Any) -> train.Step:
    parameters, buffers = {"w": np.ones((2, 1), np.float32)}, {"sum": np.float32([1, 2])}
    return train.Step(context, forward, parameters, train.SGD(learning_rate=0.5), inputs=INPUTS, buffers=buffers, **options)


def test_buffers_change_with_each_step(context: wn.MLContext, tmp_path: Path) -> None:
    x = np.float32([[1, 0], [0, 0], [0, 0], [3, 4]])
    with _step(context) as step:
        assert list(step({"x": x})) == ["loss"]
        assert step.buffers()["sum"].tolist() == [2, 3]
        step({"x": x})
        step.save(tmp_path / "step.safetensors")
        after = step.buffers()["sum"].tolist()
        step({"x": x})
    assert after == [3, 4]
    with _step(context) as step:
        step.load(tmp_path / "step.safetensors")
        assert step.buffers()["sum"].tolist() == after


def test_batches_of_any_size_share_weights_and_buffers(context: wn.MLContext) -> None:
    x = np.float32([[1, 0], [0, 0], [0, 0], [3, 4], [2, 2]])
    with _step(context, any_batch=True) as step:
        assert step({"x": x[:4]})["loss"] == pytest.approx(2)
        # The gradient is the mean of the rows, [1, 1].
        assert step.parameters()["w"].tolist() == [[0.5], [0.5]]
        assert step({"x": x[4:]})["loss"] == pytest.approx(2)
        assert step.parameters()["w"].tolist() == [[-0.5], [-0.5]]
        assert step.buffers()["sum"].tolist() == [4, 5]
        assert step.steps == 2
        for other in (np.zeros((4, 3), np.float32), np.zeros((2, 4), np.float32)):
            with pytest.raises(wn.MLTypeError, match=r"must have its declared shape; .* allowed: \[any size, 2\]$"):
                step({"x": other})
    with _step(context) as step, pytest.raises(wn.MLTypeError, match=r"takes batches of other sizes$"):
        step({"x": x})


def test_buffers_are_checked(context: wn.MLContext) -> None:
    with pytest.raises(wn.MLTypeError, match="buffers must have names of their own"):
        train.Step(context, forward, {"w": np.ones((2, 1))}, train.SGD(), inputs=INPUTS, buffers={"w": np.ones(2)})

    def wrong(b: wn.MLGraphBuilder, parameters: Any, inputs: Any) -> dict[str, wn.MLOperand]:
        return {**forward(b, parameters, inputs), "sum": inputs["x"]}

    with pytest.raises(wn.MLTypeError, match="buffers must keep their data type and shape"):
        train.Step(context, wrong, {"w": np.ones((2, 1))}, train.SGD(), inputs=INPUTS, buffers={"sum": np.ones(2)})
