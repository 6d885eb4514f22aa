"""pywebnn's methods for files and for looking at graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest

import webnn_wgpu as webnn
from tests.compat.programs import doubler

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore:no hardware adapter was found:RuntimeWarning")


def test_graphs_become_onnx_models(context: webnn.MLContext, tmp_path: Path) -> None:
    context.convert_to_onnx(doubler(context, [3]), tmp_path / "model")  # whatever the suffix
    onnx.checker.check_model(onnx.load(tmp_path / "model"), full_check=True)


def test_graphs_are_saved_and_loaded(context: webnn.MLContext, tmp_path: Path) -> None:
    doubler(context, [3]).save(str(tmp_path / "model.webnn"), quantized=True)
    assert "@quantized" in (tmp_path / "model.webnn").read_text()
    loaded = webnn.MLGraph.load(str(tmp_path / "model.webnn"), manifest_path=None, weights_path=None)
    assert loaded.get_input_names() == ["x"]
    (tmp_path / "broken.webnn").write_text("webnn_graph {")
    with pytest.raises(OSError, match="grammar"):
        webnn.MLGraph.load(tmp_path / "broken.webnn")


def test_looking_at_operands(context: webnn.MLContext) -> None:
    builder = context.create_graph_builder()
    x = builder.input("x", [2, 3], "float32")
    graph = builder.build({"y": builder.relu(builder.add(x, builder.constant(2.0)))})
    assert graph.debug_operand(0) == "Operand[0]: name=x, kind=Input, type=float32, shape=[2, 3]"
    assert graph.debug_operand(1) == "Operand[1]: name=, kind=Constant, type=float32, shape=[]"
    assert graph.debugOperand(3) == "Operand[3]: name=y, kind=Output, type=float32, shape=[2, 3]"
    assert graph.debug_operand(99) == "Operand[99]: not found"
    assert (graph.count_empty_shapes(), graph.count_scalar_constants()) == (1, 1)
    assert graph.count_unknown_shapes() == graph.count_unknown_shapes_excluding_scalar_ops() == 0
    assert graph.debug_unknown_shapes() == graph.debug_unknown_shapes_structured() == []


def test_dispatches_of_all_names(context: webnn.MLContext) -> None:
    graph = doubler(context, [3])
    x, y = (context.create_host_tensor([3], "float32") for _ in range(2))
    context.write_tensor(x, np.float32([1, 2, 3]))
    for dispatch in (context.dispatch_with_host_tensors, context.dispatch_with_device_tensors):
        dispatch(graph, {"x": x}, {"y": y})
        assert context.read_tensor(y).tolist() == [2, 4, 6]
    assert {"backend", "device", "adapter"} <= context.backend_info().keys()
