"""Pooling of regions and joining of patches, against onnxruntime or onnx's reference implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn

from .agreement import agree, values


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_roi_align(context: wn.MLContext, mode: str) -> None:
    x = values("float32", (2, 3, 6, 8))
    rois = np.array([[0, 0, 7, 5], [1.3, 2.2, 4.1, 4.9], [-3, -2, 12, 9], [3, 3, 3.2, 3.1]], np.float32)
    given = {"mode": mode, "output_height": 2, "output_width": 3, "sampling_ratio": 2, "spatial_scale": 0.8}
    regions = {"x": x, "rois": rois, "batches": np.array([0, 1, 1, 0])}
    agree(context, "RoiAlign", regions, given, 10, atol=1e-5)
    for coordinates in ("half_pixel", "output_half_pixel"):
        agree(context, "RoiAlign", regions, {**given, "coordinate_transformation_mode": coordinates}, 16, atol=1e-5)
    agree(context, "RoiAlign", regions, {**given, "sampling_ratio": 0}, 16, atol=1e-5, device_only=mode == "avg")


@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("images", [1, 2])
def test_roi_align_with_as_many_samples_as_regions_are_large(context: wn.MLContext, coordinates: str, images: int) -> None:
    x = values("float32", (images, 3, 13, 17))
    corners = np.random.default_rng(0).uniform(-9, 25, (40, 2, 2)).astype(np.float32)
    rois = np.concatenate([corners.min(1), corners.max(1)], 1)
    special = [
        [0, 0, 16, 12],
        [2, 3, 2, 3],
        [2.5, 3.5, 2.6, 3.55],
        [-30, -40, 50, 60],
        [40, 40, 50, 50],
        [8, 8, 4, 4],
        [0, 0, 6, 4],
    ]
    rois = np.concatenate([rois, np.float32(special)])
    regions = {"x": x, "rois": rois, "batches": np.arange(len(rois)) % images}
    for rows, columns, scale in ((2, 3, 1.0), (7, 7, 0.5), (1, 1, 2.0)):
        given = {"output_height": rows, "output_width": columns, "spatial_scale": scale, "sampling_ratio": 0}
        agree(context, "RoiAlign", regions, {**given, "coordinate_transformation_mode": coordinates}, 16, atol=2e-5)


def test_max_roi_pool(context: wn.MLContext) -> None:
    x = values("float32", (2, 3, 6, 8))
    rois = np.array([[0, 0, 0, 7, 5], [1, 1.3, 2.2, 4.1, 4.9], [1, 9, 9, 12, 12], [0, 3, 3, 3.2, 3.1]], np.float32)
    for shape, scale in (([2, 3], 1.0), ([1, 1], 0.5), ([4, 2], 0.8)):
        given = {"pooled_shape": shape, "spatial_scale": scale}
        agree(context, "MaxRoiPool", {"x": x, "rois": rois}, given, 7)


def test_col2im(context: wn.MLContext) -> None:
    def check(shape: tuple[int, ...], image: list[int], block: list[int], **given: Any) -> None:
        sizes = {"image": np.array(image), "block": np.array(block)}
        agree(context, "Col2Im", {"x": values("float32", shape)}, given, 18, constants=sizes, oracle="reference")

    check((2, 12, 12), [4, 5], [2, 2])
    check((1, 9, 4), [5, 5], [3, 3], strides=[2, 2])
    check((1, 8, 24), [5, 7], [2, 4], pads=[0, 1, 0, 1])
    check((2, 4, 16), [5, 5], [2, 2], dilations=[1, 2], pads=[0, 1, 0, 0], strides=[1, 1])
    check((1, 8, 8), [3, 3, 3], [2, 2, 2])


def test_max_unpool(context: wn.MLContext) -> None:
    x = np.arange(1, 9, dtype=np.float32).reshape(1, 2, 2, 2)
    places = np.array([[[[5, 7], [13, 15]], [[16, 18], [24, 31]]]])
    given = {"kernel_shape": [2, 2], "strides": [2, 2]}
    agree(context, "MaxUnpool", {"x": x, "places": places}, given, 11)
    shape = {"shape": np.array([1, 2, 5, 5])}
    agree(context, "MaxUnpool", {"x": x, "places": places}, given, 11, constants=shape, oracle="reference")
