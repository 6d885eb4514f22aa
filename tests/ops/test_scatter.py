from __future__ import annotations

import math
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
    typed,
)
from tests.rotation import first_of
from tests.support import Sketch, assert_same, check_op, op_graph, run_graph
from tests.targets import DEFAULT_TARGET, SOFTWARE
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.errors import OperationError, OutOfMemoryError
from webnn_wgpu.costs import Target
from webnn_wgpu.ops._places import INDEX_TYPES
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

VARIANTS = ("search", "winners")


def meant(index: int, size: int) -> int:
    return max(0, min(size - 1, index + size if index < 0 else index))


def meant_elements(x: Array, indices: Array, updates: Array, axis: int) -> Array:
    """scatterElements by the specification's words, one element after the other."""
    out = x.copy()
    for place in np.ndindex(indices.shape):
        out[(*place[:axis], meant(int(indices[place]), x.shape[axis]), *place[axis + 1 :])] = updates[place]
    return out


def meant_nd(x: Array, indices: Array, updates: Array) -> Array:
    """scatterND by the specification's words, one slice after the other."""
    out = x.copy()
    for place in np.ndindex(indices.shape[:-1]):
        out[tuple(meant(int(i), n) for i, n in zip(indices[place], x.shape, strict=False))] = updates[place]
    return out


def some_indices(rng: np.random.Generator, index_type: str, shape: tuple[int, ...]) -> Array:
    """Indices of which many name the same place, some far out of any dimension."""
    dtype = np.dtype(index_type)
    limits = np.iinfo(dtype)  # pyright: ignore[reportArgumentType] - an integer type
    near = rng.integers(max(limits.min, -7), 8, shape, np.int64).astype(dtype)
    far = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.2, far, near)


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("index_type", first_of(INDEX_TYPES))
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_type_on_every_device(profile_device: Device, variant: str, data_type: str, index_type: str) -> None:
    rng = np.random.default_rng(1)
    for shape, axis, size in (((5, 3), 0, 4), ((2, 5, 4), 1, 5), ((3, 7), 1, 3)):
        x = random_bits(rng, data_type, shape)
        indices = some_indices(rng, index_type, (*shape[:axis], size, *shape[axis + 1 :]))
        updates = random_bits(rng, data_type, indices.shape)
        given_ = [x, indices, updates]
        (actual,) = check_moves(profile_device, "scatterElements", given_, {"axis": axis}, forced=variant)
        assert_same_bits(actual, meant_elements(x, indices, updates, axis))
    for shape, rank in (((5, 5), 2), ((4, 5, 3), 2), ((5, 16), 1), ((7,), 1), ((3, 2, 5, 16), 3)):
        x = random_bits(rng, data_type, shape)
        indices = some_indices(rng, index_type, (3, 2, rank))
        updates = random_bits(rng, data_type, (3, 2, *shape[rank:]))
        (actual,) = check_moves(profile_device, "scatterND", [x, indices, updates], forced=variant)
        assert_same_bits(actual, meant_nd(x, indices, updates))


