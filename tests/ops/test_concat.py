from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.movers import (
    FOLDED_ELEMENTS,
    SIZES,
    TYPES,
    assert_same_bits,
    check_moves,
    kernels,
    random_bits,
    refusal,
    run_moves,
    typed,
)
from tests.support import op_graph
from webnn_wgpu.core.data_types import MAX_DIMENSION
from webnn_wgpu.ir.graph import substitute
from webnn_wgpu.ops import OPS
from webnn_wgpu.plan import make_plan

if TYPE_CHECKING:
    from webnn_wgpu.runtime.device import Device

SHAPES = (
    # Whole quads of every type; whole words of some; nothing whole.
    ([(2, 16, 4), (2, 32, 4)], 1),
    ([(5, 2), (5, 4), (5, 6)], 1),
    ([(3, 5, 1), (3, 1, 1), (3, 7, 1)], 1),
    ([(1,), (1,)], 0),
    ([(17, 3), (2, 3), (11, 3)], 0),
    # Aligned except where the last one ends.
    ([(16, 4), (3, 4), (1, 4)], 0),
    ([(64,), (16,), (7,)], 0),
    ([(2, 3, 4, 5), (2, 3, 4, 2)], 3),
    ([(1, 1, 1, 2, 1, 1, 3, 2), (1, 1, 1, 5, 1, 1, 3, 2)], 3),
)


@pytest.mark.parametrize("data_type", TYPES)
def test_every_type_on_every_device(profile_device: Device, data_type: str) -> None:
    rng = np.random.default_rng(1)
    for shapes, axis in SHAPES[:3]:
        inputs = [random_bits(rng, data_type, s) for s in shapes]
        (actual,) = check_moves(profile_device, "concat", inputs, {"axis": axis})
        assert_same_bits(actual, np.concatenate(inputs, axis))


@pytest.mark.parametrize("data_type", SIZES)
@pytest.mark.parametrize(("shapes", "axis"), SHAPES)
def test_shapes(device: Device, data_type: str, shapes: list[tuple[int, ...]], axis: int) -> None:
    rng = np.random.default_rng(2)
    check_moves(device, "concat", [random_bits(rng, data_type, s) for s in shapes], {"axis": axis})


@pytest.mark.parametrize("data_type", SIZES)
@pytest.mark.parametrize("outer", [1, 3])
@pytest.mark.parametrize("count", [1, 7, 8, 9, 50, 100])
def test_many_inputs(device: Device, data_type: str, outer: int, count: int) -> None:
    rng = np.random.default_rng(3)
    odd = [random_bits(rng, data_type, (outer, i % 5 + 1)) for i in range(count)]
    check_moves(device, "concat", odd, {"axis": 1})
    whole = [random_bits(rng, data_type, (outer, 16 * (i % 2 + 1))) for i in range(count)]
    check_moves(device, "concat", whole, {"axis": 1})


@pytest.mark.parametrize("length", [5, 16])
def test_one_operand_several_times(device: Device, length: int) -> None:
    rng = np.random.default_rng(4)
    a, b = (random_bits(rng, "float32", (3, length)) for _ in range(2))
    graph = op_graph("concat", [a, a, b, a], {"axis": 1})
    graph = replace(graph, inputs={n: v for n, v in graph.inputs.items() if n in "02"})
    graph = graph.with_nodes((substitute(graph.nodes[0], {1: 0, 3: 0}),))
    (actual,) = run_moves(device, graph, [a, a, b, a])
    assert_same_bits(actual, np.concatenate([a, a, b, a], 1))


@pytest.mark.repeats
def test_more_workgroups_than_a_grid_dimension_holds(device: Device) -> None:
    rng = np.random.default_rng(5)
    odd = [random_bits(rng, "uint8", (FOLDED_ELEMENTS,)), random_bits(rng, "uint8", (5,))]
    check_moves(device, "concat", odd, {"axis": 0}, folded=True)
    rows = FOLDED_ELEMENTS // 24 + 1
    whole = [random_bits(rng, "float32", (rows, n)) for n in (16, 8)]
    check_moves(device, "concat", whole, {"axis": 1}, folded=True)


