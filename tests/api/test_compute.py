from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.api.graphs import F32X3, X, negation, sum_and_difference


def test_new_arrays_have_type_and_shape(anywhere: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(anywhere)
    x = builder.input("x", {"dataType": "int32", "shape": [2, 2]})
    graph = builder.build({"y": builder.neg(x), "z": builder.cast(x, "uint8")})
    results = anywhere.compute(graph, {"x": np.int32([[1, 2], [3, 4]])})
    assert list(results) == ["y", "z"]
    assert (results["y"].dtype, results["y"].shape) == (np.dtype(np.int32), (2, 2))
    assert (results["z"].dtype, results["z"].tolist()) == (np.dtype(np.uint8), [[1, 2], [3, 4]])
    assert results["y"].flags.writeable


def test_given_arrays_are_filled_and_returned(anywhere: wn.MLContext) -> None:
    graph = negation(anywhere)
    x, y = X.copy(), np.zeros(3, np.float32)
    result = anywhere.compute(graph, {"x": x}, {"y": y})
    assert result["y"] is y
    assert result.outputs["y"] is y
    assert result.inputs["x"] is x
    assert y.tolist() == [-1, 2, -3]
    assert len(result) == 1
    assert repr(result) == "MLComputeResult(y: float32[3])"


@pytest.mark.parametrize("array", [np.zeros((3, 1), np.float32), np.zeros(12, np.uint8), bytearray(12)])
def test_given_memory_may_have_another_form(anywhere: wn.MLContext, array: Any) -> None:
    result = anywhere.compute(negation(anywhere), {"x": X}, {"y": array})
    assert result["y"] is array
    assert np.frombuffer(array, np.float32).tolist() == [-1, 2, -3]


def test_a_subset_of_the_outputs(anywhere: wn.MLContext) -> None:
    graph = sum_and_difference(anywhere)
    feeds = {"a": X, "b": np.float32([1, 1, 1])}
    assert list(anywhere.compute(graph, feeds, {"difference": None})) == ["difference"]
    assert anywhere.compute(graph, feeds, {"difference": None})["difference"].tolist() == [0, -3, 2]
    assert dict(anywhere.compute(graph, feeds, {})) == {}
    assert list(anywhere.compute(graph, feeds)) == ["sum", "difference"]


def test_outputs_may_lie_over_inputs(anywhere: wn.MLContext) -> None:
    graph = sum_and_difference(anywhere)
    memory = np.float32([1, 2, 3, 10])
    result = anywhere.compute(graph, {"a": memory[:3], "b": memory[1:]}, {"sum": memory[:3]})
    assert result["sum"].tolist() == [3, 5, 13]
    assert memory.tolist() == [3, 5, 13, 10]


@pytest.mark.parametrize(
    "data",
    [
        X,
        X.reshape(3, 1),
        X.astype(">f4"),
        np.repeat(X, 2)[::2],
        X.tobytes(),
        bytearray(X.tobytes()),
        memoryview(X.tobytes()),
        memoryview(X),
        X.view(np.uint8),
        np.repeat(X.view(np.uint8), 2)[::2],
        X.tolist(),
        tuple(X.tolist()),
        [1, -2, 3],
        pytest.param(type("Dlpack", (), {"__dlpack__": X.__dlpack__, "__dlpack_device__": X.__dlpack_device__})(), id="dlpack"),
        pytest.param(type("HasArray", (), {"__array__": lambda self, dtype=None, copy=None: X})(), id="__array__"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_forms_of_input(anywhere: wn.MLContext, data: Any) -> None:
    assert anywhere.compute(negation(anywhere), {"x": data})["y"].tolist() == [-1, 2, -3]


def test_float16_as_bits_and_a_scalar_as_number(reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float16", "shape": [2]})
    s = builder.input("s", {"dataType": "float32", "shape": []})
    graph = builder.build({"y": builder.neg(x), "t": builder.neg(s)})
    results = reference.compute(graph, {"x": np.float16([1.5, -2]).view(np.uint16), "s": 2.5})
    assert results["y"].tolist() == [-1.5, 2]
    assert results["t"].shape == ()
    assert results["t"] == -2.5


WRONG_INPUTS = {
    "dtype": (
        {"x": np.zeros(3)},
        "compute: input 'x' must have the tensor's data type; got float64 array of shape [3];"
        " allowed: float32, or uint8 for raw bytes. array.astype('float32') converts it",
    ),
    "size": (
        {"x": np.zeros(4, np.float32)},
        "compute: input 'x' must have exactly the tensor's bytes: Shape mismatch; got float32[4] of 16 bytes;"
        " allowed: float32[3] of 12 bytes",
    ),
    "bytes": (
        {"x": bytes(11)},
        "compute: input 'x' must have exactly the tensor's bytes: Shape mismatch; got uint8[11] of 11 bytes;"
        " allowed: float32[3] of 12 bytes",
    ),
    "uint16": (
        {"x": np.zeros(6, np.uint16)},
        "compute: input 'x' must have the tensor's data type; got uint16 array of shape [6]; allowed: float32, or uint8 for raw"
        " bytes. array.astype('float32') converts it",
    ),
    "none": (
        {"x": None},
        "compute: input 'x' must be tensor data in the host's memory; got NoneType (memoryview: a bytes-like object is"
        " required, not 'NoneType'); allowed: a numpy array, bytes, an object with the buffer protocol, __array__ or"
        " __dlpack__, a list or a number",
    ),
    "missing": ({}, "compute: the graph's input 'x' is missing; got none; allowed: x"),
    "unknown": ({"x": X, "z": X}, "compute: the graph has no input of this name; got 'z'; allowed: x"),
    "no mapping": ([X], "compute: inputs must be a mapping of name to tensor data; got list"),
}


@pytest.mark.parametrize("case", WRONG_INPUTS)
def test_wrong_inputs(anywhere: wn.MLContext, case: str) -> None:
    given, message = WRONG_INPUTS[case]
    with pytest.raises(TypeError) as caught:
        anywhere.compute(negation(anywhere), given)
    assert str(caught.value) == message


@pytest.mark.parametrize("data", [["a", "b", "c"], [1, [2], 3], [1, 2], [], True, "abc", 1.0, [1j, 0, 0], [None, 1, 2]])
def test_lists_that_do_not_fit(anywhere: wn.MLContext, data: Any) -> None:
    with pytest.raises(wn.MLTypeError, match="compute: input 'x'"):
        anywhere.compute(negation(anywhere), {"x": data})


@pytest.mark.parametrize("data", [[1.5], [300], [-1], [float("nan")], [2**70]])
def test_a_list_is_not_bent_into_an_integer_type(reference: wn.MLContext, data: Any) -> None:
    builder = wn.MLGraphBuilder(reference)
    graph = builder.build({"y": builder.identity(builder.input("x", {"dataType": "uint8", "shape": [1]}))})
    with pytest.raises(TypeError, match="input 'x' does not fit the tensor's data type"):
        reference.compute(graph, {"x": data})
    assert reference.compute(graph, {"x": [255]})["y"].tolist() == [255]


def read_only() -> np.ndarray[Any, Any]:
    array = np.zeros(3, np.float32)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("array", "rule"),
    [
        (read_only(), "output 'y' must be writable and C-contiguous"),
        (np.zeros(6, np.float32)[::2], "output 'y' must be writable and C-contiguous"),
        (np.zeros(3), "output 'y' must have the output's data type and size; got float64[3]; allowed: float32[3]"),
        (np.zeros(4, np.float32), "output 'y' must have the output's data type and size; got float32[4]"),
        (np.zeros(3, ">f4"), "output 'y' must have the output's data type and size"),
        ([0, 0, 0], "output 'y' must be an array to write into; got list; allowed: numpy.ndarray"),
        (bytes(12), "output 'y' must be an array to write into; got bytes"),
    ],
)
def test_wrong_outputs(anywhere: wn.MLContext, array: Any, rule: str) -> None:
    graph = negation(anywhere)
    with pytest.raises(TypeError, match=rule.replace("[", r"\[")):
        anywhere.compute(graph, {"x": X}, {"y": array})
    with pytest.raises(TypeError, match="the graph has no output of this name; got 'z'; allowed: y"):
        anywhere.compute(graph, {"x": X}, {"z": np.zeros(3, np.float32)})


def test_two_outputs_in_one_memory(anywhere: wn.MLContext) -> None:
    memory = np.zeros(5, np.float32)
    with pytest.raises(TypeError, match="two outputs share memory; got 'sum' and 'difference'"):
        anywhere.compute(sum_and_difference(anywhere), {"a": X, "b": X}, {"sum": memory[:3], "difference": memory[2:]})


def test_errors_come_in_the_order_of_the_text(anywhere: wn.MLContext, fresh: wn.MLContext) -> None:
    foreign = negation(fresh)
    foreign.destroy()
    with pytest.raises(TypeError, match="the graph belongs to another context"):
        anywhere.compute(foreign, {}, {"z": None})
    with pytest.raises(TypeError, match="graph must be an MLGraph; got str"):
        anywhere.compute("graph", {}, {})
    graph = negation(anywhere)
    with pytest.raises(TypeError, match="input"):
        anywhere.compute(graph, {}, {"z": None})
    graph.destroy()
    with pytest.raises(wn.InvalidStateError, match="compute: the graph was destroyed"):
        anywhere.compute(graph, {}, {})


def test_graphs_have_only_the_inputs_that_outputs_need(anywhere: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(anywhere)
    x = builder.input("x", F32X3)
    builder.input("unused", F32X3)
    graph = builder.build({"y": builder.neg(x), "same": builder.neg(x)})
    assert list(graph.inputs) == ["x"]
    with pytest.raises(TypeError, match="no input of this name; got 'unused'"):
        anywhere.compute(graph, {"x": X, "unused": X})
    assert graph.get_input_names() == ["x"]
    assert graph.get_output_names() == ["y", "same"]
    assert (graph.operand_count, graph.operation_count) == (3, 2)
    assert (graph.inputs["x"].data_type, graph.inputs["x"].shape) == ("float32", (3,))


def test_one_operand_under_two_names_and_no_input_at_all(anywhere: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(anywhere)
    y = builder.neg(builder.constant(F32X3, X))
    graph = builder.build({"a": y, "b": y})
    results = anywhere.compute(graph, {})
    assert results["a"].tolist() == results["b"].tolist() == [-1, 2, -3]
    results["a"][0] = 7
    assert results["b"][0] == -1


def test_calls_take_effect_in_call_order(anywhere: wn.MLContext) -> None:
    graph = negation(anywhere)
    promises = [anywhere.compute_async(graph, {"x": np.float32([i, i, i])}) for i in range(5)]
    assert [p.result()["y"][0] for p in reversed(promises)] == [-4, -3, -2, -1, 0]
