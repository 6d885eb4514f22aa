"""Resizing and sampling between elements, against onnxruntime or onnx's reference implementation."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn

from .agreement import agree, dtype, values

IMAGE = values("float32", (1, 2, 5, 7))
NONE = np.zeros(0, np.float32)


def resize(context: wn.MLContext, x: np.ndarray, scales: Any = None, sizes: Any = None, opset: int = 19, **given: Any) -> None:
    """Check Resize with scales or sizes."""
    oracle, roi = given.pop("oracle", "reference"), given.pop("roi", None)
    constants = {"roi": NONE if roi is None else np.array(roi, np.float32)}
    constants["scales"] = NONE if scales is None else np.array(scales, np.float32)
    if sizes is not None:
        constants["sizes"] = np.array(sizes)
    order = ["x", "roi" if roi is not None or opset < 13 else "", "scales" if scales is not None or opset < 13 else ""]
    order += [] if sizes is None else ["sizes"]
    used = {k: v for k, v in constants.items() if k in order}
    agree(context, "Resize", {"x": x}, given, opset, constants=used, order=order, oracle=oracle, atol=1e-5)


@pytest.mark.parametrize(
    "coordinates", ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]
)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_modes(context: wn.MLContext, mode: str, coordinates: str) -> None:
    given = {"mode": mode, "coordinate_transformation_mode": coordinates}
    for scales in ([1, 1, 1.6, 2.3], [1, 1, 0.61, 0.5], [1, 1, 2, 3]):
        if coordinates == "align_corners" and scales[2] == 1.6 and mode == "nearest":
            continue  # 1 / 2 of an element off, as float32 or float64 sees it
        # The reference implementation takes an element too early where a position is a whole number but for its rounding.
        resize(context, IMAGE, scales, **given, oracle="onnxruntime" if "symmetric" in coordinates else "reference")
    resize(context, IMAGE, sizes=[1, 2, 3, 11], **given)
    resize(context, IMAGE, sizes=[1, 2, 1, 1], **given, oracle="onnxruntime")


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_rounding_to_the_nearest(context: wn.MLContext, rounding: str) -> None:
    for coordinates, scales in itertools.product(("half_pixel", "asymmetric"), ([1, 1, 2, 2], [1, 1, 0.6, 1.5])):
        given = {"nearest_mode": rounding, "coordinate_transformation_mode": coordinates}
        resize(context, IMAGE, scales, **given)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialias_and_exclude_outside(context: wn.MLContext, mode: str) -> None:
    for scales in ([1, 1, 0.6, 0.3], [1, 1, 1.5, 0.7]):
        resize(context, IMAGE, scales, mode=mode, antialias=1)
        resize(context, IMAGE, scales, mode=mode, exclude_outside=1)
        if mode == "cubic":
            resize(context, IMAGE, scales, mode=mode, antialias=1, exclude_outside=1)
    resize(context, IMAGE, [1, 1, 2, 2], mode=mode, cubic_coeff_a=-0.5, opset=11)


def test_crop_and_resize(context: wn.MLContext) -> None:
    given = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.5}
    for mode in ("linear", "cubic", "nearest"):
        resize(context, IMAGE, sizes=[1, 2, 4, 3], roi=[0, 0, 0.2, 0.3, 1, 1, 0.7, 1.2], mode=mode, **given)
    resize(context, IMAGE, sizes=[4, 3], roi=[0.2, -0.1, 0.7, 0.8], axes=[2, 3], opset=18, **given)


def test_axes_and_aspect_ratio(context: wn.MLContext) -> None:
    for axes in ([2, 3], [3, 2], [1]):
        resize(context, IMAGE, [1.7, 0.6][: len(axes)], axes=axes, opset=18, mode="linear")
    resize(context, IMAGE, [1.7, 0.6], axes=[-1, -2], opset=18, mode="linear", oracle="onnxruntime")
    for policy in ("not_larger", "not_smaller", "stretch"):
        for sizes in ([8, 9], [3, 6]):
            resize(context, IMAGE, sizes=sizes, axes=[2, 3], keep_aspect_ratio_policy=policy, opset=18, mode="linear")


def test_other_ranks_and_types(context: wn.MLContext) -> None:
    resize(context, values("float32", (7,)), [1.6], mode="linear")
    resize(context, values("float32", (3, 4, 5, 2, 3)), [1, 1, 2, 1.5, 0.7], mode="linear")
    resize(context, values("float32", (2, 3, 4)), [1.5, 1, 2], mode="cubic")
    for name in ("uint8", "int8", "int32", "float16", "int64", "bfloat16"):
        x = (np.arange(20).reshape(1, 1, 4, 5) * 5).astype(dtype(name))
        resize(context, x, [1, 1, 1.5, 2.0])
        if name in ("uint8", "int8", "float16"):
            resize(context, x, [1, 1, 1.5, 2.0], mode="linear")
    resize(context, np.zeros((1, 0, 4), np.float32), [1, 1, 2], oracle="reference")


def test_old_versions(context: wn.MLContext) -> None:
    for scales in ([1, 1, 2, 3], [1, 1, 1.5, 2.6], [1, 1, 0.6, 0.4]):
        for mode in ("nearest", "linear"):
            old = np.array(scales, np.float32)
            agree(context, "Resize", {"x": IMAGE}, {"mode": mode}, 10, constants={"scales": old}, atol=1e-5)
            if min(scales) >= 1:
                agree(context, "Upsample", {"x": IMAGE}, {"mode": mode}, 9, constants={"scales": old}, atol=1e-5)
                agree(context, "Upsample", {"x": IMAGE}, {"mode": mode, "scales": old.tolist()}, 7, atol=1e-5)


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample(context: wn.MLContext, mode: str, padding: str) -> None:
    grid = np.random.default_rng(1).uniform(-1.4, 1.4, (1, 3, 4, 2)).astype(np.float32)
    # Cubic sampling beyond the border: onnxruntime's differs from the reference implementation's.
    oracle = "reference" if (mode, padding) == ("cubic", "border") else "onnxruntime"
    for corners in (0, 1):
        given = {"mode": mode, "padding_mode": padding, "align_corners": corners}
        agree(context, "GridSample", {"x": IMAGE, "grid": grid}, given, 20, atol=1e-5, oracle=oracle)
        old = {"mode": {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode), **{k: given[k] for k in list(given)[1:]}}
        if oracle == "onnxruntime":
            agree(context, "GridSample", {"x": IMAGE, "grid": grid}, old, 16, atol=1e-5)
    if mode != "cubic":
        volume = np.random.default_rng(2).uniform(-1.2, 1.2, (1, 2, 3, 2, 3)).astype(np.float32)
        given = {"mode": mode, "padding_mode": padding}
        agree(context, "GridSample", {"x": values("float32", (1, 2, 3, 4, 5)), "grid": volume}, given, 20, atol=1e-5)


def test_affine_grid(context: wn.MLContext) -> None:
    for corners in (0, 1):
        theta = values("float32", (2, 2, 3))
        constants = {"size": np.array([2, 3, 4, 5])}
        agree(context, "AffineGrid", {"theta": theta}, {"align_corners": corners}, 20, constants=constants, oracle="reference")
        one = {"theta": values("float32", (1, 2, 3))}
        agree(context, "AffineGrid", one, {"align_corners": corners}, 20, constants={"size": np.array([1, 3, 4, 5])})
        line = {"size": np.array([2, 3, 1, 1])}
        agree(context, "AffineGrid", {"theta": theta}, {"align_corners": corners}, 20, constants=line, oracle="reference")
    constants = {"size": np.array([1, 3, 2, 4, 5])}
    agree(context, "AffineGrid", {"theta": values("float32", (1, 3, 4))}, opset=20, constants=constants, oracle="reference")
