"""Small ONNX models for tests, and the comparison of what they give with what onnxruntime or onnx itself gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import webnn_wgpu as wn

MICROSOFT = "com.microsoft"
IR_VERSION = 10
TOLERANCES = {"float16": 2e-3, "bfloat16": 1.6e-2}


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, tuple[Any, Sequence[Any]]],
    outputs: Sequence[str],
    initializers: Mapping[str, np.ndarray] | None = None,
    opset: int = 21,
    **options: Any,
) -> onnx.ModelProto:
    """Return a model of nodes; inputs are name -> (numpy type, sizes), outputs have no declared type but float32."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.dtype(t)), s) for n, (t, s) in inputs.items()],
        [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in outputs],
        [numpy_helper.from_array(a, n) for n, a in (initializers or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10, **options)


def parsed(text: str, opset: int = 21) -> onnx.ModelProto:
    """Return the model of a graph in ONNX's text form."""
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> {text}')


def node_model(
    op: str,
    inputs: Mapping[str, Any],
    attributes: Mapping[str, Any] | None = None,
    opset: int = 21,
    *,
    constants: Mapping[str, Any] | None = None,
    outputs: int | Sequence[int] = 1,
    domain: str = "",
    order: Sequence[str] | None = None,
) -> onnx.ModelProto:
    """Return a model of one node.

    Args:
        op: its operator.
        inputs: names and arrays (of which shape and type are taken) of the model's inputs.
        attributes: its attributes.
        opset: version of ai.onnx.
        constants: names and arrays of its initializers.
        outputs: how many outputs it has, or which ones are asked for.
        domain: its domain.
        order: the names of its inputs in order, "" where one is left out; `inputs`, then `constants` where absent.
    """
    constants = constants or {}
    wanted = range(outputs) if isinstance(outputs, int) else outputs
    names = [f"y{i}" if i in wanted else "" for i in range(max(wanted) + 1)]
    node = helper.make_node(op, list(order or (*inputs, *constants)), names, domain=domain, **(attributes or {}))
    graph = helper.make_graph(
        [node],
        op,
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.asarray(a).dtype), np.asarray(a).shape)
            for n, a in inputs.items()
        ],
        [onnx.ValueInfoProto(name=n) for n in names if n],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )
    imports = [helper.make_opsetid("", opset)]
    if domain:
        imports.append(helper.make_opsetid(domain, 1))
    return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)


def with_onnxruntime(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[np.ndarray]:
    """Return what onnxruntime's CPU provider gives."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return list(session.run(None, dict(feeds)))


def with_reference(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[np.ndarray]:
    """Return what onnx's reference implementation gives."""
    with np.errstate(all="ignore"):
        return list(ReferenceEvaluator(model).run(None, dict(feeds)))


def check(
    model: onnx.ModelProto,
    feeds: Mapping[str, Any],
    context: wn.MLContext,
    *,
    expected: Sequence[Any] | None = None,
    oracle: str = "onnxruntime",
    device_only: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
) -> list[np.ndarray]:
    """Run a model and compare its outputs with an oracle's.

    Args:
        model: the model.
        feeds: its inputs by name.
        context: where it runs.
        expected: what it should give, instead of asking an oracle.
        oracle: "onnxruntime" or "reference".
        device_only: whether every node must run on the device.
        rtol: relative tolerance of floats, by type where absent; integers must be equal.
        atol: absolute tolerance of floats; `rtol` where absent.
    """
    if expected is None:
        expected = (with_onnxruntime if oracle == "onnxruntime" else with_reference)(model, feeds)
    with wn.load_onnx(model, context, fallback="error" if device_only else "host") as loaded:
        results = loaded.run(dict(feeds))
        got = [np.asarray(results[o.name]) for o in model.graph.output]
    for output, a, b in zip(model.graph.output, got, map(np.asarray, expected), strict=True):
        assert a.shape == b.shape, f"{output.name}: shape {a.shape} instead of {b.shape}"
        assert a.dtype == b.dtype, f"{output.name}: {a.dtype} instead of {b.dtype}"
        if b.dtype.kind in "iub" or b.dtype in (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2):
            np.testing.assert_array_equal(a, b, err_msg=output.name)
            continue
        near = TOLERANCES.get(b.dtype.name, 1e-4) if rtol is None else rtol
        far = near if atol is None else atol
        np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), near, far, err_msg=output.name)
    return got
