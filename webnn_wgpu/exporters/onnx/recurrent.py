"""Recurrent networks and their cells as ONNX nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .call import OnnxCall, OnnxValue, writes

DIRECTIONS = {"forward": "forward", "backward": "reverse", "both": "bidirectional"}
ACTIVATIONS = {
    "relu": ("Relu", None, None),
    "sigmoid": ("Sigmoid", None, None),
    "tanh": ("Tanh", None, None),
    "softsign": ("Softsign", None, None),
    "softplus": ("Softplus", None, None),
    "leakyRelu": ("LeakyRelu", 0.01, None),
    "elu": ("Elu", 1.0, None),
    "hardSigmoid": ("HardSigmoid", 0.2, 0.5),
    "linear": ("Affine", 1.0, 0.0),
}
"""Activations with the defaults of alpha and beta."""


def _activations(call: OnnxCall, times: int) -> dict[str, Any]:
    """Return the attributes of the activations, for each direction."""
    names: list[str] = []
    alphas: list[float] = []
    betas: list[float] = []
    for name, options in call.attrs["activations"]:
        if name not in ACTIVATIONS:
            raise call.refuse(f"there is no recurrent activation '{name}'")
        op_type, alpha, beta = ACTIVATIONS[name]
        given: Mapping[str, float] = dict(options)
        names.append(op_type)
        # Each activation takes the next numbers of the lists, whether it has a use for them or not.
        alphas.append(given.get("alpha", alpha or 0.0))
        betas.append(given.get("beta", beta or 0.0))
    found: dict[str, Any] = {"activations": names * times}
    if any(ACTIVATIONS[name][1] is not None for name, _ in call.attrs["activations"]):
        found |= {"activation_alpha": alphas * times, "activation_beta": betas * times}
    return found


def _reordered(call: OnnxCall, value: OnnxValue, order: Sequence[int], axis: int) -> OnnxValue:
    """Return a tensor of gates with its parts along an axis in another order."""
    if list(order) == list(range(len(order))):
        return value
    if value.array is not None:
        parts = np.split(value.array, len(order), axis)
        return call.constant(np.concatenate([parts[i] for i in order], axis), "gates")
    size = value.shape[axis] // len(order)
    shape = tuple(size if i == axis else n for i, n in enumerate(value.shape))
    sizes = call.ints([size] * len(order), "gates")
    parts = call.several("Split", [value, sizes], [(value.data_type, shape)] * len(order), axis=axis)
    return call.node("Concat", *(parts[i] for i in order), shape=value.shape, axis=axis)


def _biases(
    call: OnnxCall, biases: Sequence[OnnxValue | None], order: Sequence[int], directions: int, size: int
) -> OnnxValue | None:
    """Return both biases side by side, [directions, 2 * size], or None without any."""
    if not any(biases):
        return None
    zeros = np.zeros((directions, size), call.data_type)
    found = [call.constant(zeros, "bias") if b is None else _reordered(call, b, order, 1) for b in biases]
    arrays = [b.array for b in found]
    if all(a is not None for a in arrays):
        return call.constant(np.concatenate([a for a in arrays if a is not None], 1), "biases")
    return call.node("Concat", *found, shape=(directions, 2 * size), axis=1)


def _order(layout: str, own: str) -> list[int]:
    return [layout.index(gate) for gate in own]


@writes("gru", "gruCell")
def _gru(call: OnnxCall) -> list[OnnxValue]:
    attrs, cell = call.attrs, call.operator == "gruCell"
    if cell:
        x, weight, recurrent, state, bias, recurrent_bias = call.operands
    else:
        x, weight, recurrent, bias, recurrent_bias, state = call.operands
    if cell:
        x, weight, recurrent, state, bias, recurrent_bias = (
            None if v is None else call.reshape(v, (1, *v.shape)) for v in (x, weight, recurrent, state, bias, recurrent_bias)
        )
    assert x is not None
    assert weight is not None
    assert recurrent is not None
    order, hidden, directions = _order(attrs["layout"], "zrn"), attrs["hidden_size"], weight.shape[0]
    biases = _biases(call, (bias, recurrent_bias), order, directions, 3 * hidden)
    steps, batch = x.shape[:2]
    kind = call.data_type
    sequence, last = call.several(
        "GRU",
        [x, _reordered(call, weight, order, 1), _reordered(call, recurrent, order, 1), biases, None, state],
        [(kind, (steps, directions, batch, hidden)), (kind, (directions, batch, hidden))],
        hidden_size=hidden,
        linear_before_reset=int(attrs["reset_after"]),
        direction=DIRECTIONS[attrs.get("direction", "forward")],
        **_activations(call, directions),
    )
    return [call.reshape(last, call.shape)] if cell else [last, sequence][: len(call.results)]


@writes("lstm", "lstmCell")
def _lstm(call: OnnxCall) -> list[OnnxValue]:
    attrs, cell = call.attrs, call.operator == "lstmCell"
    if cell:
        x, weight, recurrent, state, memory, bias, recurrent_bias, peephole = (
            None if v is None else call.reshape(v, (1, *v.shape)) for v in call.operands
        )
    else:
        x, weight, recurrent, bias, recurrent_bias, peephole, state, memory = call.operands
    assert x is not None
    assert weight is not None
    assert recurrent is not None
    order, hidden, directions = _order(attrs["layout"], "iofg"), attrs["hidden_size"], weight.shape[0]
    if peephole is not None:
        parameters = (weight, recurrent, bias, recurrent_bias, peephole)
        h, c, whole = _unrolled(call, x, parameters, state, memory)
        return [call.reshape(h, call.shape), call.reshape(c, call.shape)] if cell else [h, c, whole][: len(call.results)]
    biases = _biases(call, (bias, recurrent_bias), order, directions, 4 * hidden)
    steps, batch = x.shape[:2]
    kind = call.data_type
    state_type = (kind, (directions, batch, hidden))
    whole, h, c = call.several(
        "LSTM",
        [x, _reordered(call, weight, order, 1), _reordered(call, recurrent, order, 1), biases, None, state, memory],
        [(kind, (steps, directions, batch, hidden)), state_type, state_type],
        hidden_size=hidden,
        direction=DIRECTIONS[attrs.get("direction", "forward")],
        **_activations(call, directions),
    )
    return [call.reshape(h, call.shape), call.reshape(c, call.shape)] if cell else [h, c, whole][: len(call.results)]


def _unrolled(
    call: OnnxCall,
    x: OnnxValue,
    parameters: Sequence[OnnxValue | None],
    state: OnnxValue | None,
    memory: OnnxValue | None,
) -> list[OnnxValue]:
    """Write an LSTM with peepholes step by step: ONNX's output gate looks at the new cell state, WebNN's at the old one."""
    attrs = call.attrs
    hidden, kind = attrs["hidden_size"], call.data_type
    steps, batch = x.shape[:2]
    directions = 2 if attrs.get("direction") == "both" else 1
    ends: list[tuple[OnnxValue, OnnxValue]] = []
    sequences: list[OnnxValue] = []
    for d in range(directions):
        own = [None if p is None else _part(call, p, d) for p in parameters]
        zeros = np.zeros((batch, hidden), kind)
        h, c = (call.constant(zeros, "state") if v is None else _part(call, v, d) for v in (state, memory))
        backward = attrs.get("direction") == "backward" or d == 1
        found: dict[int, OnnxValue] = {}
        for step in reversed(range(steps)) if backward else range(steps):
            h, c = _step(call, _part(call, x, step), own, h, c)
            found[step] = call.reshape(h, (1, 1, batch, hidden))
        ends.append((call.reshape(h, (1, batch, hidden)), call.reshape(c, (1, batch, hidden))))
        sequences.append(_joined(call, [found[i] for i in range(steps)], 0))
    return [_joined(call, [h for h, _ in ends], 0), _joined(call, [c for _, c in ends], 0), _joined(call, sequences, 1)]


def _joined(call: OnnxCall, parts: Sequence[OnnxValue], axis: int) -> OnnxValue:
    if len(parts) == 1:
        return parts[0]
    shape = tuple(sum(p.shape[i] for p in parts) if i == axis else n for i, n in enumerate(parts[0].shape))
    return call.node("Concat", *parts, shape=shape, axis=axis)


def _part(call: OnnxCall, value: OnnxValue, i: int) -> OnnxValue:
    """Return one part of a tensor along its first dimension, without that."""
    return call.node("Gather", value, call.constant(np.int64(i), "part"), shape=value.shape[1:], axis=0)


def _step(
    call: OnnxCall, x: OnnxValue, parameters: Sequence[OnnxValue | None], h: OnnxValue, c: OnnxValue
) -> tuple[OnnxValue, OnnxValue]:
    weight, recurrent, bias, recurrent_bias, peephole = parameters
    assert weight is not None
    assert recurrent is not None
    assert peephole is not None
    hidden, layout = call.attrs["hidden_size"], call.attrs["layout"]
    batch = h.shape[0]
    wide = (batch, 4 * hidden)
    products = [
        call.node("Gemm", v, w, b, shape=wide, transB=1) for v, w, b in ((x, weight, bias), (h, recurrent, recurrent_bias))
    ]
    gates = call.several(
        "Split",
        [call.node("Add", *products), call.ints([hidden] * 4, "sizes")],
        [(call.data_type, (batch, hidden))] * 4,
        axis=1,
    )
    holes = call.several("Split", [peephole, call.ints([hidden] * 3, "sizes")], [(call.data_type, (hidden,))] * 3, axis=0)
    gate = {name: gates[layout.index(name)] for name in "iofg"}
    seen = {name: call.node("Add", gate[name], call.node("Mul", c, hole)) for name, hole in zip("iof", holes, strict=True)}
    f, g, k = (name for name, _ in call.attrs["activations"])
    i, o, forget = (_activated(call, seen[name], f) for name in "iof")
    c = call.node("Add", call.node("Mul", forget, c), call.node("Mul", i, _activated(call, gate["g"], g)))
    return call.node("Mul", o, _activated(call, c, k)), c


def _activated(call: OnnxCall, value: OnnxValue, name: str) -> OnnxValue:
    op_type = ACTIVATIONS[name][0] if name in ACTIVATIONS else ""
    if op_type not in ("Sigmoid", "Tanh", "Relu", "Softsign", "Softplus"):
        raise call.refuse(f"there is no recurrent activation '{name}'")
    return call.node(op_type, value)
