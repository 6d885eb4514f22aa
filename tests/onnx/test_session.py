"""`webnn_wgpu.onnx`: programs written for onnxruntime, and the parts of its interface."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import webnn_wgpu as wn
import webnn_wgpu.onnx as ort
from examples.models import mlp, quantized

PROGRAM = """
import numpy as np
import onnxruntime as ort

options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
options.intra_op_num_threads = 1
options.log_severity_level = 3
options.add_free_dimension_override_by_name("batch", 2)
session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
name = session.get_inputs()[0].name
shapes = [(i.name, i.shape, i.type) for i in (*session.get_inputs(), *session.get_outputs())]
x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)
outputs = session.run(None, {name: x})
named = session.run([session.get_outputs()[0].name], {name: x}, ort.RunOptions())
binding = session.io_binding()
binding.bind_cpu_input(name, x)
binding.bind_output(session.get_outputs()[0].name)
session.run_with_iobinding(binding)
bound = binding.copy_outputs_to_cpu()
meta = session.get_modelmeta()
about = (meta.producer_name, meta.graph_name, meta.domain, meta.description, meta.version, meta.custom_metadata_map)
value = ort.OrtValue.ortvalue_from_numpy(x)
kinds = (value.shape(), value.data_type(), "CPUExecutionProvider" in ort.get_available_providers())
try:
    session.run(None, {})
except Exception as error:
    refused = isinstance(error, ValueError)
"""
"""Written for onnxruntime; not a line of it is about this package."""


def run_program(module: str, path: Path) -> dict[str, Any]:
    importlib.import_module(module)
    names: dict[str, Any] = {"path": str(path)}
    exec(PROGRAM.replace("import onnxruntime as ort", f"import {module} as ort"), names)
    return names


def test_a_program_for_onnxruntime_runs_with_another_import(tmp_path: Path) -> None:
    model = quantized()
    model.domain, model.model_version, model.doc_string = "test", 3, "two layers"
    model.metadata_props.add(key="who", value="me")
    path = tmp_path / "quantized.onnx"
    onnx.save(model, path)
    theirs, ours = run_program("onnxruntime", path), run_program("webnn_wgpu.onnx", path)
    for name in ("outputs", "named", "bound"):
        (expected,), (result,) = theirs[name], ours[name]
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
        assert result.dtype == expected.dtype
    for name in ("shapes", "about", "kinds", "refused"):
        assert ours[name] == theirs[name], name


def test_bytes_and_options(context: wn.MLContext) -> None:
    session = ort.InferenceSession(
        mlp().SerializeToString(), context=context, providers=[("CUDAExecutionProvider", {"device_id": 0})]
    )
    assert session.get_providers() == ["WebGpuExecutionProvider", "CPUExecutionProvider"]
    assert session.get_inputs() == [ort.NodeArg("x", ["N", 4], "tensor(float)")]
    assert session.get_overridable_initializers() == []
    assert session.get_session_options().entries == {}
    with pytest.raises(wn.MLTypeError, match="not an execution provider"):
        ort.InferenceSession(mlp().SerializeToString(), context=context, providers=["cpu"])


def test_the_host_can_be_refused(context: wn.MLContext) -> None:
    node = onnx.helper.make_node("NonZero", ["x"], ["y"])
    graph = onnx.helper.make_graph(
        [node],
        "nonzero",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [3])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.INT64, [1, None])],
    )
    data = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
    options = ort.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    with pytest.raises(wn.NotSupportedError, match="NonZero"):
        ort.InferenceSession(data, options, context=context)
    session = ort.InferenceSession(data, context=context)
    np.testing.assert_array_equal(session.run(None, {"x": np.float32([0, 2, 3])})[0], [[1, 2]])


def test_overrides_pin_dimensions(context: wn.MLContext) -> None:
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("N", 2)
    session = ort.InferenceSession(mlp().SerializeToString(), options, context=context)
    assert session.get_inputs()[0].shape == [2, 4]
    assert session.model.compiled == 1
    with pytest.raises(ValueError, match="with N = 2"):
        session.run(None, {"x": np.zeros((3, 4), np.float32)})
    with pytest.raises(wn.MLTypeError, match="N = -1"):
        options.add_free_dimension_override_by_name("N", -1)


def test_run_async_calls_back(context: wn.MLContext) -> None:
    session = ort.InferenceSession(mlp().SerializeToString(), context=context)
    x = np.ones((1, 4), np.float32)
    found: list[Any] = []
    for feed in ({"x": x}, {"z": x}):
        done = threading.Event()

        def callback(*given: Any, done: threading.Event = done) -> None:
            found.append(given)
            done.set()

        session.run_async(["y"], feed, callback, "mine")
        assert done.wait(60)
    np.testing.assert_array_equal(found[0][0][0], session.run(["y"], {"x": x})[0])
    assert found[0][1:] == ("mine", "")
    assert found[1][0] == []
    assert "unknown input" in found[1][2]


def test_values_of_ones_own_are_filled(context: wn.MLContext) -> None:
    session = ort.InferenceSession(mlp().SerializeToString(), context=context)
    x = ort.OrtValue.ortvalue_from_numpy(np.ones((1, 4), np.float32))
    y = ort.OrtValue.ortvalue_from_shape_and_type([1, 3], np.float32)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_ortvalue_output("y", y)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(y.numpy(), session.run_with_ort_values(["y"], {"x": x})[0].numpy())
    assert binding.get_outputs() == [y]
    binding.clear_binding_outputs()
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_shape_and_type([1, 4], np.float32))
    with pytest.raises(wn.MLTypeError, match="must be like the value"):
        session.run_with_iobinding(binding)


def test_without_the_onnx_package_the_import_says_what_to_install(tmp_path: Path, repository: Path) -> None:
    program = "import sys; sys.modules['onnx'] = None\nimport webnn_wgpu.onnx"
    done = subprocess.run([sys.executable, "-c", program], cwd=repository, capture_output=True, text=True, check=False)
    assert re.search(
        r"ModuleNotFoundError: webnn_wgpu.onnx needs the package 'onnx': pip install 'webnn-wgpu\[onnx\]'", done.stderr
    )
