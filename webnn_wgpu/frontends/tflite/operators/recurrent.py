"""Recurrent cells and sequences of them."""

from __future__ import annotations

from collections.abc import Sequence

from webnn_wgpu import MLOperand

from ..call import TfliteCall
from ..contents import TensorRecord
from ._integer_lstm import IntegerLstm, is_integer_lstm
from ._lstm_inputs import BACKWARD, FORWARD, SINGLE, LstmInputs
from ._registry import Result, lowers
from ._sums import weighted


def _state_record(call: TfliteCall, index: int) -> TensorRecord:
    record = call.records[index] if index < len(call.records) else None
    return record if record is not None else call.fail(f"input {index}, a state, is missing")


class LstmSteps:
    """The time steps of one direction of an LSTM.

    Args:
        call: the node.
        at: the positions of its inputs.
    """

    def __init__(self, call: TfliteCall, at: LstmInputs) -> None:
        self.call, self.at = call, at
        self.coupled = not call.has(at.weights)
        self.cell_clip = float(call.option("CellClip", 0.0))
        self.projection_clip = float(call.option("ProjClip", 0.0))
        self.gates = [g for g in range(4) if g or not self.coupled]
        self.normalized = at.normalization >= 0 and call.has(at.normalization + 1)

    def is_plain(self) -> bool:
        """Return whether WebNN's lstm computes the same."""
        call, at = self.call, self.at
        extras = (*range(at.peepholes, at.peepholes + 3), at.projection)
        return not (
            self.coupled
            or self.normalized
            or self.cell_clip
            or self.projection_clip
            or call.activation != "TANH"
            or any(call.has(i) for i in extras)
            or (at.auxiliary >= 0 and call.has(at.auxiliary + 1))
            or call.tensor(at.hidden).is_quantized
        )

    def inputs(self, x: MLOperand, auxiliary: MLOperand | None) -> list[MLOperand | None]:
        """Return the products of all time steps with the weights of each gate: [steps * batch, units]."""
        call, found = self.call, list[MLOperand | None]([None] * 4)
        for g in self.gates:
            y = weighted(call, x, self.at.weights + g, self._bias(g))
            if auxiliary is not None and call.has(self.at.auxiliary + g):
                y = weighted(call, auxiliary, self.at.auxiliary + g, y)
            found[g] = y
        return found

    def _bias(self, gate: int) -> MLOperand | None:
        index = self.at.biases + gate
        return None if self.normalized or not self.call.has(index) else self.call.floats(index)

    def _gate(self, gate: int, sums: MLOperand, hidden: MLOperand, peephole: tuple[int, MLOperand] | None) -> MLOperand:
        call, b = self.call, self.call.build
        y = weighted(call, hidden, self.at.recurrent + gate, sums)
        if peephole is not None and call.has(self.at.peepholes + peephole[0]):
            y = b.add(y, b.mul(peephole[1], call.floats(self.at.peepholes + peephole[0])))
        if self.normalized:
            y = b.layer_normalization(y, axes=[1], epsilon=1e-8)
            y = b.mul(y, call.floats(self.at.normalization + gate))
            y = b.add(y, call.floats(self.at.biases + gate))
        return call.activate(y, call.activation) if gate == 2 else b.sigmoid(y)

    def step(self, sums: Sequence[MLOperand | None], hidden: MLOperand, cell: MLOperand) -> tuple[MLOperand, MLOperand]:
        """Return the next hidden state and cell state."""
        call, b = self.call, self.call.build

        def gate(number: int, peephole: tuple[int, MLOperand] | None = None) -> MLOperand:
            total = sums[number]
            assert total is not None
            return self._gate(number, total, hidden, peephole)

        forget = gate(1, (1, cell))
        enters = b.sub(call.constant(1, "float32"), forget) if self.coupled else gate(0, (0, cell))
        cell = b.add(b.mul(forget, cell), b.mul(enters, gate(2)))
        if self.cell_clip > 0:
            cell = b.clamp(cell, min_value=-self.cell_clip, max_value=self.cell_clip)
        cell = self.kept(cell, self.at.cell)
        hidden = b.mul(gate(3, (2, cell)), call.activate(cell, call.activation))
        if call.has(self.at.projection):
            bias = call.floats(self.at.projection + 1) if call.has(self.at.projection + 1) else None
            hidden = weighted(call, hidden, self.at.projection, bias)
            if self.projection_clip > 0:
                hidden = b.clamp(hidden, min_value=-self.projection_clip, max_value=self.projection_clip)
        return self.kept(hidden, self.at.hidden), cell

    def kept(self, state: MLOperand, index: int) -> MLOperand:
        """Return a state with the precision of its tensor."""
        record = _state_record(self.call, index)
        tensor = self.call.typed(state, record)
        return self.call.cast(self.call.dequantized(tensor), "float32")

    def run(self, x: MLOperand, auxiliary: MLOperand | None, backward: bool = False) -> MLOperand:
        """Return the hidden states [steps, batch, units] of a sequence [steps, batch, inputs], and update the states."""
        call, b, at = self.call, self.call.build, self.at
        steps, batch = int(x.shape[0]), int(x.shape[1])
        hidden, cell = call.floats(at.hidden), call.floats(at.cell)
        if self.is_plain():
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
        flat = call.reshape(x, [steps * batch, int(x.shape[2])])
        other = None if auxiliary is None else call.reshape(auxiliary, [steps * batch, int(auxiliary.shape[2])])
        parts = [
            None if y is None else b.split(y, [batch] * steps, axis=0) if steps > 1 else [y] for y in self.inputs(flat, other)
        ]
        found: dict[int, MLOperand] = {}
        for t in reversed(range(steps)) if backward else range(steps):
            hidden, cell = self.step([None if p is None else p[t] for p in parts], hidden, cell)
            found[t] = call.reshape(hidden, [1, *hidden.shape])
        call.update(at.hidden, hidden)
        call.update(at.cell, cell)
        ordered = [found[t] for t in range(steps)]
        return b.concat(ordered, 0) if steps > 1 else ordered[0]


