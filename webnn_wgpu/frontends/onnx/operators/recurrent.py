"""Recurrent networks.

WebNN has LSTM and GRU. Other networks are composed of operators for each time step: with sequences of several lengths, clipped
gates, an output gate that depends on the new cell state, or some activations. A plain network is a GRU with a constant update
gate of 0 and a constant reset gate of 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from webnn_wgpu import MLActivation, MLOperand

from ..call import NodeCall
from ._registry import MICROSOFT, Result, lowers

DEFAULTS = {
    "affine": (1.0, 0.0),
    "leakyrelu": (0.01, None),
    "thresholdedrelu": (1.0, None),
    "scaledtanh": (1.0, 1.0),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0, None),
}
"""Alpha and beta of the activations that have them."""
COMPOSED = frozenset({"thresholdedrelu", "scaledtanh"})
"""Activations that WebNN's networks do not have."""
NETWORK = {0: (3,), 1: (3,), 2: (3,), 3: (2,), 4: (1,), 5: (3,), 6: (3,), 7: (2,)}
"""Ranks of the inputs of recurrent networks."""
LSTM_ACTIVATIONS = ("Sigmoid", "Tanh", "Tanh")
Direction = Literal["forward", "backward", "both"]
DIRECTIONS: Mapping[str, list[Direction]] = {
    "forward": ["forward"],
    "reverse": ["backward"],
    "bidirectional": ["forward", "backward"],
}


@dataclass(frozen=True)
class Activation:
    """An activation and its parameters."""

    name: str
    alpha: float
    beta: float

    def of_webnn(self, call: NodeCall) -> MLActivation:
        """Return WebNN's activation."""
        build = call.build
        match self.name:
            case "sigmoid":
                return build.sigmoid()
            case "tanh":
                return build.tanh()
            case "relu":
                return build.relu()
            case "softsign":
                return build.softsign()
            case "softplus":
                return build.softplus()
            case "affine":
                return build.linear(alpha=self.alpha, beta=self.beta)
            case "leakyrelu":
                return build.leaky_relu(alpha=self.alpha)
            case "hardsigmoid":
                return build.hard_sigmoid(alpha=self.alpha, beta=self.beta)
            case "elu":
                return build.elu(alpha=self.alpha)
            case _:
                call.fail(f"activation '{self.name}' is unknown")

    def apply(self, call: NodeCall, x: MLOperand) -> MLOperand:
        """Return the activation of an operand."""
        if self.name == "scaledtanh":
            return call.build.linear(call.build.tanh(call.build.linear(x, alpha=self.beta)), alpha=self.alpha)
        if self.name == "thresholdedrelu":
            passed = call.build.greater(x, call.constant(self.alpha, "float32"))
            return call.build.where(passed, x, call.constant(0, "float32"))
        return self.of_webnn(call).apply(x)


def activations_of(call: NodeCall, defaults: Sequence[str], directions: int) -> list[list[Activation]]:
    """Return the activations of each direction. They take their parameters from the attributes in order."""
    names = [str(n).lower() for n in call.attribute("activations") or [*defaults] * directions]
    if len(names) != len(defaults) * directions:
        call.fail(f"{len(names)} activations for {directions} directions of {len(defaults)}")
    alphas = iter(call.attribute("activation_alpha") or [])
    betas = iter(call.attribute("activation_beta") or [])
    found: list[Activation] = []
    for name in names:
        alpha, beta = DEFAULTS.get(name, (None, None))
        alpha = 0.0 if alpha is None else next(alphas, alpha)
        beta = 0.0 if beta is None else next(betas, beta)
        found.append(Activation(name, alpha, beta))
    count = len(defaults)
    return [found[i : i + count] for i in range(0, len(found), count)]


