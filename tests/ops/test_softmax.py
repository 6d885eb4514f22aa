from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.movers import refusal, typed
from tests.ops.rows import VARIANTS, as_hardware, plan_of, run_plan, variants_of
from tests.support import check_op, random_array
from tests.targets import SOFTWARE
from webnn_wgpu.accuracy.distance import assert_within
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.errors import OperationError
from webnn_wgpu.ops import OPS

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

# Rows of quads and ragged, in registers and not, of one element and of fewer than there are lanes; columns and neither.
CASES = (
    ((12, 128), 1),
    ((3, 384), 1),
    ((5, 197), 1),
    ((2, 3, 36), 2),
    ((3, 4100), 1),
    ((2, 4099), 1),
    ((7, 1), 1),
    ((9, 3), 1),
    ((5,), 0),
    ((1,), 0),
    ((2, 35, 8), 1),
    ((4, 3, 5, 7), 0),
)


def check(device: Device, x: Array, axis: int, variant: str | None = None) -> Array:
    # 3 n + 3 as in the conformance tests.
    allowed = 3 * x.shape[axis] + 3
    forced = {"softmax": variant} if variant else None
    return check_op(device, "softmax", [x], {"axis": axis}, forced=forced, tolerance=allowed)[0]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize(("shape", "axis"), CASES)
def test_variants(device: Device, shape: tuple[int, ...], axis: int, data_type: str, variant: str) -> None:
    x = random_array(np.random.default_rng(1), data_type, shape, scale=1.0)
    result = check(device, x, axis, variant)
    total = result.astype(np.float64).sum(axis=axis)
    assert np.allclose(total, 1.0, atol=1e-5 if data_type == "float32" else 2e-2)


def test_profiles(profile_device: Device) -> None:
    for data_type in ("float32", "float16"):
        for shape, axis in CASES:
            check(profile_device, random_array(np.random.default_rng(2), data_type, shape, scale=1.0), axis)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("length", [5, 36, 37, 4099])
@pytest.mark.parametrize("data_type", ["float32", "float16"])
def test_nan_infinity_and_large_numbers(device: Device, data_type: str, length: int, variant: str) -> None:
    x = random_array(np.random.default_rng(3), data_type, (8, length), scale=1.0)
    nan, inf = math.nan, math.inf
    x[0, 3], x[1, length - 1], x[2, 0], x[3], x[4, 2] = nan, inf, -inf, -inf, np.copysign(nan, -1.0)
    x[5] += 60000.0
    x[6] -= 60000.0
    x[7, 1] = 60000.0
    result = check(device, x, 1, variant)
    assert np.isnan(result).all(axis=1).tolist() == [True, True, False, True, True, False, False, False]
    assert result[2, 0] == 0
    assert result[7, 1] == 1


def test_axis_of_matrices(device: Device) -> None:
    x = random_array(np.random.default_rng(4), "float32", (3, 6), scale=1.0)
    assert np.array_equal(check_op(device, "softmax", [x], tolerance=21)[0], check(device, x, 1))


@pytest.mark.parametrize("variant", VARIANTS)
def test_more_rows_than_a_grid_dimension(device: Device, variant: str) -> None:
    x = random_array(np.random.default_rng(5), "float32", (70_001, 4), scale=1.0)
    plan = plan_of(as_hardware(device.caps), "softmax", [x], {"axis": 1}, {"softmax": variant})
    assert variant == "plain" or plan.dispatches[0].grid[1] > 1
    reference = OPS["softmax"].reference
    assert reference is not None
    wanted = reference([x], {"axis": 1}, tuple(plan.outputs.values()))[0]
    assert_within(run_plan(device, plan, [x]), wanted, "ULP", 15)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.data())
def test_any_shape_and_axis(device: Device, shape: list[int], data: st.DataObject) -> None:
    x = random_array(np.random.default_rng(sum(shape)), "float32", shape, scale=1.0)
    axis = data.draw(st.integers(0, len(shape) - 1))
    check(device, x, axis, data.draw(st.sampled_from([*VARIANTS, None])))


def test_choice_of_variant() -> None:
    def chosen(caps: Caps, shape: tuple[int, ...], axis: int) -> str:
        return variants_of(plan_of(caps, "softmax", [np.zeros(shape, np.float32)], {"axis": axis}))[0]

    hardware = as_hardware(SOFTWARE)
    assert chosen(SOFTWARE, (1536, 128), 1) == "subgroup"
    assert chosen(hardware, (1536, 128), 1) == "workgroup"
    assert chosen(Caps(adapter_type="CPU"), (1536, 128), 1) == "plain"
    assert chosen(hardware, (1536, 8), 1) == chosen(hardware, (64, 128), 0) == "plain"
    with pytest.raises(OperationError, match="softmax=subgroup; allowed: plain, workgroup"):
        plan_of(Caps(), "softmax", [np.zeros((4, 64), np.float32)], {"axis": 1}, {"softmax": "subgroup"})


