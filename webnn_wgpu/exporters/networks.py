"""Recurrent networks and cells as compositions of products and element-wise operators, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from webnn_wgpu.api.operand import MLOperand

from .compositions import Composing, composes


def _activated(c: Composing, x: MLOperand, i: int) -> MLOperand:
    """Return an operand with the activation number `i` applied."""
    name, options = c.attrs["activations"][i]
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return getattr(c.builder, snake)(x, **dict(options))


def _gates(c: Composing, x: MLOperand, order: str) -> dict[str, MLOperand]:
    """Return the parts of gates by their letters."""
    layout: str = c.attrs["layout"]
    parts = c.builder.split(x, len(order), axis=len(x.shape) - 1)
    return {letter: parts[layout.index(letter)] for letter in order}


def _product(c: Composing, x: MLOperand, weights: MLOperand, bias: MLOperand | None) -> MLOperand:
    found = c.builder.matmul(x, c.builder.transpose(weights))
    return found if bias is None else c.builder.add(found, bias)


def _gru_step(c: Composing, x: MLOperand, h: MLOperand, parameters: Sequence[MLOperand | None]) -> list[MLOperand]:
    b = c.builder
    weight, recurrent, bias, recurrent_bias = parameters
    assert weight is not None
    assert recurrent is not None
    given = _gates(c, _product(c, x, weight, bias), "zrn")
    if c.attrs["reset_after"]:
        own = _gates(c, _product(c, h, recurrent, recurrent_bias), "zrn")
        z, r = (_activated(c, b.add(given[gate], own[gate]), 0) for gate in "zr")
        new = _activated(c, b.add(given["n"], b.mul(r, own["n"])), 1)
    else:
        hidden = c.attrs["hidden_size"]
        place = {gate: c.attrs["layout"].index(gate) * hidden for gate in "zrn"}
        rows = {gate: b.slice(recurrent, [first, 0], [hidden, hidden]) for gate, first in place.items()}
        biases = {g: None if recurrent_bias is None else b.slice(recurrent_bias, [f], [hidden]) for g, f in place.items()}
        z, r = (_activated(c, b.add(given[gate], _product(c, h, rows[gate], biases[gate])), 0) for gate in "zr")
        new = _activated(c, b.add(given["n"], _product(c, b.mul(r, h), rows["n"], biases["n"])), 1)
    return [b.add(b.mul(z, h), b.mul(b.sub(c.number(1, z), z), new))]


def _lstm_step(
    c: Composing, x: MLOperand, h: MLOperand, memory: MLOperand, parameters: Sequence[MLOperand | None]
) -> list[MLOperand]:
    b = c.builder
    weight, recurrent, bias, recurrent_bias, peephole = parameters
    assert weight is not None
    assert recurrent is not None
    gate = _gates(c, b.add(_product(c, x, weight, bias), _product(c, h, recurrent, recurrent_bias)), "iofg")
    if peephole is not None:
        for letter, hole in zip("iof", b.split(peephole, 3), strict=True):
            gate[letter] = b.add(gate[letter], b.mul(memory, hole))
    i, o, forget = (_activated(c, gate[letter], 0) for letter in "iof")
    memory = b.add(b.mul(forget, memory), b.mul(i, _activated(c, gate["g"], 1)))
    return [b.mul(o, _activated(c, memory, 2)), memory]


@composes("gruCell")
def _gru_cell(c: Composing) -> list[MLOperand]:
    weight, recurrent, bias, recurrent_bias = (c.operands[i] for i in (1, 2, 4, 5))
    return _gru_step(c, c.operand(), c.operand(3), (weight, recurrent, bias, recurrent_bias))


@composes("lstmCell")
def _lstm_cell(c: Composing) -> list[MLOperand]:
    parameters = [c.operands[i] for i in (1, 2, 5, 6, 7)]
    return _lstm_step(c, c.operand(), c.operand(3), c.operand(4), parameters)


@composes("gru", "lstm")
def _network(c: Composing) -> list[MLOperand]:
    b, x, gru = c.builder, c.operand(), c.operator == "gru"
    parameters = c.operands[1:5] if gru else c.operands[1:6]
    states = c.operands[5:6] if gru else c.operands[6:8]
    steps, batch = x.shape[:2]
    hidden, direction = c.attrs["hidden_size"], c.attrs["direction"]
    ends: list[list[MLOperand]] = [[] for _ in states]
    sequences: list[MLOperand] = []
    for d in range(2 if direction == "both" else 1):
        own = [None if p is None else _part(c, p, d) for p in parameters]
        zeros = np.zeros((batch, hidden), x.data_type)
        state = [c.array(zeros) if s is None else _part(c, s, d) for s in states]
        found: dict[int, MLOperand] = {}
        backward = direction == "backward" or d == 1
        for step in reversed(range(steps)) if backward else range(steps):
            given: Any = _part(c, x, step)
            state = _gru_step(c, given, state[0], own) if gru else _lstm_step(c, given, state[0], state[1], own)
            found[step] = b.reshape(state[0], [1, 1, batch, hidden])
        for end, value in zip(ends, state, strict=True):
            end.append(b.reshape(value, [1, batch, hidden]))
        sequences.append(_joined(c, [found[i] for i in range(steps)], 0))
    results = [_joined(c, end, 0) for end in ends]
    return [*results, _joined(c, sequences, 1)] if c.attrs["return_sequence"] else results


def _part(c: Composing, x: MLOperand, i: int) -> MLOperand:
    """Return one part along the first dimension, without that."""
    shape = list(x.shape)
    taken = c.builder.slice(x, [i, *(0 for _ in shape[1:])], [1, *shape[1:]])
    return c.builder.reshape(taken, shape[1:])


def _joined(c: Composing, parts: list[MLOperand], axis: int) -> MLOperand:
    return parts[0] if len(parts) == 1 else c.builder.concat(parts, axis)
