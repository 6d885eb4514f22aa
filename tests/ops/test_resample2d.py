from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.movers import FOLDED_ELEMENTS, check_moves, kernels, random_bits, refusal, typed
from tests.ops.rows import as_hardware, plan_of, positive, run_plan
from tests.rotation import first_of
from tests.support import check_op, op_graph, random_array
from webnn_wgpu.core.data_types import ANY, MAX_DIMENSION
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops.resample2d import MODES
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

TYPES = OPS["resample2d"].operands[0].data_types
SHAPES = ((2, 3, 7, 5), (1, 4, 9, 8), (2, 5, 6, 3), (1, 1, 1, 1), (3, 1, 4, 16))
SIZES = ((4, 9), (12, 8), (3, 3), (14, 2), (1, 1), (16, 16))


def check(device: Device, x: Array, attrs: Mapping[str, Any]) -> Array:
    return check_op(device, "resample2d", [x], attrs)[0]


def resampled(device: Device, values: Sequence[float], size: int, mode: str, data_type: str = "float32") -> list[float]:
    """The values of one row resampled to a size, the same in every order of dimensions."""
    x = np.array(values, data_type)
    found: list[list[float]] = []
    for axis in range(4):
        shape = [1, 1, 1, 1]
        shape[axis] = len(values)
        other = (axis + 1) % 4
        attrs = {"mode": mode, "axes": [other, axis], "sizes": [1, size]}
        found.append(check(device, x.reshape(shape), attrs).reshape(-1).tolist())
    assert all(f == found[0] for f in found)
    return found[0]


def naive(x: Array, mode: str, axes: Sequence[int], sizes: Sequence[int]) -> Array:
    """The definition, with fractions."""
    result: Any = np.vectorize(Fraction, otypes=[object])(x.astype(np.float64))
    for axis, size in zip(axes, sizes, strict=True):
        count = x.shape[axis]
        parts: list[Any] = []
        for o in range(size):
            coordinate = (Fraction(2 * o + 1, 2)) * count / size - Fraction(1, 2)
            coordinate = min(max(coordinate, Fraction(0)), Fraction(count - 1))
            if mode == "linear":
                low, high = math.floor(coordinate), math.ceil(coordinate)
                t = coordinate - low
                parts.append(result.take([low], axis) * (1 - t) + result.take([high], axis) * t)
            else:
                parts.append(result.take([math.ceil(coordinate - Fraction(1, 2))], axis))
        result = np.concatenate(parts, axis)
    if x.dtype.kind == "f":
        return result.astype(np.float64).astype(x.dtype)
    # Python rounds halves to even.
    return np.vectorize(round, otypes=[np.int64])(result).astype(x.dtype)


