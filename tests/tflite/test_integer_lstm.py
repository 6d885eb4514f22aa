"""LSTMs in integers: equal to LiteRT's kernels to the bit, in every form that these take."""

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
from webnn_wgpu.frontends.tflite.operators._fixed_point import logistic_table, tanh_table

Array = npt.NDArray[Any]

INPUTS, UNITS, BATCH, STEPS = 11, 8, 3, 4


@dataclass(frozen=True, kw_only=True)
class Form:
    """The form of an LSTM."""

    outputs: int = UNITS
    coupled: bool = False
    peepholes: bool = False
    projection: bool = False
    normalized: bool = False
    units: int = UNITS
    time_major: bool = False
    cell_clip: float = 0.0
    projection_clip: float = 0.0
    cell_scale: float = 2.0**-11
    gate_scale: float = 2.0**-10
    one_step: bool = False
    lacking: int = 0
    """How many elements the peepholes and the coefficients of normalizations lack."""


FORMS = {
    "plain": Form(),
    "one step": Form(one_step=True),
    "time first": Form(time_major=True),
    "fine cells": Form(cell_scale=2.0**-15),
    "coarse cells": Form(cell_scale=2.0**-9),
    "coupled gates": Form(coupled=True),
    "peepholes": Form(peepholes=True),
    "coupled gates with peepholes": Form(coupled=True, peepholes=True, time_major=True),
    "clipped cells": Form(cell_clip=0.7),
    "projection": Form(projection=True, outputs=5, projection_clip=0.9),
    "all": Form(coupled=True, peepholes=True, projection=True, cell_clip=3.0, cell_scale=2.0**-12),
    "normalization": Form(normalized=True),
    "normalization, one step": Form(normalized=True, one_step=True),
    "normalization of 20 units": Form(normalized=True, units=20, outputs=20, time_major=True),
    "normalization of 100 units": Form(normalized=True, units=100, outputs=100, gate_scale=2.0**-13),
    "normalization of small sums": Form(normalized=True, units=32, outputs=32, gate_scale=4.0),
    "normalization of large sums": Form(normalized=True, units=16, outputs=16, gate_scale=2.0**-22),
    "normalization of equal sums": Form(normalized=True, gate_scale=1000.0),
    "normalization, coupled gates with peepholes": Form(normalized=True, coupled=True, peepholes=True),
    "normalization, peepholes without effect": Form(normalized=True, peepholes=True, cell_scale=2.0**-15, gate_scale=4.0),
    "normalization, projection": Form(normalized=True, projection=True, outputs=5, cell_clip=3.0),
}


