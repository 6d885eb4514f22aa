"""Fusing changes no number: a graph run whole gives bit by bit what it gives operator by operator."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings

from tests.random_graphs.graphs import graphs
from tests.support import Sketch, assert_same, random_array, run_graph
from webnn_wgpu.core.errors import MLTypeError
from webnn_wgpu.costs import Target
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ops.fused import FUSED
from webnn_wgpu.passes import run_passes
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable

    from webnn_wgpu.ir.graph import Array, Graph
    from webnn_wgpu.runtime.device import Device

INF, NAN = math.inf, math.nan
UNFUSED = ("fuse_elementwise", "fuse_epilogues", "merge_identical_nodes", "merge_results")
SPECIALS = (0.0, -0.0, INF, -INF, NAN, 1e-30, 3e38, -3e38, 1.0, -1.0, 0.1, 1000.0, 2.5, -2.5, 65504.0, 6e-8)


def same_as_unfused(device: Device, graph: Graph, feeds: dict[str, Array], kernels: int = 1) -> dict[str, Array]:
    """Compare a graph with itself operator by operator and return what it computes; `kernels` is what fusing leaves."""
    optimized, _ = run_passes(graph, device.target)
    assert len(make_plan(optimized, device.target).dispatches) == kernels
    actual = run_graph(device, graph, feeds)
    assert_same(actual, run_graph(device, graph, feeds, disabled_passes=UNFUSED))
    return actual


def operands(data_type: str) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        special = np.array(SPECIALS, np.float64).astype(data_type)
    x = np.concatenate([special, random_array(rng, data_type, (111,))])
    return x, (random_array(rng, data_type, x.shape) * np.float32(1e-3)).astype(data_type)


Chain = "Callable[[Sketch, int, int], int]"
CHAINS: dict[str, Chain] = {
    # Each is what a compiler with fast-math would like to simplify.
    "(x + y) - x": lambda s, x, y: s.apply("sub", s.apply("add", x, y), x),
    "(x - y) + y": lambda s, x, y: s.apply("add", s.apply("sub", x, y), y),
    "(x - x) + y": lambda s, x, y: s.apply("add", s.apply("sub", x, x), y),
    "(x * y) / y": lambda s, x, y: s.apply("div", s.apply("mul", x, y), y),
    "(x / x) * y": lambda s, x, y: s.apply("mul", s.apply("div", x, x), y),
    "-(-(x - y)) - x": lambda s, x, y: s.apply("sub", s.apply("neg", s.apply("neg", s.apply("sub", x, y))), x),
    "sqrt(x) squared": lambda s, x, y: square(s, s.apply("sqrt", x)),
    "1 / (1 / x)": lambda s, x, y: s.apply("reciprocal", s.apply("reciprocal", x)),
    "x * y + x * y": lambda s, x, y: s.apply("add", s.apply("mul", x, y), s.apply("mul", y, x)),
    "y * 0 + x": lambda s, x, y: s.apply("add", s.apply("linear", y, alpha=0.0), x),
    "log(exp(x))": lambda s, x, y: s.apply("log", s.apply("exp", x)),
    "tanh(gelu(x) + y)": lambda s, x, y: s.apply("tanh", s.apply("add", s.apply("gelu", x), y)),
    "clamp(relu(x)) * y": lambda s, x, y: s.apply("mul", s.apply("clamp", s.apply("relu", x), max_value=6), y),
    "x == x + y": lambda s, x, y: s.apply("equal", x, s.apply("add", x, y)),
    "where(isNaN(x), y, x)": lambda s, x, y: s.apply("where", s.apply("isNaN", x), y, x),
}


def square(s: Sketch, value: int) -> int:
    return s.apply("mul", value, value)


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("data_type", ["float32", "float16"])
def test_chains_are_not_simplified(device: Device, chain: Callable[[Sketch, int, int], int], data_type: str) -> None:
    s = Sketch()
    graph = s.graph(chain(s, *(s.input(array) for array in operands(data_type))))
    # Two products of one reader: the second is not part of the chain.
    same_as_unfused(device, graph, s.feeds)


def test_half_precision_is_rounded_at_every_operator(device: Device) -> None:
    s = Sketch()
    x = s.input(np.array([2048.0, 60000.0, 1.0], np.float16))
    one, back = s.input(np.array([1.0, 60000.0, 2**-12], np.float16)), s.input(np.array([-2048, -60000, -1], np.float16))
    graph = s.graph(s.apply("add", s.apply("add", x, one), back))
    actual = same_as_unfused(device, graph, s.feeds)
    # In float32 it would be 1, 60000 and 2^-12.
    assert_same(actual, {"0": np.array([0, INF, 0], np.float16)})


def test_half_precision_on_the_way(device: Device) -> None:
    s = Sketch()
    x = s.input(np.array([1.0001, 65520.0, 6e-8], np.float32))
    back = s.apply("cast", s.apply("cast", x, data_type="float16"), data_type="float32")
    actual = same_as_unfused(device, s.graph(s.apply("sub", back, x)), s.feeds)
    assert_same(actual, interpret(s.graph(s.apply("sub", back, x)), s.feeds))
    assert actual["0"][1] == INF


@pytest.mark.parametrize("data_type", ["int8", "uint8"])
def test_bytes_wrap_at_every_operator(device: Device, data_type: str) -> None:
    s = Sketch()
    x = s.input(np.arange(256, dtype=np.uint8).astype(data_type))
    y = s.apply("max", s.apply("add", x, s.input(np.full(1, 100, data_type))), s.input(np.full(1, 20, data_type)))
    graph = s.graph(s.apply("div", s.apply("mul", y, y), s.input(np.full(1, 3, data_type))))
    assert_same(same_as_unfused(device, graph, s.feeds), interpret(graph, s.feeds))


def test_wide_integers_on_the_way(device: Device) -> None:
    s = Sketch()
    x = s.input(np.array([2**31 - 1, -(2**31), -1, 7], np.int32))
    graph = s.graph(s.apply("cast", square(s, s.apply("cast", x, data_type="int64")), data_type="float32"))
    actual = same_as_unfused(device, graph, s.feeds)
    assert actual["0"].tolist() == [2.0**62, 2.0**62, 1, 49]


def test_every_kind_of_read_in_one_chain(device: Device) -> None:
    rng = np.random.default_rng(1)
    s = Sketch()
    y = s.input(random_array(rng, "float32", (3, 5, 8)))
    for shape in ((8,), (3, 1, 8), (3, 5, 1), (1, 1, 1), (5, 1)):
        y = s.apply("add", y, s.input(random_array(rng, "float32", shape)))
    graph = s.graph(y)
    actual = same_as_unfused(device, graph, s.feeds)
    assert_same(actual, interpret(graph, s.feeds))


def test_long_chains_on_every_profile(profile_device: Device) -> None:
    s = Sketch()
    y = s.input(np.linspace(-1, 1, 37, dtype=np.float32))
    for i in range(30):
        y = s.apply("linear", y, alpha=1.5 if i % 2 else 0.75, beta=0.25)
    same_as_unfused(profile_device, s.graph(y), s.feeds)


def test_bias_and_activation_behind_a_product(device: Device) -> None:
    rng = np.random.default_rng(2)
    s = Sketch()
    a, b, bias = (s.input(random_array(rng, "float32", shape)) for shape in ((9, 12), (12, 20), (20,)))
    product = s.apply("add", s.apply("matmul", a, b), bias)
    graph = s.graph(s.apply("sub", s.apply("tanh", product), s.input(random_array(rng, "float32", (9, 20)))))
    same_as_unfused(device, graph, s.feeds)


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("rows", [1, 9, 64])
@pytest.mark.parametrize("columns", [19, 20, 64])
def test_a_product_stores_an_activation_and_its_derivative(
    profile_device: Device, data_type: str, rows: int, columns: int
) -> None:
    rng = np.random.default_rng(4)
    s = Sketch()
    a, b, bias = (s.input(random_array(rng, data_type, shape)) for shape in ((rows, 16), (16, columns), (columns,)))
    x = s.apply("add", s.apply("matmul", a, b), bias)
    same_as_unfused(profile_device, s.graph(*(s.apply(name, x) for name in ("gelu", "tanh"))), s.feeds)


def test_results_of_products_in_parts_and_of_several_matrices(device: Device) -> None:
    rng = np.random.default_rng(5)
    for shapes in (((3, 8, 16), (3, 16, 8)), ((5, 4096), (4096, 12)), ((1, 2048), (2048, 8))):
        s = Sketch()
        x = s.apply("matmul", *(s.input(random_array(rng, "float32", shape)) for shape in shapes))
        same_as_unfused(device, s.graph(s.apply("sigmoid", x), s.apply("abs", x)), s.feeds)


@pytest.mark.parametrize("size", [7, 64, 1 << 16])
def test_several_results_of_one_element_wise_kernel(profile_device: Device, size: int) -> None:
    rng = np.random.default_rng(6)
    s = Sketch()
    mean, gradient, parameter = (s.input(random_array(rng, "float32", (size,))) for _ in range(3))
    rate = s.input(np.array(0.1, np.float32))
    moved = s.apply("add", s.apply("linear", s.apply("sub", gradient, mean), alpha=0.25), mean)
    square = s.apply("mul", gradient, gradient)
    updated = s.apply("sub", parameter, s.apply("mul", s.apply("div", moved, s.apply("exp", square)), rate))
    same_as_unfused(profile_device, s.graph(moved, square, updated), s.feeds)


@pytest.mark.parametrize("size", [64, 1 << 16])
def test_several_results_replace_the_inputs_that_they_update(profile_device: Device, size: int) -> None:
    rng = np.random.default_rng(7)
    s = Sketch()
    mean, gradient, parameter = (s.input(random_array(rng, "float32", (size,))) for _ in range(3))
    moved = s.apply("add", s.apply("sub", gradient, mean), mean)
    updated = s.apply("sub", parameter, s.apply("mul", moved, gradient))
    names = list(s.feeds)
    graph = replace(s.graph(moved, updated), aliases={"0": names[0], "1": names[2]})
    target = profile_device.target
    (dispatch,) = make_plan(run_passes(graph, target)[0], target).dispatches
    assert [binding.access for binding in dispatch.spec.bindings] == ["read", "write", "write"]
    assert_same(run_graph(profile_device, graph, s.feeds), interpret(graph, s.feeds))


@settings(max_examples=20)
@given(drawn=graphs(("add", "neg", "abs", "reshape", "identity", "transpose", "expand", "split"), ("float32",)))
def test_random_graphs_on_the_device(device: Device, drawn: tuple[Graph, dict[str, Array]]) -> None:
    # Few operators: it is memory that is tested here (slots, views, copied outputs), and each shader takes time to compile.
    graph, feeds = drawn
    assert_same(run_graph(device, graph, feeds), interpret(graph, feeds))
    assert_same(run_graph(device, graph, feeds, disabled_passes=(*UNFUSED, "fold_constants")), interpret(graph, feeds))


def test_programs_cannot_make_fused_nodes() -> None:
    with pytest.raises(MLTypeError, match=r"^fused: fused nodes come from passes alone\. Call the operators one by one"):
        FUSED.check([TensorType("float32", (2,))], {"body": 1})


WHOLE = (0, 1, -1, 3, 7, -7, 31, 1 << 30, -(2**31), 2**31 - 1)


def with_numbers(data_type: str, numbers: tuple[int, ...]) -> tuple[Sketch, Graph]:
    """Return a chain with a constant number in each operator: more of them than a kernel has bindings."""
    s = Sketch()
    y = s.input(random_array(np.random.default_rng(1), data_type, (3, 41)))
    for i, number in enumerate(numbers):
        op = ("add", "mul", "sub", "min", "x.bitwise_xor")[i % 5]
        y = s.apply(op, y, s.constant(np.array([number] if i % 2 else number, data_type)))
    return s, s.graph(s.apply("max", s.constant(np.array(-5, data_type)), y))


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("data_type", ["int32", "int64"])
def test_whole_numbers_are_uniforms(device: Device, data_type: str, native: bool) -> None:
    s, graph = with_numbers(data_type, WHOLE)
    features = device.caps.features - (set() if native else {"shader-int64"})
    target = Target.of(replace(device.caps, features=frozenset(features)))
    plan = make_plan(run_passes(graph, target)[0], target)
    (dispatch,) = plan.dispatches
    assert [binding.name for binding in dispatch.spec.bindings] == ["input0", "output"]
    assert not plan.constants
    program = Program(device, plan)
    try:
        assert_same(program.start(s.feeds, list(graph.outputs)).result(), interpret(graph, s.feeds))
    finally:
        program.destroy()
    other = run_passes(with_numbers(data_type, tuple(number // 2 for number in WHOLE))[1], target)[0]
    assert make_plan(other, target).dispatches[0].spec == dispatch.spec, "other numbers take another kernel"


def test_numbers_of_more_than_32_bits_are_bound(device: Device) -> None:
    s, graph = with_numbers("int64", (2**31, -(2**31) - 1, 1 << 40, 3))
    plan = make_plan(run_passes(graph, device.target)[0], device.target)
    assert [len(dispatch.spec.bindings) for dispatch in plan.dispatches] == [5]
    assert_same(run_graph(device, graph, s.feeds), interpret(graph, s.feeds))


def test_several_numbers_in_one_place_stay_tensors(device: Device) -> None:
    s = Sketch()
    x = s.input(np.arange(12, dtype=np.int32).reshape(3, 4))
    y = s.apply("add", s.apply("mul", x, s.constant(np.arange(4, dtype=np.int32))), s.constant(np.array(5, np.int32)))
    graph = s.graph(y)
    plan = make_plan(run_passes(graph, device.target)[0], device.target)
    assert [len(dispatch.spec.bindings) for dispatch in plan.dispatches] == [3]
    assert_same(run_graph(device, graph, s.feeds), interpret(graph, s.feeds))
