"""Pictures as inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import webnn_wgpu as wn
from webnn_wgpu.frontends.images import Preprocessing, image_tensor

Image = pytest.importorskip("PIL.Image", reason="the extra `image` is optional")

RED = np.zeros((40, 60, 3), np.uint8)
RED[..., 0] = 255


def test_normalizations() -> None:
    for name, expected in {"unit": [1, 0, 0], "signed": [1, -1, -1], "bytes": [255, 0, 0]}.items():
        np.testing.assert_allclose(image_tensor(RED, (1, 3, 8, 8), how=Preprocessing(normalization=name))[0, :, 4, 4], expected)
    usual = image_tensor(RED, (1, 3, 8, 8))[0, :, 0, 0]
    np.testing.assert_allclose(usual, [(1 - 0.485) / 0.229, -0.456 / 0.224, -0.406 / 0.225], rtol=1e-6)
    own = Preprocessing(mean=(0.5, 0, 0), std=(2, 1, 1))
    np.testing.assert_allclose(image_tensor(RED, (1, 3, 8, 8), how=own)[0, :, 0, 0], [0.25, 0, 0])


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1, 3, 8, 6), (1, 3, 8, 6)),
        (("N", 3, "H", "W"), (1, 3, 5, 7)),
        ((1, 8, 6, 3), (1, 8, 6, 3)),
        ((3, 8, 6), (3, 8, 6)),
        ((1, 1, 8, 6), (1, 1, 8, 6)),
        ((None, None, None, None), (1, 3, 5, 7)),
    ],
)
def test_shapes(shape: tuple[int | str | None, ...], expected: tuple[int, ...]) -> None:
    assert image_tensor(RED, shape, how=Preprocessing(size=(5, 7))).shape == expected


def test_channels_and_types() -> None:
    unit = Preprocessing(normalization="unit", bgr=True)
    np.testing.assert_array_equal(image_tensor(RED, (1, 8, 8, 3), how=unit)[0, 0, 0], [0, 0, 1])
    assert image_tensor(RED, (1, 3, 8, 8), np.uint8).max() == 255
    signed = image_tensor(RED, (1, 3, 8, 8), np.int8)
    assert (signed.max(), signed.min()) == (127, -128)
    assert image_tensor(RED, (1, 3, 8, 8), np.float16).dtype == np.float16


def test_fitting() -> None:
    halves = np.zeros((20, 40, 3), np.uint8)
    halves[:, 10:30] = 255  # the middle half
    unit = [Preprocessing(normalization="unit", fit=fit) for fit in ("crop", "stretch", "pad")]
    crop, stretch, pad = (image_tensor(halves, (1, 3, 20, 20), how=how)[0, 0] for how in unit)
    assert crop.min() == 1
    assert stretch[:, 0].max() == 0
    assert stretch[:, 10].min() == 1
    np.testing.assert_allclose(pad[0], 114 / 255)


def test_files(tmp_path: Path) -> None:
    Image.fromarray(RED).save(tmp_path / "red.png")
    np.testing.assert_array_equal(image_tensor(tmp_path / "red.png", (1, 3, 8, 8)), image_tensor(RED, (1, 3, 8, 8)))
    (tmp_path / "text.png").write_text("no picture")
    with pytest.raises(wn.NotSupportedError, match="cannot identify image file"):
        image_tensor(tmp_path / "text.png", (1, 3, 8, 8))


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    Image.effect_noise((64, 64), 50).save(tmp_path / "cat.png")
    (tmp_path / "cat.png").write_bytes((tmp_path / "cat.png").read_bytes()[:1000])
    with pytest.raises(wn.NotSupportedError, match=r"cat\.png: image file is truncated"):
        image_tensor(tmp_path / "cat.png", (1, 3, 8, 8))


@pytest.mark.parametrize("shape", [(2, 3, 8, 8), (1, 3), (1, 4, 8, 8)])
def test_what_is_no_picture(shape: tuple[int, ...]) -> None:
    with pytest.raises(wn.MLTypeError):
        image_tensor(RED, shape)


@pytest.mark.parametrize("name", ["normalization", "fit", "layout"])
def test_unknown_steps_are_refused(name: str) -> None:
    how = Preprocessing(**cast("dict[str, Any]", {name: "none"}))
    with pytest.raises(wn.MLTypeError, match=f"unknown {name}; got 'none'; allowed: .*, "):
        image_tensor(RED, (1, 3, 8, 8), how=how)