@settings(max_examples=30)
@given(
    st.sampled_from(SIZES),
    st.lists(st.integers(1, 9), min_size=1, max_size=10),
    st.lists(st.integers(1, 6), max_size=3),
    st.data(),
)
def test_any_lengths(device: Device, data_type: str, lengths: list[int], others: list[int], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(others)))
    rng = np.random.default_rng(len(lengths))
    inputs = [random_bits(rng, data_type, (*others[:axis], n, *others[axis:])) for n in lengths]
    (actual,) = check_moves(device, "concat", inputs, {"axis": axis})
    assert_same_bits(actual, np.concatenate(inputs, axis))


def test_kernels() -> None:
    f32 = [typed("float32", 2, 4)] * 3
    assert kernels("concat", f32, {"axis": 1}) == ["concat[inputs=3, quad=True]"]
    assert kernels("concat", [*f32, typed("float32", 2, 3)], {"axis": 1}) == ["concat[inputs=4, quad=False]"]
    # The last input may end anywhere if nothing follows it.
    assert kernels("concat", [typed("uint8", 16), typed("uint8", 3)], {"axis": 0}) == ["concat[inputs=2, quad=True]"]
    # Windows of one output, or joined by sevens and then together.
    assert kernels("concat", [typed("float16", 2, 8)] * 9, {"axis": 1}) == [
        "concat[inputs=7, quad=True]",
        "concat[inputs=2, quad=True]",
    ]
    assert kernels("concat", [typed("int8", 2, 3)] * 15, {"axis": 1}) == [
        "concat[inputs=7, quad=False]",
        "concat[inputs=7, quad=False]",
        "concat[inputs=3, quad=False]",
    ]
    assert kernels("concat", [typed("int8", 5)], {"axis": 0}) == ["strided[rank=0, read=same]"]


@pytest.mark.parametrize(("size", "levels"), [(4, 1), pytest.param(3, 5, marks=pytest.mark.repeats)])
def test_most_inputs(device: Device, size: int, levels: int) -> None:
    types = [typed("float32", 2, size)] * 8192
    (output,), _ = OPS["concat"].check(types, {"axis": 1})
    assert output == typed("float32", 2, size * 8192)
    graph = op_graph("concat", [np.zeros((2, size), np.float32)] * 8192, {"axis": 1})
    counts, left = 0, 8192
    for _ in range(levels):
        left = math.ceil(left / 7)
        counts += left
    # One call of the tree stands for a single left-over part at most once per level.
    assert counts - levels <= len(make_plan(graph, device.target).dispatches) <= counts


def test_refusals() -> None:
    a, b = typed("float32", 2, 3), typed("float32", 2, 4)
    assert refusal("concat", [a, b], {"axis": 0}) == (
        "concat('here'): Incompatible shapes: all dimensions except axis 0 must be equal; "
        "got inputs[0] float32[2, 3], inputs[1] float32[2, 4]. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-concat"
    )
    assert refusal("concat", [a, b], {"axis": 2}) == (
        "concat('here'): axis must be < rank(input): Axis 2 out of bounds for rank 2; "
        "got axis=2, inputs[0] float32[2, 3], inputs[1] float32[2, 4]; allowed: 0..1. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-concat"
    )
    none = "inputs must hold 1 to 8192 operands; got 0 operands; allowed: 1..8192"
    assert none in refusal("concat", [], {"axis": 0})
    assert "1 to 8192 operands; got 8193 operands" in refusal("concat", [a] * 8193, {"axis": 0})
    assert "axis is required" in refusal("concat", [a, b])
    assert "axis must be an unsigned 32-bit integer; got -1" in refusal("concat", [a, b], {"axis": -1})
    assert "rank(inputs) is not allowed" in refusal("concat", [typed("float32")], {"axis": 0})
    mixed = "all inputs must have the same data type; got inputs[0] float32[2, 3], inputs[1] int32[2, 3]; allowed: float32"
    assert mixed in refusal("concat", [a, typed("int32", 2, 3)], {"axis": 0})
    assert "all inputs must have the same rank" in refusal("concat", [a, typed("float32", 3)], {"axis": 0})
    half = typed("uint8", MAX_DIMENSION // 2 + 1)
    assert "must be valid dimensions" in refusal("concat", [half, half], {"axis": 0})
    assert "unknown option 'axes'" in refusal("concat", [a], {"axes": [0]})
