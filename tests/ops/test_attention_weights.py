"""The weights of attention from its scores: against the reference, with masks, and rows of any length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.ops.movers import refusal, typed
from tests.support import check_bounded, open_profile, random_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.runtime.device import Device

NAME = "attentionWeights"
SHAPES = (
    ((2, 3, 5, 128), (5, 128)),
    ((2, 3, 5, 130), (5, 130)),
    ((3, 5, 64), (3, 1, 64)),
    ((3, 5, 64), (5, 1)),
    ((7, 3), (1,)),
    ((4, 2000), (4, 2000)),
    ((2, 6, 40), None),
    ((2, 2001), None),
)
"""Shapes of scores and of what is seen: rows held in registers and longer ones, in quads or not, and broadcast masks."""


@pytest.mark.parametrize("profile", ["hardware", "default-limits"])
@pytest.mark.parametrize("variant", ["plain", "workgroup", ""])
@pytest.mark.parametrize(("shape", "seen"), SHAPES)
def test_rows(profile: str, variant: str, shape: Sequence[int], seen: Sequence[int] | None) -> None:
    rng = np.random.default_rng(0)
    scores = random_array(rng, "float32", tuple(shape), 3)
    mask = None if seen is None else (rng.random(seen) < 0.7).astype(np.uint8)
    check_bounded(open_profile(profile), NAME, [scores, mask], forced={NAME: variant} if variant else None)


def test_on_the_device_of_the_tests(device: Device) -> None:
    rng = np.random.default_rng(1)
    for shape, seen in SHAPES:
        mask = None if seen is None else (rng.random(seen) < 0.7).astype(np.uint8)
        check_bounded(device, NAME, [random_array(rng, "float32", shape, 3), mask])


@pytest.mark.parametrize("profile", ["full", "hardware", "default-limits"])
@pytest.mark.parametrize("variant", ["plain", "workgroup", ""])
@pytest.mark.parametrize("diagonal", [-3, 0, 2, 200])
def test_what_is_seen_by_position(profile: str, variant: str, diagonal: int) -> None:
    rng = np.random.default_rng(2)
    for shape in ((2, 3, 5, 128), (6, 40), (2, 4, 2001), (3, 7, 1)):
        scores = random_array(rng, "float32", shape, 3)
        forced = {NAME: variant} if variant else None
        (found,) = check_bounded(open_profile(profile), NAME, [scores, None], {"diagonal": diagonal}, forced=forced)
        seen = np.tri(*shape[-2:], diagonal, dtype=np.uint8)
        (wanted,) = check_bounded(open_profile(profile), NAME, [scores, seen], forced=forced)
        np.testing.assert_array_equal(found, wanted)


def test_scores_that_are_not_seen_have_no_influence(device: Device) -> None:
    scores = np.array([[1, np.nan, 2, np.inf], [3, 4, 5, 6]], np.float32)
    seen = np.array([[1, 0, 1, 0], [0, 0, 0, 0]], np.uint8)
    (weights,) = check_bounded(device, NAME, [scores, seen])
    assert np.isfinite(weights).all()
    np.testing.assert_array_equal(weights[1], 0)


def test_refusals() -> None:
    x = typed("float32", 2, 4)
    assert "must not both be given" in str(refusal(NAME, [x, typed("uint8", 2, 4)], {"diagonal": 0}))
    assert "must be matrices" in str(refusal(NAME, [typed("float32", 4), None], {"diagonal": 0}))
    assert "seen must broadcast to scores" in str(refusal(NAME, [x, typed("uint8", 3, 4)], {}))