class RecurrentNode:
    """The operands of a recurrent node, in one layout. Steps composed of operators get them as float32.

    Attributes:
        w: weights [directions, gates * hidden, inputs].
        r: recurrent weights [directions, gates * hidden, hidden].
        steps: the number of time steps.
        hidden: the number of hidden units.
        directions: "forward", "backward" or both.
        activations: the activations of each direction.
        lengths: the number of time steps of each sequence [N]. None if all sequences have all steps.
        clip: the maximum magnitude of the operands of activations. None means any.
    """

    def __init__(
        self, call: NodeCall, gates: int, defaults: Sequence[str], weights: tuple[MLOperand, MLOperand] | None = None
    ) -> None:
        self.call, self.gates = call, gates
        self.w, self.r = weights or (call.operand(1), call.operand(2))
        wanted = call.attribute("direction", "forward")
        self.directions = DIRECTIONS.get(wanted) or call.fail(f"direction '{wanted}' is not one of {', '.join(DIRECTIONS)}")
        self.batch_first = bool(call.attribute("layout", 0))
        self.x = call.transpose(call.operand(0), [1, 0, 2]) if self.batch_first else call.operand(0)
        self.steps, self.batch, _ = (int(d) for d in self.x.shape)
        self.hidden = int(self.r.shape[2])
        self.activations = activations_of(call, defaults, len(self.directions))
        self.clip: float | None = call.attribute("clip")
        self.lengths: MLOperand | None = None
        if call.has(4):
            known = call.tensor(4).array
            if known is None or (known < self.steps).any():
                self.lengths = call.operand(4)

    @property
    def plain(self) -> bool:
        """Whether WebNN's network supports the properties that all networks share."""
        composed = any(a.name in COMPOSED for own in self.activations for a in own)
        return self.lengths is None and self.clip is None and not composed

    def state(self, index: int) -> MLOperand | None:
        """Return an optional initial state [directions, N, hidden], or None if it is 0."""
        if not self.call.has(index):
            return None
        known = self.call.tensor(index).array
        if known is not None and not known.any():
            return None
        operand = self.call.operand(index)
        return self.call.transpose(operand, [1, 0, 2]) if self.batch_first else operand

    def one(self, operand: MLOperand | None, direction: int) -> MLOperand | None:
        """Return a direction's part of an operand."""
        if operand is None or len(self.directions) == 1:
            return operand
        rest = list(operand.shape[1:])
        return self.call.build.slice(operand, [direction, *[0] * len(rest)], [1, *rest])

    def biases(self) -> tuple[MLOperand | None, MLOperand | None]:
        """Return the bias and the recurrent bias, [directions, gates * hidden] each."""
        if not self.call.has(3):
            return None, None
        width = self.gates * self.hidden
        first, second = self.call.build.split(self.call.operand(3), [width, width], axis=1)
        return first, second

    def bias(self) -> MLOperand | None:
        """Return the sum of both biases, so that each time step adds only one."""
        first, second = self.biases()
        return None if first is None or second is None else self.call.build.add(first, second)

    def joined(self, results: Sequence[Sequence[MLOperand]]) -> list[MLOperand]:
        """Return the directions' results as one: states [directions, N, hidden], sequence [steps, directions, N, hidden]."""
        if len(results) == 1:
            return list(results[0])
        return [
            self.call.build.concat(list(parts), 1 if len(parts[0].shape) == 4 else 0) for parts in zip(*results, strict=True)
        ]

    def outputs(self, states: Sequence[MLOperand], sequence: MLOperand) -> Result:
        """Return a node's outputs: the sequence, then the states."""
        if self.batch_first:
            sequence = self.call.transpose(sequence, [2, 0, 1, 3])
            states = [self.call.transpose(s, [1, 0, 2]) for s in states]
        return [sequence, *states]

    # steps made of operators --------------------------------------------------------------------------------------

    def act(self, activation: Activation, x: MLOperand) -> MLOperand:
        """Return the activation of the clipped operand."""
        if self.clip is not None:
            x = self.call.build.clamp(x, min_value=-self.clip, max_value=self.clip)
        return activation.apply(self.call, x)

    def weights(self, both: MLOperand, direction: int, number: int | None = None) -> MLOperand:
        """Return a direction's weights, transposed [inputs, gates * hidden], or those of one gate, in float32."""
        operand = self.one(both, direction)
        assert operand is not None
        flat = self.call.cast(self.call.reshape(operand, operand.shape[1:]), "float32")
        if number is not None:
            flat = self.call.build.slice(flat, [number * self.hidden, 0], [self.hidden, flat.shape[1]])
        return self.call.transpose(flat, [1, 0])

    def row(self, operand: MLOperand | None, direction: int) -> MLOperand | None:
        """Return a direction's part of a bias [1, width] in float32."""
        part = self.one(operand, direction)
        return None if part is None else self.call.cast(part, "float32")

    def first_state(self, index: int, direction: int) -> MLOperand:
        """Return a direction's initial state [N, hidden] in float32, zeros if it is absent."""
        state = self.one(self.state(index), direction)
        if state is None:
            return self.call.constant(np.zeros((self.batch, self.hidden)), "float32")
        return self.call.cast(self.call.reshape(state, [self.batch, self.hidden]), "float32")

    def masks(self) -> MLOperand | None:
        """Return the mask of each sequence's time steps, [steps, N, 1]. None if all sequences have all steps."""
        if self.lengths is None:
            return None
        numbers = self.call.constant(np.arange(self.steps).reshape(-1, 1, 1), self.lengths.data_type)
        return self.call.build.greater(self.call.reshape(self.lengths, [1, self.batch, 1]), numbers)

    def projected(self, direction: int, bias: MLOperand | None) -> MLOperand:
        """Return the inputs' products with their weights, [steps, N, gates * hidden], with a bias."""
        flat = self.call.reshape(self.call.cast(self.x, "float32"), [self.steps * self.batch, self.x.shape[2]])
        y = self.call.build.gemm(flat, self.weights(self.w, direction), c=bias)
        return self.call.reshape(y, [self.steps, self.batch, self.gates * self.hidden])

    def gate(self, gates: MLOperand, number: int, count: int = 1) -> MLOperand:
        """Return one gate, or several, of [N, gates * hidden]."""
        return self.call.build.slice(gates, [0, number * self.hidden], [self.batch, count * self.hidden])


