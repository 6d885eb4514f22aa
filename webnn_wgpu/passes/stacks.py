"""Stacks of recurrent layers: each makes a time step in the dispatch in which the layer below makes the next one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.mapped import release_pages
from ..costs import Target
from ..ir.graph import Array, Graph, Node
from ..ops import OPS
from ..ops._recurrent_stack import choose_stack, stack_fits
from ..ops.concat import CONCAT
from ..ops.recurrent_stack import STACKS, STATE
from ..ops.strided import SLICE
from ..ops.views import RESHAPE
from .rewriting import Rewriter, rewrite

_VECTORS = ("bias", "recurrentBias", "peepholeWeight")
_WEIGHT, _RECURRENT_WEIGHT = 1, 2


@dataclass(frozen=True, kw_only=True)
class _Stack:
    """Layers that one node replaces.

    Attributes:
        layers: the layers, from the first one on.
        place: the layer whose position among the nodes the new node takes.
        starts: for each state the slices of one value that are the first states of all layers. Empty if there are none.
        joined: for each state the concatenation of the last states of all layers, if it is their only consumer.
        gone: the layers, the views between them, and the concatenations of their last states.
        copies: dispatches that copy states.
    """

    layers: tuple[Node, ...]
    place: Node
    starts: tuple[tuple[Node, ...], ...]
    joined: tuple[Node | None, ...]
    gone: tuple[Node, ...]
    copies: int


def stack_recurrent_layers(graph: Graph, target: Target) -> Graph:
    """Replace layers of gru or lstm, each of which reads the sequence of the layer below, by one node."""
    found = _Search(graph).stacks(target) if any(node.op in STACKS for node in graph.nodes) else ()
    places = {stack.place.id: stack for stack in found}
    gone = {node.id for stack in found for node in stack.gone}

    def change(r: Rewriter, node: Node) -> bool:
        if node.id in places:
            _add(r, places[node.id])
        return node.id in gone

    return rewrite(graph, change, at={node.op for stack in found for node in stack.gone})


def pair_obstacle(graph: Graph, below: Node, above: Node) -> str:
    """Return the reason why two layers, of which one reads the sequence of the other, cannot be in one stack, or ""."""
    if below.op != above.op:
        return "the layers are of different kinds"
    if "both" in (below.attrs["direction"], above.attrs["direction"]):
        return "a layer in both directions needs the whole sequence before its first step"
    if below.attrs["direction"] != above.attrs["direction"]:
        return "the layers go in different directions"
    if not (below.attrs.get("reset_after", True) and above.attrs.get("reset_after", True)):
        return "a reset before the product takes two dispatches per step"
    if any(below.attrs[name] != above.attrs[name] for name in ("hidden_size", "layout", "activations")):
        return "the layers differ in sizes, the order of gates, or activations"
    steps, _, *state = graph.type(below.outputs[-1]).shape
    if graph.type(above.operands[0]).shape != (steps, *state):
        return "the dimensions between the layers change their meaning"
    if any(value not in graph.constants for node in (below, above) for value in _parameters(node)):
        return "weights and biases are not constants"
    # The weights of the first layer for the input are apart.
    weights = (below.operands[_RECURRENT_WEIGHT], *above.operands[_WEIGHT : _RECURRENT_WEIGHT + 1])
    return "" if len({graph.type(value).data_type for value in weights}) == 1 else "the data types of weights differ"


def stack_obstacle(graph: Graph, layers: Sequence[Node], target: Target, copies: int = 0) -> str:
    """Return the reason why a device should not compute layers as a stack, or "". Some dispatches copy states."""
    x, weights = graph.type(layers[0].operands[0]), graph.type(layers[0].operands[_RECURRENT_WEIGHT])
    if not stack_fits(target.caps, x, weights, len(layers)):
        return "a buffer of the stack would be larger than a binding may be"
    choice = choose_stack(target, x, weights, len(layers), copies)
    return choice.reason if choice.variant == "layers" else ""


def _given(node: Node, name: str) -> int | None:
    """Return an operand by its name. None if it is absent."""
    names = [operand.name for operand in OPS[node.op].operands]
    return node.inputs[names.index(name)] if name in names else None


def _states(layer: Node) -> list[str]:
    """Return the operands of a layer that are its states before the first step."""
    return [operand.name for operand in STACKS[layer.op].operands[STATE:]]


def _parameters(node: Node) -> list[int]:
    vectors = (_given(node, name) for name in _VECTORS)
    return [*node.operands[_WEIGHT : _RECURRENT_WEIGHT + 1], *(value for value in vectors if value is not None)]


class _Search:
    """The search of a graph for stacks."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._place = {node.id: i for i, node in enumerate(graph.nodes)}
        self._makers = {value: node for node in graph.nodes for value in node.outputs}
        self._consumers: dict[int, list[Node | None]] = {}
        for node in graph.nodes:
            for value in node.operands:
                self._consumers.setdefault(value, []).append(node)
        for value in graph.outputs.values():
            self._consumers.setdefault(value, []).append(None)

    def stacks(self, target: Target) -> list[_Stack]:
        """Return the stacks that pay on a device."""
        chains: dict[int, tuple[Node, ...]] = {}
        for node in self._graph.nodes:
            below = self._below(node) if node.op in STACKS else None
            if below is not None and not pair_obstacle(self._graph, below, node):
                chains[node.id] = (*chains.pop(below.id, (below,)), node)
        found: list[_Stack] = []
        for layers in chains.values():
            stack = self._stack(layers)
            if stack is not None and not stack_obstacle(self._graph, layers, target, stack.copies):
                found.append(stack)
                # Other stacks can consume the results from here on.
                self._place.update((layer.id, self._place[stack.place.id]) for layer in layers)
        return found

    def _below(self, node: Node) -> Node | None:
        """Return the layer whose sequence has this layer as its only consumer."""
        *_, value = (node.operands[0], *(view.operands[0] for view in self._views(node)))
        below = self._makers.get(value)
        if below is None or below.op not in STACKS or not below.attrs["return_sequence"]:
            return None
        return below if below.outputs[-1] == value and len(self._consumers[value]) == 1 else None

    def _views(self, node: Node) -> Iterator[Node]:
        """Yield the views between a layer and the one below, the last one first."""
        value = node.operands[0]
        while (view := self._makers.get(value)) is not None and view.op == RESHAPE.name and len(self._consumers[value]) == 1:
            yield view
            value = view.operands[0]

    def _stack(self, layers: tuple[Node, ...]) -> _Stack | None:
        place = self._place_of(layers)
        if place is None:
            return None
        names = _states(layers[0])
        before = [[_given(layer, name) for layer in layers] for name in names]
        after = [[layer.outputs[i] for layer in layers] for i in range(len(names))]
        starts = tuple(map(self._cut, before))
        joined = tuple(map(self._joined, after))
        views = [view for layer in layers[1:] for view in self._views(layer)]
        concatenated = sum(not cut and not self._known(values) for cut, values in zip(starts, before, strict=True))
        apart = [value for values, node in zip(after, joined, strict=True) if node is None for value in values]
        return _Stack(
            layers=layers,
            place=place,
            starts=starts,
            joined=joined,
            # The label of the last one is that of the node.
            gone=(*views, *(node for node in joined if node is not None), *layers),
            copies=concatenated + sum(value in self._consumers for value in apart),
        )

    def _known(self, values: Sequence[int | None]) -> bool:
        return all(value is None or value in self._graph.constants for value in values)

    def _place_of(self, layers: Sequence[Node]) -> Node | None:
        """Return a layer at whose position all operands of a stack exist, before all consumers of its results."""
        first, *others = layers
        states = [_given(layer, name) for layer in others for name in _states(layer)]
        makers = [self._makers[value] for value in states if value in self._makers]
        if all(self._place[maker.id] < self._place[first.id] for maker in makers):
            return first
        *lower, last = layers
        results = [value for layer in lower for value in layer.outputs[: len(_states(layer))]]
        consumers = [node for value in results for node in self._consumers.get(value, ()) if node is not None]
        return last if all(self._place[node.id] > self._place[last.id] for node in consumers) else None

    def _cut(self, values: Sequence[int | None]) -> tuple[Node, ...]:
        """Return the slices of one value that are the states of all layers in order, or nothing."""
        nodes = [self._makers[value] for value in values if value in self._makers]
        if len(nodes) < len(values) or any(node.op != SLICE.name for node in nodes):
            return ()
        wholes = {node.operands[0] for node in nodes}
        shapes = [self._graph.type(value).shape for value in wholes]
        in_order = all(node.attrs["starts"] == (i, 0, 0) for i, node in enumerate(nodes))
        _, *state = self._graph.type(nodes[0].outputs[0]).shape
        return tuple(nodes) if in_order and shapes == [(len(values), *state)] else ()

    def _joined(self, values: Sequence[int]) -> Node | None:
        """Return the concatenation of the last states of all layers in order, if it is their only consumer."""
        consumers = [self._consumers.get(value, []) for value in values]
        node = consumers[0][0] if consumers[0] else None
        if node is None or any(each != [node] for each in consumers):
            return None
        joins = node.op == CONCAT.name and node.attrs["axis"] == 0 and node.operands == tuple(values)
        return node if joins else None


