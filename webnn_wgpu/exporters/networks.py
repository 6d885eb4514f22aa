"""Recurrent networks and cells as compositions of products and element-wise operators, step by step.

Operations of weights alone, and the products of all time steps' inputs, are outside the steps. An exporter's work follows the
number of operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from webnn_wgpu.api.operand import MLOperand

from .compositions import Composing, composes


class _Steps(Protocol):
    """A network with its weights as all steps use them."""

    def inputs(self, x: MLOperand) -> MLOperand:
        """Return the products of the rows of an input with the weights."""
        ...

    def step(self, given: MLOperand, state: Sequence[MLOperand]) -> list[MLOperand]:
        """Return the next state for the products of one time step."""
        ...


class _Gru:
    def __init__(self, c: Composing, parameters: Sequence[MLOperand | None]) -> None:
        weight, recurrent, bias, recurrent_bias = parameters
        assert weight is not None
        assert recurrent is not None
        b, self.c = c.builder, c
        self.weight, self.bias = b.transpose(weight), bias
        self.recurrent, self.recurrent_bias = {"zrn": b.transpose(recurrent)}, {"zrn": recurrent_bias}
        if not c.attrs["reset_after"]:
            hidden = c.attrs["hidden_size"]
            place = {gate: c.attrs["layout"].index(gate) * hidden for gate in "zrn"}
            self.recurrent = {g: b.transpose(b.slice(recurrent, [f, 0], [hidden, hidden])) for g, f in place.items()}
            if recurrent_bias is None:
                self.recurrent_bias = dict.fromkeys("zrn")
            else:
                self.recurrent_bias = {g: b.slice(recurrent_bias, [f], [hidden]) for g, f in place.items()}

    def inputs(self, x: MLOperand) -> MLOperand:
        return _product(self.c, x, self.weight, self.bias)

    def step(self, given: MLOperand, state: Sequence[MLOperand]) -> list[MLOperand]:
        c, b, (h,) = self.c, self.c.builder, state
        gates = _gates(c, given, "zrn")
        if c.attrs["reset_after"]:
            own = _gates(c, self.own(h, "zrn"), "zrn")
            z, r = (_activated(c, b.add(gates[gate], own[gate]), 0) for gate in "zr")
            new = _activated(c, b.add(gates["n"], b.mul(r, own["n"])), 1)
        else:
            z, r = (_activated(c, b.add(gates[gate], self.own(h, gate)), 0) for gate in "zr")
            new = _activated(c, b.add(gates["n"], self.own(b.mul(r, h), "n")), 1)
        return [b.add(b.mul(z, h), b.mul(b.sub(c.number(1, z), z), new))]

    def own(self, h: MLOperand, gates: str) -> MLOperand:
        return _product(self.c, h, self.recurrent[gates], self.recurrent_bias[gates])


class _Lstm:
    def __init__(self, c: Composing, parameters: Sequence[MLOperand | None]) -> None:
        weight, recurrent, bias, recurrent_bias, peephole = parameters
        assert weight is not None
        assert recurrent is not None
        b, self.c = c.builder, c
        self.weight, self.recurrent = b.transpose(weight), b.transpose(recurrent)
        self.bias = recurrent_bias if bias is None else bias if recurrent_bias is None else b.add(bias, recurrent_bias)
        self.holes = {} if peephole is None else dict(zip("iof", b.split(peephole, 3), strict=True))

    def inputs(self, x: MLOperand) -> MLOperand:
        return _product(self.c, x, self.weight, self.bias)

    def step(self, given: MLOperand, state: Sequence[MLOperand]) -> list[MLOperand]:
        c, b, (h, memory) = self.c, self.c.builder, state
        gate = _gates(c, b.add(given, _product(c, h, self.recurrent, None)), "iofg")
        for letter, hole in self.holes.items():
            gate[letter] = b.add(gate[letter], b.mul(memory, hole))
        i, o, forget = (_activated(c, gate[letter], 0) for letter in "iof")
        memory = b.add(b.mul(forget, memory), b.mul(i, _activated(c, gate["g"], 1)))
        return [b.mul(o, _activated(c, memory, 2)), memory]


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


def _product(c: Composing, x: MLOperand, transposed: MLOperand, bias: MLOperand | None) -> MLOperand:
    found = c.builder.matmul(x, transposed)
    return found if bias is None else c.builder.add(found, bias)


@composes("gruCell")
def _gru_cell(c: Composing) -> list[MLOperand]:
    cell = _Gru(c, [c.operands[i] for i in (1, 2, 4, 5)])
    return cell.step(cell.inputs(c.operand()), [c.operand(3)])


@composes("lstmCell")
def _lstm_cell(c: Composing) -> list[MLOperand]:
    cell = _Lstm(c, [c.operands[i] for i in (1, 2, 5, 6, 7)])
    return cell.step(cell.inputs(c.operand()), [c.operand(3), c.operand(4)])


@composes("gru", "lstm")
def _network(c: Composing) -> list[MLOperand]:
    b, x, gru = c.builder, c.operand(), c.operator == "gru"
    parameters = c.operands[1:5] if gru else c.operands[1:6]
    states = c.operands[5:6] if gru else c.operands[6:8]
    steps, batch, size = x.shape
    hidden, direction = c.attrs["hidden_size"], c.attrs["direction"]
    rows = b.reshape(x, [steps * batch, size])
    ends: list[list[MLOperand]] = [[] for _ in states]
    sequences: list[MLOperand] = []
    for d in range(2 if direction == "both" else 1):
        own = [None if p is None else _part(c, p, d) for p in parameters]
        network: _Steps = _Gru(c, own) if gru else _Lstm(c, own)
        zeros = np.zeros((batch, hidden), x.data_type)
        state = [c.array(zeros) if s is None else _part(c, s, d) for s in states]
        products = network.inputs(rows)
        given = [products] if steps == 1 else b.split(products, steps, axis=0)
        found: dict[int, MLOperand] = {}
        backward = direction == "backward" or d == 1
        for step in reversed(range(steps)) if backward else range(steps):
            state = network.step(given[step], state)
            found[step] = state[0]
        for end, value in zip(ends, state, strict=True):
            end.append(b.reshape(value, [1, batch, hidden]))
        if c.attrs["return_sequence"]:
            sequences.append(b.reshape(_joined(c, [found[i] for i in range(steps)], 0), [steps, 1, batch, hidden]))
    results = [_joined(c, end, 0) for end in ends]
    return [*results, _joined(c, sequences, 1)] if c.attrs["return_sequence"] else results


def _part(c: Composing, x: MLOperand, i: int) -> MLOperand:
    """Return one part along the first dimension, without that."""
    shape = list(x.shape)
    taken = c.builder.slice(x, [i, *(0 for _ in shape[1:])], [1, *shape[1:]])
    return c.builder.reshape(taken, shape[1:])


def _joined(c: Composing, parts: list[MLOperand], axis: int) -> MLOperand:
    return parts[0] if len(parts) == 1 else c.builder.concat(parts, axis)
