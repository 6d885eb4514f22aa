from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.movers import refusal, typed
from tests.ops.rows import VARIANTS, as_hardware, plan_of, run_plan, variants_of
from tests.support import check_op
from tests.targets import SOFTWARE
from webnn_wgpu.accuracy.distance import assert_within
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.errors import OperationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

# Rows of quads and ragged, in registers and not, several dimensions, unsorted, not innermost, not neighbors.
CASES: tuple[tuple[tuple[int, ...], tuple[int, ...] | None], ...] = (
    ((33, 384), None),
    ((5, 184), None),
    ((1030, 264), None),
    ((5, 37), None),
    ((3, 5000), None),
    ((2, 4099), None),
    ((2, 3, 4, 8), (2, 3)),
    ((2, 3, 4, 8), (3, 2)),
    ((2, 3, 4, 5), (3, 1, 2)),
    ((3, 33, 8), (1,)),
    ((5, 4, 3, 8), (3, 0)),
    ((4, 1), (1,)),
)

# Absolute, for results of size 1: float32 rounding of x - mean, and one rounding to float16.
ATOL = {"float32": 1e-5, "float16": 8e-3}


def parameters(rng: np.random.Generator, data_type: str, x_shape: Sequence[int], axes: Sequence[int] | None) -> list[Array]:
    axes = range(1, len(x_shape)) if axes is None else axes
    shape = [x_shape[d] for d in axes]
    return [np.asarray(rng.uniform(-2, 2, shape)).astype(data_type) for _ in range(2)]


def check(device: Device, inputs: Sequence[Array | None], variant: str | None = None, **attrs: Any) -> Array:
    x = inputs[0]
    assert x is not None
    forced = {"layerNormalization": variant} if variant else None
    return check_op(device, "layerNormalization", inputs, attrs, forced=forced, atol=ATOL[str(x.dtype)])[0]


@pytest.mark.repeats
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize(("shape", "axes"), CASES)
def test_variants(device: Device, shape: tuple[int, ...], axes: Any, data_type: str, variant: str) -> None:
    rng = np.random.default_rng(1)
    x = (rng.standard_normal(shape) + 3).astype(data_type)
    scale, bias = parameters(rng, data_type, shape, axes)
    check(device, [x, scale, bias], variant, axes=axes)
    if data_type == "float32":
        check(device, [x, None, None], variant, axes=axes)
        check(device, [x, scale, None], variant, axes=axes, epsilon=0.5)
        check(device, [x, None, bias], variant, axes=axes)


def test_profiles(profile_device: Device) -> None:
    rng = np.random.default_rng(2)
    for data_type in ATOL:
        for shape, axes in CASES:
            x = rng.standard_normal(shape).astype(data_type)
            check(profile_device, [x, *parameters(rng, data_type, shape, axes)], axes=axes)


@pytest.mark.parametrize("variant", VARIANTS)
def test_mean_far_from_zero(device: Device, variant: str) -> None:
    # With a mean of 1000 and a deviation of 1 the mean of squares minus the squared mean has no correct digit but one.
    x = (np.random.default_rng(3).standard_normal((4, 6000)) + 1000).astype(np.float32)
    forced = {"layerNormalization": variant}
    for length in (64, 6000):
        check_op(device, "layerNormalization", [x[:, :length].copy(), None, None], forced=forced, atol=5e-4)


def test_axes_absent_and_empty(device: Device) -> None:
    x = np.array([3.0, -4.0, 5.0], np.float32)
    bias = np.float32(0.75).reshape(())
    assert check(device, [x, None, None]).tolist() == [0, 0, 0]
    assert check(device, [x, bias, bias], axes=[]).tolist() == [0.75] * 3
    assert check(device, [np.float32(7).reshape(()), None, bias]).tolist() == 0.75
    assert check(device, [x.reshape(1, 3), None, bias], axes=[]).tolist() == [[0.75] * 3]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("length", [5, 36, 4099])
def test_nan_and_infinity(device: Device, length: int, variant: str) -> None:
    x = np.random.default_rng(4).standard_normal((4, length)).astype(np.float32)
    x[0, 3], x[1, 0], x[2, 4] = math.nan, math.inf, -math.inf
    result = check(device, [x, None, None], variant)
    assert np.isnan(result).all(axis=1).tolist() == [True, True, True, False]


