"""The gradient of normalizations of rows: every variant, owner of the scale and length of rows, and refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ops.movers import refusal, typed
from tests.ops.rows import VARIANTS
from tests.support import check_op, open_profile, random_array

if TYPE_CHECKING:
    from webnn_wgpu.runtime.device import Device

NAME = "x.normalization_gradient"
SHAPES: tuple[tuple[tuple[int, ...], list[int], tuple[int, ...] | None], ...] = (
    ((9, 128), [1], (128,)),
    ((2, 3, 70), [2], None),
    ((2, 6, 5, 7), [2, 3], (6, 1, 1)),
    ((3, 4, 64), [0], (4, 64)),
    ((4, 9, 30), [2, 0], (4, 1, 30)),
)
"""Shape, axes and the shape of scale: an item's, none, a row's, an item's of rows that are no neighbors, one of both."""

ATOL = {"float32": 2e-5, "float16": 2e-2}
"""Results are up to 10 in size."""


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("data_type", ["float32", "float16"])
def test_rows(device: Device, variant: str, data_type: str) -> None:
    rng = np.random.default_rng(0)
    for number, (shape, axes, scale) in enumerate(SHAPES):
        addend = shape if number % 2 else None
        arrays = [None if s is None else random_array(rng, data_type, s, 2) for s in (shape, shape, scale, addend)]
        attrs: dict[str, Any] = {"axes": axes, "centered": number % 2 == 0, "products": number != 1, "epsilon": 0.01}
        check_op(device, NAME, arrays, attrs, forced={"normalization_gradient": variant}, atol=ATOL[data_type])


@pytest.mark.parametrize("variant", VARIANTS)
def test_long_rows_are_read_again(device: Device, variant: str) -> None:
    rng = np.random.default_rng(1)
    for length in (9_001, 12_000):
        arrays = [random_array(rng, "float32", shape, 2) for shape in ((2, length), (2, length), (length,), (2, length))]
        check_op(device, NAME, arrays, {"axes": [1], "products": True}, forced={"normalization_gradient": variant}, atol=1e-4)


@pytest.mark.parametrize("profile", ["default-limits", "hardware"])
def test_other_profiles(profile: str) -> None:
    rng = np.random.default_rng(2)
    arrays = [random_array(rng, "float16", shape, 2) for shape in ((5, 96), (5, 96), (96,), (5, 96))]
    check_op(open_profile(profile), NAME, arrays, {"axes": [1], "products": True}, atol=ATOL["float16"])


def test_refusals() -> None:
    x = typed("float32", 2, 3)
    for types, attrs, words in (
        ([x, typed("float32", 3, 2), None, None], {"axes": [1]}, "shape of input"),
        ([x, x, typed("float32", 2), None], {"axes": [1]}, "broadcast to input"),
        ([x, x, None, None], {"axes": [2]}, "out of bounds"),
        ([x, typed("float16", 2, 3), None, None], {"axes": [1]}, "must equal gradient data type"),
        ([x, x, None, typed("float32", 3)], {"axes": [1]}, "addend must have the shape of input"),
    ):
        assert words in str(refusal(NAME, types, attrs))
