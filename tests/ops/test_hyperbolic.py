from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support import assert_same, check_op
from webnn_wgpu.core.data_types import FLOATS
from webnn_wgpu.ops.hyperbolic import OPS

if TYPE_CHECKING:
    from webnn_wgpu.ops._def import OpDef
    from webnn_wgpu.runtime.device import Device

INF, NAN = math.inf, math.nan
SPECIALS = (0.0, -0.0, 1.0, -1.0, 1.5, -1.5, 0.5, -0.5, 10.0, -10.0, 88.0, 89.2, -89.2, 1e4, INF, -INF, NAN)


@pytest.mark.parametrize("data_type", FLOATS)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_operator_and_type(profile_device: Device, op: OpDef, data_type: str) -> None:
    ordinary = np.concatenate([np.linspace(-1, 1, 101), np.linspace(-9, 9, 100)])
    check_op(profile_device, op.name, [np.concatenate([SPECIALS, ordinary]).astype(data_type)])


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("x.acos", [1, -1, 0, 1.001, NAN], [0, math.pi, math.pi / 2, NAN, NAN]),
        ("x.acosh", [1, 0.5, -INF, INF], [0, NAN, NAN, INF]),
        ("x.asin", [-0.0, 1, -1, INF], [-0.0, math.pi / 2, -math.pi / 2, NAN]),
        ("x.asinh", [-0.0, INF, -INF, NAN], [-0.0, INF, -INF, NAN]),
        ("x.atan", [-0.0, INF, -INF, NAN], [-0.0, math.pi / 2, -math.pi / 2, NAN]),
        ("x.atanh", [-0.0, 1, -1, 1.5, -INF], [-0.0, INF, -INF, NAN, NAN]),
        ("x.cosh", [0, 90, -90, -INF, NAN], [1, INF, INF, INF, NAN]),
        ("x.sinh", [-0.0, 90, -90, -INF, NAN], [-0.0, INF, -INF, -INF, NAN]),
    ],
)
def test_special_values(device: Device, name: str, given: list[float], expected: list[float]) -> None:
    (actual,) = check_op(device, name, [np.float32(given)])
    assert_same({"": actual}, {"": np.float32(expected)})