def test_zero_variance(device: Device) -> None:
    x = np.full((2, 8), 2.5, np.float32)
    assert check(device, [x, None, None]).tolist() == [[0.0] * 8] * 2
    assert np.isnan(check(device, [x, None, None], epsilon=0)).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_more_rows_than_a_grid_dimension(device: Device, variant: str) -> None:
    x = np.random.default_rng(5).standard_normal((70_001, 4)).astype(np.float32)
    plan = plan_of(as_hardware(device.caps), "layerNormalization", [x, None, None], forced={"layerNormalization": variant})
    assert variant == "plain" or plan.dispatches[0].grid[1] > 1
    wide = x.astype(np.float64)
    wanted = (wide - wide.mean(axis=1, keepdims=True)) / np.sqrt(wide.var(axis=1, keepdims=True) + 1e-5)
    assert_within(run_plan(device, plan, [x, None, None]), wanted.astype(np.float32), "ATOL", 1e-5)


@given(st.lists(st.integers(1, 6), min_size=0, max_size=4), st.data())
def test_any_shape_and_axes(device: Device, shape: list[int], data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True) if shape else st.just([]))
    rng = np.random.default_rng(len(shape))
    scale, bias = parameters(rng, "float32", shape, axes)
    inputs = [
        np.asarray(rng.standard_normal(shape), np.float32),
        scale if data.draw(st.booleans()) else None,
        bias if data.draw(st.booleans()) else None,
    ]
    check(device, inputs, data.draw(st.sampled_from([*VARIANTS, None])), axes=axes, epsilon=0.25)


def test_choice_of_variant() -> None:
    def chosen(caps: Caps, shape: tuple[int, ...], axes: list[int]) -> str:
        inputs = [np.zeros(shape, np.float32), None, None]
        return variants_of(plan_of(caps, "layerNormalization", inputs, {"axes": axes}))[0]

    assert chosen(SOFTWARE, (128, 384), [1]) == "subgroup"
    assert chosen(as_hardware(SOFTWARE), (128, 384), [1]) == "workgroup"
    assert chosen(Caps(adapter_type="CPU"), (128, 384), [1]) == "plain"
    assert chosen(SOFTWARE, (128, 384), [0]) == "plain"
    with pytest.raises(OperationError, match="layerNormalization=subgroup; allowed: plain, workgroup"):
        plan_of(
            Caps(), "layerNormalization", [np.zeros((4, 64), np.float32), None, None], forced={"layerNormalization": "subgroup"}
        )


def test_refusals() -> None:
    x = typed("float32", 2, 3, 4)
    assert refusal("layerNormalization", [x, typed("float32", 3, 4), None], {"axes": [2, 1]}) == (
        "layer_normalization('here'): Shape mismatch: scale must have shape [input.shape[axis] for axis in axes]; "
        "got input float32[2, 3, 4], scale float32[3, 4]; allowed: [4, 3]. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-layernorm"
    )
    assert "Shape mismatch: bias" in refusal("layerNormalization", [x, None, typed("float32", 3)], {})
    assert "Axis 3 out of bounds for rank 3" in refusal("layerNormalization", [x, None, None], {"axes": [3]})
    assert "Duplicate axis 1" in refusal("layerNormalization", [x, None, None], {"axes": [1, 1]})
    assert "epsilon must be finite" in refusal("layerNormalization", [x, None, None], {"epsilon": math.inf})
    refused = refusal("layerNormalization", [x, typed("float16", 3, 4), None], {})
    assert "scale data type must equal input data type" in refused
    assert "input data type is not allowed" in refusal("layerNormalization", [typed("int32", 2), None, None], {})


def test_rows_that_no_invocation_can_read(device: Device) -> None:
    # Mesa's software driver ends the loops of an invocation after 65535 iterations: very long rows need many invocations.
    x = np.random.default_rng(9).standard_normal((1, 700_001)).astype(np.float32)
    check_op(device, "layerNormalization", [x, None, None], {"axes": [1]}, atol=1e-5)