def test_refusals() -> None:
    assert refusal("softmax", [typed("float32", 2, 3, 4)], {}) == (
        "softmax('here'): axis is required unless rank(input) is 2; got input float32[2, 3, 4]; allowed: axis 0..2. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-softmax-method"
    )
    assert "Axis 2 out of bounds for rank 2" in refusal("softmax", [typed("float32", 2, 3)], {"axis": 2})
    assert "input data type is not allowed; got input int32[2]" in refusal("softmax", [typed("int32", 2)], {"axis": 0})
    assert "rank(input) is not allowed" in refusal("softmax", [typed("float32")], {"axis": 0})


def test_rows_that_no_invocation_can_read(device: Device) -> None:
    # Mesa's software driver ends the loops of an invocation after 65535 iterations: very long rows need many invocations.
    for columns in (1_000_000, 700_001):
        x = random_array(np.random.default_rng(9), "float32", (1, columns), scale=1.0)
        check_op(device, "softmax", [x], {"axis": 1}, tolerance=64)
    x = np.zeros((1, 2**21 + 1), np.float32)
    for caps in (SOFTWARE, Caps(adapter_type="CPU")):
        assert variants_of(plan_of(caps, "softmax", [x], {"axis": 1})) == ["workgroup"]
        with pytest.raises(OperationError, match="softmax=plain; allowed: workgroup"):
            plan_of(caps, "softmax", [x], {"axis": 1}, {"softmax": "plain"})
        with pytest.raises(OperationError, match=r"softmax\('test'\): too many elements are reduced to one for this device"):
            plan_of(caps, "softmax", [np.zeros((1, 2**23 + 1), np.float32)], {"axis": 1})


# -------------------------------------------------------------------------------------------------------- log_softmax

# Of results of up to 15 in float32, and 10 in float16.
LOGARITHM_ATOL = {"float32": 4e-6, "float16": 4e-3}


def check_logarithm(device: Device, x: Array, axis: int, variant: str | None = None) -> Array:
    forced = {"x.log_softmax": variant} if variant else None
    return check_op(device, "x.log_softmax", [x], {"axis": axis}, forced=forced, atol=LOGARITHM_ATOL[str(x.dtype)])[0]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize(("shape", "axis"), CASES)
def test_variants_of_the_logarithm(device: Device, shape: tuple[int, ...], axis: int, data_type: str, variant: str) -> None:
    x = random_array(np.random.default_rng(1), data_type, shape, scale=1.0)
    result = check_logarithm(device, x, axis, variant).astype(np.float64)
    assert np.allclose(np.exp(result).sum(axis=axis), 1.0, atol=1e-5 if data_type == "float32" else 2e-2)


def test_profiles_of_the_logarithm(profile_device: Device) -> None:
    for data_type in LOGARITHM_ATOL:
        for shape, axis in CASES:
            check_logarithm(profile_device, random_array(np.random.default_rng(2), data_type, shape, scale=1.0), axis)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("length", [5, 36, 37, 4099])
def test_nan_infinity_and_large_numbers_of_the_logarithm(device: Device, length: int, variant: str) -> None:
    x = random_array(np.random.default_rng(3), "float32", (6, length), scale=1.0)
    x[0, 3], x[1, length - 1], x[2, 0], x[3] = math.nan, math.inf, -math.inf, -math.inf
    x[4, 1], x[5] = 60000.0, x[5] + 60000.0
    result = check_op(device, "x.log_softmax", [x], {"axis": 1}, forced={"x.log_softmax": variant}, tolerance=3 * length + 3)[0]
    assert np.isnan(result).all(axis=1).tolist() == [True, True, False, True, False, False]
    assert result[2, 0] == -math.inf
    # The quotient is 0, and its logarithm a number.
    assert result[4, 1] == 0
    assert np.allclose(np.delete(result[4], 1), np.delete(x[4], 1) - 60000.0)


def test_refusals_of_the_logarithm() -> None:
    assert refusal("x.log_softmax", [typed("float32", 2, 3)], {"axis": 2}) == (
        "ext.log_softmax('here'): axis must be < rank(input): Axis 2 out of bounds for rank 2; got axis=2, "
        "input float32[2, 3]; allowed: 0..1"
    )
    assert "input data type is not allowed" in refusal("x.log_softmax", [typed("int32", 2)], {"axis": 0})
    assert "rank(input) is not allowed" in refusal("x.log_softmax", [typed("float32")], {"axis": 0})
