"""LSTMs of float32 activations: WebNN's lstm where it computes the same, or else the steps one after the other."""

from __future__ import annotations

from webnn_wgpu import MLOperand

from ..call import TfliteCall
from ..contents import TensorRecord
from ._lstm_inputs import LstmInputs
from ._sums import Weights, padded_to

WIDTH = 64
"""Gates and states of one row have a multiple of this number of columns, the last ones for no unit, whose weights are 0.

So the gates are parts of a buffer that kernels can bind.
"""


def float_lstm(
    call: TfliteCall, at: LstmInputs, x: MLOperand, auxiliary: MLOperand | None = None, backward: bool = False
) -> MLOperand:
    """Return the hidden states [steps, batch, outputs] of a sequence [steps, batch, inputs], and update the states.

    Args:
        call: the node.
        at: the positions of its inputs.
        x: the sequence.
        auxiliary: another sequence of inputs.
        backward: whether the last step comes first.
    """
    return _lstm(call, at, x, backward) if _is_plain(call, at) else _Steps(call, at).run(x, auxiliary, backward)


def _is_plain(call: TfliteCall, at: LstmInputs) -> bool:
    """Return whether WebNN's lstm computes the same."""
    extras = (*range(at.peepholes, at.peepholes + 3), at.projection)
    return not (
        not call.has(at.weights)
        or at.normalizes(call)
        or _option(call, "CellClip")
        or _option(call, "ProjClip")
        or call.activation != "TANH"
        or any(call.has(i) for i in extras)
        or (at.auxiliary >= 0 and call.has(at.auxiliary + 1))
        or call.tensor(at.hidden).is_quantized
    )


def _option(call: TfliteCall, name: str) -> float:
    return float(call.option(name, 0.0))


def _lstm(call: TfliteCall, at: LstmInputs, x: MLOperand, backward: bool) -> MLOperand:
    """Return the hidden states of WebNN's lstm, and update the states."""
    b, steps, batch = call.build, int(x.shape[0]), int(x.shape[1])
    hidden, cell = call.floats(at.hidden), call.floats(at.cell)
    units = call.shape(at.cell)[-1]
    weights = b.concat([call.floats(at.weights + g) for g in range(4)], 0)
    recurrent = b.concat([call.floats(at.recurrent + g) for g in range(4)], 0)
    bias = b.concat([call.floats(at.biases + g) for g in range(4)], 0)
    last, cell, sequence = b.lstm(
        x,
        call.reshape(weights, [1, *weights.shape]),
        call.reshape(recurrent, [1, *recurrent.shape]),
        steps,
        units,
        bias=call.reshape(bias, [1, 4 * units]),
        initial_hidden_state=call.reshape(hidden, [1, batch, units]),
        initial_cell_state=call.reshape(cell, [1, batch, units]),
        return_sequence=True,
        direction="backward" if backward else "forward",
        layout="ifgo",
    )
    call.update(at.hidden, call.reshape(last, [batch, units]))
    call.update(at.cell, call.reshape(cell, [batch, units]))
    return call.reshape(sequence, [steps, batch, units])


def state_record(call: TfliteCall, index: int) -> TensorRecord:
    """Return the record of a state."""
    record = call.records[index] if index < len(call.records) else None
    return record if record is not None else call.fail(f"input {index}, a state, is missing")


