from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings

from tests.ops.reduced import REDUCED, Reduced
from tests.random_graphs.check import check_rewritten
from tests.random_graphs.graphs import graphs
from tests.support import Sketch, assert_same
from tests.targets import DEFAULT_TARGET, SOFTWARE
from webnn_wgpu.core.errors import MLTypeError
from webnn_wgpu.costs import Target
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.ops.fused import FUSED
from webnn_wgpu.passes import PASSES, Pass, run_passes
from webnn_wgpu.passes.cleanup import drop_dead_nodes, drop_identities, merge_identical_nodes
from webnn_wgpu.passes.fold import fold_constants
from webnn_wgpu.passes.fuse import MAX_INPUTS, fuse_elementwise, fuse_epilogues, fuse_transposes
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array, Graph

X = np.array([1.5, -2.0, 0.25, 8.0], np.float32)


def names(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


# ------------------------------------------------------------------------------------------------------------ any graph


@settings(max_examples=60)
@given(drawn=graphs())
def test_every_pass_keeps_what_the_reference_computes(drawn: tuple[Graph, dict[str, Array]]) -> None:
    graph, feeds = drawn
    wanted = interpret(graph, feeds)
    for each in PASSES:
        after = each.apply(graph, DEFAULT_TARGET)
        if after is not graph:
            _check_pass(each, graph, after, feeds, wanted)
        assert after.inputs == graph.inputs, each.name
        assert list(after.outputs) == list(graph.outputs), each.name
        added = ADDED.get(each.name, frozenset())
        assert parts(after, added) <= parts(graph, added), each.name


def _check_pass(each: Pass, before: Graph, after: Graph, feeds: dict[str, Array], wanted: dict[str, Array]) -> None:
    """Compare a graph that a pass has changed with the graph before, whose results are `wanted`."""
    verify(after)
    try:
        if each.exact:
            assert_same(interpret(after, feeds), wanted)
        else:
            check_rewritten(before, after, feeds)
    except AssertionError as error:
        error.add_note(f"after the pass {each.name}")
        raise


ADDED = {"keep_channels_last": frozenset({"transpose", "reshape"})}
"""Operators that a pass may add, because its values enter and leave regions of another layout through them."""


def parts(graph: Graph, left_out: frozenset[str]) -> int:
    """Return the number of nodes besides those of some operators.

    A batch normalization is two, its factors and addends, and a split one for each result.
    """
    several = {"batchNormalization": 2}
    return sum(
        len(node.outputs) if node.op == "split" else several.get(node.op, 1) for node in graph.nodes if node.op not in left_out
    )


@settings(max_examples=200)
@given(drawn=graphs())
def test_the_pipeline_keeps_what_the_reference_computes(drawn: tuple[Graph, dict[str, Array]]) -> None:
    graph, feeds = drawn
    after, results = graph, interpret(graph, feeds)
    for each in PASSES:
        before, after = after, each.apply(after, DEFAULT_TARGET)
        if after is not before:
            _check_pass(each, before, after, feeds, results)
            results = interpret(after, feeds)
    whole, reports = run_passes(graph, DEFAULT_TARGET)
    assert names(whole) == names(after)
    assert [r.name for r in reports] == [p.name for p in PASSES]
    assert reports[0].nodes_before == len(graph.nodes)
    assert reports[-1].nodes_after == len(whole.nodes)


@settings(max_examples=60)
@given(drawn=graphs())
def test_the_pipeline_keeps_types_and_origins(drawn: tuple[Graph, dict[str, Array]]) -> None:
    graph, _ = drawn
    after, _ = run_passes(graph, DEFAULT_TARGET, ("drop_dead_nodes", "fold_constants"))
    assert {n: after.type(v) for n, v in after.outputs.items()} == {n: graph.type(v) for n, v in graph.outputs.items()}
    bodies = [node.attrs["body"] for node in after.nodes if node.op == FUSED.name]
    items = [item for g in (after, *bodies) for item in (*g.nodes, *g.values.values())]
    kept = {origin for item in items for origin in item.origins}
    assert {origin for node in graph.nodes for origin in node.origins} <= kept


# ------------------------------------------------------------------------------------------------------------- clean-up


def test_dead_nodes_are_dropped_and_inputs_stay() -> None:
    s = Sketch()
    x, y = s.input(X), s.input(X)
    kept = s.apply("abs", x)
    s.apply("exp", s.apply("neg", y))
    s.constant(X)
    after = drop_dead_nodes(s.graph(kept))
    assert names(after) == ["abs"]
    assert list(after.inputs) == ["0", "1"]
    assert not after.constants


def test_a_node_with_one_used_output_is_kept() -> None:
    s = Sketch()
    parts = s.apply_all("split", [s.input(X)], splits=2)
    assert names(drop_dead_nodes(s.graph(parts[1]))) == ["split"]


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("identity", {}),
        ("reshape", {"new_shape": [2, 2]}),
        ("cast", {"data_type": "float32"}),
        ("expand", {"new_shape": [2, 2]}),
        ("tile", {"repetitions": [1, 1]}),
        ("slice", {"starts": [0, 0], "sizes": [2, 2]}),
        ("split", {"splits": 1}),
        ("concat", {"axis": 1}),
        ("pad", {"beginning_padding": [0, 0], "ending_padding": [0, 0]}),
    ],
)
def test_operators_that_change_nothing_are_dropped(op: str, attrs: dict[str, object]) -> None:
    s = Sketch()
    x = s.input(X.reshape(2, 2))
    y = s.apply(op, x, label="gone", **attrs)
    graph = s.graph(y, s.apply("abs", y))
    after = drop_identities(graph)
    assert names(after) == ["abs"]
    assert after.outputs["0"] == x
    assert [o.label for o in after.values[x].origins] == ["gone"]
    assert_same(interpret(after, s.feeds), interpret(graph, s.feeds))


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("reshape", {"new_shape": [4, 1]}),
        ("transpose", {"permutation": [1, 0]}),
        ("reverse", {"axes": [0]}),
        ("cast", {"data_type": "int32"}),
        ("split", {"splits": 2}),
        ("relu", {}),
    ],
)
def test_operators_that_change_something_are_kept(op: str, attrs: dict[str, object]) -> None:
    s = Sketch()
    graph = s.graph(s.apply(op, s.input(X.reshape(2, 2)), **attrs))
    assert drop_identities(graph) is graph