CellOutputs = tuple[MLOperand, ...]
Cell = Callable[..., CellOutputs]


def unrolled(net: RecurrentNode, direction: int, step: CellOutputs, cell: Cell, inputs: MLOperand) -> list[MLOperand]:
    """Run a cell over all time steps of a direction. Return the states after the last step and the hidden states of all.

    Args:
        net: the network.
        direction: number of the direction.
        step: the initial states, the hidden one first.
        cell: returns the new states, from the time step's part of `inputs` and the states.
        inputs: [steps, N, width].
    """
    call, masks = net.call, net.masks()
    width = inputs.shape[2]
    zero = call.constant(0, "float32")
    found: list[MLOperand] = []
    order = range(net.steps) if net.directions[direction] == "forward" else reversed(range(net.steps))
    for t in order:
        part = call.reshape(call.build.slice(inputs, [t, 0, 0], [1, net.batch, width]), [net.batch, width])
        new = cell(part, *step)
        output = new[0]
        if masks is not None:
            mask = call.reshape(call.build.slice(masks, [t, 0, 0], [1, net.batch, 1]), [net.batch, 1])
            output = call.build.where(mask, output, zero)
            new = tuple(call.build.where(mask, n, o) for n, o in zip(new, step, strict=True))
        step = new
        found.append(call.reshape(output, [1, 1, net.batch, net.hidden]))
    ordered = found if net.directions[direction] == "forward" else found[::-1]
    sequence = call.build.concat(ordered, 0) if len(ordered) > 1 else ordered[0]
    return [*(call.reshape(s, [1, net.batch, net.hidden]) for s in step), sequence]


def both_biases(net: RecurrentNode, direction: int) -> MLOperand | None:
    """Return the sum of a direction's biases, [1, gates * hidden] in float32."""
    first, second = (net.row(b, direction) for b in net.biases())
    return None if first is None or second is None else net.call.build.add(first, second)


Part = Callable[[MLOperand | None], MLOperand | None]


def by_webnn(
    net: RecurrentNode,
    build: Callable[[Direction, Part, list[MLActivation]], list[MLOperand]],
) -> list[MLOperand]:
    """Return the results of WebNN's network: one network if all directions have the same activations, else one for each.

    Args:
        net: the network.
        build: returns the results of a direction, from the direction, the function that selects its part of an operand, and its
            activations.
    """
    if len(net.directions) == 2 and net.activations[0] == net.activations[1]:
        return build("both", lambda operand: operand, [a.of_webnn(net.call) for a in net.activations[0]])
    results: list[list[MLOperand]] = []
    for i, direction in enumerate(net.directions):
        own = [a.of_webnn(net.call) for a in net.activations[i]]
        results.append(build(direction, partial(net.one, direction=i), own))
    return net.joined(results)


# LSTM -----------------------------------------------------------------------------------------------------------------


def sees_new_state(call: NodeCall, hidden: int) -> bool:
    """Whether the output gate has weights for the new cell state."""
    if not call.has(7):
        return False
    known = call.tensor(7).array
    return known is None or bool(known[:, hidden : 2 * hidden].any())


@lowers("LSTM", folds=False, ranks=NETWORK)
def lstm(call: NodeCall) -> Result:
    """Long short-term memory."""
    return lstm_of(call, RecurrentNode(call, 4, LSTM_ACTIVATIONS))


