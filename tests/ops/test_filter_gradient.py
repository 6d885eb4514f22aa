"""The gradient of a convolution's filter as one product: against the reference, over the forms of pixels, taps and tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ops.movers import refusal, typed
from tests.ops.products import in_tiles, whole_numbers
from tests.support import check_bounded, check_op, open_profile, random_array
from webnn_wgpu.costs.tiles import BLOCK_TILES, BlockTile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

NAME = "filterGradient"

Case = tuple[tuple[int, ...], tuple[int, ...], "Mapping[str, Any]"]

CASES: Mapping[str, Case] = {
    "3 x 3": ((2, 8, 8, 16), (2, 8, 8, 8), {"kernel": [3, 3], "padding": [1, 1]}),
    "one tap": ((3, 7, 5, 12), (3, 7, 5, 20), {"kernel": [1, 1]}),
    "one channel": ((4, 9, 9, 6), (4, 9, 9, 1), {"kernel": [3, 3], "padding": [1, 1]}),
    "three channels": ((1, 6, 5, 5), (1, 12, 10, 3), {"kernel": [5, 4], "padding": [2, 1], "strides": [2, 2]}),
    "strides and dilations": ((2, 4, 3, 9), (2, 11, 13, 4), {"kernel": [2, 3], "strides": [3, 2], "dilations": [2, 3]}),
    "small images": ((40, 1, 2, 8), (40, 2, 3, 4), {"kernel": [2, 2]}),
    "one pixel": ((70, 1, 1, 4), (70, 3, 3, 4), {"kernel": [3, 3]}),
    "large tile": ((2, 16, 16, 130), (2, 16, 16, 24), {"kernel": [3, 3], "padding": [1, 1]}),
    "sums in parts": ((8, 20, 20, 8), (8, 20, 20, 8), {"kernel": [3, 3], "padding": [1, 1]}),
}


def operands(case: Case, data_type: str = "float32") -> list[Array]:
    """Return a gradient and an input."""
    rng = np.random.default_rng(0)
    return [random_array(rng, data_type, shape, 1) for shape in case[:2]]


@pytest.mark.parametrize("profile", ["hardware", "default-limits"])
@pytest.mark.parametrize("name", CASES)
def test_forms(profile: str, name: str) -> None:
    case = CASES[name]
    check_bounded(open_profile(profile), NAME, operands(case), case[2])


def test_on_the_device_of_the_tests(device: Device) -> None:
    for case in CASES.values():
        check_bounded(device, NAME, operands(case), case[2])


@pytest.mark.parametrize("profile", ["hardware", "default-limits"])
def test_float16(profile: str) -> None:
    for name in ("3 x 3", "three channels", "sums in parts"):
        check_bounded(open_profile(profile), NAME, operands(CASES[name], "float16"), CASES[name][2])


@pytest.mark.repeats
@pytest.mark.parametrize("channels", [4, 3])
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("tile", BLOCK_TILES, ids=str)
def test_every_tile(device: Device, tile: BlockTile, parts: int, channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    in_tiles(monkeypatch, tile.sides, parts)
    rng = np.random.default_rng(1)
    inputs = [whole_numbers(rng, "float32", *shape) for shape in ((3, 9, 8, 70), (3, 9, 8, channels))]
    check_op(device, NAME, inputs, {"kernel": [3, 5], "padding": [1, 2]})


def test_pixels_outside_the_image_count_as_zero(device: Device) -> None:
    gradient, x = np.ones((1, 3, 3, 4), np.float32), np.ones((1, 3, 3, 4), np.float32)
    (found,) = check_bounded(device, NAME, [gradient, x], {"kernel": [3, 3], "padding": [1, 1]})
    np.testing.assert_array_equal(found[0, :, :, 0], [[4, 6, 4], [6, 9, 6], [4, 6, 4]])


def test_refusals() -> None:
    pair: Sequence[Any] = [typed("float32", 2, 4, 4, 3), typed("float32", 3, 4, 4, 3)]
    assert "gradient and input must have as many images" in str(refusal(NAME, pair, {"kernel": [1, 1]}))
