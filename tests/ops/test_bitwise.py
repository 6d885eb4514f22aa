from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support import Sketch, assert_same, check_op, random_array, run_graph
from webnn_wgpu.ops.bitwise import INTEGERS, OPS
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.ops._def import OpDef
    from webnn_wgpu.runtime.device import Device


def numbers(data_type: str) -> Array:
    limits = np.iinfo(data_type)
    near = [limits.min, limits.min + 1, 0, 1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, limits.max - 1, limits.max]
    near += [-1, -2, -31, -64] if limits.min else []
    return np.concatenate([np.array(near, data_type), random_array(np.random.default_rng(0), data_type, (9,))])


@pytest.mark.parametrize("data_type", INTEGERS)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_operator_and_type(profile_device: Device, op: OpDef, data_type: str) -> None:
    x = numbers(data_type)
    check_op(profile_device, op.name, [np.repeat(x, x.size), np.tile(x, x.size)][: len(op.operands)])


@pytest.mark.parametrize("data_type", INTEGERS)
def test_counts_of_the_width_and_more(device: Device, data_type: str) -> None:
    signed = np.iinfo(data_type).min < 0
    bits = 8 * np.dtype(data_type).itemsize
    top = np.iinfo(data_type).min if signed else 1 << (bits - 1)
    a = np.array([top, top, top, top, 3, 3, 3, 3], data_type)
    counts = [0, 1, bits - 1, bits, 0, 1, bits, 127]
    right = [top, top >> 1, -1 if signed else 1, -1 if signed else 0, 3, 1, 0, 0]
    left = [top, 0, 0, 0, 3, 6, 0, 0]
    for op, wanted in (("x.shift_right", right), ("x.shift_left", left)):
        assert check_op(device, op, [a, np.array(counts, data_type)])[0].tolist() == wanted
    if signed:
        minus = np.array([-1, -2], data_type)
        assert check_op(device, "x.shift_left", [a[4:6], minus])[0].tolist() == [0, 0]
        assert check_op(device, "x.shift_right", [a[:2], minus])[0].tolist() == [-1, -1]


@pytest.mark.parametrize("data_type", INTEGERS)
def test_chains_fuse(device: Device, data_type: str) -> None:
    rng = np.random.default_rng(1)
    s = Sketch()
    x, y = s.input(random_array(rng, data_type, (3, 8))), s.input(random_array(rng, data_type, (8,)))
    shifted = s.apply("x.shift_left", x, s.constant(np.array(3, data_type)))
    mixed = s.apply("x.bitwise_xor", shifted, s.apply("x.bitwise_not", y))
    graph = s.graph(s.apply("x.bitwise_or", s.apply("x.bitwise_and", mixed, x), s.apply("x.shift_right", y, x)))
    assert_same(run_graph(device, graph, s.feeds), interpret(graph, s.feeds))
