from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ops.movers import refusal, typed
from tests.ops.rows import run_plan
from tests.support import check_op, op_graph
from webnn_wgpu.costs import Target
from webnn_wgpu.plan import make_plan

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device


def factors(rows: int, K: int, N: int, data_type: Any, zero: int) -> list[Array]:
    rng = np.random.default_rng(K + N)
    limits = np.iinfo(data_type)
    a = rng.integers(limits.min, limits.max, (rows, K), data_type, endpoint=True)
    return [a, rng.integers(-128, 128, (K, N)).astype(np.float32), np.array([zero], data_type)]


@pytest.mark.parametrize(("data_type", "zero"), [(np.int8, -128), (np.int8, 5), (np.uint8, 0), (np.uint8, 255)])
def test_sums_are_exact(device: Device, data_type: Any, zero: int) -> None:
    # One row, rows that fill no tile, more than a tile; columns that are no quads; sums longer than a workgroup's shares.
    for rows, K, N in ((1, 16, 8), (3, 64, 7), (8, 48, 36), (11, 32, 5), (2, 4112, 4)):
        check_op(device, "integerProduct", factors(rows, K, N, data_type, zero), constants={1})


def test_sums_without_subgroups(device: Device) -> None:
    caps = replace(device.caps, features=device.caps.features - {"subgroup"})
    for rows in (1, 8):
        inputs = factors(rows, 96, 20, np.uint8, 7)
        plan = make_plan(op_graph("integerProduct", inputs, constants={1}), Target.of(caps))
        assert not plan.dispatches[0].spec.param("subgroups")
        wanted = (inputs[0].astype(np.int64) - 7) @ inputs[1].astype(np.int64)
        np.testing.assert_array_equal(run_plan(device, plan, [inputs[0], None, inputs[2]]), wanted)


def test_refusals() -> None:
    def message(*types: Any) -> str:
        return refusal("integerProduct", types)

    zero = typed("uint8", 1)
    assert "the last dimension of a must equal" in message(typed("uint8", 2, 32), typed("float32", 16, 4), zero)
    assert "a multiple of 16 terms" in message(typed("uint8", 2, 8), typed("float32", 8, 4), zero)
    assert "zeroPoint must be one number" in message(typed("uint8", 2, 16), typed("float32", 16, 4), typed("uint8", 2))