@settings(max_examples=40)
@given(
    st.sampled_from(VARIANTS),
    st.sampled_from(SIZES),
    st.sampled_from(INDEX_TYPES),
    st.lists(st.integers(1, 6), min_size=1, max_size=5),
    st.integers(1, 9),
    st.data(),
)
def test_any_elements(
    device: Device, variant: str, data_type: str, index_type: str, shape: list[int], size: int, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    indices = some_indices(rng, index_type, (*shape[:axis], size, *shape[axis + 1 :]))
    x, updates = random_bits(rng, data_type, shape), random_bits(rng, data_type, indices.shape)
    (actual,) = check_moves(device, "scatterElements", [x, indices, updates], {"axis": axis}, forced=variant)
    assert_same_bits(actual, meant_elements(x, indices, updates, axis))


@settings(max_examples=40)
@given(
    st.sampled_from(VARIANTS),
    st.sampled_from(SIZES),
    st.sampled_from(INDEX_TYPES),
    st.lists(st.integers(1, 5), min_size=1, max_size=5),
    st.lists(st.integers(1, 4), max_size=3),
    st.data(),
)
def test_any_coordinates(
    device: Device, variant: str, data_type: str, index_type: str, shape: list[int], rows: list[int], data: st.DataObject
) -> None:
    rank = data.draw(st.integers(1, len(shape)))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    indices = some_indices(rng, index_type, (*rows, rank))
    x, updates = random_bits(rng, data_type, shape), random_bits(rng, data_type, (*rows, *shape[rank:]))
    (actual,) = check_moves(device, "scatterND", [x, indices, updates], forced=variant)
    assert_same_bits(actual, meant_nd(x, indices, updates))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("data_type", SIZES)
def test_the_last_of_many_updates_of_one_place_wins(device: Device, variant: str, data_type: str) -> None:
    rng = np.random.default_rng(5)
    count = 5000
    x = random_bits(rng, data_type, (3, 1))
    indices = rng.integers(2, 9, (count, 1), np.int32)  # all clamped to the last place
    updates = random_bits(rng, data_type, (count, 1))
    for _ in range(3):
        (actual,) = check_moves(device, "scatterND", [x, indices, updates], forced=variant)
        assert_same_bits(actual, np.concatenate([x[:2], updates[-1:]]))


def test_axis_defaults_to_0(device: Device) -> None:
    x = np.zeros((3, 2), np.float32)
    (actual,) = check_moves(device, "scatterElements", [x, np.array([[2, 0]], np.int32), np.float32([[5, 6]])])
    assert actual.tolist() == [[0, 6], [0, 0], [5, 0]]


def test_updates_may_be_the_input(device: Device) -> None:
    s = Sketch()
    x = s.input(np.arange(12, dtype=np.float32).reshape(3, 4))
    indices = s.constant(np.array([[2], [0], [1]], np.int32))
    graph = s.graph(s.apply("scatterND", x, indices, x))
    assert_same(run_graph(device, graph, s.feeds), interpret(graph, s.feeds))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("data_type", "shape", "rank"), [("uint8", (1237,), 1), ("int64", (31, 7), 1), ("float32", (41, 3, 4), 2)]
)
def test_tensors_larger_than_a_binding(device: Device, variant: str, data_type: str, shape: tuple[int, ...], rank: int) -> None:
    rng = np.random.default_rng(6)
    x = random_bits(rng, data_type, shape)
    indices = np.stack([rng.integers(-n, n, 20, np.int32) for n in shape[:rank]], axis=1)
    updates = random_bits(rng, data_type, (20, *shape[rank:]))
    check_moves(device, "scatterND", [x, indices, updates], forced=variant, binding_bytes=1184)


@pytest.mark.parametrize("variant", VARIANTS)
def test_updates_larger_than_a_binding(device: Device, variant: str) -> None:
    rng = np.random.default_rng(8)
    x, updates = (random_bits(rng, "float32", (n, 8)) for n in (20, 100))
    check_moves(device, "scatterND", [x, rng.integers(0, 20, (100, 1), np.int32), updates], forced=variant, binding_bytes=1024)


def test_searching_takes_indices_that_fit_a_binding(device: Device) -> None:
    x, indices = np.zeros((2, 8), np.float32), np.zeros((400, 1), np.int32)
    with pytest.raises(OutOfMemoryError) as raised:
        check_moves(device, "scatterND", [x, indices, np.zeros((400, 8), np.float32)], forced="search", binding_bytes=1024)
    assert (raised.value.operator, raised.value.label) == ("scatter_nd", "test")
    assert raised.value.got == "indices int32[400, 1], 1600 bytes"


@pytest.mark.repeats
def test_more_workgroups_than_a_grid_dimension_holds(device: Device) -> None:
    rng = np.random.default_rng(3)
    x = random_bits(rng, "uint8", (FOLDED_ELEMENTS + 2,))
    indices = rng.integers(-len(x), len(x), (len(x), 1), np.int32)
    updates = random_bits(rng, "uint8", x.shape)
    check_moves(device, "scatterND", [x, indices, updates], forced="winners", folded=True)
    check_moves(device, "scatterND", [x, indices[:2], updates[:2]], forced="search", folded=True)


def test_kernels() -> None:
    search, mark = "scatter.search[form=coordinates, rank=1, quad=True]", "mark, form=coordinates, rank=1, quad=False]"
    assert kernels("scatterND", [typed("float32", 1024, 4096), typed("int32", 1, 1), typed("float32", 1, 4096)]) == [search]
    assert kernels("scatterND", [typed("float32", 64, 64), typed("int32", 5, 1), typed("float32", 5, 64)]) == [search]
    many = kernels("scatterND", [typed("float32", 1024, 64), typed("int32", 500, 1), typed("float32", 500, 64)])
    assert many == [
        "scatter.winners[step=clear, form=, rank=0, quad=True]",
        f"scatter.winners[step={mark}",
        "scatter.winners[step=write, form=, rank=0, quad=True]",
    ]
    shape = (300, 300)
    (_, mark, write) = kernels("scatterElements", [typed("int8", *shape), typed("int64", *shape), typed("int8", *shape)])
    assert mark == "scatter.winners[step=mark, form=elements, rank=1, quad=False]"
    assert write == "scatter.winners[step=write, form=, rank=0, quad=False]"