def _add(r: Rewriter, stack: _Stack) -> None:
    """Add the node of a stack, and slices of its results for their consumers."""
    first, *others = stack.layers
    last = stack.layers[-1]
    x, weight, recurrent = first.operands[: _RECURRENT_WEIGHT + 1]
    arrays = [r.constants[recurrent]]
    arrays += [r.constants[value] for layer in others for value in layer.operands[_WEIGHT : _RECURRENT_WEIGHT + 1]]
    weights = r.constant(np.concatenate(arrays), recurrent)
    for array in arrays:
        release_pages(array)
    operands = (x, weight, weights, *_vectors(r, stack.layers))
    states = [
        cut[0].operands[0] if cut else _initial(r, stack.layers, name)
        for cut, name in zip(stack.starts, _states(first), strict=True)
    ]
    sources = (*(node for cut in stack.starts for node in cut), *stack.gone)
    attrs = {
        **{name: first.attrs[name] for name in ("steps", "hidden_size", "direction", "layout")},
        "activations": [(name, dict(options)) for name, options in first.attrs["activations"]],
        "return_sequence": last.attrs["return_sequence"],
    }
    outputs = [None if node is None else node.outputs[0] for node in stack.joined]
    outputs += last.outputs[len(states) :]
    results = r.add_all(STACKS[first.op].name, (*operands, *states), attrs, sources, outputs)
    for i, joined in enumerate(stack.joined):
        shape = r.shape(results[i])
        for number, layer in enumerate(stack.layers if joined is None else ()):
            if not r.inner(layer.outputs[i], 0):
                part = {"starts": (number, 0, 0), "sizes": (1, *shape[1:])}
                r.add(SLICE.name, (results[i],), part, (layer,), layer.outputs[i])