@lowers("DynamicQuantizeLSTM", domain=MICROSOFT, folds=False, ranks=NETWORK | {8: (1, 2), 10: (1, 2)})
def dynamic_quantize_lstm(call: NodeCall) -> Result:
    """Long short-term memory with weights of 8 bits. Inputs and states remain floats. onnxruntime quantizes them on CPUs."""
    return lstm_of(call, RecurrentNode(call, 4, LSTM_ACTIVATIONS, (dequantized(call, 1, 8), dequantized(call, 2, 10))))


def dequantized(call: NodeCall, index: int, scale: int) -> MLOperand:
    """Return weights of 8 bits, [directions, inputs, gates * hidden], as those of an LSTM.

    Args:
        call: the node.
        index: the index of the weights in the node's inputs.
        scale: the index of their scales, one for each direction or for each of its columns. The zero points follow.
    """
    weights, scales = call.operand(index), call.operand(scale)
    shape = [weights.shape[0], 1, weights.shape[2] if len(scales.shape) == 2 else 1]
    scales = call.reshape(scales, shape)
    zeros = call.constant(np.zeros(shape), weights.data_type)
    zeros = call.reshape(call.operand(scale + 1), shape) if call.has(scale + 1) else zeros
    return call.transpose(call.build.dequantize_linear(weights, scales, zeros), [0, 2, 1])


def lstm_of(call: NodeCall, net: RecurrentNode) -> Result:
    """Return the outputs of an LSTM."""
    coupled = bool(call.attribute("input_forget", 0))
    if not net.plain or coupled or sees_new_state(call, net.hidden):
        *states, sequence = net.joined([unrolled_lstm(net, d, coupled) for d in range(len(net.directions))])
        return net.outputs(states, sequence)
    bias = net.bias()

    def build(direction: Direction, part: Part, activations: list[MLActivation]) -> list[MLOperand]:
        weight, recurrent_weight = part(net.w), part(net.r)
        assert weight is not None
        assert recurrent_weight is not None
        return call.build.lstm(
            net.x,
            weight,
            recurrent_weight,
            net.steps,
            net.hidden,
            bias=part(bias),
            peephole_weight=part(call.optional(7)),
            initial_hidden_state=part(net.state(5)),
            initial_cell_state=part(net.state(6)),
            return_sequence=True,
            direction=direction,
            activations=activations,
        )

    *states, sequence = by_webnn(net, build)
    return net.outputs(states, sequence)


def unrolled_lstm(net: RecurrentNode, direction: int, coupled: bool) -> list[MLOperand]:
    """Return a direction's results, composed of operators. With `coupled`, the forget gate is 1 minus the input gate."""
    call, (f, g, h) = net.call, net.activations[direction]
    recurrent = net.weights(net.r, direction)
    peephole = net.row(call.optional(7), direction)

    def seen(gate: MLOperand, state: MLOperand, number: int) -> MLOperand:
        if peephole is None:
            return gate
        weights = call.build.slice(peephole, [0, number * net.hidden], [1, net.hidden])
        return call.build.add(gate, call.build.mul(weights, state))

    def cell(inputs: MLOperand, hidden: MLOperand, state: MLOperand) -> CellOutputs:
        gates = call.build.add(inputs, call.build.matmul(hidden, recurrent))
        i = net.act(f, seen(net.gate(gates, 0), state, 0))
        if coupled:
            forget = call.build.sub(call.constant(1, "float32"), i)
        else:
            forget = net.act(f, seen(net.gate(gates, 2), state, 2))
        new = net.act(g, net.gate(gates, 3))
        state = call.build.add(call.build.mul(forget, state), call.build.mul(i, new))
        o = net.act(f, seen(net.gate(gates, 1), state, 1))
        return call.build.mul(o, h.apply(call, state)), state

    start = (net.first_state(5, direction), net.first_state(6, direction))
    return unrolled(net, direction, start, cell, net.projected(direction, both_biases(net, direction)))


# GRU and plain networks -----------------------------------------------------------------------------------------------


def gru_of(
    net: RecurrentNode,
    weights: tuple[MLOperand, MLOperand],
    biases: tuple[MLOperand | None, MLOperand | None],
    reset_after: bool,
    gate: MLActivation | None = None,
) -> Result:
    """Return the outputs of WebNN's gated recurrent unit. `gate` replaces the activation of the gates."""

    def build(direction: Direction, part: Part, activations: list[MLActivation]) -> list[MLOperand]:
        weight, recurrent_weight = (part(w) for w in weights)
        assert weight is not None
        assert recurrent_weight is not None
        return net.call.build.gru(
            net.x,
            weight,
            recurrent_weight,
            net.steps,
            net.hidden,
            bias=part(biases[0]),
            recurrent_bias=part(biases[1]),
            initial_hidden_state=part(net.state(5)),
            reset_after=reset_after,
            return_sequence=True,
            direction=direction,
            activations=activations if gate is None else [gate, *activations],
        )

    state, sequence = by_webnn(net, build)
    return net.outputs([state], sequence)


