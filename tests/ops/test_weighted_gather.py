from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.support import check_op, random_array
from webnn_wgpu.core.data_types import ANY, FLOATS
from webnn_wgpu.core.errors import MLTypeError
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._resampling import COORDINATES, NEAREST

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

NAME = "x.weighted_gather"


@pytest.mark.parametrize("data_type", FLOATS)
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((3, 5, 4), 1), ((3, 5, 4), 2), ((2, 3, 5, 3), 1), ((5, 8), 0)])
def test_shapes(profile_device: Device, shape: tuple[int, ...], axis: int, data_type: str) -> None:
    rng = np.random.default_rng(0)
    x = random_array(rng, data_type, shape)
    for new, taps in ((1, 1), (6, 3), (11, 20)):
        indices = rng.integers(0, shape[axis], (new, taps))
        weights = rng.standard_normal((new, taps)).astype(np.float32)
        atol = 1e-4 if data_type == "float32" else 0.05
        (actual,) = check_op(profile_device, NAME, [x, indices.astype(np.int64), weights], {"axis": axis}, atol=atol)
        matrix = np.zeros((new, shape[axis]))
        np.add.at(matrix, (np.arange(new)[:, None], indices), weights)
        wanted = np.moveaxis(np.tensordot(matrix, x.astype(np.float64), (1, axis)), 0, axis)
        np.testing.assert_allclose(actual, wanted, atol=atol)


def test_weights_of_0_leave_elements_out(device: Device) -> None:
    x = np.float32([math.nan, 2, math.inf, -3])
    indices, weights = np.int32([[0, 1], [2, 3], [1, 0]]), np.float32([[0, 1], [-0.0, 2], [1, 1]])
    (actual,) = check_op(device, NAME, [x, indices, weights], tolerance=0)
    np.testing.assert_array_equal(actual, [2, -6, math.nan])


def test_indices_count_from_the_end_and_are_clamped(device: Device) -> None:
    x = np.float32([1, 2, 4])
    for data_type in ("int32", "int64"):
        indices = np.array([[-1, 0], [-9, 9]], data_type)
        assert check_op(device, NAME, [x, indices, np.ones((2, 2), np.float32)], tolerance=0)[0].tolist() == [5, 5]


def test_refusals() -> None:
    def refusal(indices: tuple[int, ...], weights: tuple[int, ...], axis: int = 0) -> str:
        types = [TensorType("float32", (3,)), TensorType("int32", indices), TensorType("float32", weights)]
        with pytest.raises(MLTypeError) as raised:
            OPS[NAME].check(types, {"axis": axis}, "here")
        return str(raised.value)

    assert "weights must have the shape of indices" in refusal((2, 2), (2, 1))
    assert "rank" in refusal((2,), (2,))
    assert "too many elements in a sum" in refusal((1, 15001), (1, 15001))
    assert "axis must be < rank(input)" in refusal((1, 1), (1, 1), 1)


# resample -------------------------------------------------------------------------------------------------------------


def resampled(context: wn.MLContext, x: Array, **options: Any) -> Array:
    builder = wn.MLGraphBuilder(context)
    y = builder.ext.resample(builder.input("x", {"dataType": str(x.dtype), "shape": x.shape}), **options)
    with builder.build({"y": y}) as graph:
        result = context.compute(graph, {"x": x})["y"]
    assert result.shape == y.shape
    return result


def position(o: int, size: int, new: int, scale: float, mode: str, roi: tuple[float, float]) -> float:
    """The specification's table, one element at a time."""
    length = size * scale
    return {
        "half_pixel": lambda: (o + 0.5) / scale - 0.5,
        "half_pixel_symmetric": lambda: size / 2 * (1 - new / length) + (o + 0.5) / scale - 0.5,
        "pytorch_half_pixel": lambda: (o + 0.5) / scale - 0.5 if length > 1 else 0.0,
        "align_corners": lambda: o * (size - 1) / (length - 1) if length != 1 else 0.0,
        "asymmetric": lambda: o / scale,
        "tf_crop_and_resize": lambda: (
            roi[0] * (size - 1) + o * (roi[1] - roi[0]) * (size - 1) / (length - 1)
            if length > 1
            else 0.5 * (roi[0] + roi[1]) * (size - 1)
        ),
    }[mode]()


