from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.movers import TYPES, assert_same_bits, check_moves, kernels, random_bits, refusal, run_moves, typed
from tests.support import Sketch, run_graph
from tests.targets import DEFAULT_TARGET
from webnn_wgpu.core.data_types import DATA_TYPES, MAX_DIMENSION
from webnn_wgpu.ir.graph import Graph, Node, Value
from webnn_wgpu.ops import OPS
from webnn_wgpu.plan import make_plan

if TYPE_CHECKING:
    from webnn_wgpu.runtime.device import Device


@pytest.mark.parametrize("data_type", TYPES)
def test_every_type_on_every_device(profile_device: Device, data_type: str) -> None:
    x = random_bits(np.random.default_rng(1), data_type, (3, 5, 2))
    (flat,) = check_moves(profile_device, "reshape", [x], {"new_shape": [30]})
    assert_same_bits(flat, x.ravel())
    (same,) = check_moves(profile_device, "identity", [x])
    assert_same_bits(same, x)


SAME_SIZE = [(a, b) for a in TYPES for b in TYPES if DATA_TYPES[a].bits == DATA_TYPES[b].bits]


@pytest.mark.parametrize(("data_type", "other"), SAME_SIZE)
def test_bits_as_another_type(profile_device: Device, data_type: str, other: str) -> None:
    x = random_bits(np.random.default_rng(4), data_type, (3, 5))
    (actual,) = check_moves(profile_device, "x.bitcast", [x], {"data_type": other})
    assert_same_bits(actual, x.view(other))


def test_bits_between_operators_that_compute(device: Device) -> None:
    """The sign taken off: nothing is computed for the two casts, and one memory is written and read under both types."""
    s = Sketch()
    x = s.input(np.float32([-1.5, 2, -0.0, -np.inf]))
    bits = s.apply("x.bitcast", s.apply("neg", x), data_type="uint32")
    masked = s.apply("x.bitwise_and", bits, s.constant(np.uint32(0x7FFFFFFF)))
    graph = s.graph(s.apply("x.bitcast", masked, data_type="float32"), bits)
    plan = make_plan(graph, device.target)
    assert [d.spec.template for d in plan.dispatches] == ["elementwise", "elementwise"]
    signless, signed = run_graph(device, graph, s.feeds).values()
    assert_same_bits(signless, np.float32([1.5, 2, 0, np.inf]))
    assert_same_bits(signed, np.float32([1.5, -2, 0, np.inf]).view(np.uint32))


def test_bits_of_another_size_are_refused() -> None:
    assert "ext.bitcast('here'): data_type must have as many bits as the input's; got data_type='int8'" in refusal(
        "x.bitcast", [typed("float32", 2)], {"data_type": "int8"}
    )


@pytest.mark.parametrize(
    ("shape", "new_shape"),
    [
        ((), []),
        ((), [1]),
        ((1, 1), []),
        ((1,), [1] * 8),
        ((12,), [3, 1, 4]),
        ((2, 3, 5, 7, 1, 1, 2, 1), [420]),
    ],
)
def test_reshape(device: Device, shape: tuple[int, ...], new_shape: list[int]) -> None:
    x = random_bits(np.random.default_rng(2), "uint8", shape)
    (actual,) = check_moves(device, "reshape", [x], {"new_shape": new_shape})
    assert_same_bits(actual, x.reshape(new_shape))


@settings(max_examples=25)
@given(st.lists(st.integers(1, 5), max_size=5), st.randoms(use_true_random=False))
def test_any_order_of_the_dimensions(device: Device, shape: list[int], random: object) -> None:
    x = random_bits(np.random.default_rng(3), "float16", shape)
    new_shape = list(shape)
    random.shuffle(new_shape)  # pyright: ignore[reportAttributeAccessIssue] - a random.Random of hypothesis
    (actual,) = check_moves(device, "reshape", [x], {"new_shape": new_shape})
    assert_same_bits(actual, x.reshape(new_shape))


def chain() -> Graph:
    """A view of a view between two operators that compute."""
    shapes = {0: (2, 6), 1: (2, 6), 2: (3, 4), 3: (3, 4), 4: (4, 3)}
    values = {i: Value(i, typed("float32", *s)) for i, s in shapes.items()}
    steps = (
        ("reverse", {"axes": (0,)}),
        ("reshape", {"new_shape": (3, 4)}),
        ("identity", {}),
        ("transpose", {"permutation": (1, 0)}),
    )
    nodes = tuple(
        Node(id=i, op=name, inputs=(i,), outputs=(i + 1,), attrs=MappingProxyType(attrs))
        for i, (name, attrs) in enumerate(steps)
    )
    return Graph(values=values, inputs={"0": 0}, constants={}, nodes=nodes, outputs={"out": 4})


def test_views_cost_nothing_between_operators(device: Device) -> None:
    graph = chain()
    assert [d.spec.template for d in make_plan(graph, DEFAULT_TARGET).dispatches] == ["strided", "strided"]
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    (actual,) = run_moves(device, graph, [x])
    assert_same_bits(actual, np.ascontiguousarray(x[::-1].reshape(3, 4).T))


def test_an_input_that_is_an_output_is_copied() -> None:
    assert kernels("identity", [typed("int8", 5)]) == ["strided[rank=0, read=same]"]


def test_refusals() -> None:
    x = typed("float32", 2, 6)
    assert refusal("reshape", [x], {"new_shape": [5, 2]}) == (
        "reshape('here'): Reshape requires same number of elements; "
        "got new_shape=[5, 2] (10 elements), input float32[2, 6]; allowed: a shape of 12 elements. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reshape-method"
    )
    assert "same number of elements; got new_shape=[] (1 elements)" in refusal("reshape", [x], {"new_shape": []})
    assert "every item of new_shape must be a valid dimension" in refusal("reshape", [x], {"new_shape": [0, 12]})
    over = {"new_shape": [MAX_DIMENSION + 1]}
    assert "every item of new_shape must be a valid dimension" in refusal("reshape", [x], over)
    negative = refusal("reshape", [x], {"new_shape": [-1, 6]})
    assert "new_shape must be an unsigned 32-bit integer; got -1" in negative
    assert "State the size of each dimension: WebNN infers none" in negative
    assert "new_shape must be an integer; got None" in refusal("reshape", [x], {"new_shape": [None, 6]})
    assert "output rank is not supported" in refusal("reshape", [x], {"new_shape": [1] * 7 + [2, 6]})
    assert "new_shape is required" in refusal("reshape", [x])
    assert "unknown option 'axis'; allowed: none" in refusal("identity", [x], {"axis": 0})


def test_identity_takes_every_type() -> None:
    for data_type in TYPES:
        assert OPS["identity"].check([typed(data_type, 3)], {})[0] == (typed(data_type, 3),)
