"""`load_onnx`: the default context, which it opens while it imports what reads models, and what it cannot run."""

import numpy as np
import onnx
import pytest

import webnn_wgpu as wn
from examples.models import mlp


@pytest.fixture
def opened(monkeypatch):
    """All contexts that are made without a device."""
    contexts: list[wn.MLContext] = []
    create_context = wn.ML.create_context

    def recorded(self, *args, **options):
        contexts.append(create_context(self, *args, **options))
        return contexts[-1]

    monkeypatch.setattr(wn.ML, "create_context", recorded)
    return contexts


def test_a_model_has_the_context_that_was_opened_for_it(opened):
    with wn.load_onnx(mlp()) as model:
        assert opened == [model.context]
        assert not model.context.lost.done()


def test_a_given_context_is_the_only_one(opened, context):
    with wn.load_onnx(mlp(), context) as model:
        assert model.context is context
    assert opened == []


def test_a_context_is_destroyed_where_there_is_no_model_for_it(opened, tmp_path):
    with pytest.raises(FileNotFoundError):
        wn.load_onnx(tmp_path / "missing.onnx")
    (only,) = opened
    assert only.lost.done()


def test_without_an_adapter_that_is_what_is_said(monkeypatch):
    def create_context(self, *args, **options):
        raise wn.NotSupportedError("no WebGPU adapter was found", operator="create_context")

    monkeypatch.setattr(wn.ML, "create_context", create_context)
    with pytest.raises(wn.NotSupportedError, match="no WebGPU adapter was found"):
        wn.load_onnx(mlp())


def test_an_input_without_elements_is_the_reason_where_only_the_device_knows_the_operator(context):
    gelu = onnx.helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", 4]) for name in ("x", "y")]
    graph = onnx.helper.make_graph([gelu], "g", values[:1], values[1:])
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    with wn.load_onnx(onnx.helper.make_model(graph, opset_imports=opsets), context) as model:
        assert model.run({"x": np.ones((1, 4), np.float32)})["y"].shape == (1, 4)
        with pytest.raises(
            wn.NotSupportedError, match=r"Gelu.*: an input has no elements, and onnx has no operator com\.microsoft\.Gelu$"
        ):
            model.run({"x": np.ones((0, 4), np.float32)})
