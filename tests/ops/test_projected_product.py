"""Products that add a projection: against the reference, with strides, in every tile and in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ops.movers import refusal, typed
from tests.ops.products import in_tiles
from tests.support import check_bounded, open_profile
from webnn_wgpu.costs.tiles import BLOCK_TILES, BlockTile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

NAME = "projectedMatmul"

Size = tuple[tuple[int, int, int], int, int, int, tuple[int, int]]
"""Images with height and width, channels of the rows and of the image, columns, and strides."""

SIZES: dict[str, Size] = {
    "every pixel": ((1, 8, 8), 64, 64, 32, (1, 1)),
    "every second pixel": ((2, 7, 7), 64, 128, 36, (2, 2)),
    "strides that differ": ((2, 9, 10), 12, 40, 70, (2, 3)),
    "slices of both": ((1, 6, 6), 36, 92, 12, (1, 1)),
    "a shorter first slice": ((1, 6, 6), 36, 68, 12, (2, 1)),
    "sums shorter than a slice": ((1, 5, 3), 4, 8, 20, (1, 2)),
    "columns that are no quads": ((1, 14, 14), 128, 64, 9, (2, 2)),
    "one pixel": ((1, 1, 1), 16, 32, 16, (2, 2)),
}


def operands(size: Size, dtype: Any = np.float32) -> tuple[list[Array], dict[str, Any]]:
    """Return operands and options. The image is as wide as it is read, and may have rows behind the last one that is."""
    (images, height, width), rows, channels, columns, strides = size
    rng = np.random.default_rng(0)
    shapes = [
        (images, height, width, rows),
        (images, height * strides[0], (width - 1) * strides[1] + 1, channels),
        (rows + channels, columns),
    ]
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes], {"strides": strides}


@pytest.mark.parametrize("profile", ["hardware", "default-limits"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", SIZES)
def test_sizes(profile: str, dtype: Any, name: str) -> None:
    check_bounded(open_profile(profile), NAME, *operands(SIZES[name], dtype))


@pytest.mark.repeats
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("tile", BLOCK_TILES, ids=str)
def test_every_tile(device: Device, tile: BlockTile, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    in_tiles(monkeypatch, tile.sides, parts)
    for size in (SIZES["every second pixel"], ((1, 12, 11), 132, 256, 70, (1, 2)), ((1, 3, 3), 192, 192, 8, (1, 1))):
        check_bounded(device, NAME, *operands(size))


def test_pixels_between_strides_do_not_count() -> None:
    (a, image, b), options = operands(SIZES["every second pixel"])
    image[:, 1::2] = np.nan
    image[:, :, 1::2] = np.inf
    check_bounded(open_profile("hardware"), NAME, [a, image, b], options)


def test_refusals() -> None:
    def message(*shapes: Sequence[int], strides: Sequence[int] = (1, 1)) -> str:
        types: list[Any] = [typed("float32", *shape) for shape in shapes]
        return refusal(NAME, types, {"strides": strides})

    assert "a pixel for each of a" in message((1, 4, 4, 8), (1, 9, 8, 8), (16, 8), strides=(2, 2))
    assert "multiples of 4" in message((1, 4, 4, 8), (1, 4, 4, 6), (14, 8))
    assert "a row for each channel" in message((1, 4, 4, 8), (1, 4, 4, 8), (8, 8))
    assert "two positive numbers" in message((1, 4, 4, 8), (1, 4, 4, 8), (16, 8), strides=(0, 1))