def test_identical_nodes_are_merged_with_their_origins() -> None:
    s = Sketch()
    x = s.input(X)
    a, b = s.apply("exp", x, label="a"), s.apply("exp", x, label="b")
    after = merge_identical_nodes(s.graph(s.apply("add", s.apply("neg", a), s.apply("neg", b))))
    assert names(after) == ["exp", "neg", "add"]
    assert [o.label for o in after.nodes[0].origins] == ["a", "b"]
    assert [o.label for o in after.values[a].origins] == ["a", "b"]


def test_nodes_on_equal_numbers_are_merged() -> None:
    s = Sketch()
    x = s.input(X)
    sums = [s.apply("add", x, s.constant(np.float32(number))) for number in (2.0, 2.0, 0.0, -0.0)]
    large = [s.apply("add", x, s.constant(np.ones((64, 4), np.float32))) for _ in range(2)]
    after = merge_identical_nodes(s.graph(*(s.apply("neg", each) for each in (*sums, *large))))
    assert names(after).count("add") == 5
    assert len(after.constants) == 5


def test_nodes_that_differ_are_not_merged() -> None:
    s = Sketch()
    x, y = s.input(X), s.input(X)
    outputs = [
        s.apply("sub", x, y),
        s.apply("sub", y, x),
        s.apply("linear", x, beta=0.0),
        s.apply("linear", x, beta=-0.0),
        s.apply("cast", x, data_type="int8"),
        s.apply("cast", x, data_type="int32"),
    ]
    graph = s.graph(*outputs)
    assert merge_identical_nodes(graph) is graph


# -------------------------------------------------------------------------------------------------------------- folding


def test_constants_are_folded_through_chains() -> None:
    s = Sketch()
    x, c = s.input(X), s.constant(X)
    after = fold_constants(s.graph(s.apply("add", x, s.apply("neg", s.apply("reshape", c, new_shape=[4])))), DEFAULT_TARGET)
    assert names(after) == ["add"]
    (folded,) = after.constants.values()
    assert folded.tolist() == (-X).tolist()
    assert not folded.flags.writeable


def test_what_grows_much_is_not_folded() -> None:
    s = Sketch()
    count = DEFAULT_TARGET.costs.passes.most_folded_growth_bytes // 4 + 2
    graph = s.graph(s.apply("expand", s.constant(X[:1]), new_shape=[count]))
    assert fold_constants(graph, DEFAULT_TARGET) is graph


# --------------------------------------------------------------------------------------------------------------- fusing


