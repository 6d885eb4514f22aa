"""Recurrent networks against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn

from .agreement import agree, values
from .models import MICROSOFT, check, node_model

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, BATCH, INPUTS, HIDDEN = 5, 3, 2, 4
LENGTHS = np.array([5, 2, 3], np.int32)


def operands(op: str, directions: int, *optional: str) -> dict[str, np.ndarray]:
    """The operands of a network by ONNX's names, weights and the named optional ones."""
    gates = GATES[op]
    shapes = {
        "X": (STEPS, BATCH, INPUTS),
        "W": (directions, gates * HIDDEN, INPUTS),
        "R": (directions, gates * HIDDEN, HIDDEN),
        "B": (directions, 2 * gates * HIDDEN),
        "initial_h": (directions, BATCH, HIDDEN),
        "initial_c": (directions, BATCH, HIDDEN),
        "P": (directions, 3 * HIDDEN),
    }
    given = {n: values("float32", s, i) / 3 for i, (n, s) in enumerate(shapes.items()) if n in ("X", "W", "R", *optional)}
    if "sequence_lens" in optional:
        given["sequence_lens"] = LENGTHS
    return given


def run(context: wn.MLContext, op: str, attributes: dict[str, Any], *optional: str, **options: Any) -> None:
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    given = operands(op, directions, *optional)
    names = ["X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"]
    order = [n if n in given else "" for n in names]
    while not order[-1]:
        order.pop()
    outputs = 3 if op == "LSTM" else 2
    agree(context, op, given, {"hidden_size": HIDDEN, **attributes}, order=order, outputs=outputs, opset=14, **options)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_directions(context: wn.MLContext, op: str, direction: str) -> None:
    run(context, op, {"direction": direction}, "B", "initial_h", *(["initial_c"] if op == "LSTM" else []))
    run(context, op, {"direction": direction})


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
def test_sequences_of_several_lengths(context: wn.MLContext, op: str, direction: str) -> None:
    run(context, op, {"direction": direction}, "B", "sequence_lens", "initial_h")


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_gates_that_see_the_cell(context: wn.MLContext, direction: str) -> None:
    run(context, "LSTM", {"direction": direction}, "B", "P", "initial_c")


@pytest.mark.parametrize("op", GATES)
def test_clipped_gates(context: wn.MLContext, op: str) -> None:
    run(context, op, {"clip": 0.3}, "B", "initial_h")


def test_coupled_gates(context: wn.MLContext) -> None:
    run(context, "LSTM", {"input_forget": 1}, "B")


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("lengths", [False, True])
def test_reset_after_the_product(context: wn.MLContext, direction: str, lengths: bool) -> None:
    run(context, "GRU", {"linear_before_reset": 1, "direction": direction}, "B", *(["sequence_lens"] if lengths else []))


ACTIVATIONS: list[tuple[str, dict[str, Any]]] = [
    ("RNN", {"activations": ["Relu"]}),
    ("RNN", {"activations": ["Tanh", "LeakyRelu"], "direction": "bidirectional", "activation_alpha": [0.3]}),
    ("RNN", {"activations": ["ThresholdedRelu"], "activation_alpha": [0.2]}),
    ("RNN", {"activations": ["ScaledTanh"], "activation_alpha": [0.7], "activation_beta": [1.3]}),
    ("GRU", {"activations": ["HardSigmoid", "Softsign"], "activation_alpha": [0.3], "activation_beta": [0.4]}),
    ("GRU", {"activations": ["Sigmoid", "Elu", "Sigmoid", "Softplus"], "direction": "bidirectional"}),
    ("LSTM", {"activations": ["HardSigmoid", "Relu", "Affine"], "activation_alpha": [0.3, 0.5], "activation_beta": [0.4, 0.1]}),
    ("LSTM", {"activations": ["Sigmoid", "ScaledTanh", "Tanh"], "activation_alpha": [0.7], "activation_beta": [1.3]}),
]


@pytest.mark.parametrize(("op", "attributes"), ACTIVATIONS)
def test_activations(context: wn.MLContext, op: str, attributes: dict[str, Any]) -> None:
    run(context, op, attributes, "B")


