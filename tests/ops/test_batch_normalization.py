from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.movers import refusal, typed
from tests.support import check_op

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

CASES = (
    ((2, 3, 4, 8), 1),
    ((2, 3, 5, 7), 1),
    ((2, 4, 5, 8), 3),
    ((2, 4, 5, 7), 3),
    ((6, 5), 0),
    ((9,), 0),
    ((1, 1, 1), 1),
    ((2, 3, 2, 1, 3), 2),
)


def tensors(data_type: str, shape: tuple[int, ...], axis: int) -> list[Array]:
    """Return input, mean, variance, scale and bias, whose differences do not cancel."""
    rng = np.random.default_rng(1)
    channels = shape[axis]
    ranges = ((-3, -1), (0.25, 4), (0.5, 2), (1, 2))
    x = rng.uniform(1, 3, shape).astype(data_type)
    return [x, *(rng.uniform(*r, channels).astype(data_type) for r in ranges)]


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize(("shape", "axis"), CASES)
def test_values(profile_device: Device, shape: tuple[int, ...], axis: int, data_type: str) -> None:
    x, mean, variance, scale, bias = tensors(data_type, shape, axis)
    for s, b in ((scale, bias), (scale, None), (None, bias), (None, None)):
        check_op(profile_device, "batchNormalization", [x, mean, variance, s, b], {"axis": axis})


def test_constants(device: Device) -> None:
    check_op(device, "batchNormalization", tensors("float32", (2, 3, 4, 8), 1), constants={1, 2, 3, 4})


def test_special_values(device: Device) -> None:
    x = np.array([[1.0, math.inf, -math.inf, math.nan, 0.0, 5.0]], np.float32)
    mean = np.array([1.0, 1.0, 1.0, 1.0, 1.0, math.nan], np.float32)
    variance = np.zeros(6, np.float32)
    (y,) = check_op(device, "batchNormalization", [x, mean, variance, None, None], {"epsilon": 0})
    assert np.isnan(y[0, [0, 3, 5]]).all()
    assert y[0, [1, 2, 4]].tolist() == [math.inf, -math.inf, -math.inf]
    (y,) = check_op(device, "batchNormalization", [x, mean, variance - 1, None, None])
    assert np.isnan(y).all()


def test_epsilon_is_cast_to_the_data_type(device: Device) -> None:
    # 1e-8 is 0 in float16.
    zero = np.zeros((1, 2), np.float16)
    one = np.ones(2, np.float16)
    (y,) = check_op(device, "batchNormalization", [zero, one, np.zeros(2, np.float16), None, None], {"epsilon": 1e-8})
    assert y.tolist() == [[-math.inf, -math.inf]]


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.data())
def test_any_shape_and_axis(device: Device, shape: list[int], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    check_op(device, "batchNormalization", tensors("float32", tuple(shape), axis), {"axis": axis})


def test_refusals() -> None:
    x, good, bad = typed("float32", 2, 3, 4), typed("float32", 3), typed("float32", 4)
    assert refusal("batchNormalization", [x, bad, good, None, None], {}) == (
        "batch_normalization('here'): Shape mismatch: mean must have shape [input.shape[axis]]; "
        "got input float32[2, 3, 4], mean float32[4], variance float32[3]; allowed: [3]. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-batchnorm"
    )
    for index, name in enumerate(("mean", "variance", "scale", "bias"), 1):
        inputs = [x, good, good, good, good]
        for wrong, rule in (
            (bad, f"Shape mismatch: {name} must have shape [input.shape[axis]]"),
            (typed("float16", 3), f"{name} data type must equal input data type"),
            (typed("float32", 3, 1), f"rank({name}) is not allowed"),
        ):
            inputs[index] = wrong
            assert rule in refusal("batchNormalization", inputs, {})
    assert "variance is required" in refusal("batchNormalization", [x, good, None, None, None], {})
    assert "Axis 3 out of bounds for rank 3" in refusal("batchNormalization", [x, good, good, None, None], {"axis": 3})
    assert "epsilon must be finite" in refusal("batchNormalization", [x, good, good, None, None], {"epsilon": math.inf})
    assert "rank(input) is not allowed" in refusal("batchNormalization", [typed("float32"), good, good, None, None], {})
    assert "input data type is not allowed" in refusal("batchNormalization", [typed("int32", 2, 3), good, good, None, None])
