"""Recurrent cells and sequences of them."""

from __future__ import annotations

from webnn_wgpu import MLOperand

from ..call import TfliteCall
from ._float_lstm import float_lstm, state_record
from ._integer_lstm import IntegerLstm, is_integer_lstm
from ._lstm_inputs import BACKWARD, FORWARD, SINGLE
from ._registry import Result, lowers
from ._sums import Weights


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
        y = float_lstm(call, SINGLE, _time_first(call, call.floats(0), major))
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
        y = float_lstm(call, SINGLE, call.reshape(call.floats(0), shape))
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
    forward = float_lstm(call, FORWARD, x, None if stacked else auxiliary)
    source = auxiliary if stacked and auxiliary is not None else x
    backward = float_lstm(call, BACKWARD, source, None if stacked else auxiliary, backward=True)
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
        sums = Weights.of(call, at).products(flat, call.floats(at + 2))
        if auxiliary is not None and self.auxiliary >= 0 and call.has(self.auxiliary):
            other = call.reshape(auxiliary, [steps * batch, int(auxiliary.shape[2])])
            sums = Weights.of(call, self.auxiliary).products(other, sums)
        parts = b.split(sums, [batch] * steps, axis=0) if steps > 1 else [sums]
        hidden, found = call.floats(at + 3), dict[int, MLOperand]()
        for t in reversed(range(steps)) if backward else range(steps):
            y = Weights.of(call, at + 1).products(hidden, parts[t])
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
    features = Weights.of(call, 1).products(call.floats(0))
    state = call.reshape(call.floats(4), [batch, filters, memory])
    newest = call.reshape(features, [batch, filters, 1])
    if memory > 1:
        older = b.slice(state, [0, 0, 1], [batch, filters, memory - 1])
        newest = b.concat([older, newest], 2)
    kept = call.typed(call.reshape(newest, [batch, filters * memory]), state_record(call, 4))
    assert kept.operand is not None
    call.update(4, kept.operand)
    state = call.reshape(call.cast(call.dequantized(kept), "float32"), [batch, filters, memory])
    y = b.reduce_sum(b.mul(state, call.floats(2)), axes=[2])
    y = b.reduce_sum(call.reshape(y, [batch, filters // ranks, ranks]), axes=[2])
    if call.has(3):
        y = b.add(y, call.floats(3))
    # TFLite's integer kernel has no activation, whatever its option says.
    return y if call.tensor(0).is_quantized else call.activate(y, call.activation)