def test_a_chain_becomes_one_node() -> None:
    s = Sketch()
    x, y = s.input(X), s.input(X[:1])
    after = fuse_elementwise(s.graph(s.apply("relu", s.apply("add", s.apply("mul", x, y), x, label="sum"))), DEFAULT_TARGET)
    (node,) = after.nodes
    assert (node.op, node.inputs, node.label) == (FUSED.name, (x, y), "sum")
    assert names(node.attrs["body"]) == ["mul", "add", "relu"]
    assert [o.node for o in node.origins] == [0, 1, 2]


def test_a_result_that_one_operator_reads_twice_is_fused() -> None:
    s = Sketch()
    y = s.apply("exp", s.input(X))
    assert names(fuse_elementwise(s.graph(s.apply("mul", y, y)), DEFAULT_TARGET)) == [FUSED.name]


@pytest.mark.parametrize("anchor", ["exp", "matmul"])
def test_results_that_run_together_again_are_fused(anchor: str) -> None:
    s = Sketch()
    x = s.input(np.linspace(-3, 3, 16, dtype=np.float32).reshape(4, 4))
    y = s.apply(anchor, x, *([x] if anchor == "matmul" else []))
    # y * sigmoid(y) + tanh(y), and y once more.
    swish = s.apply("mul", y, s.apply("sigmoid", y))
    graph = s.graph(s.apply("sub", s.apply("add", swish, s.apply("tanh", y)), y))
    after = verify((fuse_epilogues if anchor == "matmul" else fuse_elementwise)(graph, DEFAULT_TARGET))
    assert names(after) == [FUSED.name]
    assert names(after.nodes[0].attrs["body"]) == [anchor, "sigmoid", "mul", "tanh", "add", "sub"]
    assert_same(interpret(after, s.feeds), interpret(graph, s.feeds))


def test_results_that_end_apart_are_not_fused() -> None:
    s = Sketch()
    y = s.apply("exp", s.input(X))
    graph = s.graph(s.apply("neg", y), s.apply("abs", y))
    assert fuse_elementwise(graph, DEFAULT_TARGET) is graph
    inner = s.apply("sigmoid", y)
    graph = s.graph(inner, s.apply("mul", y, inner))
    assert fuse_elementwise(graph, DEFAULT_TARGET) is graph


@pytest.mark.parametrize("reason", ["two readers", "output", "broadcast", "not element-wise"])
def test_what_is_not_fused(reason: str) -> None:
    s = Sketch()
    y = s.apply("exp", s.input(X))
    if reason == "two readers":
        graph = s.graph(s.apply("reshape", y, new_shape=[2, 2]), s.apply("neg", y))
    elif reason == "output":
        graph = s.graph(y, s.apply("neg", y))
    elif reason == "broadcast":
        graph = s.graph(s.apply("add", y, s.input(np.zeros((3, 4), np.float32))))
    else:
        graph = s.graph(s.apply("transpose", y))
    assert fuse_elementwise(graph, DEFAULT_TARGET) is graph


def test_kernels_stay_within_their_bounds() -> None:
    s = Sketch()
    y = s.input(X)
    for _ in range(DEFAULT_TARGET.costs.passes.most_fused_steps + 4):
        y = s.apply("neg", y)
    for _ in range(MAX_INPUTS + 3):
        y = s.apply("add", y, s.input(X))
    after = fuse_elementwise(s.graph(y), DEFAULT_TARGET)
    bodies = [node.attrs["body"] for node in after.nodes if node.op == FUSED.name]
    assert max(len(body.nodes) for body in bodies) == DEFAULT_TARGET.costs.passes.most_fused_steps
    assert max(len(body.inputs) for body in bodies) == MAX_INPUTS
    assert sum(len(body.nodes) for body in bodies) + sum(node.op != FUSED.name for node in after.nodes) == len(s.nodes)


def test_bias_and_activation_are_fused_behind_a_product() -> None:
    s = Sketch()
    product = s.apply("matmul", s.input(np.ones((3, 4), np.float32)), s.input(np.ones((4, 5), np.float32)))
    out = s.apply("relu", s.apply("add", product, s.input(np.ones(5, np.float32))), label="act")
    graph = s.graph(out)
    after = verify(fuse_epilogues(graph, DEFAULT_TARGET))
    assert names(after) == [FUSED.name]
    assert names(after.nodes[0].attrs["body"]) == ["matmul", "add", "relu"]
    assert_same(interpret(after, s.feeds), interpret(graph, s.feeds))


