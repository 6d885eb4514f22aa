"""Where the specification's draft forbids what pywebnn does; docs/coming-from/pywebnn.md lists the same."""

from __future__ import annotations

import numpy as np
import pytest

import webnn_wgpu as webnn
from tests.compat.programs import X, doubler

pytestmark = pytest.mark.filterwarnings("ignore:no hardware adapter was found:RuntimeWarning")


def test_what_there_is_no_use_for_is_refused_in_words(context: webnn.MLContext) -> None:
    graph = doubler(context, [3])
    with pytest.raises(webnn.NotSupportedError, match=r"unknown kind of file; got '.tflite'"):
        graph.save("model.tflite")
    with pytest.raises(webnn.NotSupportedError, match="Core ML"):
        context.execute_with_coreml(graph, {}, {})


def test_a_builder_builds_once_but_under_the_profile_of_2024(context: webnn.MLContext) -> None:
    builder = context.create_graph_builder()
    builder.build({"y": builder.relu(builder.input("x", [2], "float32"))})
    with pytest.raises(webnn.InvalidStateError, match="has built"):
        builder.input("z", [2], "float32")
    builder = context.create_graph_builder(profile="2024")
    for name in ("x", "z"):
        graph = builder.build({"y": builder.relu(builder.input(name, [2], "float32"))})
        assert graph.get_input_names() == [name]


def test_data_types_are_not_converted(context: webnn.MLContext) -> None:
    graph = doubler(context, [2, 3])
    with pytest.raises(ValueError, match="must have the tensor's data type; got float64"):
        context.compute(graph, {"x": X.astype("float64")})
    with pytest.raises(ValueError, match="must have the tensor's data type; got int64"):
        context.write_tensor(context.create_host_tensor([2, 3], "float32"), np.zeros((2, 3), np.int64))
    assert context.compute(graph, {"x": X})["y"].dtype == np.float32
    builder = context.create_graph_builder()
    x = builder.input("x", [2, 3], "float32")
    for operator in (builder.logical_and, builder.logical_or, builder.logical_xor):
        with pytest.raises(ValueError, match="allowed: uint8"):
            operator(x, x)
    with pytest.raises(ValueError, match="allowed: uint8"):
        builder.logical_not(x)
    with pytest.raises(ValueError, match="data type"):
        builder.sqrt(builder.cast(x, "int32"))
    scale, point = builder.constant(np.float32([0.5])), builder.constant(np.int8([0]))
    with pytest.raises(ValueError, match="rank"):
        builder.quantize_linear(x, scale, point)
    with pytest.raises(ValueError, match="constants alone"):
        builder.input("packed", [4], "int4")
    assert builder.arg_max(x, 1).data_type == builder.arg_min(x, 1).data_type == "int32"
    assert builder.constant(5).data_type == "float32"


def test_the_module_pywebnn_has_the_rules_of_pywebnn() -> None:
    import webnn_wgpu.pywebnn as rules

    with rules.ML().create_context(backend="reference") as context:
        builder = context.create_graph_builder()
        x, other = (builder.input(name, [2, 3], "float32") for name in ("x", "other"))
        scale, point = builder.constant(np.array(0.5, np.float32)), builder.constant(np.array(0, np.int8))
        results = {
            "largest": builder.arg_max(x, axis=0),
            "least": builder.arg_min(x, axis=1, output_data_type="int32"),
            "both": builder.logical_and(x, other),
            "not": builder.logical_not(x),
            "quantized": builder.dequantize_linear(builder.quantize_linear(x, scale, point), scale, point),
        }
        feeds = {"x": X, "other": np.float32([[0, 1, 1], [1, 0, 1]])}
        computed = context.compute(builder.build(results), feeds)
        assert computed["largest"].dtype == np.int64
        assert computed["least"].dtype == np.int32
        assert computed["both"].tolist() == [[0, 1, 0], [1, 0, 1]]
        assert computed["not"].tolist() == [[0, 0, 1], [0, 0, 0]]
        np.testing.assert_array_equal(computed["quantized"], X)
        graph = builder.build({"y": builder.relu(x)})  # a second graph
        assert context.compute(graph, {"x": X})["y"].min() == 0
        assert rules.MLGraph is webnn.MLGraph
        assert rules.MLGraphBuilder(context).constant([0.0]).shape == [1]


def test_names_and_outputs(context: webnn.MLContext) -> None:
    builder = context.create_graph_builder()
    x = builder.input("x", [2], "float32")
    builder.abs(builder.input("unused", [2], "float32"))
    with pytest.raises(ValueError, match="unique"):
        builder.input("x", [2], "float32")
    with pytest.raises(ValueError, match="identity"):
        builder.build({"y": x})
    graph = builder.build({"y": builder.relu(x)})
    assert graph.get_input_names() == ["x"]
    assert (graph.operand_count, graph.operation_count) == (2, 1)
    with pytest.raises(ValueError, match="no input of this name"):
        context.compute(graph, {"x": np.zeros(2, np.float32), "unused": np.zeros(2, np.float32)})


def test_tensors_by_the_rules_of_the_draft(context: webnn.MLContext) -> None:
    graph = doubler(context, [3])
    tensor, other = (context.create_host_tensor([3], "float32") for _ in range(2))
    with pytest.raises(ValueError, match="must be different tensors"):
        context.dispatch(graph, {"x": tensor}, {"y": tensor})
    with pytest.raises(ValueError, match="is missing"):
        context.dispatch(graph, {"x": tensor}, {})
    context.write_tensor(tensor, np.float32([[1], [2], [3]]))  # the number of elements counts, not the shape
    hidden = context.create_tensor([3], "float32")  # neither readable nor writable, yet a graph may use it
    context.dispatch(graph, {"x": tensor}, {"y": hidden})
    context.dispatch(graph, {"x": hidden}, {"y": other})
    assert context.read_tensor(other).tolist() == [4, 8, 12]
    tensor.destroy()
    tensor.destroy()  # the second time does nothing


def test_contradictions_about_the_device() -> None:
    for options in ({"accelerated": True, "device_type": "cpu"}, {"accelerated": False, "device_type": "gpu"}):
        with pytest.raises(ValueError, match="contradict"):
            webnn.ML().create_context(**options)
    with pytest.raises(ValueError, match="Invalid device_type"):
        webnn.ML().create_context(device_type="npu")
