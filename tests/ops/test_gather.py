from __future__ import annotations

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
from webnn_wgpu.core.data_types import numpy_dtype
from webnn_wgpu.ops._places import INDEX_TYPES

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

# Indices into a dimension of 5, and what they mean by Python's own arithmetic.
EDGES = {
    "int32": [0, 4, 5, -1, -5, -6, 2**31 - 1, -(2**31), -(2**31) + 4],
    "uint32": [0, 4, 5, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 5],
    "int64": [
        *(0, 4, 5, -1, -5, -6, 2**31, -(2**31), 2**32, 2**32 + 1, 2**32 - 1, -(2**32), -(2**32) + 1, -(2**32) - 1),
        *(2**63 - 1, -(2**63), -(2**63) + 1, 2**33 + 3, -(2**33) - 3),
    ],
}


def meant(index: int, size: int) -> int:
    return max(0, min(size - 1, index + size if index < 0 else index))


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("index_type", INDEX_TYPES)
def test_every_type_on_every_device(profile_device: Device, data_type: str, index_type: str) -> None:
    rng = np.random.default_rng(1)
    indices = np.array(EDGES[index_type], index_type)
    for shape, axis in (((5, 16), 0), ((2, 5, 3), 1)):
        x = random_bits(rng, data_type, shape)
        (actual,) = check_moves(profile_device, "gather", [x, indices], {"axis": axis})
        assert_same_bits(actual, x.take([meant(i, 5) for i in EDGES[index_type]], axis))


@pytest.mark.parametrize("data_type", SIZES)
@pytest.mark.parametrize(
    ("shape", "indices", "axis"),
    [
        ((1,), (), 0),
        ((7,), (), 0),
        ((7,), (1,), 0),
        ((7,), (11,), 0),
        ((3, 7), (), 1),
        ((3, 7), (), 0),
        ((3, 7, 5), (2, 3), 1),
        ((31, 48), (4, 3), 0),
        ((2, 31, 2), (13,), 1),
        ((2, 3, 5, 1), (2, 1, 2), 3),
        ((1, 1, 2, 1, 3, 1, 4, 1), (5,), 4),
        ((1, 1, 2, 1, 3, 1, 16), (2, 1), 5),
    ],
)
def test_shapes(device: Device, data_type: str, shape: tuple[int, ...], indices: tuple[int, ...], axis: int) -> None:
    rng = np.random.default_rng(2)
    x = random_bits(rng, data_type, shape)
    places = rng.integers(-shape[axis] - 2, shape[axis] + 2, indices, np.int64)
    (actual,) = check_moves(device, "gather", [x, places], {"axis": axis})
    assert actual.shape == (*shape[:axis], *indices, *shape[axis + 1 :])


def test_axis_defaults_to_0(device: Device) -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    (actual,) = check_moves(device, "gather", [x, np.array([2, 0], np.int32)])
    assert actual.tolist() == [[4, 5], [0, 1]]


def test_large_dimension_without_64_bit_integers(device: Device) -> None:
    size = 70_001
    x = np.arange(size, dtype=np.int32)
    indices = np.array([size - 1, size, -size, -size - 1, -(2**63) + size, 2**40], np.int64)
    (actual,) = check_moves(device, "gather", [x, indices])
    assert actual.tolist() == [meant(int(i), size) for i in indices]