def _time_first(call: TfliteCall, x: MLOperand, time_major: bool) -> MLOperand:
    return x if time_major else call.transpose(x, [1, 0, 2])


QUANTIZED = "int8: in integers, layer normalization included"


@lowers(UNIDIRECTIONAL_SEQUENCE_LSTM=4, ranks={0: (3, 3)}, note=QUANTIZED)
def sequence_lstm(call: TfliteCall) -> Result:
    """An LSTM over a sequence, whose states are variables."""
    major = bool(call.option("TimeMajor", False))
    if is_integer_lstm(call, SINGLE):
        y = IntegerLstm(call, SINGLE).run(_time_first(call, call.operand(0), major))
    else:
        y = LstmSteps(call, SINGLE).run(_time_first(call, call.floats(0), major), None)
    return _time_first(call, y, major)


@lowers(LSTM=4, ranks={0: (2, 2)}, note=QUANTIZED)
def lstm(call: TfliteCall) -> Result:
    """One step of an LSTM, whose states are variables. The basic kernel has them as inputs and outputs."""
    if int(call.option("KernelType")) == 1:
        return _basic_lstm(call)
    shape = [1, *call.shape(0)]
    if is_integer_lstm(call, SINGLE):
        y = IntegerLstm(call, SINGLE).run(call.reshape(call.operand(0), shape))
    else:
        y = LstmSteps(call, SINGLE).run(call.reshape(call.floats(0), shape), None)
    return [call.reshape(y, y.shape[1:])]


def _basic_lstm(call: TfliteCall) -> Result:
    b = call.build
    joined = b.concat([call.floats(0), call.floats(1)], 1)
    sums = b.gemm(joined, call.floats(2), c=call.floats(3), b_transpose=True)
    enters, new, forget, output = b.split(sums, 4, axis=1)
    cell = b.add(b.mul(b.sigmoid(enters), b.tanh(new)), b.mul(b.sigmoid(forget), call.floats(4)))
    found = [b.mul(b.sigmoid(output), b.tanh(cell)), cell, joined, sums]
    return [*found[: len(call.outputs)]]


@lowers(BIDIRECTIONAL_SEQUENCE_LSTM=3, ranks={0: (3, 3)})
def bidirectional_lstm(call: TfliteCall) -> Result:
    """LSTMs over a sequence in both directions."""
    major = bool(call.option("TimeMajor", False))
    x = _time_first(call, call.floats(0), major)
    auxiliary = _time_first(call, call.floats(39), major) if call.has(39) else None
    # Without weights of its own, the auxiliary input is the input of the backward direction.
    stacked = auxiliary is not None and not call.has(BACKWARD.auxiliary + 1)
    forward = LstmSteps(call, FORWARD).run(x, None if stacked else auxiliary)
    source = auxiliary if stacked and auxiliary is not None else x
    backward = LstmSteps(call, BACKWARD).run(source, None if stacked else auxiliary, backward=True)
    return _merged(call, forward, backward, major)


def _merged(call: TfliteCall, forward: MLOperand, backward: MLOperand, major: bool) -> Result:
    if bool(call.option("MergeOutputs", False)):
        return [_time_first(call, call.build.concat([forward, backward], 2), major)]
    return [_time_first(call, forward, major), _time_first(call, backward, major)]


