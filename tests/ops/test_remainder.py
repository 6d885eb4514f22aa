from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support import assert_same, check_op, random_array
from webnn_wgpu.core.data_types import ANY, FLOATS
from webnn_wgpu.ops.remainder import OPS

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.ops._def import OpDef
    from webnn_wgpu.runtime.device import Device

INF, NAN = math.inf, math.nan


def numbers(data_type: str) -> Array:
    rng = np.random.default_rng(0)
    if data_type in FLOATS:
        near = [0.0, -0.0, 1, -1, 3, -3, 0.1, -0.1, 1e-3, 2.5, 1e4, -65504, 5e-5, INF, -INF, NAN]
        near += [3e38, -1e-37, 1e30] if data_type == "float32" else []
        return np.concatenate([np.array(near, data_type), random_array(rng, data_type, (9,))])
    limits = np.iinfo(data_type)
    near = [limits.min, limits.min + 1, 0, 1, 2, 3, 7, limits.max - 1, limits.max] + ([-1, -2, -3] if limits.min else [])
    return np.concatenate([np.array(near, data_type), random_array(rng, data_type, (9,))])


@pytest.mark.parametrize("data_type", ANY)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_operator_and_type(profile_device: Device, op: OpDef, data_type: str) -> None:
    x = numbers(data_type)
    check_op(profile_device, op.name, [np.repeat(x, x.size), np.tile(x, x.size)])


@pytest.mark.parametrize("data_type", [t for t in ANY if t not in FLOATS])
def test_integers(device: Device, data_type: str) -> None:
    a, b = np.array([7, 7, 6, 0], data_type), np.array([4, 0, 3, 5], data_type)
    for name in ("x.mod", "x.fmod"):
        assert check_op(device, name, [a, b])[0].tolist() == [3, 0, 0, 0]
    if np.iinfo(data_type).min:
        a, b = np.array([-7, 7, -7, np.iinfo(data_type).min], data_type), np.array([4, -4, -4, -1], data_type)
        assert check_op(device, "x.mod", [a, b])[0].tolist() == [1, -1, -3, 0]
        assert check_op(device, "x.fmod", [a, b])[0].tolist() == [-3, 3, -3, 0]


def test_floats(device: Device) -> None:
    a = np.float32([5.5, -5.5, 5.5, -5.5, -4, 4, -1, 1, INF, 1, 1e30, NAN])
    b = np.float32([2, 2, -2, -2, 2, -2, INF, -INF, 1, 0, 3, 1])
    far = float(np.fmod(np.float32(1e30).astype(np.float64), 3))
    expected = {
        "x.fmod": [1.5, -1.5, 1.5, -1.5, -0.0, 0, -1, 1, NAN, NAN, far, NAN],
        "x.mod": [1.5, 0.5, -0.5, -1.5, 0, -0.0, INF, -INF, NAN, NAN, far, NAN],
    }
    for name, wanted in expected.items():
        (actual,) = check_op(device, name, [a, b])
        assert_same({"": actual}, {"": np.float32(wanted)})
