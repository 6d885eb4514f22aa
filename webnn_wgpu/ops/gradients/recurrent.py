"""Gradients of recurrent networks: the cells of all time steps as a composition of products and gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..interfaces.gradient import GradientCall, GradientTerm, by_parts

_State = tuple[GradientTerm, ...]


def _activated(call: tuple[str, tuple[tuple[str, float], ...]], x: GradientTerm) -> GradientTerm:
    name, options = call
    return x.apply(name, **dict(options))


def _gates(term: GradientTerm, layout: str) -> Mapping[str, GradientTerm]:
    """Return the parts of the last dimension, which holds the gates in the order of a layout."""
    axis = term.rank - 1
    size = term.shape[axis] // len(layout)
    return {gate: term.sliced(axis, i * size, size) for i, gate in enumerate(layout)}


def _sum(term: GradientTerm, bias: GradientTerm | None) -> GradientTerm:
    return term if bias is None else term + bias


@dataclass(frozen=True)
class _Weights:
    """The parameters of one direction of a network. `peephole` belongs to lstm."""

    call: GradientCall
    weight: GradientTerm
    recurrent: GradientTerm
    bias: GradientTerm | None
    recurrent_bias: GradientTerm | None
    peephole: GradientTerm | None = None

    def rows(self, x: GradientTerm) -> GradientTerm:
        """Return the products of inputs with the weights, plus the bias."""
        return _sum(x.apply("gemm", self.weight, b_transpose=True), self.bias)

    def lstm(self, row: GradientTerm, state: _State) -> _State:
        """Return the next state of lstm from the row of a time step."""
        h, c = state
        gate, candidate, output = self.call.attrs["activations"]
        parts = dict(_gates(_sum(row + h.apply("gemm", self.recurrent, b_transpose=True), self.recurrent_bias), self._layout))
        if self.peephole is not None:
            # The order of peepholes does not depend on the layout.
            for name, peephole in _gates(self.peephole, "iof").items():
                parts[name] = parts[name] + peephole * c
        kept = _activated(gate, parts["f"]) * c
        cell = kept + _activated(gate, parts["i"]) * _activated(candidate, parts["g"])
        return _activated(gate, parts["o"]) * _activated(output, cell), cell

    def gru(self, row: GradientTerm, state: _State) -> _State:
        """Return the next state of gru from the row of a time step."""
        (h,) = state
        gate, candidate = self.call.attrs["activations"]
        inputs = _gates(row, self._layout)
        sums = _gates(_sum(h.apply("gemm", self.recurrent, b_transpose=True), self.recurrent_bias), self._layout)
        update, reset = (_activated(gate, inputs[name] + sums[name]) for name in "zr")
        if self.call.attrs["reset_after"]:
            inner = reset * sums["n"]
        else:
            size = h.shape[1]
            own = self.recurrent.sliced(0, self._layout.index("n") * size, size)
            bias = None if self.recurrent_bias is None else _gates(self.recurrent_bias, self._layout)["n"]
            inner = _sum((reset * h).apply("gemm", own, b_transpose=True), bias)
        return (update * h + (1 - update) * _activated(candidate, inputs["n"] + inner),)

    @property
    def _layout(self) -> str:
        return self.call.attrs["layout"]


def _joined(terms: Sequence[GradientTerm], axis: int) -> GradientTerm:
    return terms[0].apply("concat", *terms[1:], axis=axis) if len(terms) > 1 else terms[0]


def _given(term: GradientTerm | None) -> GradientTerm:
    assert term is not None
    return term


def _lstm_cell(call: GradientCall, operands: Sequence[GradientTerm | None]) -> Sequence[GradientTerm]:
    x, weight, recurrent, h, c = (_given(term) for term in operands[:5])
    weights = _Weights(call, weight, recurrent, *operands[5:])
    return weights.lstm(weights.rows(x), (h, c))


def _gru_cell(call: GradientCall, operands: Sequence[GradientTerm | None]) -> Sequence[GradientTerm]:
    x, weight, recurrent, h = (_given(term) for term in operands[:4])
    weights = _Weights(call, weight, recurrent, *operands[4:])
    return weights.gru(weights.rows(x), (h,))


def _network(
    call: GradientCall, parameters: Sequence[GradientTerm | None], initial: Sequence[GradientTerm | None], cell: str
) -> Sequence[GradientTerm]:
    """Return the results of a network.

    Args:
        call: the node.
        parameters: the input, and the parameters of `_Weights` for all directions.
        initial: the states before the first time step. None stands for zeros.
        cell: the name of the method of `_Weights`.
    """
    x = _given(parameters[0])
    steps, batch, inputs = x.shape
    hidden, direction = call.attrs["hidden_size"], call.attrs["direction"]
    flat = x.reshaped((steps * batch, inputs))
    lasts: list[_State] = []
    sequences: list[GradientTerm] = []
    for d in range(2 if direction == "both" else 1):

        def own(term: GradientTerm | None, d: int = d) -> GradientTerm | None:
            return None if term is None else term.sliced(0, d, 1).reshaped(term.shape[1:])

        weight, recurrent, *biases = (own(term) for term in parameters[1:])
        weights = _Weights(call, _given(weight), _given(recurrent), *biases)
        # One product for all time steps.
        rows = weights.rows(flat)
        state = tuple(own(term) or x.filled(0.0, (batch, hidden)) for term in initial)
        hiddens: dict[int, GradientTerm] = {}
        backward = direction == "backward" or d == 1
        for step in reversed(range(steps)) if backward else range(steps):
            state = getattr(weights, cell)(rows.sliced(0, step * batch, batch), state)
            hiddens[step] = state[0].reshaped((1, 1, batch, hidden))
        lasts.append(tuple(term.reshaped((1, batch, hidden)) for term in state))
        sequences.append(_joined([hiddens[step] for step in range(steps)], 0))
    found = [_joined(terms, 0) for terms in zip(*lasts, strict=True)]
    return [*found, _joined(sequences, 1)] if call.attrs["return_sequence"] else found


LSTM_CELL = by_parts(_lstm_cell)
GRU_CELL = by_parts(_gru_cell)
LSTM = by_parts(lambda call, operands: _network(call, operands[:6], operands[6:], "lstm"))
GRU = by_parts(lambda call, operands: _network(call, operands[:5], operands[5:], "gru"))