def _vectors(r: Rewriter, layers: Sequence[Node]) -> tuple[int, int]:
    """Add the vectors of all layers, with zeros for those that are absent, and the biases of the first layer."""
    layout, hidden = layers[0].attrs["layout"], layers[0].attrs["hidden_size"]
    columns, n = len(layout) * hidden, layout.find("n") * hidden
    peepholes = any(_given(layer, "peepholeWeight") is not None for layer in layers)

    def vector(layer: Node, name: str, length: int) -> Array:
        value = _given(layer, name)
        return np.zeros(length) if value is None else r.constants[value].reshape(-1).astype(np.float64)

    rows: list[Array] = []
    for layer in layers:
        recurrent = vector(layer, "recurrentBias", columns)
        others = vector(layer, "peepholeWeight", 3 * hidden) if peepholes else np.zeros(0)
        if "n" in layout:
            # The reset gate multiplies this one.
            others = recurrent[n : n + hidden].copy()
            recurrent[n : n + hidden] = 0
        rows.append(np.concatenate([vector(layer, "bias", columns) + recurrent, others]))
    vectors, like = np.stack(rows).astype(np.float32), layers[0].operands[0]
    bias = vectors[:1, :columns].copy()
    vectors[0, :columns] = 0
    return r.constant(vectors, like, "float32"), r.constant(bias, like, "float32")


def _initial(r: Rewriter, layers: Sequence[Node], name: str) -> int:
    """Return a state of all layers before the first step: zeros where it is absent."""
    x = layers[0].operands[0]
    zeros = np.zeros((1, r.shape(x)[1], layers[0].attrs["hidden_size"]), r.type(x).numpy)
    values = [_given(layer, name) for layer in layers]
    arrays = [zeros if value is None else r.constants.get(value) for value in values]
    known = [array for array in arrays if array is not None]
    if len(known) == len(arrays):
        return r.constant(np.concatenate(known), x)
    none = r.constant(zeros, x)
    return r.add(CONCAT.name, [none if value is None else value for value in values], {"axis": 0}, ())