def reference(x: Array, attrs: Mapping[str, Any]) -> Array:
    return interpret(op_graph("resample2d", [x], attrs), {"0": x})["0"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("data_type", first_of(TYPES))
def test_shapes_and_axes(device: Device, mode: str, data_type: str) -> None:
    rng = np.random.default_rng(1)
    for shape, axes, sizes in product(SHAPES, permutations(range(4), 2), SIZES):
        attrs = {"mode": mode, "axes": axes, "sizes": sizes}
        x = positive(rng, data_type, shape)
        if mode == "linear":
            check(device, x, attrs)
        else:
            check_moves(device, "resample2d", [random_bits(rng, data_type, shape)], attrs)


@pytest.mark.parametrize("mode", MODES)
def test_profiles(profile_device: Device, mode: str) -> None:
    rng = np.random.default_rng(2)
    for data_type, shape, axes, sizes in product(TYPES, SHAPES[:2], ((2, 3), (2, 1)), SIZES[:3]):
        attrs = {"mode": mode, "axes": axes, "sizes": sizes}
        if mode == "nearest-neighbor":
            # Bits are moved, on every device.
            check_moves(profile_device, "resample2d", [random_bits(rng, data_type, shape)], attrs)
        else:
            check(profile_device, positive(rng, data_type, shape), attrs)


@given(
    st.tuples(*[st.integers(1, 6)] * 4),
    st.permutations(range(4)),
    st.tuples(st.integers(1, 13), st.integers(1, 13)),
    st.sampled_from(MODES),
    st.sampled_from(TYPES),
)
def test_any_resampling(
    device: Device, shape: tuple[int, ...], order: list[int], sizes: tuple[int, int], mode: str, data_type: str
) -> None:
    attrs = {"mode": mode, "axes": order[:2], "sizes": sizes}
    x = positive(np.random.default_rng(sum(shape)), data_type, shape)
    wanted = naive(x, mode, order[:2], sizes)
    found = check(device, x, attrs)
    assert found.shape == wanted.shape
    if mode == "linear" and x.dtype.kind == "f":
        np.testing.assert_allclose(found, wanted, rtol=2e-3 if data_type == "float16" else 1e-6)
    else:
        assert np.array_equal(found, wanted)


def test_nearest_by_example(device: Device) -> None:
    mode = "nearest-neighbor"
    assert resampled(device, [10, 20, 30], 4, mode) == [10, 20, 20, 30]
    assert resampled(device, [10, 20, 30, 40], 3, mode) == [10, 20, 40]
    assert resampled(device, [0, 1, 2, 3, 4], 2, mode) == [1, 3]
    assert resampled(device, [0, 1], 3, mode) == [0, 0, 1]
    assert resampled(device, [0, 1, 2], 1, mode) == [1]
    assert resampled(device, [0, 1, 2, 3], 2, mode) == [0, 2]


def test_linear_by_example(device: Device) -> None:
    assert resampled(device, [0, 1, 2, 3], 8, "linear") == [0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3]
    assert resampled(device, [0, 1, 2, 3], 2, "linear") == [0.5, 2.5]
    assert resampled(device, [1, 2, 6], 1, "linear") == [2]
    # Halves are rounded to even.
    assert resampled(device, [0, 1, 2, 3, 4], 10, "linear", "uint8") == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert resampled(device, [1, 2, 3, 6, 253, 254], 3, "linear", "uint8") == [2, 4, 254]
    assert resampled(device, [-1, -2, -3, -6, -127, -128], 3, "linear", "int8") == [-2, -4, -128]
    assert resampled(device, [255, 255, 255], 7, "linear", "uint8") == [255] * 7


def test_thirds_that_add_up_to_halves(device: Device) -> None:
    # In float32 a third and two thirds of these are a little less than a half.
    x = np.array([[1, 2, 4, 7], [4, 7, 2, 3], [255, 0, 1, 255]], np.uint8).reshape(1, 1, 3, 4)
    for sizes in ((9, 12), (5, 6), (2, 12), (18, 20)):
        found = check(device, x, {"mode": "linear", "sizes": sizes})
        assert np.array_equal(found, naive(x, "linear", (2, 3), sizes))


@pytest.mark.parametrize("data_type", ["float32", "float16"])
def test_nan_and_infinity(device: Device, data_type: str) -> None:
    x = positive(np.random.default_rng(3), data_type, (1, 2, 7, 8))
    x[0, 0, 1, 1], x[0, 0, 4, 5], x[0, 1, 6, 7] = math.nan, math.inf, -math.inf
    x[0, 1, 2, 2:4] = [math.inf, -math.inf]
    for sizes in ((7, 8), (14, 16), (21, 24), (3, 5), (13, 8), (7, 11)):
        for axes in ((2, 3), (3, 2)):
            attrs = {"mode": "linear", "sizes": sizes if axes == (2, 3) else sizes[::-1], "axes": axes}
            check(device, x, attrs)
            check(device, np.moveaxis(x, 1, 3), {**attrs, "axes": [a - 1 for a in axes]})
    # Where the weight of the infinite neighbor is 0 it has no part: 3 to 9 hits every element.
    row = np.array([1, math.inf, 2], data_type).reshape(1, 1, 1, 3)
    found = check(device, row, {"mode": "linear", "sizes": [1, 9]}).reshape(-1)
    assert found.tolist() == [1, 1, *[math.inf] * 5, 2, 2]


def test_positions_are_exact(device: Device) -> None:
    # Products beyond 2^32, and beyond what float32 tells apart.
    for size, output in ((50_000, 99_991), (99_991, 50_021), (1_000_003, 1_000_033), (1_000_033, 3), (65_537, 65_536)):
        x = np.arange(size, dtype=np.int64).astype(np.float32).reshape(1, 1, 1, size)
        attrs = {"sizes": [1, output]}
        (found,) = check_moves(device, "resample2d", [x], attrs)
        picked = [-(-(2 * o + 1) * size // (2 * output)) - 1 for o in range(output)]
        assert found.reshape(-1).tolist() == picked
        smooth = np.sin(x / 100) + 2
        check_op(device, "resample2d", [smooth], {**attrs, "mode": "linear"}, tolerance=8)
    bytes_ = random_array(np.random.default_rng(4), "uint8", (1, 1, 1, 50_021))
    check_op(device, "resample2d", [bytes_], {"sizes": [1, 99_991], "mode": "linear"}, atol=1)


def test_large_numbers(device: Device) -> None:
    x = np.array([3e38, 3.2e38, -3e38, 1e-30], np.float32).reshape(1, 1, 2, 2)
    check(device, x, {"mode": "linear", "sizes": [3, 5]})
    check(device, np.full((1, 1, 2, 3), 65504, np.float16), {"mode": "linear", "sizes": [5, 7]})


@pytest.mark.repeats
def test_more_workgroups_than_a_grid_dimension_holds(device: Device) -> None:
    x = random_bits(np.random.default_rng(5), "uint8", (1, 1, 2048, 2048))
    height = FOLDED_ELEMENTS // 4096 + 1
    check_moves(device, "resample2d", [x], {"sizes": [height, 4096]}, folded=True)
    plan = plan_of(as_hardware(device.caps), "resample2d", [x], {"sizes": [height, 4096], "mode": "linear"})
    assert plan.dispatches[0].grid[1] > 1
    found = run_plan(device, plan, [x]).astype(np.int16)
    wanted = reference(x, {"sizes": [height, 4096], "mode": "linear"}).astype(np.int16)
    assert np.abs(found - wanted).max() <= 1


def test_output_sizes() -> None:
    x = typed("float32", 1, 2, 10, 7)

    def sizes(**attrs: Any) -> tuple[int, ...]:
        (output,), canonical = OPS["resample2d"].check([x], attrs, "")
        (again,), _ = OPS["resample2d"].check([x], canonical, "")
        assert output == again
        return output.shape

    assert sizes() == (1, 2, 10, 7)
    assert sizes(scales=[1.5, 0.5]) == (1, 2, 15, 3)
    assert sizes(scales=[1.5, 0.5], sizes=[3, 4]) == (1, 2, 3, 4)
    assert sizes(scales=[2, 3], axes=[3, 1]) == (1, 6, 10, 14)
    assert sizes(sizes=[5, 9], axes=[2, 0]) == (9, 2, 5, 7)
    # 0.7 as a 32-bit float is below 0.7, 1.1 above; as a 64-bit one 10 * 0.7 is 7 exactly.
    assert sizes(scales=[0.7, 1]) == (1, 2, 6, 7)
    assert sizes(scales=[1.1, 1]) == (1, 2, 11, 7)


def test_kernels() -> None:
    def kernel(shape: Sequence[int], data_type: str = "float32", **attrs: Any) -> list[str]:
        return kernels("resample2d", [typed(data_type, *shape)], attrs)

    nearest, linear = {"mode": "nearest-neighbor"}, {"mode": "linear"}
    assert kernel((1, 2, 3, 4), scales=[1, 1]) == ["strided[rank=0, read=same]"]
    assert "read=row, rank=3" in kernel((1, 2, 3, 4), sizes=[6, 8], **nearest)[0]
    assert "read=strided, rank=3" in kernel((1, 2, 3, 4), sizes=[6, 9], **linear)[0]
    assert "read=strided, rank=2" in kernel((1, 2, 3, 4), sizes=[3, 9], **linear)[0]
    assert "read=quad, rank=4" in kernel((2, 3, 5, 8), sizes=[6, 9], axes=[1, 2], **linear)[0]
    assert "read=quad, rank=3" in kernel((1, 3, 5, 8), sizes=[6, 9], axes=[1, 2], **linear)[0]
    assert "read=row, rank=3" in kernel((2, 8, 5, 8), sizes=[9, 12], axes=[0, 3], **linear)[0]
    assert "read=quad" in kernel((2, 3, 5, 16), "uint8", sizes=[6, 9], axes=[1, 2], **nearest)[0]
    assert "wide=True" in kernel((1, 1, 1, 50_000), sizes=[1, 99_991])[0]
    assert "wide=False" in kernel((1, 1, 1, 50_000), sizes=[1, 100_000])[0]


def test_refusals() -> None:
    x = typed("float32", 1, 2, 5, 6)

    def refused(**attrs: Any) -> str:
        return refusal("resample2d", [x], attrs)

    for rank in (3, 5):
        assert "Resample2d input must be 4D" in refusal("resample2d", [typed("float32", *[2] * rank)])
    for option in ("scales", "sizes", "axes"):
        for given_items in ([1], [1, 2, 3], []):
            assert f"{option} must have 2 items; got {option}={given_items}" in refused(**{option: given_items}).replace(
                ".0", ""
            )
        assert f"{option} must be a list of" in refused(**{option: 2})
    assert "every item of scales must be positive; got scales=[0.0, 1.0]; allowed: > 0" in refused(scales=[0, 1])
    assert "every item of scales must be positive" in refused(scales=[1, -0.5])
    # Scales are checked even where sizes override them.
    assert "every item of scales must be positive" in refused(scales=[0, 1], sizes=[2, 2])
    assert "scales must be finite" in refused(scales=[math.inf, 1])
    assert "scales must be finite" in refused(scales=[1, math.nan])
    assert "scales must be a number" in refused(scales=["2", "2"])
    assert "every item of sizes must be positive; got sizes=[0, 1]; allowed: >= 1" in refused(sizes=[0, 1])
    assert "sizes must be an unsigned 32-bit integer; got -1" in refused(sizes=[1, -1])
    assert "Duplicate axis 3" in refused(axes=[3, 3])
    assert "Axis 4 out of bounds for rank 4" in refused(axes=[1, 4])
    assert "axes must be an unsigned 32-bit integer; got -1" in refused(axes=[-1, 0])
    assert "the resulting sizes must be valid dimensions; got sizes [0, 6] from scales=[0.1, 1.0]" in refused(scales=[0.1, 1])
    for attrs in ({"scales": [1e9, 1]}, {"scales": [1e300, 1]}, {"sizes": [MAX_DIMENSION + 1, 1]}, {"sizes": [2**20, 2**20]}):
        assert "output dimensions and element count must be valid dimensions" in refused(**attrs)
    assert "Invalid mode; got 'cubic'; allowed: nearest-neighbor, linear" in refused(mode="cubic")
    assert "unknown option 'layout'" in refused(layout="nchw")
    for data_type in set(ANY) - set(TYPES):
        assert "input data type is not allowed" in refusal("resample2d", [typed(data_type, 1, 1, 2, 2)])
