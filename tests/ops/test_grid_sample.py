from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import check_op, random_array
from webnn_wgpu.core.data_types import FLOATS
from webnn_wgpu.core.errors import MLTypeError
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops.grid_sample import TAPS

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

NAME = "x.grid_sample"
PADDINGS = ("zeros", "border", "reflection")


def coordinates(rng: np.random.Generator, shape: tuple[int, ...], scale: float = 1.6) -> Array:
    """Random coordinates, a good part of them beyond the ends, none of them at the middle between two elements."""
    return (rng.uniform(-scale, scale, shape) + 1e-3).astype(np.float32)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding_mode", PADDINGS)
@pytest.mark.parametrize("mode", TAPS)
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 2, 3, 2, 4)])
def test_modes(device: Device, shape: tuple[int, ...], mode: str, padding_mode: str, align_corners: bool) -> None:
    rng = np.random.default_rng(0)
    grid = coordinates(rng, (2, *(5, 3, 2)[: len(shape) - 2], len(shape) - 2))
    attrs = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    check_op(device, NAME, [random_array(rng, "float32", shape), grid], attrs, atol=2e-4)


@pytest.mark.parametrize("grid_type", FLOATS)
@pytest.mark.parametrize("data_type", FLOATS)
def test_types(profile_device: Device, data_type: str, grid_type: str) -> None:
    rng = np.random.default_rng(1)
    x, grid = random_array(rng, data_type, (1, 2, 5, 3), 1), coordinates(rng, (1, 3, 7, 2), 1).astype(grid_type)
    check_op(profile_device, NAME, [x, grid], {"padding_mode": "reflection"}, atol=1e-4 if data_type == "float32" else 2e-3)


ROW = np.float32([10, 20, 40])


def sampled(device: Device, given: list[float], **attrs: Any) -> list[float]:
    """Samples of a row of three elements."""
    grid = np.float32([[x, 0.0] for x in given]).reshape(1, 1, -1, 2)
    (actual,) = check_op(device, NAME, [ROW.reshape(1, 1, 1, 3), grid], attrs, atol=1e-4)
    return [float(v) for v in actual.reshape(-1).round(3)]


def test_values_by_hand(device: Device) -> None:
    # Elements' middles are at -2/3, 0, 2/3, the edges at -1 and 1.
    third = 2 / 3
    assert sampled(device, [-third, 0, third, 1 / 3]) == [10, 20, 40, 30]
    assert sampled(device, [-1, 1, 5, -5]) == [5, 20, 0, 0]
    assert sampled(device, [-1, 1, 5, -5], padding_mode="border") == [10, 40, 40, 10]
    # An element is 2/3 wide: 1 + 2/3 is the position 3 1/2, mirrored at 2 1/2 it is 1 1/2.
    assert sampled(device, [1 + third, 1 + 2 * third, 3 - 1 / 3, 3 + 1 / 3], padding_mode="reflection") == [30, 15, 10, 10]
    assert sampled(device, [-1, -0.5, 1], align_corners=True) == [10, 15, 40]
    assert sampled(device, [2, -2, 3, 5], align_corners=True, padding_mode="reflection") == [20, 20, 10, 40]
    assert sampled(device, [-0.6, 0.3, 0.4, 1.4], mode="nearest") == [10, 20, 40, 0]
    assert sampled(device, [-0.6, 1.4], mode="nearest", padding_mode="reflection") == [10, 40]
    assert sampled(device, [1e9, -1e9, math.inf, math.nan]) == [0, 0, 0, 0]
    assert sampled(device, [1e9, -1e9, math.inf, math.nan], padding_mode="border") == [40, 10, 40, 10]
    # Keys: -a/8, 1/2 + a/8 for the middle between two elements, a = -3/4.
    assert sampled(device, [1 / 3], mode="cubic", padding_mode="border") == [
        pytest.approx(0.59375 * 60 - 0.09375 * 50, abs=1e-3)
    ]


def test_the_width_comes_first(device: Device) -> None:
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    grid = np.float32([[1, -1], [-1, 1]]).reshape(1, 1, 2, 2)
    assert check_op(device, NAME, [x, grid], {"align_corners": True}, atol=0)[0].tolist() == [[[[2, 3]]]]


def test_one_element(device: Device) -> None:
    x, grid = np.float32([[[[7]]]]), np.float32([0, 0, 0.3, -0.2, 4, 9]).reshape(1, 1, 3, 2)
    for align_corners in (False, True):
        attrs = {"padding_mode": "reflection", "align_corners": align_corners}
        assert check_op(device, NAME, [x, grid], attrs, atol=1e-5)[0].reshape(-1).tolist() == pytest.approx([7, 7, 7])


def test_elements_that_do_not_count_may_be_nan(device: Device) -> None:
    x = np.float32([math.nan, 2, math.inf]).reshape(1, 1, 1, 3)
    grid = np.float32([0, 0]).reshape(1, 1, 1, 2)
    assert check_op(device, NAME, [x, grid], {"align_corners": True}, atol=0)[0].tolist() == [[[[2]]]]


def test_refusals() -> None:
    def refusal(x: tuple[int, ...], grid: tuple[int, ...], **attrs: Any) -> str:
        with pytest.raises(MLTypeError) as raised:
            OPS[NAME].check([TensorType("float32", x), TensorType("float32", grid)], attrs, "here")
        return str(raised.value)

    assert "grid must have the rank of input" in refusal((1, 1, 2, 2), (1, 1, 1, 1, 3))
    assert "same batch size" in refusal((1, 1, 2, 2), (2, 1, 1, 2))
    assert "a coordinate for every spatial dimension" in refusal((1, 1, 2, 2), (1, 1, 1, 3))
    assert "rank" in refusal((1, 2, 2), (1, 1, 2))
