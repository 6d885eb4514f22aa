"""The gradient of attention's scores from that of its weights: against the reference, and rows of any length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.ops.movers import refusal, typed
from tests.support import check_bounded, open_profile, random_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

NAME = "weightsGradient"
SHAPES = ((2, 3, 5, 128), (2, 3, 5, 130), (7, 3), (4, 2000), (2, 6, 40), (2, 2001))
"""Shapes of weights: rows held in registers and longer ones, in quads or not."""


def operands(shape: Sequence[int]) -> list[Array]:
    """Return weights whose rows add up to 1, and a gradient of them."""
    rng = np.random.default_rng(0)
    weights = np.exp(random_array(rng, "float32", tuple(shape), 3))
    return [weights / weights.sum(axis=-1, keepdims=True), random_array(rng, "float32", tuple(shape), 3)]


@pytest.mark.parametrize("profile", ["hardware", "default-limits"])
@pytest.mark.parametrize("variant", ["plain", "workgroup", ""])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows(profile: str, variant: str, shape: Sequence[int]) -> None:
    forced = {NAME: variant} if variant else None
    check_bounded(open_profile(profile), NAME, operands(shape), {"scale": 0.25}, forced=forced)


def test_on_the_device_of_the_tests(device: Device) -> None:
    for shape in SHAPES:
        check_bounded(device, NAME, operands(shape))


def test_weights_of_zero_have_no_gradient(device: Device) -> None:
    weights = np.array([[0, 1, 0, 0], [0, 0, 0, 0]], np.float32)
    gradient = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32)
    (of_scores,) = check_bounded(device, NAME, [weights, gradient])
    np.testing.assert_array_equal(of_scores, 0)


def test_refusals() -> None:
    x = typed("float32", 2, 4)
    assert "gradient must have the type of weights" in str(refusal(NAME, [x, typed("float32", 2, 3)], {}))