@pytest.mark.repeats
def test_more_workgroups_than_a_grid_dimension_holds(device: Device) -> None:
    rng = np.random.default_rng(3)
    x = random_bits(rng, "uint8", (251, 7))
    rows = FOLDED_ELEMENTS // 7 + 1
    indices = rng.integers(-251, 251, rows, np.int32)
    check_moves(device, "gather", [x, indices], folded=True)
    x = random_bits(rng, "float32", (11, 512))
    check_moves(device, "gather", [x, indices[: FOLDED_ELEMENTS // 512 + 1]], folded=True)


@settings(max_examples=30)
@given(
    st.sampled_from(SIZES),
    st.sampled_from(INDEX_TYPES),
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
    st.lists(st.integers(1, 4), max_size=3),
    st.data(),
)
def test_any_indices(
    device: Device, data_type: str, index_type: str, shape: list[int], indices: list[int], data: st.DataObject
) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    limits = np.iinfo(numpy_dtype(index_type))  # pyright: ignore[reportArgumentType] - an integer type
    near = st.integers(max(limits.min, -8), 8)
    count = int(np.prod(indices, dtype=int))
    places = data.draw(st.lists(near | st.integers(limits.min, limits.max), min_size=count, max_size=count))
    x = random_bits(np.random.default_rng(count), data_type, shape)
    (actual,) = check_moves(device, "gather", [x, np.array(places, index_type).reshape(indices)], {"axis": axis})
    expected = x.take([meant(i, shape[axis]) for i in places], axis)
    assert_same_bits(actual, expected.reshape(actual.shape))


# gatherElements -------------------------------------------------------------------------------------------------------


def meant_elements(x: Array, indices: Array, axis: int) -> Array:
    """gatherElements by the specification's words, one element at a time."""
    out = np.empty(indices.shape, x.dtype)
    for place in np.ndindex(indices.shape):
        out[place] = x[(*place[:axis], meant(int(indices[place]), x.shape[axis]), *place[axis + 1 :])]
    return out


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("index_type", INDEX_TYPES)
def test_elements_of_every_type_on_every_device(profile_device: Device, data_type: str, index_type: str) -> None:
    rng = np.random.default_rng(1)
    edges = np.array(EDGES[index_type], index_type)
    for shape, axis in (((5, 3), 0), ((2, 5, 4), 1), ((3, 5), 1)):
        x = random_bits(rng, data_type, shape)
        indices = rng.choice(edges, (*shape[:axis], len(edges), *shape[axis + 1 :]))
        (actual,) = check_moves(profile_device, "gatherElements", [x, indices], {"axis": axis})
        assert_same_bits(actual, meant_elements(x, indices, axis))


@settings(max_examples=30)
@given(
    st.sampled_from(SIZES),
    st.sampled_from(INDEX_TYPES),
    st.lists(st.integers(1, 6), min_size=1, max_size=5),
    st.integers(1, 9),
    st.data(),
)
def test_any_elements(
    device: Device, data_type: str, index_type: str, shape: list[int], size: int, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    indices = near_indices(rng, index_type, (*shape[:axis], size, *shape[axis + 1 :]))
    x = random_bits(rng, data_type, shape)
    (actual,) = check_moves(device, "gatherElements", [x, indices], {"axis": axis})
    assert_same_bits(actual, meant_elements(x, indices, axis))


def near_indices(rng: np.random.Generator, index_type: str, shape: tuple[int, ...]) -> Array:
    """Indices around the ends of small dimensions, some far out."""
    dtype = np.dtype(index_type)
    limits = np.iinfo(dtype)  # pyright: ignore[reportArgumentType] - an integer type
    near = rng.integers(max(limits.min, -8), 9, shape, np.int64).astype(dtype)
    far = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.2, far, near)


def test_elements_axis_defaults_to_0(device: Device) -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    (actual,) = check_moves(device, "gatherElements", [x, np.array([[2, 0]], np.int32)])
    assert actual.tolist() == [[4, 1]]


@pytest.mark.repeats
def test_more_elements_than_a_grid_dimension_holds(device: Device) -> None:
    rng = np.random.default_rng(3)
    x = random_bits(rng, "uint8", (251, 3))
    indices = rng.integers(-251, 251, (FOLDED_ELEMENTS // 3 + 1, 3), np.int32)
    check_moves(device, "gatherElements", [x, indices], folded=True)


# gatherND -------------------------------------------------------------------------------------------------------------


def meant_nd(x: Array, indices: Array) -> Array:
    """gatherND by the specification's words, one slice at a time."""
    rank = indices.shape[-1]
    out = np.empty((*indices.shape[:-1], *x.shape[rank:]), x.dtype)
    for place in np.ndindex(indices.shape[:-1]):
        out[place] = x[tuple(meant(int(i), n) for i, n in zip(indices[place], x.shape, strict=False))]
    return out


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("index_type", INDEX_TYPES)
def test_coordinates_in_every_type_on_every_device(profile_device: Device, data_type: str, index_type: str) -> None:
    rng = np.random.default_rng(1)
    edges = np.array(EDGES[index_type], index_type)
    for shape, rank in (((5, 5), 2), ((5, 5, 3), 2), ((5, 16), 1), ((5,), 1), ((5, 5, 5, 16), 3)):
        x = random_bits(rng, data_type, shape)
        indices = rng.choice(edges, (2, len(edges), rank))
        (actual,) = check_moves(profile_device, "gatherND", [x, indices])
        assert_same_bits(actual, meant_nd(x, indices))


@settings(max_examples=30)
@given(
    st.sampled_from(SIZES),
    st.sampled_from(INDEX_TYPES),
    st.lists(st.integers(1, 5), min_size=1, max_size=5),
    st.lists(st.integers(1, 4), max_size=3),
    st.data(),
)
def test_any_coordinates(
    device: Device, data_type: str, index_type: str, shape: list[int], rows: list[int], data: st.DataObject
) -> None:
    rank = data.draw(st.integers(1, len(shape)))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    indices = near_indices(rng, index_type, (*rows, rank))
    x = random_bits(rng, data_type, shape)
    (actual,) = check_moves(device, "gatherND", [x, indices])
    assert_same_bits(actual, meant_nd(x, indices))


def test_all_coordinates_of_the_highest_rank(device: Device) -> None:
    rng = np.random.default_rng(4)
    x = random_bits(rng, "float32", (1, 2, 3, 1, 2, 3, 1, 2))
    (actual,) = check_moves(device, "gatherND", [x, near_indices(rng, "int32", (7, 8))])
    assert actual.shape == (7,)
    (actual,) = check_moves(device, "gatherND", [x, near_indices(rng, "int32", (8,))])
    assert actual.shape == ()


def test_more_slices_than_a_grid_dimension_holds(device: Device) -> None:
    rng = np.random.default_rng(3)
    x = random_bits(rng, "uint8", (13, 17, 7))
    indices = rng.integers(-17, 17, (FOLDED_ELEMENTS // 7 + 1, 2), np.int32)
    check_moves(device, "gatherND", [x, indices], folded=True)


# kernels and refusals -------------------------------------------------------------------------------------------------


def test_kernels() -> None:
    indices = typed("int64", 6)
    assert kernels("gather", [typed("float32", 30, 8), indices]) == ["gather[form=axis, rank=1, quad=True]"]
    assert kernels("gather", [typed("int64", 30, 2), indices]) == ["gather[form=axis, rank=1, quad=True]"]
    assert kernels("gather", [typed("uint8", 30, 16), indices]) == ["gather[form=axis, rank=1, quad=True]"]
    assert kernels("gather", [typed("float16", 30, 4), indices]) == ["gather[form=axis, rank=1, quad=False]"]
    assert kernels("gather", [typed("float32", 30), indices]) == ["gather[form=axis, rank=1, quad=False]"]
    assert kernels("gatherElements", [typed("int64", 30, 4), typed("int64", 6, 4)]) == [
        "gather[form=elements, rank=1, quad=False]"
    ]
    assert kernels("gatherND", [typed("float16", 30, 2, 16), typed("int64", 3, 2)]) == [
        "gather[form=coordinates, rank=2, quad=True]"
    ]


def test_refusals() -> None:
    x, indices = typed("float32", 2, 3), typed("int32", 4)
    assert refusal("gather", [x, typed("float32", 4)]) == (
        "gather('here'): indices data type is not allowed; got indices float32[4]; allowed: int32, uint32, int64. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-gather"
    )
    for data_type in ("int8", "uint8", "uint64", "float16"):
        assert "indices data type is not allowed" in refusal("gather", [x, typed(data_type, 4)])
    assert refusal("gather", [x, indices], {"axis": 2}) == (
        "gather('here'): axis must be < rank(input): Axis 2 out of bounds for rank 2; "
        "got axis=2, input float32[2, 3], indices int32[4]; allowed: 0..1. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-gather"
    )
    assert "rank(input) is not allowed; got input float32[] of rank 0" in refusal("gather", [typed("float32"), indices])
    assert "axis must be an unsigned 32-bit integer" in refusal("gather", [x, indices], {"axis": -1})
    assert "indices is required" in refusal("gather", [x, None])
    many = [typed("float32", *[1] * 8), typed("int32", 1, 1)]
    assert "output rank is not supported" in refusal("gather", many)
    huge = [typed("uint8", 1, 2**16), typed("int32", 2**16)]
    assert "must be valid dimensions" in refusal("gather", huge)


def test_refusals_of_elements() -> None:
    x = typed("float32", 2, 3)
    assert refusal("gatherElements", [x, typed("int32", 4)]) == (
        "gather_elements('here'): Incompatible shapes: indices must have the rank of input; "
        "got input float32[2, 3], indices int32[4]; allowed: rank 2. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-gatherelements"
    )
    assert refusal("gatherElements", [x, typed("int32", 2, 4)]) == (
        "gather_elements('here'): Incompatible shapes: indices must have input's shape in all dimensions except axis 0; "
        "got input float32[2, 3], indices int32[2, 4]; allowed: indices of shape [2, 3]. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-gatherelements"
    )
    assert "except axis 1" in refusal("gatherElements", [x, typed("int32", 1, 4)], {"axis": 1})
    assert "Axis 2 out of bounds for rank 2" in refusal("gatherElements", [x, typed("int32", 2, 3)], {"axis": 2})
    assert "axis must be an unsigned" in refusal("gatherElements", [x, typed("int32", 2, 3)], {"axis": -1})
    for data_type in ("int8", "uint8", "uint64", "float32"):
        assert "indices data type is not allowed" in refusal("gatherElements", [x, typed(data_type, 2, 3)])
    assert "rank(input) is not allowed" in refusal("gatherElements", [typed("int8"), typed("int32", 1)])
    assert "rank(indices) is not allowed" in refusal("gatherElements", [typed("int8", 1), typed("int32")])


def test_refusals_of_coordinates() -> None:
    x = typed("float32", 2, 3)
    assert refusal("gatherND", [x, typed("int32", 4, 3)]) == (
        "gather_nd('here'): the last dimension of indices must be <= rank(input); "
        "got 3 coordinates, input float32[2, 3], indices int32[4, 3]; allowed: 1..2. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-gathernd"
    )
    for data_type in ("int8", "uint8", "uint64", "float32"):
        assert "indices data type is not allowed" in refusal("gatherND", [x, typed(data_type, 4, 2)])
    assert "rank(input) is not allowed" in refusal("gatherND", [typed("int8"), typed("int32", 1)])
    assert "rank(indices) is not allowed" in refusal("gatherND", [x, typed("int32")])
    assert "unknown option 'axis'" in refusal("gatherND", [x, typed("int32", 1)], {"axis": 0})
    many = [typed("float32", *[1] * 8), typed("int32", 1, 1, 1)]
    assert "output rank is not supported" in refusal("gatherND", many)
