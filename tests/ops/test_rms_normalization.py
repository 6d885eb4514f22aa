from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ops.movers import refusal, typed
from tests.ops.rows import VARIANTS, as_hardware, plan_of, variants_of
from tests.support import check_op
from tests.targets import SOFTWARE
from webnn_wgpu.core.caps import Caps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

# Rows of quads and ragged, in registers and not, several dimensions, unsorted, not innermost, of one element.
CASES: tuple[tuple[tuple[int, ...], tuple[int, ...] | None], ...] = (
    ((33, 384), None),
    ((5, 37), None),
    ((3, 5000), None),
    ((2, 4099), None),
    ((2, 3, 4, 8), (3, 2)),
    ((3, 33, 8), (1,)),
    ((5, 4, 3, 8), (3, 0)),
    ((4, 1), (1,)),
)

ATOL = {"float32": 1e-5, "float16": 8e-3}


def check(device: Device, inputs: Sequence[Array | None], variant: str | None = None, **attrs: Any) -> Array:
    x = inputs[0]
    assert x is not None
    forced = {"x.rms_normalization": variant} if variant else None
    return check_op(device, "x.rms_normalization", inputs, attrs, forced=forced, atol=ATOL[str(x.dtype)])[0]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize(("shape", "axes"), CASES)
def test_variants(device: Device, shape: tuple[int, ...], axes: Any, data_type: str, variant: str) -> None:
    rng = np.random.default_rng(1)
    x = (rng.standard_normal(shape) + 1).astype(data_type)
    along = axes or (len(shape) - 1,)
    scale = rng.uniform(-2, 2, [shape[d] for d in along]).astype(data_type)
    result = check(device, [x, scale], variant, axes=axes)
    wide = x.astype(np.float64)
    wanted = wide / np.sqrt((wide**2).mean(axis=along, keepdims=True) + 1e-5)
    letters = "abcd"[: len(shape)]
    wanted = np.einsum(f"{letters},{''.join(letters[d] for d in along)}->{letters}", wanted, scale.astype(np.float64))
    assert np.abs(result - wanted).max() < ATOL[data_type]
    if data_type == "float32":
        check(device, [x, None], variant, axes=axes, epsilon=0.5)


def test_profiles(profile_device: Device) -> None:
    rng = np.random.default_rng(2)
    for data_type in ATOL:
        for shape, axes in CASES:
            x = rng.standard_normal(shape).astype(data_type)
            check(profile_device, [x, x[(0,) * (x.ndim - 1)] if axes is None else None], axes=axes)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("length", [5, 36, 4099])
def test_nan_infinity_and_zero(device: Device, length: int, variant: str) -> None:
    x = np.random.default_rng(4).standard_normal((4, length)).astype(np.float32)
    x[0, 3], x[1] = math.nan, 0
    result = check(device, [x, None], variant)
    assert np.isnan(result).all(axis=1).tolist() == [True, False, False, False]
    assert not result[1].any()


def test_the_last_dimension_is_the_default(device: Device) -> None:
    x = np.random.default_rng(5).standard_normal((2, 3, 16)).astype(np.float32)
    assert np.array_equal(check(device, [x, None]), check(device, [x, None], axes=[2]))


def test_choice_of_variant() -> None:
    def chosen(caps: Caps) -> str:
        return variants_of(plan_of(caps, "x.rms_normalization", [np.zeros((128, 384), np.float32), None]))[0]

    assert [chosen(c) for c in (SOFTWARE, as_hardware(SOFTWARE), Caps(adapter_type="CPU"))] == [
        "subgroup",
        "workgroup",
        "plain",
    ]


def test_rows_larger_than_a_binding(device: Device) -> None:
    limits = (*device.caps.limits, ("max-storage-buffer-binding-size", 4096))
    caps = Caps(features=device.caps.features, limits=limits, subgroup_size=device.caps.subgroup_size, adapter_type="CPU")
    x = np.random.default_rng(6).standard_normal((2, 2000)).astype(np.float32)
    plan = plan_of(caps, "x.rms_normalization", [x, None])
    assert len(plan.dispatches) > 2


def test_refusals() -> None:
    x = typed("float32", 2, 8)
    assert refusal("x.rms_normalization", [x, typed("float32", 7)]) == (
        "ext.rms_normalization('here'): Shape mismatch: scale must have shape [input.shape[axis] for axis in axes]; "
        "got input float32[2, 8], scale float32[7]; allowed: [8]"
    )
    assert "scale data type must equal input data type" in refusal("x.rms_normalization", [x, typed("float16", 8)])
    assert "out of bounds" in refusal("x.rms_normalization", [x, None], {"axes": [2]})
