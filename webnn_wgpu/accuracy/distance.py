"""Comparison of tensors by ULP distance or absolute difference, as the WebNN conformance tests count it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Metric = Literal["ULP", "ATOL"]
"""A measure of distance: `"ULP"` counts representable values of the data type, `"ATOL"` is the absolute difference."""

# The integer type of a float's bits, and the number of subnormals of one sign that count as zero. WGSL lets an implementation
# flush float32 subnormals, so no test may distinguish them. float16 keeps its own.
_FLOAT_BITS: dict[str, tuple[type[np.signedinteger[Any]], int]] = {
    "float32": (np.int32, 0x7FFFFF),
    "float16": (np.int16, 0),
}


@dataclass(frozen=True)
class Mismatch:
    """Why `actual` is not `expected`.

    Attributes:
        reason: One sentence with the worst element, its index, both values and their distance.
        index: Index of the worst element. None if the shapes or data types differ.
        distance: Distance of the worst element in the metric's unit. Infinite for a NaN or infinity without counterpart and for
            different shapes or data types.
        count: Number of elements out of tolerance.
    """

    reason: str
    index: tuple[int, ...] | None
    distance: float
    count: int

    def __str__(self) -> str:
        return self.reason


def ulp_distance(actual: npt.ArrayLike, expected: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Element-wise distance of two tensors in representable values of their data type.

    Args:
        actual: Tensor of float32, float16 or an integer type, any shape.
        expected: Tensor of the same data type and shape.

    Returns:
        float64 array of the shape of the arguments. Integers: the plain difference, computed exactly and then
        rounded to float64, so it is zero only for equal values.

    Raises:
        TypeError: The data types differ, or are none of float32, float16 and the integers.
        ValueError: The shapes differ.

    Numerics:
        -0 and +0 are the same value, and float32 subnormals count as zero, so that the smallest normal number is one step away
            from zero. NaN equals only NaN and an infinity only itself. Any other pair with one of them is infinitely far apart.

    Example:
        >>> import numpy as np
        >>> one = np.float32([1.0, 0.0, np.inf])
        >>> ulp_distance(np.nextafter(one, np.float32([2.0, -1.0, 0.0])), one)
        array([ 1.,  0., inf])
    """
    a, b = _pair(actual, expected)
    if a.dtype.kind in "iu":
        return np.asarray(_integer_difference(a, b), np.float64)
    if a.dtype.name not in _FLOAT_BITS:
        raise TypeError(f"ulp_distance: data type {a.dtype.name} has no ULP; allowed are float32, float16 and integers")
    steps = np.abs(_ordinal(a) - _ordinal(b)).astype(np.float64)
    return np.where(_finite_pair(a, b), steps, _special_distance(a, b))


