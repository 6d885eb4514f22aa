"""Builder methods of recurrent operators: spellings, activations by name and as objects, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.ops.recurrent import Sizes, operands
from tests.rotation import first_of
from webnn_wgpu.api.operators._cells import cell_by_operators
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._cells import ACTIVATIONS

SIZES = Sizes()
HIDDEN = SIZES.hidden


def builder_and_operands(context: wn.MLContext, name: str) -> tuple[wn.MLGraphBuilder, dict[str, Any]]:
    """A builder, and constants for every operand by name."""
    builder = wn.MLGraphBuilder(context)
    arrays = {key: array for key, array in operands(name, SIZES).items() if array is not None}
    x = arrays.pop("input")
    made = {"input": builder.input("x", {"dataType": "float32", "shape": x.shape})}
    return builder, made | {key: builder.constant(array) for key, array in arrays.items()}


def run(context: wn.MLContext, builder: wn.MLGraphBuilder, outputs: list[wn.MLOperand], name: str) -> list[Any]:
    """Build and compute."""
    x = operands(name, SIZES)["input"]
    with builder.build({str(i): output for i, output in enumerate(outputs)}) as graph:
        return list(context.compute(graph, {"x": x}).values())


def test_both_spellings(context: wn.MLContext) -> None:
    results: list[Any] = []
    for spelling in ("python", "javascript"):
        builder, o = builder_and_operands(context, "lstm")
        if spelling == "python":
            outputs = builder.lstm(
                o["input"],
                o["weight"],
                o["recurrentWeight"],
                SIZES.steps,
                HIDDEN,
                bias=o["bias"],
                recurrent_bias=o["recurrentBias"],
                peephole_weight=o["peepholeWeight"],
                initial_hidden_state=o["initialHiddenState"],
                initial_cell_state=o["initialCellState"],
                return_sequence=True,
                direction="backward",
                layout="ifgo",
                activations=["sigmoid", "relu", "tanh"],
            )
        else:
            js: Any = builder
            options = {key: o[key] for key in list(o)[3:]}
            options |= {"returnSequence": True, "direction": "backward", "layout": "ifgo"}
            options |= {"activations": [js.sigmoid(), "relu", js.tanh()]}
            outputs = js.lstm(o["input"], o["weight"], o["recurrentWeight"], SIZES.steps, HIDDEN, options)
        results.append(run(context, builder, outputs, "lstm"))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_results_are_lists_but_that_of_gru_cell(context: wn.MLContext) -> None:
    builder, o = builder_and_operands(context, "gru")
    assert len(builder.gru(o["input"], o["weight"], o["recurrentWeight"], SIZES.steps, HIDDEN)) == 1
    last, sequence = builder.gru(o["input"], o["weight"], o["recurrentWeight"], SIZES.steps, HIDDEN, return_sequence=True)
    assert (last.shape, sequence.shape) == ((1, 3, 8), (3, 1, 3, 8))
    builder, o = builder_and_operands(context, "gruCell")
    state = builder.gru_cell(o["input"], o["weight"], o["recurrentWeight"], o["hiddenState"], HIDDEN)
    assert isinstance(state, wn.MLOperand)
    builder, o = builder_and_operands(context, "lstmCell")
    both = builder.lstm_cell(o["input"], o["weight"], o["recurrentWeight"], o["hiddenState"], o["cellState"], HIDDEN)
    assert [x.shape for x in both] == [(3, 8), (3, 8)]


OPTIONS: dict[str, dict[str, float]] = {
    "clamp": {"min_value": -0.5, "max_value": 0.25},
    "elu": {"alpha": 0.5},
    "hardSigmoid": {"alpha": 0.3, "beta": 0.4},
    "leakyRelu": {"alpha": 0.2},
    "linear": {"alpha": 0.5, "beta": 0.1},
    "softplus": {"steepness": 2.0},
}


def activations_of(builder: wn.MLGraphBuilder, kinds: list[str]) -> list[Any]:
    return [getattr(builder, kind)(**OPTIONS.get(kind, {})) for kind in kinds]


@pytest.mark.parametrize("name", ["gruCell", "lstmCell"])
@pytest.mark.parametrize("changed", [{}, {"layout": "other"}, {"reset_after": False}], ids=str)
@pytest.mark.parametrize("bare", [False, True])
def test_cells_are_what_other_operators_make_of_them(name: str, changed: dict[str, Any], bare: bool) -> None:
    if name == "lstmCell" and "reset_after" in changed:
        changed = {"activations": ["relu", "sigmoid", "sigmoid"]}
    if "layout" in changed:
        changed = {"layout": {"gruCell": "rzn", "lstmCell": "ifgo"}[name]}
    with wn.ml.create_context(device_type="cpu", backend="reference") as context:
        builder, o = builder_and_operands(context, name)
        if bare:
            o |= dict.fromkeys(key for key in ("bias", "recurrentBias", "peepholeWeight") if key in o)
        attrs = {"hidden_size": HIDDEN, "activations": ["sigmoid", "tanh", "tanh"][: 3 if name == "lstmCell" else 2], **changed}
        types = [None if given is None else given.type for given in o.values()]
        _, canonical = OPS[name].check(types, attrs)
        whole = builder._outputs(name, list(o.values()), attrs, "")
        parts = cell_by_operators(builder, name, o, canonical, attrs["activations"], "")
        results = run(context, builder, [*whole, *parts], name)
    for found, wanted in zip(results[: len(whole)], results[len(whole) :], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", first_of(ACTIVATIONS))
def test_every_kind_of_activation(context: wn.MLContext, kind: str) -> None:
    builder, o = builder_and_operands(context, "lstmCell")
    python_name = ACTIVATIONS[kind].python_name
    made = getattr(builder, python_name)(**OPTIONS.get(kind, {}))
    arguments = [o[key] for key in ("input", "weight", "recurrentWeight", "hiddenState", "cellState")]
    whole = builder.lstm_cell(*arguments, HIDDEN, bias=o["bias"], activations=["sigmoid", made, made])
    attrs = {"hidden_size": HIDDEN, "layout": "iofg"}
    left_out = o | {"recurrentBias": None, "peepholeWeight": None}
    parts = cell_by_operators(builder, "lstmCell", left_out, attrs, ["sigmoid", made, made], "")
    results = run(context, builder, [*whole, *parts], "lstmCell")
    for found, wanted in zip(results[:2], results[2:], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_softmax_is_applied_to_whole_gates(context: wn.MLContext) -> None:
    builder, o = builder_and_operands(context, "gruCell")
    arguments = [o[key] for key in ("input", "weight", "recurrentWeight", "hiddenState")]
    output = builder.gru_cell(*arguments, HIDDEN, layout="rzn", activations=[builder.softmax(), "tanh"])
    (found,) = run(context, builder, [output], "gruCell")
    x, w, r, h = (np.float64(a) for a in list(operands("gruCell", SIZES).values())[:4])
    (xr, xz, xn), (hr, hz, hn) = (np.split(product, 3, axis=1) for product in (x @ w.T, h @ r.T))
    z = softmax(xz + hz)
    expected = z * h + (1 - z) * np.tanh(xn + softmax(xr + hr) * hn)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def refused(context: wn.MLContext, name: str, **options: Any) -> str:
    builder, o = builder_and_operands(context, name)
    options = {key: value(builder) if callable(value) else value for key, value in options.items()}
    count = 3 if not name.endswith("Cell") else {"gruCell": 4, "lstmCell": 5}[name]
    sizes = [HIDDEN] if name.endswith("Cell") else [SIZES.steps, HIDDEN]
    with pytest.raises(wn.MLTypeError) as raised:
        getattr(builder, OPS[name].python_name)(*list(o.values())[:count], *sizes, label="net", **options)
    # A call that fails adds nothing to the graph.
    assert builder._nodes == []
    return str(raised.value)


@pytest.mark.parametrize(
    ("name", "options", "texts"),
    [
        ("gru", {"activations": ["sigmoid", "gelu"]}, ["gru('net'): Invalid activations", "got 'gelu'", "or an MLActivation"]),
        ("gru", {"activations": [1, "tanh"]}, ["Invalid activations", "got 1 (int)", "relu, sigmoid, tanh"]),
        ("gru", {"activations": [("linear", {}), "tanh"]}, ["Invalid activations", "(tuple)"]),
        ("gru", {"activations": "tanh"}, ["activations must be a list of activations", "got 'tanh' (str)"]),
        ("gru", {"activations": 3}, ["activations must be a list of activations", "got 3 (int)"]),
        ("gru", {"activations": lambda b: [b.relu()]}, ["activations must have 2 items", "got 1 items"]),
        ("lstm", {"activations": lambda b: [b.relu()] * 2}, ["lstm('net')", "activations must have 3 items", "got 2 items"]),
        ("gruCell", {"activations": lambda b: [b.softmax()] * 3}, ["gru_cell('net')", "activations must have 2 items"]),
        (
            "gru",
            {"activations": lambda b: [b.softmax(), "tanh"]},
            ["softmax as an activation takes 2-D results only", "rank 3"],
        ),
        ("lstm", {"activations": lambda b: ["relu", b.softmax(), "relu"]}, ["lstm('net')", "softmax as an activation"]),
        ("lstmCell", {"bias": lambda b: b.constant(np.float32([1]))}, ["lstm_cell('net')", "bias must have shape"]),
        ("lstmCell", {"bias": [1.0]}, ["bias must be an operand", "got [1.0] (list)"]),
        (
            "lstmCell",
            {"bias": lambda b: b.constant(np.float32([1])), "activations": lambda b: [b.softmax()] * 3},
            ["bias must have shape"],
        ),
    ],
)
def test_refused_calls_say_why(context: wn.MLContext, name: str, options: dict[str, Any], texts: list[str]) -> None:
    message = refused(context, name, **options)
    assert [text for text in texts if text not in message] == []


@pytest.mark.parametrize("name", ["gru", "gruCell", "lstm", "lstmCell"])
def test_what_belongs_to_another_builder(context: wn.MLContext, name: str) -> None:
    other = wn.MLGraphBuilder(context)
    count = 2 if "gru" in name else 3
    assert "must belong to the builder" in refused(context, name, activations=[other.relu()] * count)
    foreign = other.constant(np.zeros(1, np.float32))
    assert "every operand must belong to this builder" in refused(context, name, bias=foreign)
    if name.endswith("Cell"):
        options: dict[str, Any] = {"bias": foreign, "activations": lambda b: [b.softmax()] * count}
        assert "every operand must belong to this builder" in refused(context, name, **options)


def test_after_build_nothing_can_be_added(context: wn.MLContext) -> None:
    builder, o = builder_and_operands(context, "gru")
    outputs = builder.gru(o["input"], o["weight"], o["recurrentWeight"], SIZES.steps, HIDDEN)
    builder.build({"y": outputs[0]}).destroy()
    with pytest.raises(wn.InvalidStateError, match="gru: the builder has built its graph"):
        builder.gru(o["input"], o["weight"], o["recurrentWeight"], SIZES.steps, HIDDEN)


def test_after_build_no_cell_can_be_added(context: wn.MLContext) -> None:
    builder, o = builder_and_operands(context, "gruCell")
    arguments = o["input"], o["weight"], o["recurrentWeight"], o["hiddenState"], HIDDEN
    builder.build({"y": builder.gru_cell(*arguments)}).destroy()
    with pytest.raises(wn.InvalidStateError, match="gru_cell: the builder has built its graph"):
        builder.gru_cell(*arguments, activations=[builder.softmax(), builder.tanh()])