class _Steps:
    """The time steps of one direction of an LSTM.

    Args:
        call: the node.
        at: the positions of its inputs.
    """

    def __init__(self, call: TfliteCall, at: LstmInputs) -> None:
        self.call, self.at = call, at
        self.cell_clip, self.projection_clip = _option(call, "CellClip"), _option(call, "ProjClip")
        self.gates = at.gates(call)
        self.normalized = at.normalizes(call)
        # Further columns would change the mean of a normalization, and parts of several rows are copied in any case.
        self.width = 1 if self.normalized or call.shape(at.cell)[0] > 1 else WIDTH
        self.recurrent = self.weights(at.recurrent, self.width)
        self.projection: Weights | None = None
        if call.has(at.projection):
            self.projection = Weights.of(call, at.projection, multiples=(self.width, self.width))

    def weights(self, first: int, columns: int = 1) -> Weights:
        """Return the weights of the gates side by side."""
        return Weights.of(self.call, *(first + g for g in self.gates), multiples=(self.width, columns))

    def vector(self, index: int) -> MLOperand:
        """Return a vector of the units."""
        return padded_to(self.call, self.call.floats(index), self.width)

    def inputs(self, x: MLOperand, auxiliary: MLOperand | None) -> MLOperand:
        """Return the products of all time steps with the weights of the gates, side by side: [steps * batch, columns]."""
        call, at = self.call, self.at
        bias = None if self.normalized else call.build.concat([self.vector(at.biases + g) for g in self.gates], 0)
        y = self.weights(at.weights).products(x, bias)
        if auxiliary is not None and call.has(at.auxiliary + 1):
            y = self.weights(at.auxiliary).products(auxiliary, y)
        return y

    def _gate(self, gate: int, y: MLOperand, peephole: tuple[int, MLOperand] | None) -> MLOperand:
        call, b = self.call, self.call.build
        if peephole is not None and call.has(self.at.peepholes + peephole[0]):
            y = b.add(y, b.mul(peephole[1], self.vector(self.at.peepholes + peephole[0])))
        if self.normalized:
            y = b.layer_normalization(y, axes=[1], epsilon=1e-8)
            y = b.mul(y, call.floats(self.at.normalization + gate))
            y = b.add(y, call.floats(self.at.biases + gate))
        return call.activate(y, call.activation) if gate == 2 else b.sigmoid(y)

    def step(self, sums: MLOperand, hidden: MLOperand, cell: MLOperand) -> tuple[MLOperand, MLOperand]:
        """Return the next hidden state and cell state."""
        call, b = self.call, self.call.build
        sums = self.recurrent.products(hidden, sums)
        totals = dict(zip(self.gates, b.split(sums, len(self.gates), axis=1), strict=True))

        def gate(number: int, peephole: tuple[int, MLOperand] | None = None) -> MLOperand:
            return self._gate(number, totals[number], peephole)

        forget = gate(1, (1, cell))
        enters = b.sub(call.constant(1, "float32"), forget) if 0 not in self.gates else gate(0, (0, cell))
        cell = b.add(b.mul(forget, cell), b.mul(enters, gate(2)))
        if self.cell_clip > 0:
            cell = b.clamp(cell, min_value=-self.cell_clip, max_value=self.cell_clip)
        cell = self.kept(cell, self.at.cell)
        hidden = b.mul(gate(3, (2, cell)), call.activate(cell, call.activation))
        if self.projection is not None:
            bias = self.vector(self.at.projection + 1) if call.has(self.at.projection + 1) else None
            hidden = self.projection.products(hidden, bias)
            if self.projection_clip > 0:
                hidden = b.clamp(hidden, min_value=-self.projection_clip, max_value=self.projection_clip)
        return self.kept(hidden, self.at.hidden), cell

    def kept(self, state: MLOperand, index: int) -> MLOperand:
        """Return a state with the precision of its tensor."""
        record = state_record(self.call, index)
        tensor = self.call.typed(state, record)
        return self.call.cast(self.call.dequantized(tensor), "float32")

    def run(self, x: MLOperand, auxiliary: MLOperand | None, backward: bool) -> MLOperand:
        """Return the hidden states of a sequence, and update the states."""
        call, b, at = self.call, self.call.build, self.at
        steps, batch = int(x.shape[0]), int(x.shape[1])
        hidden, cell = call.floats(at.hidden), call.floats(at.cell)
        sizes = [int(hidden.shape[1]), int(cell.shape[1])]
        hidden, cell = (padded_to(call, state, 1, self.width) for state in (hidden, cell))
        flat = call.reshape(x, [steps * batch, int(x.shape[2])])
        other = None if auxiliary is None else call.reshape(auxiliary, [steps * batch, int(auxiliary.shape[2])])
        sums = self.inputs(flat, other)
        parts = b.split(sums, [batch] * steps, axis=0) if steps > 1 else [sums]
        found: dict[int, MLOperand] = {}
        for t in reversed(range(steps)) if backward else range(steps):
            hidden, cell = self.step(parts[t], hidden, cell)
            found[t] = call.reshape(hidden, [1, *hidden.shape])
        call.update(at.hidden, b.slice(hidden, [0, 0], [batch, sizes[0]]))
        call.update(at.cell, b.slice(cell, [0, 0], [batch, sizes[1]]))
        ordered = [found[t] for t in range(steps)]
        y = b.concat(ordered, 0) if steps > 1 else ordered[0]
        return b.slice(y, [0, 0, 0], [steps, batch, sizes[0]])
