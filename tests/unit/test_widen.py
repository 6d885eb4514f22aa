"""The pass that keeps float16 values between operators as float32: what stays float16, and that nothing is rounded between."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import Sketch, op_graph, run_graph
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.kernels import select
from webnn_wgpu.ops import OPS
from webnn_wgpu.passes.widen import widen_float16
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    import webnn_wgpu as wn
    from webnn_wgpu.ir.graph import Array, Graph
    from webnn_wgpu.runtime.device import Device


def halves(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def widened(graph: Graph) -> Graph:
    after = verify(widen_float16(replace(graph, wide=True)))
    assert [graph.type(v) for v in graph.outputs.values()] == [after.type(v) for v in after.outputs.values()]
    assert [graph.type(v) for v in graph.inputs.values()] == [after.type(v) for v in after.inputs.values()]
    return after


def lines(graph: Graph) -> list[str]:
    """Return the operators with the data types of their operands and results."""
    return [
        f"{node.op} {' '.join(graph.type(v).data_type for v in node.operands)} -> {graph.type(node.outputs[0]).data_type}"
        for node in graph.nodes
    ]


def chain() -> tuple[Graph, dict[str, Array]]:
    s = Sketch()
    x = s.input(halves(3, 8))
    y = s.apply("matmul", x, s.constant(halves(8, 8, seed=1)))
    y = s.apply("add", y, s.constant(halves(8, seed=2)))
    return s.graph(s.apply("matmul", s.apply("exp", y), s.constant(halves(8, 4, seed=3)))), s.feeds


def test_weights_inputs_and_outputs_stay_float16() -> None:
    graph, _ = chain()
    assert lines(widened(graph)) == [
        "cast float16 -> float32",
        "matmul float32 float16 -> float32",
        "add float32 float32 -> float32",
        "exp float32 -> float32",
        "matmul float32 float16 -> float32",
        "cast float32 -> float16",
    ]


def test_nothing_is_rounded_between_operators(device: Device) -> None:
    graph, feeds = chain()
    s = Sketch()
    wide: dict[int, int] = {graph.inputs["0"]: s.input(feeds["0"].astype(np.float32))}
    wide |= {v: s.constant(a.astype(np.float32)) for v, a in graph.constants.items()}
    for node in graph.nodes:
        wide[node.outputs[0]] = s.apply(node.op, *(wide[v] for v in node.operands))
    exact = interpret(s.graph(wide[graph.outputs["0"]]), s.feeds)["0"]
    narrow = run_graph(device, graph, feeds)["0"]
    found = run_graph(device, replace(graph, wide=True), feeds)["0"]
    # Rounded once, at the end; the device's sums differ from the reference's in float32's last digits.
    np.testing.assert_array_max_ulp(found, exact.astype(np.float16), 1)
    assert np.mean(found == exact.astype(np.float16)) > 0.9
    assert np.mean(narrow == exact.astype(np.float16)) < 0.7


@pytest.mark.parametrize("op", ["roundEven", "floor", "ceil"])
def test_what_becomes_a_whole_number_is_rounded_before(device: Device, op: str) -> None:
    s = Sketch()
    # 15.4975 as float32, 15.5 as float16: roundEven gives 15 or 16.
    x, scale = s.input(np.array([1.085, 31.99], np.float16)), s.input(np.array([0.07, 1.0], np.float16))
    y = s.apply(op, s.apply("div", x, scale))
    graph = s.graph(s.apply("add", s.apply("cast", y, data_type="int32"), s.constant(np.int32([0]))))
    assert lines(widened(graph))[2:6] == [
        "div float32 float32 -> float32",
        "cast float32 -> float16",
        f"{op} float16 -> float16",
        "cast float16 -> int32",
    ]
    found = run_graph(device, replace(graph, wide=True), s.feeds)["0"]
    np.testing.assert_array_equal(found, interpret(graph, s.feeds)["0"])
    assert found[0] == {"roundEven": 16, "floor": 15, "ceil": 16}[op]


def test_only_graphs_that_ask_for_it_are_widened() -> None:
    graph, _ = chain()
    assert widen_float16(graph) is graph
    floats = op_graph("exp", [np.ones(4, np.float32)])
    assert widen_float16(asking := replace(floats, wide=True)) is asking


def test_graphs_with_caches_stay_as_they_are() -> None:
    s = Sketch()
    cache, new, position = s.input(halves(1, 4, 2)), s.input(halves(1, 1, 2)), s.input(np.zeros((), np.int32))
    graph = s.graph(s.apply("x.cache_update", cache, new, position, axis=1))
    graph = replace(graph, aliases={"0": "0"}, wide=True)
    assert widen_float16(graph) is graph


def test_tables_are_looked_up_as_they_are() -> None:
    s = Sketch()
    found = s.apply("gather", s.constant(halves(9, 4)), s.input(np.array([3, 1], np.int32)))
    assert lines(widened(s.graph(s.apply("exp", found)))) == [
        "gather float16 int32 -> float16",
        "cast float16 -> float32",
        "exp float32 -> float32",
        "cast float32 -> float16",
    ]


def test_a_cast_to_float16_rounds_and_one_from_it_costs_nothing() -> None:
    s = Sketch()
    x = s.input(np.array([1.0004, 70000], np.float32))
    half = s.apply("cast", x, data_type="float16")
    graph = s.graph(s.apply("mul", s.apply("cast", half, data_type="float32"), s.constant(np.float32(2))))
    after = widened(graph)
    assert lines(after) == ["cast float32 -> float16", "cast float16 -> float32", "mul float32 float32 -> float32"]
    np.testing.assert_array_equal(interpret(after, s.feeds)["0"], np.array([2, np.inf], np.float32))


MIXED: list[tuple[str, list[tuple[int, ...]], dict[str, Any], str, str]] = [
    *(("matmul", [(2, 9, 23), (23, 21)], {}, "matmul", v) for v in select.VARIANTS),
    *(("gemm", [(24, 9), (24, 20)], {"a_transpose": True}, "matmul", v) for v in ("subgroup", "plain")),
    *(
        ("conv2d", [(1, 8, 9, 7), (12, 8, 3, 3)], {"padding": (1, 1, 1, 1)}, "conv2d", v)
        for v in OPS["conv2d"].variants
        if v not in ("depthwise", "pointwise")
    ),
    ("conv2d", [(1, 8, 9, 7), (8, 1, 3, 3)], {"groups": 8}, "conv2d", "depthwise"),
    ("conv2d", [(1, 8, 9, 7), (12, 8, 1, 1)], {}, "conv2d", "pointwise"),
    ("conv2d", [(1, 9, 7, 8), (12, 3, 3, 8)], {"input_layout": "nhwc", "filter_layout": "ohwi"}, "", ""),
    ("convTranspose2d", [(1, 8, 5, 4), (8, 6, 3, 3)], {"strides": (2, 2)}, "", ""),
    ("lstm", [(3, 2, 4), (1, 32, 4), (1, 32, 8)], {"steps": 3, "hidden_size": 8}, "", ""),
    ("gru", [(3, 2, 4), (1, 24, 4), (1, 24, 8)], {"steps": 3, "hidden_size": 8}, "", ""),
]


@pytest.mark.parametrize(("op", "shapes", "attrs", "family", "variant"), MIXED)
def test_every_kernel_reads_float16_weights_beside_float32_values(
    profile_device: Device, op: str, shapes: list[tuple[int, ...]], attrs: dict[str, Any], family: str, variant: str
) -> None:
    forced = {family: variant} if variant else {}
    arrays = [halves(*shape, seed=i) for i, shape in enumerate(shapes)]
    absent = [None] * (len(OPS[op].operands) - len(arrays))
    graph = replace(op_graph(op, [*arrays, *absent], attrs, range(1, len(arrays))), wide=True)
    if variant in ("subgroup", "implicit") and not select.supports(profile_device.caps, "subgroup"):
        forced = {}
    feeds = {"0": arrays[0]}
    found = run_graph(profile_device, graph, feeds, forced=forced, disabled_passes=("fold_constants",))
    for name, wanted in interpret(graph, feeds).items():
        np.testing.assert_allclose(found[name], wanted, rtol=2e-3, atol=2e-3)


def test_build_and_plan_take_it(context: wn.MLContext) -> None:
    def built(wide: bool) -> list[str]:
        builder = context.create_graph_builder()
        x = builder.input("x", [3, 8], "float16")
        y = builder.matmul(builder.exp(x), builder.constant(halves(8, 8)))
        plan = builder.plan({"y": builder.softmax(y, 1)}, wide_float16=wide)
        assert plan is not None
        return [str(d) for d in plan.dispatches]

    assert built(True) != built(False)