def absolute_distance(actual: npt.ArrayLike, expected: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Element-wise absolute difference of two tensors.

    Args:
        actual: Tensor of any real data type and shape.
        expected: Tensor of the same data type and shape.

    Returns:
        float64 array of the shape of the arguments.

    Raises:
        TypeError: The data types differ.
        ValueError: The shapes differ.

    Numerics:
        The difference of floats is taken in float64. NaN equals only NaN and an infinity only itself.

    Example:
        >>> import numpy as np
        >>> absolute_distance(np.int8([-128, 3]), np.int8([127, 3]))
        array([255.,   0.])
    """
    a, b = _pair(actual, expected)
    if a.dtype.kind in "iu":
        return np.asarray(_integer_difference(a, b), np.float64)
    finite = _finite_pair(a, b)
    zero = np.float64(0)
    difference = np.abs(np.where(finite, a, zero).astype(np.float64) - np.where(finite, b, zero).astype(np.float64))
    return np.where(finite, difference, _special_distance(a, b))


def compare(actual: npt.ArrayLike, expected: npt.ArrayLike, metric: Metric, value: float) -> Mismatch | None:
    """Compare a tensor with the expected one under a tolerance.

    Args:
        actual: The tensor to judge.
        expected: The expected tensor, whose shape and data type `actual` must have.
        metric: `"ULP"` or `"ATOL"`.
        value: Largest permitted distance of an element in the unit of the metric, at least 0.

    Returns:
        None when every element is within tolerance, else the worst element.

    Raises:
        ValueError: `metric` is unknown, or `value` is negative or NaN.
        TypeError: `metric` is `"ULP"` and the data type has no ULP.

    Example:
        >>> import numpy as np
        >>> expected = np.float32([[1.0, 2.0], [3.0, 4.0]])
        >>> compare(expected, expected, "ULP", 0)
        >>> print(compare(expected + np.float32([[0, 0], [0, 1e-6]]), expected, "ULP", 1))
        1 of 4 elements differ by more than 1 ULP; worst at [1, 1]: actual 4.000001, expected 4.0, distance 2 ULP
    """
    if metric not in ("ULP", "ATOL"):
        raise ValueError(f"compare: unknown metric {metric!r}; allowed are 'ULP' and 'ATOL'")
    if not value >= 0:
        raise ValueError(f"compare: tolerance {value!r} is not allowed; it must be at least 0")
    a, b = np.asarray(actual), np.asarray(expected)
    if a.dtype != b.dtype:
        return _whole(f"data type is {a.dtype.name}, expected {b.dtype.name}", b.size)
    if a.shape != b.shape:
        return _whole(f"shape is {list(a.shape)}, expected {list(b.shape)}", b.size)
    # Equal values have distance 0 in both metrics. Only the others are measured, because tensors can be large.
    unequal = np.flatnonzero(a != b)
    measure = ulp_distance if metric == "ULP" else absolute_distance
    distance = measure(a.reshape(-1)[unequal], b.reshape(-1)[unequal])
    count = int(np.count_nonzero(distance > value))
    if count == 0:
        return None
    worst = int(np.argmax(distance))
    coordinates: tuple[Any, ...] = np.unravel_index(int(unequal[worst]), b.shape)
    index = tuple(int(i) for i in coordinates)
    unit = " ULP" if metric == "ULP" else ""
    reason = (
        f"{count} of {b.size} elements differ by more than {value:.9g}{unit}; worst at {list(index)}: "
        f"actual {a[index]!s}, expected {b[index]!s}, distance {distance[worst]:.9g}{unit}"
    )
    return Mismatch(reason, index, float(distance[worst]), count)


def assert_within(actual: npt.ArrayLike, expected: npt.ArrayLike, metric: Metric, value: float, *, label: str = "") -> None:
    """Raise AssertionError unless a tensor is within a tolerance of the expected one.

    Args:
        actual: The tensor to judge.
        expected: The tensor it should be, of the same shape and data type.
        metric: `"ULP"` or `"ATOL"`.
        value: Largest permitted distance of an element in the unit of the metric, at least 0.
        label: Name of the tensor, which begins the message.

    Raises:
        AssertionError: An element is out of tolerance, or shape or data type differ.
        ValueError: `metric` is unknown, or `value` is negative or NaN.
        TypeError: `metric` is `"ULP"` and the data type has no ULP.

    Example:
        >>> import numpy as np
        >>> assert_within(np.int32([1, 2]), np.int32([1, 2]), "ULP", 0)
        >>> assert_within(np.int32([1, 2]), np.int32([1, 5]), "ATOL", 1, label="sum")
        Traceback (most recent call last):
        ...
        AssertionError: sum: 1 of 2 elements differ by more than 1; worst at [1]: actual 2, expected 5, distance 3
    """
    mismatch = compare(actual, expected, metric, value)
    if mismatch is not None:
        raise AssertionError(f"{label}: {mismatch}" if label else str(mismatch))


def _pair(actual: npt.ArrayLike, expected: npt.ArrayLike) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    a, b = np.asarray(actual, order="C"), np.asarray(expected, order="C")
    if a.dtype != b.dtype:
        raise TypeError(f"distance: data types {a.dtype.name} and {b.dtype.name} differ; they must be the same")
    if a.shape != b.shape:
        raise ValueError(f"distance: shapes {list(a.shape)} and {list(b.shape)} differ; they must be the same")
    return a, b


def _whole(reason: str, count: int) -> Mismatch:
    return Mismatch(reason, None, math.inf, count)


def _integer_difference(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    # Modulo 2^64 the difference of the larger and the smaller value is exact for every integer type.
    with np.errstate(over="ignore"):
        return np.maximum(a, b).astype(np.uint64) - np.minimum(a, b).astype(np.uint64)


def _ordinal(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Number the representable values in order. Both zeros, and all numbers that count as zero, are 0."""
    bits_type, flushed = _FLOAT_BITS[values.dtype.name]
    bits = values.view(bits_type).astype(np.int64)
    magnitude = np.maximum((bits & np.iinfo(bits_type).max) - flushed, 0)
    return np.where(bits < 0, -magnitude, magnitude)


def _finite_pair(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    return np.isfinite(a) & np.isfinite(b)


def _special_distance(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return zero for pairs of NaN or of the same infinity, else infinity. Valid only if not both are finite."""
    return np.where((np.isnan(a) & np.isnan(b)) | (a == b), 0.0, math.inf)
