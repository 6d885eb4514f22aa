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
from webnn_wgpu.ops.gather import INDEX_TYPES

if TYPE_CHECKING:
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


def test_kernels() -> None:
    indices = typed("int64", 6)
    assert kernels("gather", [typed("float32", 30, 8), indices]) == ["gather[quad=True]"]
    assert kernels("gather", [typed("int64", 30, 2), indices]) == ["gather[quad=True]"]
    assert kernels("gather", [typed("uint8", 30, 16), indices]) == ["gather[quad=True]"]
    assert kernels("gather", [typed("float16", 30, 4), indices]) == ["gather[quad=False]"]
    assert kernels("gather", [typed("float32", 30), indices]) == ["gather[quad=False]"]


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
