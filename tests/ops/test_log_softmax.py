from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.ops.movers import refusal, typed
from tests.ops.rows import VARIANTS, plan_of, variants_of
from tests.ops.test_softmax import CASES
from tests.support import check_op, random_array
from webnn_wgpu.core.caps import Caps

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

# Of results of up to 15 in float32, and 10 in float16.
ATOL = {"float32": 4e-6, "float16": 4e-3}


def check(device: Device, x: Array, axis: int, variant: str | None = None) -> Array:
    forced = {"x.log_softmax": variant} if variant else None
    return check_op(device, "x.log_softmax", [x], {"axis": axis}, forced=forced, atol=ATOL[str(x.dtype)])[0]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize(("shape", "axis"), CASES)
def test_variants(device: Device, shape: tuple[int, ...], axis: int, data_type: str, variant: str) -> None:
    x = random_array(np.random.default_rng(1), data_type, shape, scale=1.0)
    result = check(device, x, axis, variant).astype(np.float64)
    assert np.allclose(np.exp(result).sum(axis=axis), 1.0, atol=1e-5 if data_type == "float32" else 2e-2)


def test_profiles(profile_device: Device) -> None:
    for data_type in ATOL:
        for shape, axis in CASES:
            check(profile_device, random_array(np.random.default_rng(2), data_type, shape, scale=1.0), axis)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("length", [5, 36, 37, 4099])
def test_nan_infinity_and_large_numbers(device: Device, length: int, variant: str) -> None:
    x = random_array(np.random.default_rng(3), "float32", (6, length), scale=1.0)
    x[0, 3], x[1, length - 1], x[2, 0], x[3] = math.nan, math.inf, -math.inf, -math.inf
    x[4, 1], x[5] = 60000.0, x[5] + 60000.0
    result = check_op(device, "x.log_softmax", [x], {"axis": 1}, forced={"x.log_softmax": variant}, tolerance=3 * length + 3)[0]
    assert np.isnan(result).all(axis=1).tolist() == [True, True, False, True, False, False]
    assert result[2, 0] == -math.inf
    # The quotient is 0, and its logarithm a number.
    assert result[4, 1] == 0
    assert np.allclose(np.delete(result[4], 1), np.delete(x[4], 1) - 60000.0)


def test_choice_of_variant(device: Device) -> None:
    x = np.zeros((1536, 128), np.float32)
    assert variants_of(plan_of(device.caps, "x.log_softmax", [x], {"axis": 1})) == ["subgroup"]
    assert variants_of(plan_of(Caps(adapter_type="CPU"), "x.log_softmax", [x], {"axis": 1})) == ["plain"]


def test_refusals() -> None:
    assert refusal("x.log_softmax", [typed("float32", 2, 3)], {"axis": 2}) == (
        "ext.log_softmax('here'): axis must be < rank(input): Axis 2 out of bounds for rank 2; got axis=2, "
        "input float32[2, 3]; allowed: 0..1"
    )
    assert "input data type is not allowed" in refusal("x.log_softmax", [typed("int32", 2)], {"axis": 0})
    assert "rank(input) is not allowed" in refusal("x.log_softmax", [typed("float32")], {"axis": 0})