@pytest.mark.parametrize("op", GATES)
def test_batches_first(context: wn.MLContext, op: str) -> None:
    given = operands(op, 2, "B", "initial_h")
    given["X"], given["initial_h"] = given["X"].swapaxes(0, 1).copy(), given["initial_h"].swapaxes(0, 1).copy()
    attributes = {"hidden_size": HIDDEN, "layout": 1, "direction": "bidirectional"}
    order = ["X", "W", "R", "B", "", "initial_h"]
    agree(context, op, given, attributes, order=order, outputs=3 if op == "LSTM" else 2, opset=14, oracle="reference")


@pytest.mark.parametrize("op", GATES)
def test_halves(context: wn.MLContext, op: str) -> None:
    given = {n: a.astype(np.float16) for n, a in operands(op, 1, "B").items()}
    agree(context, op, given, {"hidden_size": HIDDEN}, outputs=2, opset=14, oracle="reference", rtol=1e-2)


@pytest.mark.parametrize("op", ["LSTM", "GRU"])
def test_what_can_be_done_once_is_not_done_in_each_step(context: wn.MLContext, op: str) -> None:
    given = operands(op, 2, "B", "initial_h", *(["initial_c"] if op == "LSTM" else []))
    given |= {n: np.zeros_like(a) for n, a in given.items() if n.startswith("initial")}
    x = {"X": given.pop("X")}
    attributes = {"hidden_size": HIDDEN, "direction": "bidirectional"}
    order = ["X", "W", "R", "B", "", "initial_h", *(["initial_c"] if op == "LSTM" else [])]
    model = node_model(op, x, attributes, 14, constants=given, order=order)
    check(model, x, context)
    with wn.load_onnx(model, context) as loaded:
        kernels = [d.spec for d in loaded.graph.plan.dispatches]
    assert kernels[0].template.startswith("matmul")
    assert {k.template.partition(".")[0] for k in kernels[1:]} == {"recurrent"}
    # The states before the second step may be read from scratch memory; the biases are added to the inputs' product.
    read = {b.name for b in kernels[1].bindings if b.access == "read"}
    assert read.isdisjoint({"hidden", "cell", "recurrent_bias"})


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_weights_of_8_bits(context: wn.MLContext, direction: str, by_column: bool, dtype: str) -> None:
    rng = np.random.default_rng(11)
    directions, columns = 1 + (direction == "bidirectional"), 4 * HIDDEN
    constants: dict[str, np.ndarray] = {"B": values("float32", (directions, 2 * columns), 4) / 3}
    given = {"X": values("float32", (STEPS, BATCH, INPUTS), 1)}
    floats = dict(constants)
    info = np.iinfo(dtype)
    # onnxruntime takes no other with signed numbers by column.
    zero = 0 if by_column and dtype == "int8" else 9
    for name, size in (("W", INPUTS), ("R", HIDDEN)):
        numbers = rng.integers(info.min, info.max, (directions, size, columns), dtype, endpoint=True)
        shape = (directions, columns) if by_column else (directions,)
        scale, zeros = rng.uniform(0.002, 0.004, shape).astype(np.float32), np.full(shape, zero, dtype)
        constants |= {name: numbers, f"{name}_scale": scale, f"{name}_zero": zeros}
        spread = (directions, 1, columns if by_column else 1)
        values_ = (numbers.astype(np.float32) - zeros.reshape(spread).astype(np.float32)) * scale.reshape(spread)
        floats[name] = np.ascontiguousarray(values_.transpose(0, 2, 1))
    attributes = {"hidden_size": HIDDEN, "direction": direction}
    order = ["X", "W", "R", "B", "", "", "", "", "W_scale", "W_zero", "R_scale", "R_zero"]
    quantized = node_model(
        "DynamicQuantizeLSTM", given, attributes, 14, outputs=3, constants=constants, domain=MICROSOFT, order=order
    )
    plain = node_model("LSTM", given, attributes, 14, outputs=3, constants=floats, order=order[:4])
    wanted = check(plain, given, context)
    check(quantized, given, context, expected=wanted)
    # onnxruntime quantizes inputs and states as well.
    check(quantized, given, context, rtol=0, atol=0.02)
