"""Recurrent layers: operators of whole sequences where there are any for the cell, else the steps one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from webnn_wgpu import MLOperand

from ..windows import convolution
from ._call import Flow, LayerCall, layer
from .activations import ACTIVATIONS, activation_name, recurrent_activation

GATES = {"SimpleRNN": 1, "GRU": 3, "LSTM": 4}
"""The number of gates of a cell."""


MOST_STEPS = 1 << 13
"""The maximum number of steps of a graph that has each of them."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A cell of a recurrent layer.

    Attributes:
        kind: "SimpleRNN", "GRU" or "LSTM".
        call: its configuration and weights.
        units: the number of hidden units.
    """

    kind: str
    call: LayerCall
    units: int

    @property
    def states(self) -> int:
        """The number of states."""
        return 2 if self.kind == "LSTM" else 1

    def weights(self, inputs: int) -> tuple[MLOperand, MLOperand, MLOperand | None]:
        """Return the kernel, the recurrent kernel and the bias, for a number of inputs."""
        columns = GATES[self.kind] * self.units
        kernel = self.call.weight("kernel", [inputs, columns])
        recurrent = self.call.weight("recurrent_kernel", [self.units, columns])
        return kernel, recurrent, self.call.weight("bias", [columns]) if self.call.flag("use_bias", True) else None

    def activations(self) -> tuple[str, str]:
        """Return the names of the activations of the gates and of the output."""
        output = activation_name(self.call, default="tanh")
        return activation_name(self.call, "recurrent_activation", "hard_sigmoid"), output

    def drops(self) -> bool:
        """Return whether the cell drops elements."""
        return self.call.training is not None and any(self.call.number(n, 0) > 0 for n in ("dropout", "recurrent_dropout"))

    def start(self) -> Callable[[MLOperand, Sequence[MLOperand]], list[MLOperand]]:
        """Return the function of a step: from the input and the states to the states. The output is the first one."""
        b, gate, output = self.call.build, *self.activations()
        rates = [self.call.number(n, 0) for n in ("dropout", "recurrent_dropout")]
        dropped: dict[str, MLOperand] = {}

        def drop(name: str, rate: float, x: MLOperand) -> MLOperand:
            # All steps drop the same elements.
            if self.call.training is None or not 0 < rate < 1:
                return x
            if name not in dropped:
                dropped[name] = self.call.dropped(self.call.ones(x.shape), rate)
            return b.mul(x, dropped[name])

        def step(x: MLOperand, states: Sequence[MLOperand]) -> list[MLOperand]:
            kernel, recurrent, bias = self.weights(x.shape[-1])
            x, h = drop("x", rates[0], x), drop("h", rates[1], states[0])
            sums = b.gemm(x, kernel) if bias is None else b.gemm(x, kernel, c=bias)
            if self.kind == "SimpleRNN":
                return [ACTIVATIONS[output](self.call, b.add(sums, b.gemm(h, recurrent)))]
            if self.kind == "LSTM":
                i, f, c, o = b.split(b.add(sums, b.gemm(h, recurrent)), 4, axis=1)
                i, f, o = (ACTIVATIONS[gate](self.call, part) for part in (i, f, o))
                new = b.add(b.mul(f, states[1]), b.mul(i, ACTIVATIONS[output](self.call, c)))
                return [b.mul(o, ACTIVATIONS[output](self.call, new)), new]
            z, r, n = b.split(sums, 3, axis=1)
            of_gates, of_new = b.split(recurrent, [2 * self.units, self.units], axis=1)
            from_z, from_r = b.split(b.gemm(h, of_gates), 2, axis=1)
            z = ACTIVATIONS[gate](self.call, b.add(z, from_z))
            r = ACTIVATIONS[gate](self.call, b.add(r, from_r))
            new = ACTIVATIONS[output](self.call, b.add(n, b.gemm(b.mul(r, h), of_new)))
            one = self.call.constant(1.0, "float32")
            return [b.add(b.mul(z, h), b.mul(b.sub(one, z), new))]

        return step


def cells_of(call: LayerCall) -> list[Cell]:
    """Return the cells of a recurrent layer, the first one nearest to the input."""
    if call.kind != "RNN":
        return [_cell(call, call.kind)]
    entry: Any = call.config.get("cell")
    if not isinstance(entry, dict):
        call.fail("it has no cell")
    if entry.get("class_name") != "StackedRNNCells":  # pyright: ignore[reportUnknownMemberType]
        inner = call.inner(entry, call.inputs, call.path)
        return [_cell(inner, inner.kind.removesuffix("Cell"))]
    stack: Any = call.inner(entry, [], call.path).config.get("cells")
    if not isinstance(stack, list) or not stack:
        call.fail("it has no cells")
    found = [call.inner(cell, call.inputs, f"{call.path}/RNNCell_{i}") for i, cell in enumerate(stack)]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return [_cell(inner, inner.kind.removesuffix("Cell")) for inner in found]


def _cell(call: LayerCall, kind: str) -> Cell:
    if kind not in GATES:
        call.fail(f"a cell of the class {call.kind}")
    if kind == "GRU" and call.flag("reset_after"):
        call.fail("reset_after is true, which TensorFlow.js does not have")
    return Cell(kind=kind, call=call, units=call.integer("units"))


@layer("SimpleRNN", "GRU", "LSTM", "RNN")
def recurrent(call: LayerCall) -> list[Flow]:
    """A cell, or a stack of them, over the steps of a sequence."""
    x = call.ranked(3)
    if call.flag("stateful"):
        call.fail("stateful is true: states are not kept from run to run")
    cells = cells_of(call)
    count = sum(cell.states for cell in cells)
    given = [flow.operand for flow in call.inputs[1 : 1 + count]]
    if given and len(given) != count:
        call.fail(f"{len(given)} initial states of {count}")
    backwards = call.flag("go_backwards")
    if len(cells) == 1 and call.mask is None and (found := _whole(call, cells[0], x, given, backwards)) is not None:
        return _results(call, *found)
    states = given or [call.zeros([x.shape[0], cell.units]) for cell in cells for _ in range(cell.states)]
    steps = [cell.start() for cell in cells]

    def step(part: MLOperand, states: Sequence[MLOperand]) -> list[MLOperand]:
        after: list[MLOperand] = []
        at = 0
        for cell, advance in zip(cells, steps, strict=True):
            found = advance(part, states[at : at + cell.states])
            after, at, part = [*after, *found], at + cell.states, found[0]
        return after

    first = sum(cell.states for cell in cells[:-1])
    return _results(call, *unrolled(call, x, states, step, backwards, first))


def _whole(
    call: LayerCall, cell: Cell, x: MLOperand, given: Sequence[MLOperand], backwards: bool
) -> tuple[MLOperand, list[MLOperand]] | None:
    """Return the output and the last states by an operator of whole sequences. None if there is none for the cell."""
    if cell.kind == "SimpleRNN" or cell.drops():
        return None
    b, (gate, output) = call.build, cell.activations()
    makers = [recurrent_activation(call, name) for name in ((gate, output) if cell.kind == "GRU" else (gate, output, output))]
    activations = [maker for maker in makers if maker is not None]
    if len(activations) != len(makers):
        return None
    n, count, inputs = x.shape
    kernel, recurrent, bias = cell.weights(inputs)

    def rows(weight: MLOperand) -> MLOperand:
        return call.reshape(call.transpose(weight, [1, 0]), [1, weight.shape[1], weight.shape[0]])

    options: dict[str, Any] = {
        "direction": "backward" if backwards else "forward",
        "return_sequence": call.flag("return_sequences"),
        "activations": activations,
    }
    if bias is not None:
        options["bias"] = call.reshape(bias, [1, bias.shape[0]])
    names = ("initial_hidden_state", "initial_cell_state")
    options.update({name: call.reshape(s, [1, n, cell.units]) for name, s in zip(names, given, strict=False)})
    moved = call.transpose(x, [1, 0, 2])
    if cell.kind == "GRU":
        found = b.gru(moved, rows(kernel), rows(recurrent), count, cell.units, reset_after=False, layout="zrn", **options)
    else:
        found = b.lstm(moved, rows(kernel), rows(recurrent), count, cell.units, layout="ifgo", **options)
    states = [call.reshape(state, [n, cell.units]) for state in found[: cell.states]]
    if not call.flag("return_sequences"):
        return states[0], states
    # Steps in the order in which they were made.
    sequence = call.transpose(call.reshape(found[-1], [count, n, cell.units]), [1, 0, 2])
    return b.reverse(sequence, axes=[1]) if backwards else sequence, states


def unrolled(
    call: LayerCall,
    x: MLOperand,
    states: Sequence[MLOperand],
    step: Callable[[MLOperand, Sequence[MLOperand]], list[MLOperand]],
    backwards: bool,
    first: int = 0,
) -> tuple[MLOperand, list[MLOperand]]:
    """Return the output, a sequence if it is wanted, and the last states, from steps one after the other.

    Args:
        call: the layer.
        x: [batch, steps, *sizes].
        states: the initial states.
        step: returns the states after a step.
        backwards: whether the last step is the first.
        first: the number of the state that is the output.
    """
    b, count = call.build, x.shape[1]
    if count > MOST_STEPS:
        call.fail(f"{count} steps one after the other, of which {MOST_STEPS} are allowed")
    current, outputs = list(states), list[MLOperand]()
    for t in reversed(range(count)) if backwards else range(count):
        whole = b.slice(x, [0, t, *[0] * (len(x.shape) - 2)], [x.shape[0], 1, *x.shape[2:]])
        after = step(call.reshape(whole, [x.shape[0], *x.shape[2:]]), current)
        output = after[first]
        if call.mask is not None:
            here = b.slice(call.mask, [0, t], [x.shape[0], 1])
            here = call.reshape(here, [x.shape[0], *[1] * (len(output.shape) - 1)])
            # As in TensorFlow.js, a step that does not count repeats the first state as its output.
            output = b.where(here, output, current[0])
            after = [b.where(here, new, old) for new, old in zip(after, current, strict=True)]
        current = after
        outputs.append(output)
    if not call.flag("return_sequences"):
        return outputs[-1], current
    return b.concat([call.reshape(o, [o.shape[0], 1, *o.shape[1:]]) for o in outputs], 1), current


def _results(call: LayerCall, output: MLOperand, states: Sequence[MLOperand]) -> list[Flow]:
    results = [Flow(output, call.mask if call.flag("return_sequences") else None)]
    return [*results, *map(Flow, states)] if call.flag("return_state") else results


@layer("ConvLSTM2D")
def conv_lstm(call: LayerCall) -> list[Flow]:
    """A long short-term memory whose products are convolutions."""
    x, b = call.ranked(5), call.build
    first = call.channels_first()
    x = call.transpose(x, [0, 1, 3, 4, 2]) if first else x
    if call.flag("stateful"):
        call.fail("stateful is true: states are not kept from run to run")
    filters, taps = call.integer("filters"), call.integers("kernel_size", 2)
    strides, dilations = call.integers("strides", 2, 1), call.integers("dilation_rate", 2, 1)
    padding: Any = call.choice("padding", "valid", "same")
    kernel = call.weight("kernel", [*taps, x.shape[-1], 4 * filters])
    recurrent = call.weight("recurrent_kernel", [*taps, filters, 4 * filters])
    bias = call.weight("bias", [4 * filters]) if call.flag("use_bias", True) else None
    gate, output = activation_name(call, "recurrent_activation", "hard_sigmoid"), activation_name(call, default="tanh")
    drop = call.number("dropout", 0)

    # The convolution of all steps at once is one of a larger batch.
    steps = call.reshape(x, [x.shape[0] * x.shape[1], *x.shape[2:]])
    sums = convolution(call, call.dropped(steps, drop), kernel, strides, dilations, padding)
    sums = sums if bias is None else b.add(sums, bias)
    sums = call.reshape(sums, [*x.shape[:2], *sums.shape[1:]])

    def step(part: MLOperand, states: Sequence[MLOperand]) -> list[MLOperand]:
        whole = b.add(part, convolution(call, states[0], recurrent, [1, 1], [1, 1], "same"))
        i, f, c, o = b.split(whole, 4, axis=3)
        i, f, o = (ACTIVATIONS[gate](call, part) for part in (i, f, o))
        new = b.add(b.mul(f, states[1]), b.mul(i, ACTIVATIONS[output](call, c)))
        return [b.mul(o, ACTIVATIONS[output](call, new)), new]

    given = [call.last(flow.operand) if first else flow.operand for flow in call.inputs[1:3]]
    states = given or [call.zeros([x.shape[0], *sums.shape[2:4], filters])] * 2
    output_of, after = unrolled(call, sums, states, step, call.flag("go_backwards"))
    found = _results(call, output_of, after)
    if not first:
        return found
    moved = [call.transpose(f.operand, [0, 1, 4, 2, 3]) if len(f.operand.shape) == 5 else call.first(f.operand) for f in found]
    return [Flow(operand, flow.mask) for operand, flow in zip(moved, found, strict=True)]