def weight(distance: float, mode: str, a: float) -> float:
    d = abs(distance)
    if mode == "linear":
        return max(0.0, 1 - d)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def expected(row: Array, new: int, scale: float, coordinates: str, mode: str, **options: Any) -> Array:
    """One row resampled, by sums over all elements from far beyond one end to far beyond the other."""
    size = len(row)
    roi, a = options.get("roi", (0, 1)), options.get("cubic_coeff_a", -0.75)
    result: list[float] = []
    for o in range(new):
        x = position(o, size, new, scale, coordinates, roi)
        if coordinates == "tf_crop_and_resize" and not 0 <= x <= size - 1:
            result.append(options.get("extrapolation_value", 0.0))
            continue
        if mode == "nearest":
            whole = {
                "round_prefer_floor": math.ceil(x - 0.5),
                "round_prefer_ceil": math.floor(x + 0.5),
                "floor": math.floor(x),
                "ceil": math.ceil(x),
            }[options.get("nearest_mode", "round_prefer_floor")]
            result.append(row[min(max(whole, 0), size - 1)])
            continue
        shrink = min(scale, 1.0) if options.get("antialias") else 1.0
        places = range(-40, size + 40)
        weights = [weight((i - x) * shrink, mode, a) for i in places]
        if options.get("exclude_outside"):
            weights = [w if 0 <= i < size else 0.0 for i, w in zip(places, weights, strict=True)]
        total = sum(weights)
        values = [row[min(max(i, 0), size - 1)] for i in places]
        result.append(sum(w * v for w, v in zip(weights, values, strict=True)) / total)
    return np.array(result)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_coordinates(context: wn.MLContext, coordinates: str, mode: str) -> None:
    row = np.random.default_rng(1).standard_normal(7).astype(np.float32)
    for scale in (2.3, 0.63, 1.0, 0.15):
        new = math.floor(7 * scale)
        crop = {"roi": (-0.11, 0.87), "extrapolation_value": 9.0} if coordinates == "tf_crop_and_resize" else {}
        actual = resampled(context, row, scales=[scale], mode=mode, coordinate_transformation_mode=coordinates, **crop)
        np.testing.assert_allclose(actual, expected(row, new, scale, coordinates, mode, **crop), atol=1e-5)


@pytest.mark.parametrize("nearest_mode", NEAREST)
def test_nearest_modes_on_every_type(context: wn.MLContext, nearest_mode: str) -> None:
    for data_type in ANY:
        row = random_array(np.random.default_rng(2), data_type, (4,))
        for scale in (2.0, 0.5):
            new = int(4 * scale)
            options = {"coordinate_transformation_mode": "half_pixel", "nearest_mode": nearest_mode}
            actual = resampled(context, row, sizes=[new], **options)
            assert actual.dtype == row.dtype
            wanted = expected(np.arange(4), new, scale, "half_pixel", "nearest", nearest_mode=nearest_mode)
            assert actual.tolist() == row[wanted.astype(int)].tolist()


@pytest.mark.parametrize("options", [{}, {"antialias": True}, {"exclude_outside": True}, {"cubic_coeff_a": -0.5}])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_weights(context: wn.MLContext, mode: str, options: dict[str, Any]) -> None:
    row = np.random.default_rng(3).standard_normal(13).astype(np.float32)
    for new in (5, 13, 30, 1):
        actual = resampled(context, row, sizes=[new], mode=mode, **options)
        wanted = expected(row, new, new / 13, "half_pixel", mode, **options) if new != 13 else row
        np.testing.assert_allclose(actual, wanted, atol=1e-5)


