"""`webnn_wgpu.tflite` has the names, results and classes of errors of LiteRT's interpreter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.tflite.models import Graph, Op, Tensor, model
from webnn_wgpu.tflite import Interpreter, OpResolverType

DATA = model(
    Graph(
        tensors=[
            Tensor(name="x", shape=[1, 3], signature=[-1, 3]),
            Tensor(name="half", shape=[], data=0.5),
            Tensor(name="halved", shape=[1, 3]),
            Tensor(name="y", shape=[1, 3]),
        ],
        ops=[Op(name="MUL", inputs=[0, 1], outputs=[2]), Op(name="NEG", inputs=[2], outputs=[3])],
        inputs=[0],
        outputs=[3],
    )
)


@pytest.fixture
def ready(context: wn.MLContext) -> Interpreter:
    interpreter = Interpreter(model_content=DATA, context=context)
    interpreter.allocate_tensors()
    return interpreter


def test_a_program_for_litert_runs(ready: Interpreter) -> None:
    (given,), (result,) = ready.get_input_details(), ready.get_output_details()
    ready.set_tensor(given["index"], np.float32([[2, 4, 6]]))
    ready.invoke()
    assert ready.get_tensor(result["index"]).tolist() == [[-1, -2, -3]]
    assert (given["name"], given["shape"].tolist(), given["shape_signature"].tolist()) == ("x", [1, 3], [-1, 3])
    assert (given["dtype"], given["quantization"]) == (np.float32, (0.0, 0))
    assert [d["name"] for d in ready.get_tensor_details()] == ["x", "half", "halved", "y"]
    assert [d["op_name"] for d in ready._get_ops_details()] == ["MUL", "NEG"]  # pyright: ignore[reportPrivateUsage]


def test_an_input_gets_another_shape(ready: Interpreter) -> None:
    ready.resize_tensor_input(0, [2, 3])
    with pytest.raises(RuntimeError, match="not ready"):
        ready.invoke()
    ready.allocate_tensors()
    assert ready.get_output_details()[0]["shape"].tolist() == [2, 3]
    ready.set_tensor(0, np.ones((2, 3), np.float32))
    ready.invoke()
    assert ready.get_tensor(3).tolist() == [[-0.5] * 3] * 2
    ready.resize_tensor_input(0, [4, 3], strict=True)
    with pytest.raises(RuntimeError, match="dimension 1 of tensor 0 with value 3 to 5"):
        ready.resize_tensor_input(0, [4, 5], strict=True)


def test_values_between_operators_are_kept_on_request(context: wn.MLContext, ready: Interpreter) -> None:
    kept = Interpreter(model_content=DATA, experimental_preserve_all_tensors=True, context=context)
    kept.allocate_tensors()
    kept.set_tensor(0, np.float32([[2, 4, 6]]))
    kept.invoke()
    assert kept.get_tensor(2).tolist() == [[1, 2, 3]]
    ready.invoke()
    with pytest.raises(ValueError, match="Tensor data is null"):
        ready.get_tensor(2)


def test_a_view_shows_the_current_elements(ready: Interpreter) -> None:
    view, result = ready.tensor(0), ready.tensor(3)
    view()[...] = 8
    ready.invoke()
    assert result().tolist() == [[-4, -4, -4]]


WRONG: dict[str, tuple[Callable[[Interpreter], Any], type[Exception]]] = {
    "type": (lambda i: i.set_tensor(0, np.zeros((1, 3))), ValueError),
    "rank": (lambda i: i.set_tensor(0, np.zeros(3, np.float32)), ValueError),
    "shape": (lambda i: i.set_tensor(0, np.zeros((1, 4), np.float32)), ValueError),
    "index": (lambda i: i.set_tensor(99, np.zeros(3, np.float32)), ValueError),
    "read index": (lambda i: i.get_tensor(99), ValueError),
    "signature": (lambda i: i.get_signature_runner("no"), ValueError),
    "no signature": (lambda i: i.get_signature_runner(), ValueError),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_raise_litert_classes(name: str, ready: Interpreter) -> None:
    call, error = WRONG[name]
    with pytest.raises(error):
        call(ready)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"model_path": "a.tflite", "model_content": DATA},
        {"model_path": "missing.tflite"},
        {"model_content": b"no model at all"},
        {"model_content": DATA, "num_threads": 0},
        {"model_content": DATA, "num_threads": 1.5},
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"model|num_threads|open"):
        Interpreter(**arguments)


def test_calls_before_the_allocation_are_refused(context: wn.MLContext) -> None:
    interpreter = Interpreter(
        model_content=DATA, num_threads=2, experimental_op_resolver_type=OpResolverType.BUILTIN_REF, context=context
    )
    with pytest.raises(RuntimeError, match="not ready"):
        interpreter.invoke()
    with pytest.raises(ValueError, match="allocate_tensors"):
        interpreter.set_tensor(0, np.zeros((1, 3), np.float32))
    with pytest.raises(ValueError, match="allocate_tensors"):
        interpreter.get_tensor(3)


def test_a_path_is_read(tmp_path: Path, context: wn.MLContext) -> None:
    path = tmp_path / "small.tflite"
    path.write_bytes(DATA)
    interpreter = Interpreter(str(path), context=context)
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert interpreter.get_tensor(3).tolist() == [[0, 0, 0]]
    assert (interpreter.num_subgraphs(), interpreter.get_signature_list()) == (1, {})