class RnnSteps:
    """The time steps of one direction of a simple recurrent network: h = activation(W x + R h + b).

    Args:
        call: the node.
        weights: the position of W, followed by R, b and h.
        auxiliary: the position of the weights of the auxiliary input, -1 without them.
    """

    def __init__(self, call: TfliteCall, weights: int, auxiliary: int = -1) -> None:
        self.call, self.weights, self.auxiliary = call, weights, auxiliary

    def run(self, x: MLOperand, auxiliary: MLOperand | None, backward: bool = False) -> MLOperand:
        """Return the hidden states [steps, batch, units] of a sequence [steps, batch, inputs], and update the state."""
        call, b, at = self.call, self.call.build, self.weights
        steps, batch = int(x.shape[0]), int(x.shape[1])
        flat = call.reshape(x, [steps * batch, int(x.shape[2])])
        sums = weighted(call, flat, at, call.floats(at + 2))
        if auxiliary is not None and self.auxiliary >= 0 and call.has(self.auxiliary):
            other = call.reshape(auxiliary, [steps * batch, int(auxiliary.shape[2])])
            sums = weighted(call, other, self.auxiliary, sums)
        parts = b.split(sums, [batch] * steps, axis=0) if steps > 1 else [sums]
        hidden, found = call.floats(at + 3), dict[int, MLOperand]()
        for t in reversed(range(steps)) if backward else range(steps):
            y = weighted(call, hidden, at + 1, parts[t])
            hidden = call.activate(y, call.activation)
            found[t] = call.reshape(hidden, [1, *hidden.shape])
        call.update(at + 3, hidden)
        ordered = [found[t] for t in range(steps)]
        return b.concat(ordered, 0) if steps > 1 else ordered[0]


@lowers(RNN=3, ranks={0: (2, 2)})
def rnn(call: TfliteCall) -> Result:
    """One step of a simple recurrent network."""
    x = call.floats(0)
    y = RnnSteps(call, 1).run(call.reshape(x, [1, *x.shape]), None)
    return call.reshape(y, y.shape[1:])


@lowers(UNIDIRECTIONAL_SEQUENCE_RNN=3, ranks={0: (3, 3)})
def sequence_rnn(call: TfliteCall) -> Result:
    """A simple recurrent network over a sequence."""
    major = bool(call.option("TimeMajor", False))
    return _time_first(call, RnnSteps(call, 1).run(_time_first(call, call.floats(0), major), None), major)


@lowers(BIDIRECTIONAL_SEQUENCE_RNN=3, ranks={0: (3, 3)})
def bidirectional_rnn(call: TfliteCall) -> Result:
    """Simple recurrent networks over a sequence in both directions."""
    major = bool(call.option("TimeMajor", False))
    x = _time_first(call, call.floats(0), major)
    auxiliary = _time_first(call, call.floats(9), major) if call.has(9) else None
    stacked = auxiliary is not None and not call.has(10)
    forward = RnnSteps(call, 1, 10).run(x, None if stacked else auxiliary)
    source = auxiliary if stacked and auxiliary is not None else x
    backward = RnnSteps(call, 5, 11).run(source, None if stacked else auxiliary, backward=True)
    return _merged(call, forward, backward, major)


@lowers(SVDF=4, ranks={0: (2, 2)}, note="quantized: in floats, the state rounded at each run")
def svdf(call: TfliteCall) -> Result:
    """A filter of rank `rank` over the last features, which a variable holds."""
    b, ranks = call.build, int(call.option("Rank", 1))
    batch, filters, memory = call.shape(0)[0], call.shape(1)[0], call.shape(2)[1]
    if ranks < 1 or filters % ranks:
        call.fail(f"{filters} filters of rank {ranks}")
    features = weighted(call, call.floats(0), 1)
    state = call.reshape(call.floats(4), [batch, filters, memory])
    newest = call.reshape(features, [batch, filters, 1])
    if memory > 1:
        older = b.slice(state, [0, 0, 1], [batch, filters, memory - 1])
        newest = b.concat([older, newest], 2)
    kept = call.typed(call.reshape(newest, [batch, filters * memory]), _state_record(call, 4))
    assert kept.operand is not None
    call.update(4, kept.operand)
    state = call.reshape(call.cast(call.dequantized(kept), "float32"), [batch, filters, memory])
    y = b.reduce_sum(b.mul(state, call.floats(2)), axes=[2])
    y = b.reduce_sum(call.reshape(y, [batch, filters // ranks, ranks]), axes=[2])
    if call.has(3):
        y = b.add(y, call.floats(3))
    # TFLite's integer kernel has no activation, whatever its option says.
    return y if call.tensor(0).is_quantized else call.activate(y, call.activation)
