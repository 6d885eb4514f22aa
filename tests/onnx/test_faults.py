"""Models that do not fit ONNX's rules are refused with a reason; faults of the package are not taken for such models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import webnn_wgpu as wn
from tests.onnx.models import MICROSOFT, model_of, node_model, parsed
from webnn_wgpu.frontends.onnx import host, reading
from webnn_wgpu.frontends.onnx.call import NodeCall
from webnn_wgpu.frontends.onnx.operators import _registry

X = np.ones((2, 3), np.float32)
IMAGE = np.ones((1, 4, 6, 6), np.float32)
RELU = "g (float[2] x) => (float[2] y) { [first] h = Relu (x) [second] y = Neg (h) }"
UNIQUE = "g (float[N] x) => (float[M] y) { [only] y = Unique (x) }"


# faults of the package --------------------------------------------------------------------------------------------------


def broken(error: Exception) -> Callable[..., Any]:
    """Return a function with a fault."""

    def fail(*_arguments: Any) -> Any:
        raise error

    return fail


def notes(error: BaseException) -> str:
    return "\n".join(getattr(error, "__notes__", []))


@pytest.fixture
def faulty_relu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler with a fault."""
    handler = _registry.Handler(lower=broken(ZeroDivisionError("a fault of the handler")))
    monkeypatch.setitem(_registry._HANDLERS, ("", "Relu"), [handler])


@pytest.mark.usefixtures("faulty_relu")
@pytest.mark.parametrize("fallback", ["host", "warn", "error"])
def test_a_fault_of_a_handler_stays_what_it_is(context: wn.MLContext, fallback: Any) -> None:
    with pytest.raises(ZeroDivisionError, match="a fault of the handler") as raised:
        wn.load_onnx(parsed(RELU), context, fallback=fallback)
    assert str(raised.value) == "a fault of the handler"
    assert notes(raised.value) == "lowering node 'first' (Relu, ai.onnx opset 21) of g"


@pytest.mark.usefixtures("faulty_relu")
def test_analysis_does_not_take_a_fault_for_an_unsupported_operator(context: wn.MLContext) -> None:
    with pytest.raises(ZeroDivisionError):
        wn.analyze(parsed(RELU), context)