@pytest.mark.parametrize("reduced", REDUCED, ids=str)
def test_gpus_compute_operators_behind_a_reduction(reduced: Reduced) -> None:
    graph, feeds = reduced.graph()
    after = verify(fuse_epilogues(graph, DEFAULT_TARGET))
    assert names(after) == [FUSED.name]
    assert names(after.nodes[0].attrs["body"]) == [reduced.op, "mul", "add"]
    assert_same(interpret(after, feeds), interpret(graph, feeds))
    assert fuse_epilogues(graph, Target.of(SOFTWARE)) is graph


@pytest.mark.parametrize(("op", "data_type"), [("reduceSum", "float32"), ("reduceMax", "int32")])
def test_sums_and_reductions_of_integers_are_not_fused(op: str, data_type: str) -> None:
    s = Sketch()
    y = s.apply(op, s.input(np.ones((3, 4), data_type)), axes=[1])
    graph = s.graph(s.apply("cast", y, data_type="float16"))
    assert fuse_epilogues(graph, DEFAULT_TARGET) is graph


def turned_convolution(s: Sketch, channels: int, taps: int = 3, groups: int = 1, order: tuple[int, ...] = (0, 2, 3, 1)) -> int:
    """Add a convolution of an image of 6 x 6 pixels with its channels last, behind the transpose that makes it so."""
    shape = [0, 0, 0, 0]
    for d, length in zip(order, (1, 6, 6, channels), strict=True):
        shape[d] = length
    turned = s.apply("transpose", s.input(np.arange(np.prod(shape), dtype=np.float32).reshape(shape)), permutation=order)
    filters = np.linspace(-1, 1, 6 * channels // groups * taps * taps, dtype=np.float32)
    weights = s.constant(filters.reshape(6, channels // groups, taps, taps))
    return s.apply("conv2d", turned, weights, input_layout="nhwc", groups=groups)


@pytest.mark.parametrize("followed", [False, True])
def test_a_transpose_of_few_channels_joins_the_convolution_behind_it(followed: bool) -> None:
    s = Sketch()
    out = turned_convolution(s, 3)
    graph = s.graph(s.apply("relu", out) if followed else out)
    after = verify(fuse_transposes(fuse_epilogues(graph, DEFAULT_TARGET)))
    assert names(after) == [FUSED.name]
    assert names(after.nodes[0].attrs["body"]) == ["transpose", "conv2d", *["relu"] * followed]
    assert_same(interpret(after, s.feeds), interpret(graph, s.feeds))


@pytest.mark.parametrize("reason", ["quads of channels", "one tap", "groups", "another order", "two readers", "output"])
def test_what_no_convolution_reads_before_its_transpose(reason: str) -> None:
    s = Sketch()
    channels, taps, groups = {"quads of channels": (4, 3, 1), "one tap": (3, 1, 1), "groups": (6, 3, 2)}.get(reason, (3, 3, 1))
    out = turned_convolution(s, channels, taps, groups, (0, 3, 2, 1) if reason == "another order" else (0, 2, 3, 1))
    turned = s.nodes[0].outputs[0]
    graph = s.graph(out, *{"two readers": [s.apply("neg", turned)], "output": [turned]}.get(reason, []))
    assert fuse_transposes(graph) is graph


# ------------------------------------------------------------------------------------------------------------- pipeline


def test_passes_can_be_disabled() -> None:
    s = Sketch()
    graph = s.graph(s.apply("neg", s.apply("exp", s.constant(X))))
    whole, _ = run_passes(graph, DEFAULT_TARGET, [p.name for p in PASSES])
    assert whole is graph
    folded, reports = run_passes(graph, DEFAULT_TARGET)
    assert not folded.nodes
    assert str(next(r for r in reports if r.name == "fold_constants")) == "fold_constants: 2 -> 0 nodes"


def test_unknown_passes_are_refused() -> None:
    s = Sketch()
    graph = s.graph(s.apply("neg", s.input(X)))
    with pytest.raises(MLTypeError) as raised:
        run_passes(graph, DEFAULT_TARGET, ("fold_constant",))
    assert str(raised.value) == (
        "build: disabled_passes must name passes; got fold_constant; allowed: " + ", ".join(p.name for p in PASSES)
    )


def test_every_pass_has_a_reason_and_fused_is_internal() -> None:
    assert all(p.reason and p.name == p.run.__name__ for p in PASSES)
    assert FUSED.internal