def test_refusals_of_elements() -> None:
    x, indices = typed("float32", 2, 3), typed("int32", 1, 3)
    assert refusal("scatterElements", [x, indices, typed("float32", 2, 3)]) == (
        "scatter_elements('here'): Incompatible shapes: updates must have the shape of indices; "
        "got input float32[2, 3], indices int32[1, 3], updates float32[2, 3]; allowed: updates of shape [1, 3]. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-scatterelements"
    )
    updates = typed("float32", 1, 3)
    assert "updates data type must equal input data type" in refusal("scatterElements", [x, indices, typed("int32", 1, 3)])
    assert "updates must have the shape" in refusal("scatterElements", [x, indices, typed("float32", 3)])
    assert "indices must have the rank of input" in refusal("scatterElements", [x, typed("int32", 3), typed("float32", 3)])
    wrong = [x, typed("int32", 2, 1), typed("float32", 2, 1)]
    assert "indices must have input's shape in all dimensions except axis 0" in refusal("scatterElements", wrong)
    assert "Axis 2 out of bounds for rank 2" in refusal("scatterElements", [x, indices, updates], {"axis": 2})
    assert "axis must be an unsigned" in refusal("scatterElements", [x, indices, updates], {"axis": -1})
    for data_type in ("int8", "uint8", "uint64", "float32"):
        assert "indices data type is not allowed" in refusal("scatterElements", [x, typed(data_type, 1, 3), updates])
    assert "rank(input) is not allowed" in refusal(
        "scatterElements", [typed("float32"), typed("int32", 1), typed("float32", 1)]
    )
    assert "rank(indices) is not allowed" in refusal("scatterElements", [x, typed("int32"), updates])
    assert "rank(updates) is not allowed" in refusal("scatterElements", [x, indices, typed("float32")])
    assert "updates is required" in refusal("scatterElements", [x, indices, None])


def test_refusals_of_coordinates() -> None:
    x, indices = typed("float32", 2, 3), typed("int32", 4, 1)
    assert refusal("scatterND", [x, indices, typed("float32", 4)]) == (
        "scatter_nd('here'): Incompatible shapes: updates must have the shape of indices without its last dimension, "
        "followed by input's dimensions behind the coordinates; "
        "got input float32[2, 3], indices int32[4, 1], updates float32[4]; allowed: updates of shape [4, 3]. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-scatternd"
    )
    updates = typed("float32", 4, 3)
    assert "updates data type must equal input data type" in refusal("scatterND", [x, indices, typed("float16", 4, 3)])
    assert "the last dimension of indices must be <= rank(input); got 3 coordinates" in refusal(
        "scatterND", [x, typed("int32", 4, 3), typed("float32", 4)]
    )
    for data_type in ("int8", "uint8", "uint64", "float32"):
        assert "indices data type is not allowed" in refusal("scatterND", [x, typed(data_type, 4, 1), updates])
    assert "rank(input) is not allowed" in refusal("scatterND", [typed("float32"), typed("int32", 1), typed("float32")])
    assert "rank(indices) is not allowed" in refusal("scatterND", [x, typed("int32"), updates])


def test_many_places_are_marked_in_ranges_that_a_binding_holds_a_word_for() -> None:
    s = Sketch()
    table, updates = (s.input(np.broadcast_to(np.uint8(0), n)) for n in (10**8, 1000))
    graph = s.graph(s.apply("scatterElements", table, s.input(np.zeros(1000, np.int32)), updates))
    plan = make_plan(graph, DEFAULT_TARGET)
    limit = Caps().limit("max-storage-buffer-binding-size")
    assert len(plan.dispatches) == 3 * math.ceil(10**8 * 4 / limit)
    assert all(r.size_bytes <= limit for d in plan.dispatches for r in d.bindings)


def test_more_updates_than_a_loop_can_look_through_are_not_searched(device: Device) -> None:
    inputs = [np.arange(40, dtype=np.float32), np.full(70_000, 7, np.int32), np.arange(70_000, dtype=np.float32)]
    (result,) = check_op(device, "scatterElements", inputs, {"axis": 0}, forced={"scatterElements": "winners"})
    assert result[7] == 69_999
    with pytest.raises(OperationError, match="got search, 70000 updates; allowed: winners"):
        make_plan(op_graph("scatterElements", inputs, {"axis": 0}), Target.of(SOFTWARE), {"scatterElements": "search"})