@lowers("GRU", folds=False, ranks=NETWORK)
def gru(call: NodeCall) -> Result:
    """Gated recurrent unit."""
    net = RecurrentNode(call, 3, ("Sigmoid", "Tanh"))
    reset_after = bool(call.attribute("linear_before_reset", 0))
    if net.plain:
        # A reset after the product applies to the recurrent bias too.
        biases = net.biases() if reset_after else (net.bias(), None)
        return gru_of(net, (net.w, net.r), biases, reset_after)
    state, sequence = net.joined([unrolled_gru(net, d, reset_after) for d in range(len(net.directions))])
    return net.outputs([state], sequence)


def unrolled_gru(net: RecurrentNode, direction: int, reset_after: bool) -> list[MLOperand]:
    """Return the results of a direction, composed of operators."""
    call, (f, g) = net.call, net.activations[direction]
    gates_weight = net.call.build.concat([net.weights(net.r, direction, 0), net.weights(net.r, direction, 1)], 1)
    new_weight = net.weights(net.r, direction, 2)
    bias, recurrent_bias = (net.row(b, direction) for b in net.biases())
    gates_bias = new_bias = None
    if recurrent_bias is not None:
        widths = [2 * net.hidden, net.hidden]
        gates_bias, new_bias = call.build.split(recurrent_bias, widths, axis=1)

    def cell(inputs: MLOperand, hidden: MLOperand) -> CellOutputs:
        gates = call.build.gemm(hidden, gates_weight, c=gates_bias)
        both = net.act(f, call.build.add(net.gate(inputs, 0, 2), gates))
        z, r = net.gate(both, 0), net.gate(both, 1)
        if reset_after:
            recurrent = call.build.mul(r, call.build.gemm(hidden, new_weight, c=new_bias))
        else:
            recurrent = call.build.gemm(call.build.mul(r, hidden), new_weight, c=new_bias)
        new = net.act(g, call.build.add(net.gate(inputs, 2), recurrent))
        kept = call.build.mul(z, hidden)
        return (call.build.add(call.build.mul(call.build.sub(call.constant(1, "float32"), z), new), kept),)

    return unrolled(net, direction, (net.first_state(5, direction),), cell, net.projected(direction, bias))


@lowers("RNN", folds=False, ranks=NETWORK)
def rnn(call: NodeCall) -> Result:
    """Plain recurrent network."""
    net = RecurrentNode(call, 1, ("Tanh",))
    if not net.plain:
        state, sequence = net.joined([unrolled_rnn(net, d) for d in range(len(net.directions))])
        return net.outputs([state], sequence)

    def padded(operand: MLOperand) -> MLOperand:
        """Add zeros before the new gate's weights or biases, for the update and reset gates."""
        before = [0, 2 * net.hidden, *[0] * (len(operand.shape) - 2)]
        return call.build.pad(operand, before, [0] * len(operand.shape))

    own = net.bias()
    # A hard sigmoid of 0 is 0 and of 1 is 1: the new state replaces the old one, and no element is reset.
    fixed = np.repeat([[0.0, 1.0, 0.0]], net.hidden, axis=1).repeat(len(net.directions), axis=0)
    bias = call.constant(fixed, net.x.data_type)
    if own is not None:
        bias = call.build.add(bias, padded(own))
    weights = (padded(net.w), padded(net.r))
    return gru_of(net, weights, (bias, None), False, call.build.hard_sigmoid(alpha=1, beta=0))


def unrolled_rnn(net: RecurrentNode, direction: int) -> list[MLOperand]:
    """Return the results of a direction, composed of operators."""
    call, (f,) = net.call, net.activations[direction]
    recurrent = net.weights(net.r, direction)

    def cell(inputs: MLOperand, hidden: MLOperand) -> CellOutputs:
        return (net.act(f, call.build.add(inputs, call.build.matmul(hidden, recurrent))),)

    return unrolled(
        net, direction, (net.first_state(5, direction),), cell, net.projected(direction, both_biases(net, direction))
    )