def test_a_fault_on_the_host_stays_what_it_is(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    model = wn.load_onnx(parsed(UNIQUE), context, fallback="host")
    monkeypatch.setitem(host._OWN, "Unique", broken(KeyError("a fault")))  # pyright: ignore[reportArgumentType]
    with pytest.raises(KeyError, match="a fault") as raised:
        model.run({"x": np.float32([1, 2, 1])})
    assert notes(raised.value) == "running node 'only' (Unique, ai.onnx opset 21) of g"


def test_a_fault_of_the_reader_is_no_broken_file(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_check", broken(TypeError("a fault of the reader")))
    with pytest.raises(TypeError, match="a fault of the reader"):
        wn.load_onnx(parsed(RELU), context)


def test_a_refusal_of_a_handler_stays_a_refusal(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(call: NodeCall) -> Any:
        call.fail("never on Sundays")

    monkeypatch.setitem(_registry._HANDLERS, ("", "Relu"), [_registry.Handler(lower=refuse)])
    with pytest.raises(wn.NotSupportedError, match=r"node 'first' \(Relu, ai.onnx opset 21\): never on Sundays") as raised:
        wn.load_onnx(parsed(RELU), context)
    assert notes(raised.value) == ""


def test_a_host_without_memory_is_told_as_such(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_registry._HANDLERS, ("", "Relu"), [_registry.Handler(lower=broken(MemoryError()))])
    with pytest.raises(wn.OutOfMemoryError, match=r"node 'first' \(Relu, ai.onnx opset 21\): the host has no memory left"):
        wn.load_onnx(parsed(RELU), context)


# models that do not fit -------------------------------------------------------------------------------------------------


def of_node(op: str, inputs: dict[str, Any], attributes: dict[str, Any] | None = None, **options: Any) -> onnx.ModelProto:
    return node_model(op, inputs, attributes, **options)


def changed(model: onnx.ModelProto, change: Callable[[onnx.NodeProto], object]) -> onnx.ModelProto:
    """Return a model whose first node was changed."""
    change(model.graph.node[0])
    return model


SOFTMAX = ("Softmax", {"x": X}, {"axis": 1})

MALFORMED = {
    "no input": (changed(of_node("Relu", {"x": X}), lambda n: n.ClearField("input")), "input 0 .'X'. is missing"),
    "an input left out": (of_node("Add", {"x": X}, order=["x", ""]), r"input 1 \('B'\) is missing"),
    "nothing to join": (changed(of_node("Concat", {"x": X}, {"axis": 0}), lambda n: n.ClearField("input")), "is missing"),
    "no attribute": (of_node("Concat", {"x": X}), "attribute 'axis' is missing"),
    "an attribute of another kind": (of_node("Softmax", {"x": X}, {"axis": "1"}), "'axis' is of kind STRING, not INT"),
    "a list for a number": (of_node("Softmax", {"x": X}, {"axis": [1]}), "'axis' is of kind INTS, not INT"),
    "an attribute of no kind": (changed(of_node(*SOFTMAX), lambda n: n.attribute[0].ClearField("type")), "'axis'"),
    "an attribute of a function": (
        changed(of_node(*SOFTMAX), lambda n: setattr(n.attribute[0], "ref_attr_name", "a")),
        "'axis' stands for one of a function",
    ),
    "no text": (of_node("DepthToSpace", {"x": IMAGE}, {"blocksize": 2, "mode": b"\xff\xfe"}), "'mode' is no UTF-8"),
    "no body": (of_node("Loop", {"n": np.int64(3), "c": np.bool_(1), "x": X}), "attribute 'body' is missing"),
    "a rank": (of_node("DepthToSpace", {"x": X}, {"blocksize": 2}), "input 0 has rank 2, not 4"),
    "several ranks": (of_node("STFT", {"x": np.ones(4, np.float32), "s": np.int64(1)}), "input 0 has rank 1, not 2 or 3"),
    "least rank": (of_node("MaxPool", {"x": X}, {"kernel_shape": [2]}), "input 0 has rank 2, not 3 and more"),
    "no blocks": (of_node("SpaceToDepth", {"x": IMAGE}, {"blocksize": 0}), "'blocksize' must be given, and positive; got 0"),
    "no groups": (
        of_node("Conv", {"x": IMAGE, "w": np.ones((4, 4, 1, 1), np.float32)}, {"group": 0}),
        "do not fit 0 groups",
    ),
    "no strides": (of_node("MaxPool", {"x": IMAGE}, {"kernel_shape": [2, 2], "strides": [0, 1]}), "must be positive"),
    "too few strides": (of_node("MaxPool", {"x": IMAGE}, {"kernel_shape": [2, 2], "strides": [1]}), "do not fit 2 spatial"),
    "no type": (of_node("Cast", {"x": X}, {"to": 1000}), "to 1000 is no element type"),
    "a type that cannot be held": (of_node("Cast", {"x": X}, {"to": TensorProto.COMPLEX64}), "COMPLEX64 cannot be held"),
    "shapes that do not broadcast": (of_node("Expand", {"x": X}, constants={"s": np.int64([7])}), "do not broadcast"),
    "a matrix of sizes": (of_node("Expand", {"x": X}, constants={"s": np.int64([[2, 3]])}), "must be a list of integers"),
    "fractions of axes": (
        of_node("Unsqueeze", {"x": X}, constants={"a": np.float32([np.inf])}),
        "input 1 must be a list of integers; got float32",
    ),
    "an axis twice": (of_node("Unsqueeze", {"x": X}, constants={"a": np.int64([0, 0])}), "name a dimension twice"),
    "too few ends": (
        of_node("Slice", {"x": X}, constants={"s": np.int64([0, 0]), "e": np.int64([1])}),
        "2 starts, 1 ends, 2 steps for 2 axes",
    ),
    "too few repetitions": (of_node("Tile", {"x": X}, constants={"r": np.int64([2])}), "1 repetitions for rank 2"),
    "several axes": (of_node("CumSum", {"x": X}, constants={"a": np.int64([0, 1])}), "input 1 must have one element"),
    "scales": (of_node("Resize", {"x": X}, order=["x", "", "s"], constants={"s": np.float32([2])}), "scales .* do not fit"),
    "infinite scales": (
        of_node("Resize", {"x": X}, order=["x", "", "s"], constants={"s": np.float32([np.inf, 1])}),
        "a list of finite numbers",
    ),
    "no frames": (of_node("STFT", {"x": np.ones((1, 8, 1), np.float32)}, constants={"s": np.int64(0)}), "frames of 8, 0 apart"),
    "too many samples": (
        of_node(
            "RoiAlign",
            {"x": IMAGE, "r": np.ones((1, 4), np.float32), "b": np.int64([0])},
            {"sampling_ratio": 2**31, "output_height": 2, "output_width": 2},
        ),
        "2147483648 x 2147483648 samples",
    ),
    "truth values": (of_node("Clip", {"x": X > 0}), "truth values have no range"),
    "no quantized type": (of_node("MatMulInteger", {"a": X, "b": X.T}), "float32 is no quantized type"),
    "no heads": (of_node("MultiHeadAttention", {"q": IMAGE[0], "k": IMAGE[0], "v": IMAGE[0]}, domain=MICROSOFT), "'num_heads'"),
    "a number for a text": (
        of_node("FusedConv", {"x": IMAGE, "w": np.ones((4, 4, 1, 1), np.float32)}, {"activation": 1}, domain=MICROSOFT),
        "attribute 'activation' is 1, of another kind than ''",
    ),
    "strides of fractions": (
        of_node("FusedConv", {"x": IMAGE, "w": np.ones((4, 4, 1, 1), np.float32)}, {"strides": [0.5, 1.0]}, domain=MICROSOFT),
        "attribute 'strides' must be a list of integers",
    ),
    "too many batches": (
        of_node("GatherND", {"x": X, "i": np.int64([[0]])}, {"batch_dims": 3}),
        "batch_dims 3 of inputs of ranks 2 and 2",
    ),
    "a scalar for a matrix": (of_node("MatMul", {"a": np.int32(1), "b": np.int32([1])}), "a scalar is multiplied as a matrix"),
    "endless scales": (
        of_node("Resize", {"x": X}, order=["x", "", "s"], constants={"s": np.float32([1e38, 1])}),
        "are too large",
    ),
    "no scale": (of_node("QLinearSigmoid", {"x": np.uint8([1, 2])}, domain=MICROSOFT), "input 1 is missing"),
}


@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("fallback", ["host", "error"])
def test_malformed_nodes_are_refused(context: wn.MLContext, name: str, fallback: Any) -> None:
    model, message = MALFORMED[name]
    feeds = {i.name: np.ones(1) for i in model.graph.input}
    with pytest.raises(wn.NotSupportedError, match=message) as raised:
        wn.load_onnx(model, context, fallback=fallback).run(feeds)
    op = model.graph.node[0].op_type
    assert f"({op}, " in str(raised.value)


@pytest.mark.parametrize("fallback", ["host", "error"])
def test_shapes_that_no_place_can_combine_are_refused_when_the_model_is_loaded(context: wn.MLContext, fallback: Any) -> None:
    product = of_node("MatMul", {"a": X, "b": X})
    with pytest.raises(wn.NotSupportedError, match=r"Incompatible shapes for matmul.*allowed: b with 3 rows") as raised:
        wn.load_onnx(product, context, fallback=fallback)
    assert "host" not in str(raised.value)
    found = wn.analyze(product, context)
    assert [placed.where for placed in found.placement] == ["unsupported"]
    assert "Incompatible shapes for matmul" in found.problem


def body(inputs: int, outputs: int) -> onnx.GraphProto:
    """Return the body of a loop, which hands on what it is given."""
    names = [f"i{i}" for i in range(inputs)]
    nodes = [helper.make_node("Identity", [names[min(i + 1, inputs - 1)]], [f"o{i}"]) for i in range(outputs)]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names]
    return helper.make_graph(nodes, "body", values, [onnx.ValueInfoProto(name=f"o{i}") for i in range(outputs)])


@pytest.mark.parametrize(("inputs", "outputs"), [(2, 2), (4, 2), (3, 1), (3, 0)])
@pytest.mark.parametrize("count", ["n", ""])
def test_bodies_that_do_not_fit_are_refused(context: wn.MLContext, inputs: int, outputs: int, count: str) -> None:
    node = helper.make_node("Loop", [count, "c", "x"], ["y"], body=body(inputs, outputs))
    model = model_of([node], {"x": (np.float32, [2, 3])}, ["y"], {"n": np.array(2), "c": np.array(True)})
    with pytest.raises(wn.NotSupportedError, match=f"a body of {inputs} inputs and {outputs} outputs for 1 states"):
        wn.load_onnx(model, context).run({"x": X})


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"num_scan_inputs": 0}, "0 of them scanned"),
        ({"num_scan_inputs": 3}, "3 of them scanned"),
        ({"num_scan_inputs": 1, "scan_input_axes": [0, 1]}, "scan_input_axes has 2 elements, not 1"),
        ({"num_scan_inputs": 1, "scan_input_axes": [5]}, "axis 5 is out of range"),
        ({"num_scan_inputs": 1, "scan_output_directions": [0, 1]}, "scan_output_directions has 2 elements, not 1"),
        ({"num_scan_inputs": 2, "scan_input_axes": [0, 1]}, "sequences of lengths"),
    ],
)
def test_scans_that_do_not_fit_are_refused(context: wn.MLContext, attributes: dict[str, Any], message: str) -> None:
    node = helper.make_node("Scan", ["x", "z"], ["y0", "y1"], body=body(2, 2), **attributes)
    model = model_of([node], {"x": (np.float32, [2, 3]), "z": (np.float32, [2, 3])}, ["y0", "y1"])
    with pytest.raises(wn.NotSupportedError, match=message):
        wn.load_onnx(model, context).run({"x": X, "z": X})


@pytest.mark.parametrize(
    ("entry", "value"), [("offset", "-4"), ("offset", "4096"), ("length", "-8"), ("length", "4"), ("location", "w" * 5000)]
)
def test_external_data_that_do_not_fit_are_refused(context: wn.MLContext, tmp_path: Any, entry: str, value: str) -> None:
    node = helper.make_node("Add", ["x", "w"], ["y"])
    model = model_of([node], {"x": (np.float32, [2, 3])}, ["y"], {"w": X})
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    model = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    where = model.graph.initializer[0].external_data
    found = next((e for e in where if e.key == entry), None) or where.add(key=entry)
    found.value = value
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(wn.NotSupportedError, match=r"m\.onnx"):
        wn.load(tmp_path / "m.onnx", context).run({"x": X})


def test_what_exporters_write_besides_the_schema_is_let_through(context: wn.MLContext) -> None:
    """An attribute of a later or an earlier version, and a whole number for a floating-point one."""
    model = of_node("Elu", {"x": X}, {"alpha": 2, "consumed_inputs": [1]})
    assert wn.load_onnx(model, context, fallback="error").run({"x": -X})["y0"] == pytest.approx(2 * np.expm1(-X))