@pytest.mark.parametrize("data_type", FLOATS)
def test_several_dimensions(context: wn.MLContext, data_type: str) -> None:
    x = random_array(np.random.default_rng(4), data_type, (2, 3, 5, 4), 1)
    actual = resampled(context, x, axes=[-1, 2], sizes=[7, 3], mode="linear")
    wanted = np.apply_along_axis(expected, 2, x, 3, 3 / 5, "half_pixel", "linear")
    wanted = np.apply_along_axis(expected, 3, wanted, 7, 7 / 4, "half_pixel", "linear")
    assert actual.dtype == x.dtype
    np.testing.assert_allclose(actual, wanted, atol=1e-6 if data_type == "float32" else 2e-3)


def test_beyond_the_ends_of_two_dimensions(context: wn.MLContext) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    options = {"coordinate_transformation_mode": "tf_crop_and_resize", "mode": "linear", "roi": [-0.5, 0, 1, 2]}
    actual = resampled(context, x, sizes=[4, 3], extrapolation_value=-1, **options)
    assert actual.tolist() == [[-1, -1, -1], [0, 3, -1], [4, 7, -1], [8, 11, -1]]


def test_nothing_to_do(context: wn.MLContext) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert resampled(context, x, scales=[1, 1]).tolist() == x.tolist()


def test_sizes_that_scales_are_not_told_from(context: wn.MLContext) -> None:
    x = np.array([0, 10, 20], np.float32)
    # Positions follow from the scale: (o + 1/2) / 1.25 - 1/2.
    actual = resampled(context, x, sizes=[4], scales=[1.25], mode="linear")
    np.testing.assert_allclose(actual, [0, 7, 15, 20], atol=1e-5)


def test_resample_refuses(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "int32", "shape": [2, 3]})

    def refusal(**options: Any) -> str:
        with pytest.raises(wn.MLTypeError) as raised:
            builder.ext.resample(x, label="here", **options)
        return str(raised.value)

    assert "ext.resample('here'): sizes, scales or both must be given; got neither" in refusal()
    assert "one per axis" in refusal(sizes=[1])
    assert "one per axis" in refusal(scales=[1, math.nan])
    assert "each once" in refusal(sizes=[1, 1], axes=[1, -1])
    assert "no element would be left" in refusal(scales=[0.4, 1])
    assert "Invalid mode; got 'bilinear'; allowed: nearest, linear, cubic" in refusal(sizes=[1, 1], mode="bilinear")
    assert "input data type is not allowed" in refusal(sizes=[1, 1], mode="linear")
    assert "antialias needs" in refusal(sizes=[1, 1], antialias=True)
    assert "roi must have" in refusal(sizes=[1, 1], coordinate_transformation_mode="tf_crop_and_resize")
    builder.build({"y": builder.abs(x)}).destroy()


@pytest.mark.parametrize(
    ("options", "got"),
    [
        ({"sizes": [2**30, 3], "mode": "nearest"}, "1073741824 elements of 1 taps along dimension 0"),
        ({"sizes": [2, 2**30], "mode": "linear"}, "1073741824 elements of 2 taps along dimension 1"),
        ({"sizes": [2**23, 3], "mode": "cubic"}, "8388608 elements of 4 taps along dimension 0"),
        ({"sizes": [2, 3], "scales": [5e-324, 1], "mode": "linear", "antialias": True}, "2 elements of 33554432 taps"),
    ],
)
def test_resample_refuses_more_taps_than_the_host_computes(context: wn.MLContext, options: dict[str, Any], got: str) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [2, 3]})
    with pytest.raises(wn.MLTypeError, match=rf"the result has too many taps; got {got}.*at most 16777216 taps"):
        builder.ext.resample(x, **options)


def test_a_long_dimension_that_keeps_its_size_is_not_resampled(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [2**25, 2]})
    assert builder.ext.resample(x, sizes=[2**25, 3], mode="linear").shape == (2**25, 3)
