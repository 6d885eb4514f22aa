"""Stacks of recurrent layers: which layers one node replaces, and which stay apart and why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.golden.planning import planning_context
from tests.ops.layers import Network, assert_close
from tests.ops.recurrent import GATES, STATES, VECTORS
from tests.support import Sketch
from tests.unit.plans import caps_of, check_plan
from webnn_wgpu.costs import Target
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.passes import run_passes
from webnn_wgpu.passes.stacks import pair_obstacle, stack_obstacle, stack_recurrent_layers
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Graph, Node

GPU, SOFTWARE = Target.of(caps_of("nvidia")), Target.of(caps_of("lavapipe"))


def names(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def stacked(network: Network, *outputs: int) -> Graph:
    """Return the graph after the pass, which computes the same."""
    graph = network.graph(*outputs)
    after = verify(stack_recurrent_layers(graph, GPU))
    assert_close(interpret(after, network.s.feeds), interpret(graph, network.s.feeds))
    check_plan(make_plan(after, GPU), GPU.caps, rendered=True)
    return after


# Layers of a stack --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_layers_are_one_node(kind: str, direction: str, layers: int) -> None:
    network = Network(kind)
    for _ in range(layers):
        network.layer(direction=direction)
    after = stacked(network)
    assert names(after) == [f"{kind}Stack", "reshape"]
    assert after.nodes[0].attrs["direction"] == direction
    templates = [d.spec.template for d in make_plan(after, GPU).dispatches]
    assert templates.count("recurrent_stack") == network.steps + layers - 1


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_vectors_may_differ(kind: str) -> None:
    for below, above in ((VECTORS[kind], ()), ((), VECTORS[kind]), (("recurrentBias",), ("bias",))):
        network = Network(kind, steps=2).layer(given=below).layer(given=above)
        assert names(stacked(network))[0] == f"{kind}Stack"


def test_options_and_batch_rows_stay() -> None:
    options: dict[str, Any] = {"layout": "ifgo", "activations": ["sigmoid", ("leakyRelu", {"alpha": 0.25}), "tanh"]}
    node = stacked(Network(batch=3).layer(**options).layer(**options)).nodes[0]
    assert node.attrs["layout"] == "ifgo"
    assert node.attrs["activations"] == (("sigmoid", ()), ("leakyRelu", (("alpha", 0.25),)), ("tanh", ()))
    assert names(stacked(Network("gru", batch=2).layer(layout="rzn").layer(layout="rzn"))) == ["gruStack", "reshape"]


def test_all_last_states_are_there() -> None:
    network = Network(steps=8, batch=2).layer().layer(return_sequence=False)
    (hidden, cell, _), (last_hidden, last_cell) = network.layers
    assert names(stacked(network, hidden, last_cell)) == ["lstmStack", "slice", "slice"]
    assert names(stacked(network, hidden, cell, last_hidden, last_cell)) == ["lstmStack", *["slice"] * 4]
    joined = network.s.apply("concat", hidden, last_hidden, axis=0)
    assert names(stacked(network, joined)) == ["lstmStack"]
    # Another order, another consumer.
    turned = network.s.apply("concat", last_cell, cell, axis=0)
    assert names(stacked(network, joined, turned)) == ["lstmStack", "slice", "slice", "concat"]


def test_states_before_the_first_step() -> None:
    both = ("initialHiddenState", "initialCellState")
    assert names(stacked(Network().layer(given=both).layer())) == ["lstmStack", "reshape"]
    network = Network(steps=6)
    first, second = (network.s.input(network.array(1, 1, network.hidden)) for _ in range(2))
    network.layer(initialHiddenState=first).layer(initialHiddenState=second, initialCellState=first)
    assert names(stacked(network)) == ["concat", "concat", "lstmStack", "reshape"]


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_states_that_are_cut_from_one_value(kind: str) -> None:
    network = Network(kind)
    whole = network.s.input(network.array(2, 1, network.hidden))
    for layer in range(2):
        start = network.s.apply("slice", whole, starts=[layer, 0, 0], sizes=[1, 1, network.hidden])
        starts: dict[str, Any] = dict.fromkeys(STATES[kind], start)
        network.layer(**starts)
    joined = network.s.apply("concat", *(results[0] for results in network.layers), axis=0)
    assert names(stacked(network, network.value, joined)) == [f"{kind}Stack", "reshape"]


def test_states_that_are_cut_in_another_order() -> None:
    network = Network("gru")
    whole = network.s.input(network.array(2, 1, network.hidden))
    for layer in (1, 0):
        start = network.s.apply("slice", whole, starts=[layer, 0, 0], sizes=[1, 1, network.hidden])
        network.layer(initialHiddenState=start)
    assert names(stacked(network)) == ["slice", "slice", "concat", "gruStack", "reshape"]


def test_copies_of_states_must_pay() -> None:
    network = Network(steps=1)
    first, second = (network.s.input(network.array(1, 1, network.hidden)) for _ in range(2))
    network.layer(initialHiddenState=first).layer(initialHiddenState=second)
    graph = network.graph()
    assert not stack_obstacle(graph, layers_of(graph), GPU)
    assert stack_obstacle(graph, layers_of(graph), GPU, 1) == "about 15 us in 2 common dispatches, 12 us one after the other"
    assert stack_recurrent_layers(graph, GPU) is graph


def test_a_state_that_is_computed_between_the_layers() -> None:
    network = Network("gru")
    start = network.s.input(network.array(1, 1, network.hidden))
    network.layer(initialHiddenState=start)
    network.layer(initialHiddenState=network.s.apply("exp", start))
    assert names(stacked(network)) == ["exp", "concat", "gruStack", "reshape"]


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_halves(kind: str) -> None:
    network = Network(kind, data_type="float16", hidden=256, steps=8).layer().layer()
    assert names(stacked(network)) == [f"{kind}Stack", "reshape"]


def test_narrow_weights() -> None:
    network = Network(hidden=256, steps=8).layer(given=()).layer(given=())
    weights = [value for node in network.s.nodes if node.op == "lstm" for value in node.inputs[1:3] if value is not None]
    for value in weights:
        network.s.constants[value] = network.s.constants[value].astype(np.float16).astype(np.float32)
    after, _ = run_passes(network.graph(), GPU)
    assert names(after) == ["lstmStack", "reshape"]
    assert [after.type(value).data_type for value in after.nodes[0].operands[:4]] == [
        *("float32", "float16", "float16", "float32")
    ]
    # The weights of the first layer for the input may be others.
    network.s.constants[weights[0]] = network.s.constants[weights[0]] + np.float32(1e-7)
    assert names(run_passes(network.graph(), GPU)[0]) == ["lstmStack", "reshape"]
    network.s.constants[weights[2]] = network.s.constants[weights[2]] + np.float32(1e-7)
    assert names(run_passes(network.graph(), GPU)[0]) == ["lstm", "reshape", "lstm", "reshape"]


def test_layers_below_and_above_are_apart() -> None:
    network = Network().layer(direction="backward").layer().layer().layer("gru").layer("gru", direction="backward")
    assert [name for name in names(stacked(network)) if name != "reshape"] == ["lstm", "lstmStack", "gru", "gru"]


# Layers that stay apart -----------------------------------------------------------------------------------------------------


def layers_of(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op in GATES]


@pytest.mark.parametrize(
    ("below", "above", "reason"),
    [
        ({}, {"kind": "gru"}, "the layers are of different kinds"),
        ({"direction": "both"}, {}, "a layer in both directions needs the whole sequence before its first step"),
        ({}, {"direction": "both"}, "a layer in both directions needs the whole sequence before its first step"),
        ({"direction": "backward"}, {}, "the layers go in different directions"),
        ({}, {"layout": "ifgo"}, "the layers differ in sizes, the order of gates, or activations"),
        ({}, {"activations": ["relu"] * 3}, "the layers differ in sizes, the order of gates, or activations"),
    ],
)
def test_layers_that_differ(below: dict[str, Any], above: dict[str, Any], reason: str) -> None:
    graph = Network().layer(**below).layer(**above).graph()
    assert pair_obstacle(graph, *layers_of(graph)) == reason
    assert stack_recurrent_layers(graph, GPU) is graph


def test_a_reset_before_the_product() -> None:
    graph = Network("gru").layer(reset_after=False).layer(reset_after=False).graph()
    assert pair_obstacle(graph, *layers_of(graph)) == "a reset before the product takes two dispatches per step"
    assert stack_recurrent_layers(graph, GPU) is graph


def test_dimensions_that_change_their_meaning() -> None:
    network = Network(steps=3, batch=3).layer()
    network.value = network.s.apply("reshape", network.value, new_shape=[9, 1, network.hidden])
    network.steps, network.batch = 9, 1
    graph = network.layer().graph()
    assert pair_obstacle(graph, *layers_of(graph)) == "the dimensions between the layers change their meaning"
    assert stack_recurrent_layers(graph, GPU) is graph


def test_weights_that_are_no_constants() -> None:
    graph = Network(constant=False).layer().layer().graph()
    assert pair_obstacle(graph, *layers_of(graph)) == "weights and biases are not constants"
    assert stack_recurrent_layers(graph, GPU) is graph


def test_a_sequence_with_another_consumer() -> None:
    network = Network().layer()
    sequence, between = network.layers[0][-1], network.value
    network.layer()
    for outputs in ((sequence,), (between,), (network.s.apply("exp", between),)):
        graph = network.graph(network.value, *outputs)
        assert stack_recurrent_layers(graph, GPU) is graph


def test_a_state_that_goes_from_layer_to_layer() -> None:
    network = Network().layer()
    graph = network.layer(initialHiddenState=network.layers[0][0]).graph()
    assert not pair_obstacle(graph, *layers_of(graph))
    assert stack_recurrent_layers(graph, GPU) is graph


def test_a_network_that_consumes_a_state_of_another() -> None:
    s = Sketch()
    first, second = Network("gru", steps=6, s=s), Network("gru", steps=6, s=s)
    start = s.input(first.array(1, 1, first.hidden))
    first.layer()
    second.layer()
    # The node of the first network takes the position of its upper layer. The second network consumes a state of the lower one.
    first.layer(initialHiddenState=s.apply("exp", start))
    second.layer(initialHiddenState=first.layers[0][0])
    first.value = s.apply("add", first.value, second.value)
    expected = ["exp", "concat", "gruStack", "slice", "reshape", "concat", "gruStack", "reshape", "add"]
    assert names(stacked(first)) == expected


@pytest.mark.parametrize(
    ("sizes", "target", "reason"),
    [
        ({"hidden": 128}, GPU, "each layer is one dispatch: 65536 recurrent weights, "),
        ({"hidden": 1024}, GPU, "about 176 us in 4 common dispatches, 106 us one after the other"),
        ({"batch": 6, "hidden": 256}, GPU, "about 48 us in 4 common dispatches, 42 us one after the other"),
        ({}, SOFTWARE, "kernels of a single layer keep its weights"),
    ],
)
def test_stacks_that_do_not_pay(sizes: dict[str, Any], target: Target, reason: str) -> None:
    graph = Network(**sizes).layer().layer().graph()
    assert stack_obstacle(graph, layers_of(graph), target).startswith(reason)
    assert stack_recurrent_layers(graph, target) is graph


def test_buffers_that_are_too_large() -> None:
    caps = GPU.caps
    limited = replace(caps, limits=tuple((dict(caps.limits) | {"max-storage-buffer-binding-size": 1 << 20}).items()))
    graph = Network().layer().layer().graph()
    target = Target.of(limited)
    assert stack_obstacle(graph, layers_of(graph), target) == "a buffer of the stack would be larger than a binding may be"
    assert stack_recurrent_layers(graph, target) is graph


@pytest.mark.parametrize("trained", [False, True])
def test_gradients_need_the_sequence_of_each_layer(trained: bool) -> None:
    context, planning = planning_context(caps_of("nvidia").to_json())
    builder = wn.MLGraphBuilder(context)
    x = value = builder.input("x", {"dataType": "float32", "shape": [3, 1, 160]})
    rng = np.random.default_rng(0)
    weights: list[wn.MLOperand] = []
    for layer in range(2):
        for name in ("weight", "recurrent"):
            array = rng.standard_normal((1, 640, 160), np.float32)
            given = builder.input(f"{name}{layer}", {"dataType": "float32", "shape": array.shape})
            weights.append(given if trained else builder.constant(array))
        *_, sequence = builder.lstm(value, weights[-2], weights[-1], 3, 160, return_sequence=True)
        value = builder.reshape(sequence, [3, 1, 160])
    gradients = builder.gradients(value, weights if trained else [x])
    builder.build({"y": value} | {f"gradient{i}": gradient for i, gradient in enumerate(gradients)})
    assert [node.op for node in planning.plans[0].graph.nodes if "lstm" in node.op] == ["lstm", "lstm"]
