"""Sums of the columns of several tensors: each is that of its own reduction, bit by bit, and refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.ops.movers import refusal, typed
from tests.support import assert_same, check_op, open_profile, random_array
from tests.unit.plans import caps_of
from webnn_wgpu.costs import Target
from webnn_wgpu.ops.column_sums import shared_columns

if TYPE_CHECKING:
    from webnn_wgpu.runtime.device import Device

NAME = "columnSums"
SHAPES = (((1024, 128), [0]), ((3, 50, 64), [0, 1]), ((33, 8), [0]), ((2, 5, 7), [0]), ((100, 1040), [0]), ((2, 6, 72), [0, 1]))
"""Shapes and axes: columns of one workgroup and of several, sums of several blocks, and columns that are no quads or pairs."""


@pytest.mark.parametrize("profile", ["full", "hardware", "default-limits"])
@pytest.mark.parametrize("data_type", ["float32", "float16"])
def test_sums_are_those_of_reductions(profile: str, data_type: str) -> None:
    device = open_profile(profile)
    rng = np.random.default_rng(0)
    for shape, axes in SHAPES:
        for count in (2, 4):
            arrays = [random_array(rng, data_type, shape, 2) for _ in range(count)]
            found = check_op(device, NAME, arrays, {"axes": axes}, atol=2e-2 if data_type == "float16" else 2e-4)
            for array, sums in zip(arrays, found, strict=True):
                (alone,) = check_op(device, "reduceSum", [array], {"axes": axes}, atol=2e-2 if data_type == "float16" else 2e-4)
                assert_same({"0": sums}, {"0": alone})


def test_workgroups_share_columns_of_whole_quads_alone() -> None:
    for data_type, shape, axes, whole in (
        ("float32", (1024, 128), (0,), True),
        ("float32", (1024, 126), (0,), False),
        ("float32", (1024, 128), (1,), False),
        ("float32", (8, 64, 128), (0, 1), True),
    ):
        found = shared_columns(typed(data_type, *shape), axes, Target.of(caps_of("amd")))
        assert (found is not None) == whole, shape


def test_sums_without_shared_columns(device: Device) -> None:
    arrays = [random_array(np.random.default_rng(1), "float32", (70, 20), 2) for _ in range(3)]
    check_op(device, NAME, arrays, {"axes": [0], "keep_dimensions": True}, atol=2e-5)


def test_refusals() -> None:
    x = typed("float32", 2, 3)
    assert "axes must be the first dimensions" in str(refusal(NAME, [x, x], {"axes": [1]}))
    assert "one data type and shape" in str(refusal(NAME, [x, typed("float32", 2, 4)], {"axes": [0]}))
