"""ULP and absolute distance, and what a comparison says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from webnn_wgpu.testing import absolute_distance, assert_within, compare, ulp_distance

INF, NAN = math.inf, math.nan
F32_NORMAL = float(np.finfo(np.float32).smallest_normal)
F32_SUBNORMAL = float(np.finfo(np.float32).smallest_subnormal)
F16_SUBNORMAL = float(np.finfo(np.float16).smallest_subnormal)


@pytest.mark.parametrize(
    ("dtype", "a", "b", "distance"),
    [
        ("float32", 0.0, -0.0, 0),
        ("float32", 1.0, 1.0 + 2**-23, 1),
        ("float32", 1.0, 1.0 - 2**-24, 1),
        ("float32", 1.0, 2.0, 2**23),
        ("float32", F32_SUBNORMAL, 0.0, 0),
        ("float32", -F32_SUBNORMAL, F32_NORMAL - F32_SUBNORMAL, 0),
        ("float32", F32_NORMAL, 0.0, 1),
        ("float32", F32_NORMAL, -F32_NORMAL, 2),
        ("float32", F32_NORMAL, -F32_SUBNORMAL, 1),
        ("float32", 1.0, -1.0, 2 * (0x3F800000 - 0x7FFFFF)),
        ("float32", 3.4028235e38, INF, INF),
        ("float16", 1.0, 1.0 + 2**-10, 1),
        ("float16", F16_SUBNORMAL, 0.0, 1),
        ("float16", F16_SUBNORMAL, -F16_SUBNORMAL, 2),
        ("float16", 1.0, -1.0, 2 * 0x3C00),
        ("float16", 65504.0, INF, INF),
        ("int8", -128, 127, 255),
        ("uint8", 0, 255, 255),
        ("int32", -(2**31), 2**31 - 1, 2**32 - 1),
        ("uint32", 0, 2**32 - 1, 2**32 - 1),
        ("int64", -(2**63), 2**63 - 1, 2.0**64),
        ("int64", 2**53, 2**53 + 1, 1),
        ("uint64", 2**64 - 1, 2**64 - 2, 1),
    ],
)
def test_ulp_distance(dtype: str, a: float, b: float, distance: float) -> None:
    left, right = np.array(a, dtype), np.array(b, dtype)
    assert ulp_distance(left, right) == distance
    assert ulp_distance(right, left) == distance


@pytest.mark.parametrize("distance", [ulp_distance, absolute_distance])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_special_floats_equal_only_themselves(distance: Any, dtype: str) -> None:
    values = np.array([NAN, INF, -INF, 0.0, 1.0], dtype)
    table = distance(np.repeat(values, 5), np.tile(values, 5)).reshape(5, 5)
    assert (table.diagonal() == 0).all()
    special_row = ~np.eye(5, dtype=bool)[:3]
    assert np.isinf(table[:3][special_row]).all()
    assert np.isinf(table[:, :3][special_row.T]).all()
    assert np.isfinite(table[3:, 3:]).all()


def test_nan_payload_and_sign_do_not_matter() -> None:
    nans = np.array([0x7FC00000, 0xFFC00001], np.uint32).view(np.float32)
    assert ulp_distance(nans, nans[::-1]).tolist() == [0, 0]


def test_distance_keeps_the_shape_and_takes_any_stride() -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert ulp_distance(values.T, np.ascontiguousarray(values.T)).shape == (4, 3)
    assert ulp_distance(np.float32(1), np.float32(1)).shape == ()
    assert ulp_distance(values[:, ::2], values[:, ::2].copy()).tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_distance_counts_the_values_between(dtype: str) -> None:
    value = np.array(1.5, dtype)
    for steps in range(1, 5):
        value = np.nextafter(value, np.array(INF, dtype))
        assert ulp_distance(value, np.array(1.5, dtype)) == steps


@given(hnp.arrays(np.float32, 3, elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_distance_adds_up_along_the_number_line(values: np.ndarray[Any, Any]) -> None:
    low, middle, high = np.sort(values)
    assert ulp_distance(low, high) == ulp_distance(low, middle) + ulp_distance(middle, high)


def test_absolute_distance_of_floats_is_taken_in_float64() -> None:
    assert absolute_distance(np.float16(65504), np.float16(-65504)) == 131008
    assert absolute_distance(np.float32(1e38), np.float32(-3e38)) == pytest.approx(4e38)
    assert absolute_distance(np.float32(F32_SUBNORMAL), np.float32(0)) == F32_SUBNORMAL


@pytest.mark.parametrize("distance", [ulp_distance, absolute_distance])
def test_distance_refuses_unlike_tensors(distance: Any) -> None:
    with pytest.raises(TypeError, match=r"^distance: data types float32 and float16 differ; they must be the same$"):
        distance(np.float32([1]), np.float16([1]))
    with pytest.raises(ValueError, match=r"^distance: shapes \[1\] and \[1, 1\] differ; they must be the same$"):
        distance(np.float32([1]), np.float32([[1]]))


def test_ulp_distance_refuses_types_without_ulp() -> None:
    with pytest.raises(TypeError, match=r"^ulp_distance: data type float64 has no ULP; allowed are float32, float16"):
        ulp_distance(np.float64([1]), np.float64([1]))
    with pytest.raises(TypeError, match=r"^ulp_distance: data type float64 has no ULP"):
        compare(np.float64([1]), np.float64([1]), "ULP", 0)


def test_compare_names_the_worst_element() -> None:
    expected = np.float32([[1, 2, 3], [4, 5, 6]])
    actual = expected.copy()
    actual[0, 1] = np.nextafter(np.float32(2), np.float32(3))
    actual[1, 2] = 6.5
    mismatch = compare(actual, expected, "ULP", 0)
    assert mismatch is not None
    assert (mismatch.index, mismatch.distance, mismatch.count) == ((1, 2), 2**20, 2)
    assert str(mismatch) == (
        "2 of 6 elements differ by more than 0 ULP; worst at [1, 2]: actual 6.5, expected 6.0, distance 1048576 ULP"
    )
    mismatch = compare(actual, expected, "ATOL", 0.25)
    assert mismatch is not None
    assert str(mismatch) == (
        "1 of 6 elements differ by more than 0.25; worst at [1, 2]: actual 6.5, expected 6.0, distance 0.5"
    )
    assert compare(actual, expected, "ATOL", 0.5) is None
    assert compare(actual, expected, "ULP", 2**20) is None
    mismatch = compare(actual, expected, "ULP", 2**20 - 1)
    assert mismatch is not None
    assert mismatch.count == 1


def test_compare_requires_shape_and_data_type() -> None:
    expected = np.float32([[1, 2]])
    mismatch = compare(np.float64([[1, 2]]), expected, "ATOL", INF)
    assert mismatch is not None
    assert (str(mismatch), mismatch.index) == ("data type is float64, expected float32", None)
    mismatch = compare(np.float32([1, 2]), expected, "ULP", INF)
    assert mismatch is not None
    assert (str(mismatch), mismatch.distance) == ("shape is [2], expected [1, 2]", INF)


def test_compare_finds_a_nan_under_any_finite_tolerance() -> None:
    mismatch = compare(np.float32([1, NAN]), np.float32([1, 2]), "ATOL", 1e30)
    assert mismatch is not None
    assert str(mismatch) == ("1 of 2 elements differ by more than 1e+30; worst at [1]: actual nan, expected 2.0, distance inf")


def test_compare_takes_scalars_and_counts_zeros_as_equal() -> None:
    assert compare(np.float32(-0.0), np.float32(0.0), "ULP", 0) is None
    mismatch = compare(np.uint8(1), np.uint8(3), "ATOL", 1)
    assert mismatch is not None
    assert (mismatch.index, mismatch.distance) == ((), 2)


def test_compare_refuses_a_senseless_tolerance() -> None:
    one: Any = np.float32([1])
    unknown: Any = "RTOL"
    with pytest.raises(ValueError, match=r"^compare: unknown metric 'RTOL'; allowed are 'ULP' and 'ATOL'$"):
        compare(one, one, unknown, 1)
    for value in (-1.0, NAN):
        with pytest.raises(ValueError, match=r"is not allowed; it must be at least 0$"):
            compare(one, one, "ULP", value)


def test_assert_within() -> None:
    assert_within(np.int8([1]), np.int8([1]), "ULP", 0)
    with pytest.raises(AssertionError, match=r"^embedding: 1 of 1 elements .* distance 2 ULP$"):
        assert_within(np.int8([1]), np.int8([3]), "ULP", 1, label="embedding")
    with pytest.raises(AssertionError, match=r"^shape is \[1\], expected \[\]$"):
        assert_within(np.int8([1]), np.int8(1), "ULP", 1)
