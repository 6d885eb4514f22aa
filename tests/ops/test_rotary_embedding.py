from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ops.movers import refusal, typed
from tests.ops.rows import plan_of, run_plan
from tests.support import check_op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

ATOL = {"float32": 1e-6, "float16": 4e-3}


def check(device: Device, inputs: Sequence[Array | None], **attrs: Any) -> Array:
    x = inputs[0]
    assert x is not None
    padded = [*inputs, *(None for _ in range(4 - len(inputs)))]
    return check_op(device, "x.rotary_embedding", padded, attrs, atol=ATOL[str(x.dtype)])[0]


def tables(rows: Sequence[int], half: int, data_type: str = "float32") -> tuple[Array, Array]:
    angles = np.random.default_rng(2).uniform(-3, 3, (*rows, half))
    return np.cos(angles).astype(data_type), np.sin(angles).astype(data_type)


def by_hand(x: Array, cos: Array, sin: Array, *, interleaved: bool = False) -> Array:
    """Every pair of [B, H, S, D] turned as a complex number; tables of [B, S, half]."""
    result = x.astype(np.float64)
    half = cos.shape[-1]
    for b, h, s, j in np.ndindex(*x.shape[:3], half):
        first, second = (2 * j, 2 * j + 1) if interleaved else (j, j + half)
        turned = complex(x[b, h, s, first], x[b, h, s, second]) * complex(cos[b, s, j], sin[b, s, j])
        result[b, h, s, first], result[b, h, s, second] = turned.real, turned.imag
    return result


# Sizes of heads and what is turned of them: in quads, in pairs, of one pair.
SIZES = ((8, 0), (32, 16), (32, 8), (12, 4), (10, 6), (2, 0), (7, 2))


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize(("size", "rotary"), SIZES)
def test_both_layouts(device: Device, size: int, rotary: int, data_type: str, interleaved: bool) -> None:
    x = np.random.default_rng(1).standard_normal((2, 3, 5, size)).astype(data_type)
    cos, sin = tables((2, 5), (rotary or size) // 2, data_type)
    attrs = {"interleaved": interleaved, "rotary_dim": rotary}
    result = check(device, [x, cos, sin], **attrs)
    assert np.abs(result - by_hand(x, cos, sin, interleaved=interleaved)).max() < ATOL[data_type]
    assert np.array_equal(result[..., rotary or size :], x[..., rotary or size :])
    flat = check(device, [x.swapaxes(1, 2).reshape(2, 5, -1), cos, sin], heads=3, **attrs)
    assert np.array_equal(flat, result.swapaxes(1, 2).reshape(2, 5, -1))


@pytest.mark.parametrize("data_type", ["int32", "uint32", "int64"])
def test_positions(device: Device, data_type: str) -> None:
    x = np.random.default_rng(1).standard_normal((2, 3, 5, 8)).astype(np.float32)
    cos, sin = tables((9,), 4)
    positions = np.array([[0, 1, 2, 3, 4], [8, 3, 3, 0, 7]], data_type)
    result = check(device, [x, cos, sin, positions])
    assert np.abs(result - by_hand(x, cos[positions], sin[positions])).max() < 1e-6
    one = check(device, [x, cos, sin, positions[1:]])
    assert np.abs(one - by_hand(x, *(np.repeat(t[positions[1:]], 2, axis=0) for t in (cos, sin)))).max() < 1e-6
    beyond = check(device, [x, cos, sin, np.full((2, 1), 99, data_type)])
    assert np.array_equal(beyond, check(device, [x, cos, sin, np.full((), 8, data_type)]))


def test_tables_that_broadcast(device: Device) -> None:
    x = np.random.default_rng(1).standard_normal((2, 3, 5, 8)).astype(np.float32)
    cos, sin = tables((5,), 4)
    expected = check(device, [x, *(np.repeat(t[None], 2, axis=0) for t in (cos, sin))])
    assert np.array_equal(check(device, [x, cos, sin]), expected)
    assert np.array_equal(check(device, [x, cos[None], sin[None]]), expected)
    check(device, [x, cos[0], sin[0]])


def test_turning_back(device: Device) -> None:
    x = np.random.default_rng(3).standard_normal((1, 2, 4, 64)).astype(np.float32)
    angles = np.arange(4)[:, None] * 10000.0 ** (-np.arange(32) / 32)
    cos, sin = (f(angles).astype(np.float32) for f in (np.cos, np.sin))
    turned = check(device, [x, cos, sin])
    assert math.isclose(float((turned**2).sum()), float((x**2).sum()), rel_tol=1e-5)
    assert np.allclose(check(device, [turned, cos, -sin]), x, atol=1e-6)


def test_profiles(profile_device: Device) -> None:
    for data_type in ATOL:
        for size, rotary in SIZES[:4]:
            x = np.random.default_rng(1).standard_normal((1, 3, 5, size)).astype(data_type)
            cos, sin = tables((7,), (rotary or size) // 2, data_type)
            check(profile_device, [x, cos, sin, np.arange(5, dtype=np.int64)], rotary_dim=rotary)


def test_tensors_larger_than_a_binding(device: Device) -> None:
    x = np.random.default_rng(1).standard_normal((2, 3, 50, 8)).astype(np.float32)
    cos, sin = tables((50,), 4)
    caps = replace(device.caps, limits=(*device.caps.limits, ("max-storage-buffer-binding-size", 1024)))
    plan = plan_of(caps, "x.rotary_embedding", [x, cos, sin, None])
    assert len(plan.dispatches) > 1
    assert np.array_equal(run_plan(device, plan, [x, cos, sin]), check(device, [x, cos, sin]))


def test_refusals() -> None:
    def message(*types: Any, **attrs: Any) -> str:
        return refusal("x.rotary_embedding", [*types, *(None for _ in range(4 - len(types)))], attrs)

    x, table = typed("float32", 1, 2, 5, 8), typed("float32", 5, 4)
    assert message(x, table, typed("float32", 5, 3)) == (
        "ext.rotary_embedding('here'): Incompatible shapes: cos and sin must have the same shape; got input "
        "float32[1, 2, 5, 8], cos float32[5, 4], sin float32[5, 3]; allowed: [5, 4]"
    )
    assert "must be half of rotary_dim" in message(x, table, table, rotary_dim=6)
    assert "rotary_dim must be even" in message(x, table, table, rotary_dim=10)
    assert "rotary_dim must be even" in message(x, table, table, rotary_dim=3)
    assert "heads is required" in message(typed("float32", 1, 5, 16), table, table)
    assert "heads must divide" in message(typed("float32", 1, 5, 16), table, table, heads=3)
    assert "heads must be input.shape[1]" in message(x, table, table, heads=3)
    assert "heads must be positive" in message(typed("float32", 1, 5, 16), table, table, heads=0)
    assert "cos must broadcast to" in message(x, *[typed("float32", 4, 4)] * 2)
    assert "cos must have rank 2" in message(x, *[typed("float32", 1, 5, 4)] * 2, typed("int32", 1, 5))
    assert "positions must broadcast" in message(x, table, table, typed("int32", 4))
