"""LSTMs of float32 that WebNN's lstm does not compute: equal to LiteRT's results, with few kernels and narrow weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tflite

import webnn_wgpu as wn
from tests.tflite.models import Graph, Op, Tensor, model
from webnn_wgpu.frontends.tflite import load_model

Array = npt.NDArray[Any]

INPUTS, STEPS = 11, 5


@dataclass(frozen=True, kw_only=True)
class Form:
    """The form of an LSTM. TensorFlow's converter gives those of Keras a limit of cells, 10."""

    units: int = 20
    outputs: int = 20
    batch: int = 1
    coupled: bool = False
    peepholes: bool = False
    projection: bool = False
    normalized: bool = False
    cell_clip: float = 10.0
    data_type: str = "float32"


FORMS = {
    "Keras": Form(),
    "Keras, float16": Form(data_type="float16"),
    "Keras, int8": Form(data_type="int8"),
    "cells at their limit": Form(cell_clip=0.2),
    "64 units": Form(units=64, outputs=64),
    "several rows": Form(batch=3),
    "several rows, int8": Form(batch=3, data_type="int8"),
    "coupled gates with peepholes": Form(coupled=True, peepholes=True),
    "projection": Form(projection=True, outputs=7),
    "projection, int8": Form(projection=True, outputs=7, data_type="int8"),
    "normalization": Form(normalized=True),
    "normalization of 64 units": Form(normalized=True, units=64, outputs=64, peepholes=True),
}


def written(form: Form) -> bytes:
    """Return a model of an LSTM with random weights."""
    rng = np.random.default_rng(form.units + form.outputs)
    tensors = [Tensor(name="x", shape=[form.batch, STEPS, INPUTS])]
    ops: list[Op] = []
    numbers = [0]

    def add(present: bool, sizes: list[int], *, is_weight: bool = False) -> None:
        if not present:
            numbers.append(-1)
            return
        array, name, scale = rng.normal(0, 0.4, sizes).astype(np.float32), f"t{len(tensors)}", None
        data_type = form.data_type if is_weight else "float32"
        if data_type == "int8":
            scale = float(np.abs(array).max()) / 127
            array = np.rint(array / scale)
        tensors.append(Tensor(name=name, shape=sizes, dtype=data_type, data=array, scale=scale))
        if data_type == "float16":
            tensors.append(Tensor(name=f"{name} wide", shape=sizes))
            ops.append(Op(name="DEQUANTIZE", inputs=[len(tensors) - 2], outputs=[len(tensors) - 1]))
        numbers.append(len(tensors) - 1)

    gates = [gate > 0 or not form.coupled for gate in range(4)]
    for columns in (INPUTS, form.outputs):
        for gate in gates:
            add(gate, [form.units, columns], is_weight=True)
    for gate in (0, 1, 3):
        add(form.peepholes and gates[gate], [form.units])
    for gate in gates:
        add(gate, [form.units])
    add(form.projection, [form.outputs, form.units], is_weight=True)
    add(form.projection, [form.outputs])
    for name, size in (("h", form.outputs), ("c", form.units)):
        numbers.append(len(tensors))
        tensors.append(Tensor(name=name, shape=[form.batch, size], variable=True))
    for gate in gates:
        add(form.normalized and gate, [form.units])
    tensors.append(Tensor(name="y", shape=[form.batch, STEPS, form.outputs]))

    def options(b: Any) -> int:
        tflite.UnidirectionalSequenceLSTMOptionsStart(b)
        tflite.UnidirectionalSequenceLSTMOptionsAddFusedActivationFunction(b, tflite.ActivationFunctionType.TANH)
        tflite.UnidirectionalSequenceLSTMOptionsAddCellClip(b, form.cell_clip)
        return int(tflite.UnidirectionalSequenceLSTMOptionsEnd(b))

    lstm = Op(
        name="UNIDIRECTIONAL_SEQUENCE_LSTM",
        inputs=numbers,
        outputs=[len(tensors) - 1],
        options=options,
        options_type=tflite.BuiltinOptions.UnidirectionalSequenceLSTMOptions,
    )
    return model(Graph(tensors=tensors, ops=[*ops, lstm], inputs=[0], outputs=[len(tensors) - 1]))


@pytest.mark.parametrize("name", FORMS)
def test_an_lstm_agrees_with_litert(name: str, context: wn.MLContext) -> None:
    litert = pytest.importorskip(
        "ai_edge_litert.interpreter", reason="the test compares with LiteRT: pip install ai-edge-litert"
    )
    form = FORMS[name]
    data = written(form)
    interpreter = litert.Interpreter(model_content=data)
    interpreter.allocate_tensors()
    rng = np.random.default_rng(0)
    tolerance = 0.02 if form.data_type == "int8" else 2e-5
    with load_model(data, lambda: context) as loaded:
        for _ in range(3):
            x = rng.normal(0, 1, [form.batch, STEPS, INPUTS]).astype(np.float32)
            interpreter.set_tensor(0, x)
            interpreter.invoke()
            wanted = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
            np.testing.assert_allclose(loaded.run({"x": x})["y"], wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


def test_a_step_of_one_row_takes_two_kernels(context: wn.MLContext) -> None:
    counts: list[int] = []
    for units in (20, 64):
        with load_model(written(Form(units=units, outputs=units)), lambda: context) as loaded:
            (graph,) = loaded.graphs
            assert graph.plan is not None
            counts.append(len(graph.plan.dispatches))
    # The inputs of all steps take one product, and the results are joined. States of 20 units are padded before and cut behind.
    assert counts == [2 * STEPS + 7, 2 * STEPS + 2]


@pytest.mark.parametrize("data_type", ["float16", "int8"])
def test_weights_of_all_gates_stay_narrow(data_type: str, context: wn.MLContext) -> None:
    with load_model(written(Form(data_type=data_type)), lambda: context) as loaded:
        (graph,) = loaded.graphs
        assert graph.plan is not None
        types = {use.type.data_type for use in graph.plan.constants if use.type.num_elements > 1024}
    assert types == {data_type}