def written(form: Form) -> bytes:
    """Return a model of an LSTM with random weights."""
    rng = np.random.default_rng(len(repr(form)))
    shape = [BATCH, INPUTS] if form.one_step else [STEPS, BATCH, INPUTS] if form.time_major else [BATCH, STEPS, INPUTS]
    tensors = [Tensor(name="x", shape=shape, dtype="int8", scale=0.03, zero_point=-7)]
    numbers = [0]

    def add(present: bool, sizes: list[int], dtype: str, most: int, scale: float) -> None:
        if not present:
            numbers.append(-1)
            return
        numbers.append(len(tensors))
        data = rng.integers(-most, most + 1, sizes)
        tensors.append(Tensor(name=f"t{len(tensors)}", shape=sizes, dtype=dtype, data=data, scale=scale))

    for columns in (INPUTS, form.outputs):
        for gate in range(4):
            add(gate > 0 or not form.coupled, [form.units, columns], "int8", 127, 0.002 * (gate + 1) * (1 + columns % 3))
    for gate in (0, 1, 3):
        add(form.peepholes and (gate > 0 or not form.coupled), [form.units - form.lacking], "int16", 32767, 1 / 40000)
    bias = (9_000_000, 1e-4 / 1024) if form.normalized else (9000, 0.03 * 0.002)
    for gate in range(4):
        add(gate > 0 or not form.coupled, [form.units], "int32", *bias)
    add(form.projection, [form.outputs, form.units], "int8", 127, 0.009)
    add(form.projection, [form.outputs], "int32", 3000, 0.0001)
    states = [
        Tensor(name="h", shape=[BATCH, form.outputs], dtype="int8", scale=0.0083, zero_point=3, variable=True),
        Tensor(name="c", shape=[BATCH, form.units], dtype="int16", scale=form.cell_scale, variable=True),
    ]
    numbers += [len(tensors), len(tensors) + 1]
    tensors += states
    for gate in range(4):
        present = form.normalized and (gate > 0 or not form.coupled)
        add(present, [form.units - form.lacking], "int16", 32767, 1e-4 * (gate + 1))
    hidden = (0.0079, 5) if form.projection else (0.0083, 3)
    intermediates = [len(tensors) + i for i in range(5)]
    tensors += [Tensor(name=f"i{i}", shape=[0], dtype="int16", scale=form.gate_scale * (i + 3)) for i in range(4)]
    tensors.append(Tensor(name="i4", shape=[0], dtype="int8", scale=hidden[0], zero_point=hidden[1]))
    tensors.append(Tensor(name="y", shape=[*shape[:-1], form.outputs], dtype="int8", scale=0.0083, zero_point=3))

    def options(b: Any) -> int:
        kind = "LSTM" if form.one_step else "UnidirectionalSequenceLSTM"
        parts = {name: getattr(tflite, f"{kind}Options{name}") for name in ("Start", "End")}
        setters = {n: getattr(tflite, f"{kind}OptionsAdd{n}") for n in ("FusedActivationFunction", "CellClip", "ProjClip")}
        parts["Start"](b)
        setters["FusedActivationFunction"](b, 4)
        setters["CellClip"](b, form.cell_clip)
        setters["ProjClip"](b, form.projection_clip)
        if not form.one_step:
            tflite.UnidirectionalSequenceLSTMOptionsAddTimeMajor(b, form.time_major)
        return int(parts["End"](b))

    op = Op(
        name="LSTM" if form.one_step else "UNIDIRECTIONAL_SEQUENCE_LSTM",
        inputs=numbers,
        outputs=[len(tensors) - 1],
        intermediates=intermediates,
        options=options,
        options_type=(
            tflite.BuiltinOptions.LSTMOptions if form.one_step else tflite.BuiltinOptions.UnidirectionalSequenceLSTMOptions
        ),
    )
    return model(Graph(tensors=tensors, ops=[op], inputs=[0], outputs=[len(tensors) - 1]))


@pytest.mark.parametrize("name", FORMS)
def test_an_lstm_in_integers_equals_litert(name: str, context: wn.MLContext) -> None:
    litert = pytest.importorskip(
        "ai_edge_litert.interpreter", reason="the test compares with LiteRT: pip install ai-edge-litert"
    )
    data = written(FORMS[name])
    interpreter = litert.Interpreter(model_content=data)
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()[0]
    rng = np.random.default_rng(0)
    with load_model(data, lambda: context) as loaded:
        for _ in range(3):
            x = rng.integers(-128, 128, details["shape"]).astype(np.int8)
            interpreter.set_tensor(details["index"], x)
            interpreter.invoke()
            wanted = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
            found: Array = loaded.run({"x": x})["y"]
            assert np.array_equal(found, wanted), np.abs(found.astype(int) - wanted).max()
            assert len(np.unique(wanted)) > 5


@pytest.mark.parametrize("form", [Form(peepholes=True, lacking=1), Form(normalized=True, lacking=1)], ids=str)
def test_vectors_of_another_length_are_refused(form: Form) -> None:
    with (
        wn.ml.create_context(backend="reference") as context,
        pytest.raises(wn.NotSupportedError, match=r"\[7\].* vectors? \[8\]"),
    ):
        load_model(written(form), lambda: context)


@pytest.mark.parametrize("bits", range(7))
def test_tables_are_near_the_functions(bits: int) -> None:
    x = np.arange(-(1 << 15), 1 << 15) / 2.0 ** (15 - bits)
    assert np.abs(tanh_table(bits) / 2.0**15 - np.tanh(x)).max() < 13 / 2**15
    assert (tanh_table(bits)[1:] == -tanh_table(bits)[:0:-1]).all()
    x = np.arange(-(1 << 15), 1 << 15) / 2.0**12
    assert np.abs(logistic_table() / 2.0**15 - 1 / (1 + np.exp(-x))).max() < 7 / 2**15
