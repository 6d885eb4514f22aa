from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import assert_same, check_op, op_graph, random_array, run_graph
from webnn_wgpu.core.data_types import ANY
from webnn_wgpu.core.errors import MLTypeError
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops.top_k import BLOCK
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

INF, NAN = math.inf, math.nan
NAME = "x.top_k"


def check(device: Device, x: Array, k: int, **attrs: Any) -> tuple[Array, Array]:
    """Compare with the reference, values and indices bit for bit but for NaN, and with what numpy's own sort gives."""
    graph = op_graph(NAME, [x], {"k": k, **attrs})
    expected = interpret(graph, {"0": x})
    actual = run_graph(device, graph, {"0": x}, disabled_passes=("fold_constants",))
    assert_same(actual, expected)
    axis = attrs.get("axis", -1)
    own = np.sort(x, axis)
    own = np.flip(own, axis) if attrs.get("largest", True) else own
    np.testing.assert_array_equal(actual["0"], own.take(range(k), axis))
    return actual["0"], actual["1"]


@pytest.mark.parametrize("data_type", ANY)
@pytest.mark.parametrize("largest", [True, False])
def test_every_type(profile_device: Device, data_type: str, largest: bool) -> None:
    rng = np.random.default_rng(0)
    x = random_array(rng, data_type, (3, 37))
    # Equal elements: the lowest index comes first.
    x[:, 20:] = x[:, :17]
    check(profile_device, x, 11, largest=largest)


@pytest.mark.parametrize("data_type", ["float32", "uint8", "int64", "float16"])
@pytest.mark.parametrize(("shape", "axis"), [((5,), 0), ((2, 3, 5), 1), ((2, 3, 5), -3), ((1, 7, 1), 1), ((3, 300, 3), 1)])
def test_axes(profile_device: Device, shape: tuple[int, ...], axis: int, data_type: str) -> None:
    x = random_array(np.random.default_rng(1), data_type, shape)
    for k in {1, shape[axis] // 2 + 1, shape[axis]}:
        check(profile_device, x, k, axis=axis)
        check(profile_device, x, k, axis=axis, largest=False, indices_data_type="int32")


@pytest.mark.parametrize("length", [1, 2, 255, 256, 257, 511, 513, 1000, 4099])
def test_lengths(device: Device, length: int) -> None:
    rng = np.random.default_rng(length)
    x = rng.integers(0, 50, (2, length)).astype(np.float32)
    for k in sorted({1, min(3, length), min(100, length), min(128, length), min(129, length), -(-length // 2), length}):
        check(device, x, k)
    check(device, x, length, largest=False)


@pytest.mark.parametrize("k", [1, 40, 1000, 1 << 17])
def test_long_rows(device: Device, k: int) -> None:
    x = np.random.default_rng(2).standard_normal(1 << 17).astype(np.float32)
    check(device, x, k)


def test_a_row_of_a_million(device: Device) -> None:
    x = np.random.default_rng(3).integers(0, 1 << 16, 1 << 20).astype(np.int32)
    check(device, x, 1 << 20)


def test_nan_is_the_largest_and_zeros_are_equal(profile_device: Device) -> None:
    x = np.float32([0.0, NAN, -0.0, INF, -INF, 1, 0.0, np.float32(1e-45), -NAN])
    values, indices = check(profile_device, x, 9)
    assert indices.tolist() == [1, 8, 3, 5, 7, 0, 2, 6, 4]
    assert_same({"": values}, {"": x[indices]})
    assert np.signbit(values[5:8]).tolist() == [False, True, False]
    assert check(profile_device, x, 9, largest=False)[1].tolist() == [4, 0, 2, 6, 7, 5, 3, 1, 8]


def test_ends_of_integers(device: Device) -> None:
    for data_type in ("int64", "uint64", "int32", "uint32", "int8", "uint8"):
        limits = np.iinfo(data_type)
        x = np.array([limits.max, 0, limits.min, 1, limits.max - 1, limits.min + 1], data_type)
        check_op(device, NAME, [x], {"k": 6})
        check_op(device, NAME, [x], {"k": 6, "largest": False})


@pytest.mark.parametrize(("k", "most"), [(1, 5), (5, 5), (BLOCK, 14), (1 << 20, 14)])
def test_few_elements_take_few_passes(device: Device, k: int, most: int) -> None:
    graph = op_graph(NAME, [np.zeros(1 << 20, np.float32)], {"k": k})
    assert len(make_plan(graph, device.target).dispatches) <= most


def test_refusals() -> None:
    def refusal(shape: tuple[int, ...], **attrs: Any) -> str:
        with pytest.raises(MLTypeError) as raised:
            OPS[NAME].check([TensorType("float32", shape)], attrs, "here")
        return str(raised.value)

    assert "ext.top_k('here'): k must be a number of elements along axis; got k=4; allowed: 1..3" in refusal((2, 3), k=4)
    assert "k must be a number of elements" in refusal((3,), k=0)
    assert "axis must be < rank(input)" in refusal((3,), k=1, axis=1)
    assert "axis must be a dimension of input; got axis=-2; allowed: -1..0" in refusal((3,), k=1, axis=-2)
    assert "rank" in refusal((), k=1)
    assert "indices_data_type must be a data type" in refusal((3,), k=1, indices_data_type="uint32")
