"""Results that replace an operand: where they may, that less memory is taken, and that the results are right."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import Sketch
from tests.targets import DEFAULT_TARGET
from tests.unit.plans import DEVICES, caps_of, check_plan
from webnn_wgpu import MLGraphBuilder
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.costs import Target
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.kernels.expression import Expression, LetStatement
from webnn_wgpu.kernels.notation import term
from webnn_wgpu.kernels.spec import Window
from webnn_wgpu.ops._elementwise import Source, elementwise_call
from webnn_wgpu.passes import run_passes
from webnn_wgpu.plan import make_plan, planner
from webnn_wgpu.plan.in_place import replace_operands
from webnn_wgpu.plan.slots import Lifetime, live_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from webnn_wgpu.api.context import MLContext
    from webnn_wgpu.api.operand import MLOperand
    from webnn_wgpu.ir.graph import Graph
    from webnn_wgpu.plan import ExecutionPlan

SQUARE = TensorType("float32", (8, 8))
SUM = Expression(
    args=(("x0", "f32"), ("x1", "f32")), steps=(LetStatement("y0", "f32", term("x0 + x1")),), result="y0", type="f32", lib=()
)
RANDOM = np.random.default_rng(0)


def weights(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return RANDOM.uniform(-0.4, 0.4, shape).astype(np.float32)


def replacing(plan: ExecutionPlan) -> list[str]:
    return [d.label for d in plan.dispatches if "replaces an operand" in d.reason]


def planned(graph: Graph, caps: Caps | None = None) -> ExecutionPlan:
    caps = caps or Caps()
    plan = make_plan(run_passes(graph, Target.of(caps))[0], Target.of(caps))
    check_plan(plan, caps, rendered=True)
    return plan


def tower(s: Sketch, x: int, width: int, layers: int = 3) -> int:
    """Layers that each add to what goes through them, with wide values within."""
    for i in range(layers):
        wide = s.apply("relu", s.apply("matmul", x, s.constant(weights(width, 4 * width))), label=f"wide{i}")
        x = s.apply("add", s.apply("matmul", wide, s.constant(weights(4 * width, width))), x, label=f"sum{i}")
    return x


@pytest.mark.parametrize("device", DEVICES)
def test_sums_stay_where_they_are(device: str) -> None:
    s = Sketch()
    x = s.apply("exp", s.input(weights(32, 16)))
    plan = planned(s.graph(s.apply("transpose", tower(s, x, 16))), caps_of(device))
    assert replacing(plan) == ["sum0", "sum1", "sum2"]
    sums = [v for d in plan.dispatches if d.label.startswith("sum") for v in plan.graph.nodes[d.node or 0].outputs]
    assert len({plan.places[v] for v in sums}) == 1
    # The sum and what is four times as wide; each result beside its operands took six times the sum.
    assert plan.slot_bytes == 5 * 32 * 16 * 4 == max(plan.live_bytes())
    assert plan.unshared_bytes == 16 * 32 * 16 * 4


def test_the_first_layer_may_not_replace_an_input() -> None:
    """All layers share one kernel; it is not compiled in a second form for the others."""
    s = Sketch()
    plan = planned(s.graph(s.apply("transpose", tower(s, s.input(weights(32, 16)), 16))))
    assert not replacing(plan)


def test_what_is_read_again_is_not_replaced() -> None:
    s = Sketch()
    x = s.apply("exp", s.input(weights(32, 16)))
    plan = planned(s.graph(s.apply("mul", tower(s, x, 16, 1), x)))
    assert not replacing(plan)


def test_memory_that_would_grow_is_left() -> None:
    """What replaces its operand stays in one slot, where others might have changed places."""
    s = Sketch()
    x = s.apply("exp", s.input(weights(32, 64)))
    for width in (40, 64):
        x = s.apply("matmul", x, s.constant(weights(s.type(x).shape[1], width)))
    x = y = s.apply("matmul", x, s.constant(weights(64, 16)))
    for width in (64, 24, 16):
        y = s.apply("matmul", y, s.constant(weights(s.type(y).shape[1], width)))
    plan = planned(s.graph(s.apply("transpose", s.apply("add", y, x))))
    assert not replacing(plan)
    assert plan.slot_bytes == (64 + 40) * 32 * 4


def test_sums_do_not_stay_where_they_take_a_slot_of_their_own() -> None:
    """The sum would keep to a slot that its layer does not touch; the gated value takes the place of what it gates."""
    s = Sketch()
    x = s.apply("exp", s.input(weights(32, 16)))
    for width in (256, 32, 16):
        x = s.apply("matmul", x, s.constant(weights(s.type(x).shape[1], width)))
    wide = x
    for _ in range(2):
        wide = s.apply("matmul", wide, s.constant(weights(s.type(wide).shape[1], 64)))
    gates = s.apply("reduceMean", wide, axes=(0,), keep_dimensions=True)
    for width in (8, 64):
        # Of constants, one kernel would compute both.
        gates = s.apply("matmul", gates, s.input(weights(s.type(gates).shape[1], width)))
    gated = s.apply("mul", wide, gates, label="gated")
    sum_ = s.apply("add", s.apply("matmul", gated, s.constant(weights(64, 16))), x, label="sum")
    plan = planned(s.graph(s.apply("transpose", sum_)))
    assert replacing(plan) == ["gated"]
    assert plan.slot_bytes == (256 + 64) * 32 * 4


@pytest.mark.parametrize(
    ("second", "lives", "taken"),
    [
        (Source(2, SQUARE, (1, 8)), {}, {3: 1}),
        (Source(1, SQUARE, (1, 8)), {}, {}),
        (Source(2, SQUARE), {1: Lifetime(0, 2, 256)}, {3: 2}),
        (Source(2, SQUARE, (1, 8)), {1: Lifetime(0, 2, 256)}, {}),
        (Source(2, SQUARE, (1, 8)), {3: Lifetime(0, 2, 256)}, {}),
        (Source(2, SQUARE, (1, 8)), {3: Lifetime(1, 2, 512)}, {}),
    ],
    ids=["read once", "read across too", "second operand", "read again", "written before", "a part of a value"],
)
def test_what_may_be_replaced(second: Source, lives: dict[int, Lifetime], taken: dict[int, int]) -> None:
    (call,) = elementwise_call(SUM, [], [Source(1, SQUARE), second], 3, SQUARE, DEFAULT_TARGET)
    lifetimes = {1: Lifetime(0, 1, 256), 2: Lifetime(0, 1, 256), 3: Lifetime(1, 2, 256)} | lives
    before = replace(call, spec=replace(call.spec, template="other"))
    (_, changed), replaced = replace_operands([before, call], lifetimes, lambda value: value)
    assert replaced == taken
    assert changed.replaces == bool(taken)
    assert len(changed.operands) == (2 if taken else 3)


@pytest.mark.parametrize(
    ("between", "taken"),
    [("nothing of theirs", {3: 1}), ("reads the operand", {}), ("reads the result", {}), ("reads a part of the operand", {})],
)
def test_what_several_calls_compute_in_parts(between: str, taken: dict[int, int]) -> None:
    """All of them find the operand where they store, and no other call sees what is half the one and half the other."""
    (call,) = elementwise_call(SUM, [], [Source(1, SQUARE), Source(2, SQUARE, (1, 8))], 3, SQUARE, DEFAULT_TARGET)
    source = {"reads the operand": 1, "reads the result": 3, "reads a part of the operand": Window(1, 0, 64)}.get(between, 4)
    other = replace(call, spec=replace(call.spec, template="other"), operands=(source, 2, 5))
    lifetimes = {1: Lifetime(0, 2, 256), 2: Lifetime(0, 2, 256), 3: Lifetime(0, 3, 256), 5: Lifetime(1, 3, 256)}
    calls, replaced = replace_operands([call, other, call], lifetimes, lambda value: value)
    assert replaced == taken
    assert [c.replaces for c in calls] == [bool(taken), False, bool(taken)]


# ------------------------------------------------------------------------------------------------------------- results


def check_same(context: MLContext, build: Callable[[MLGraphBuilder], MLOperand], feeds: dict[str, Any], times: int) -> None:
    """Check that a graph computes the same, to the bit, with results that replace operands wherever they can and without."""

    def run(choice: tuple[str, Any]) -> tuple[ExecutionPlan, list[Any]]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(planner, *choice)
            builder = MLGraphBuilder(context)
            graph = builder.build({"y": build(builder)})
        return graph.plan, [context.compute(graph, feeds)["y"] for _ in range(2)]

    # However much memory it takes.
    plan, found = run(("_most", lambda assigned: 1 << 62))
    other, expected = run(("replace_operands", lambda calls, *_, **__: (calls, {})))
    check_plan(plan, context.caps)
    assert len(replacing(plan)) == times
    assert not replacing(other)
    both = [d for d in zip(plan.dispatches, other.dispatches, strict=True) if d[0].label in replacing(plan)]
    assert [d.touched_bytes for d, _ in both] == [d.touched_bytes for _, d in both]
    for each in found:
        np.testing.assert_array_equal(each, expected[0], strict=True)


@pytest.mark.parametrize("width", [16, 6], ids=["quads", "elements"])
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("rows", [1, 3, 33])
def test_products_add_in_place(context: MLContext, rows: int, data_type: str, width: int) -> None:
    factors = [(weights(width, 2 * width).astype(data_type), weights(2 * width, width).astype(data_type)) for _ in range(3)]

    def build(b: MLGraphBuilder) -> MLOperand:
        x = b.reverse(b.input("x", {"dataType": data_type, "shape": [rows, width]}))
        for first, second in factors:
            x = b.add(b.matmul(b.relu(b.matmul(x, b.constant(first))), b.constant(second)), x)
        return b.reverse(x)

    check_same(context, build, {"x": weights(rows, width).astype(data_type)}, 3)


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
@pytest.mark.parametrize("channels", [16, 6], ids=["quads", "elements"])
@pytest.mark.parametrize(("size", "groups"), [(1, 1), (2, 1), (3, 1), (3, 2)])
def test_convolutions_add_in_place(context: MLContext, size: int, groups: int, channels: int, layout: str) -> None:
    filters = [weights(channels, channels // groups, size, size) for _ in range(2)]
    shape = [1, 9, 7, channels] if layout == "nhwc" else [1, channels, 9, 7]
    padding = [(size - 1) // 2, size // 2] * 2

    def build(b: MLGraphBuilder) -> MLOperand:
        x = b.reverse(b.input("x", {"dataType": "float32", "shape": shape}))
        for each in filters:
            x = b.relu(b.add(b.conv2d(x, b.constant(each), padding=padding, input_layout=layout, groups=groups), x))
        return b.reverse(x)

    check_same(context, build, {"x": weights(*shape)}, 2)


@pytest.mark.parametrize("data_type", ["float32", "float16", "int32", "uint8", "int64"])
def test_elements_are_replaced(context: MLContext, data_type: str) -> None:
    def build(b: MLGraphBuilder) -> MLOperand:
        x = b.transpose(b.input("x", {"dataType": data_type, "shape": [7, 5]}))
        bias = b.input("bias", {"dataType": data_type, "shape": [7]})
        return b.reverse(b.mul(b.add(x, bias), x))

    feed = RANDOM.integers(0, 5, (7, 5)).astype(data_type)
    check_same(context, build, {"x": feed, "bias": feed[:, 0].copy()}, 1)


def test_parts_of_a_joint_do_not_replace_pieces_that_lie_elsewhere(context: MLContext) -> None:
    factors = [(weights(4, 8), weights(8, 64)) for _ in range(2)]

    def build(b: MLGraphBuilder) -> MLOperand:
        pieces = b.split(b.abs(b.input("x", {"dataType": "float32", "shape": [8, 64]})), 2)
        products = [
            b.matmul(b.constant(left), b.input(f"b{i}", right.shape, "float32")) for i, (left, right) in enumerate(factors)
        ]
        # The joint is as large as what was cut, but its parts come in another order.
        return b.transpose(b.concat([b.add(*pair) for pair in zip(products, pieces[::-1], strict=True)], 0))

    check_same(context, build, {"x": weights(8, 64)} | {f"b{i}": right for i, (_, right) in enumerate(factors)}, 0)


def test_live_bytes_count_shared_memory_once() -> None:
    s = Sketch()
    x = s.apply("exp", s.input(weights(32, 16)))
    plan = planned(s.graph(s.apply("transpose", tower(s, x, 16))))
    lives = [Lifetime(each.first, each.last, each.size_bytes) for each in plan.intermediates]
    assert live_bytes(lives) == max(plan.live_bytes())
