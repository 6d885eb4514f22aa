from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support import Sketch, assert_same, check_op, random_array, run_graph
from webnn_wgpu.core.data_types import ANY, FLOATS, numpy_dtype
from webnn_wgpu.core.errors import MLTypeError
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ops import OPS
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

INF, NAN = math.inf, math.nan
INTEGERS = tuple(t for t in ANY if t not in FLOATS)


def elements(data_type: str) -> Array:
    """Return values at and around the ends of every type, as far as the data type holds them."""
    dtype = numpy_dtype(data_type)
    rng = np.random.default_rng(0)
    edges = [0, 1, 2, 3, 127, 128, 255, 256, 300, 2048, 2049, 2051, 65504, 65519, 65520, 70000, 2**24 + 1, 2**24 + 3]
    edges += [2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1]
    edges += [-n for n in edges]
    if data_type in FLOATS:
        fractions = [0.5, 1.5, 2.5, 0.99, 127.9, 255.9, 43.5, 1e-3, 6e-8, 3e-8, 1e38]
        values = [*edges, *fractions, *(-f for f in fractions), INF, -INF, NAN, -0.0]
        with np.errstate(over="ignore"):
            return np.concatenate([np.array(values, np.float64).astype(dtype), random_array(rng, data_type, (9,), 200.0)])
    limits = np.iinfo(dtype)  # pyright: ignore[reportArgumentType] - an integer type
    held = [n for n in edges if limits.min <= n <= limits.max] + [int(limits.min), int(limits.max)]
    return np.concatenate([np.array(held, dtype), random_array(rng, data_type, (9,))])


@pytest.mark.parametrize(("source", "target"), list(itertools.product(ANY, ANY)))
def test_every_pair_of_types(profile_device: Device, source: str, target: str) -> None:
    graph_input = elements(source)
    s = Sketch()
    graph = s.graph(s.apply("cast", s.input(graph_input), data_type=target))
    # Without the passes: they drop a cast to the same type.
    actual = run_graph(profile_device, graph, s.feeds, disabled_passes=("drop_identities", "fold_constants"))
    assert_same(actual, interpret(graph, s.feeds))


@pytest.mark.parametrize(
    ("source", "values", "target", "expected"),
    [
        (
            "float32",
            [65519.0, 65520.0, -65520.0, 1e-7, -0.0, NAN, INF],
            "float16",
            [65504, INF, -INF, np.float16(1e-7), -0.0, NAN, INF],
        ),
        ("float32", [1 + 2**-11, 1 + 3 * 2**-11], "float16", [1, 1 + 2**-9]),
        ("float32", [-43.5, 43.5, 0.99, NAN, INF, -INF, 3e9], "int32", [-43, 43, 0, 0, 2**31 - 1, -(2**31), 2**31 - 1]),
        ("float32", [-1.0, 255.9, 256.0, NAN, -0.5], "uint8", [0, 255, 255, 0, 0]),
        ("float32", [-129.0, -128.9, 127.9, 128.0], "int8", [-128, -128, 127, 127]),
        ("float32", [-1.0, 4294967040.0, 4294967296.0], "uint32", [0, 4294967040, 2**32 - 1]),
        ("float32", [2.0**63, -(2.0**63), 2.0**62, NAN], "int64", [2**63 - 1, -(2**63), 2**62, 0]),
        ("float32", [2.0**64, 2.0**63, -1.0], "uint64", [2**64 - 1, 2**63, 0]),
        ("float16", [INF, -INF, NAN, 65504.0], "int32", [2**31 - 1, -(2**31), 0, 65504]),
        ("int32", [70000, -70000, 2049, 2051, 65519, 65520], "float16", [INF, -INF, 2048, 2052, 65504, INF]),
        ("int32", [2**24 + 1, 2**24 + 3, 2**31 - 1], "float32", [2**24, 2**24 + 4, 2**31]),
        ("uint32", [3079483033, 2**24 + 1, 2**24 + 3, 2**32 - 1], "float32", [3079483136, 2**24, 2**24 + 4, 2**32]),
        ("int64", [2**24 + 1, 2**60 + 2**36, 2**60 + 2**36 + 1], "float32", [2**24, 2.0**60, 2.0**60 + 2.0**37]),
        ("uint64", [2**64 - 1, 2**63], "float32", [2.0**64, 2.0**63]),
        ("int8", [-1, -128], "uint8", [255, 128]),
        ("int8", [-1, 127], "uint32", [2**32 - 1, 127]),
        ("int8", [-1, -128], "uint64", [2**64 - 1, 2**64 - 128]),
        ("int8", [-1, -128], "int64", [-1, -128]),
        ("int32", [300, -1, 200], "int8", [44, -1, -56]),
        ("int32", [-1], "uint64", [2**64 - 1]),
        ("uint32", [2**32 - 1], "int64", [2**32 - 1]),
        ("uint32", [2**32 - 1], "int32", [-1]),
        ("uint64", [2**63 + 5, 2**32 + 7], "int32", [5, 7]),
        ("int64", [-(2**40) - 1], "int32", [-1]),
    ],
)
def test_rules(device: Device, source: str, values: list[float], target: str, expected: list[float]) -> None:
    (actual,) = check_op(device, "cast", [np.array(values, source)], {"data_type": target}, tolerance=0)
    assert_same({"": actual}, {"": np.array(expected, target)})


def test_a_pair_of_casts_is_a_real_rounding(profile_device: Device) -> None:
    s = Sketch()
    x = s.input(np.array([1.0001, 65520.0, 6e-8, 1e-9, -0.0], np.float32))
    graph = s.graph(s.apply("cast", s.apply("cast", x, data_type="float16"), data_type="float32"))
    actual = run_graph(profile_device, graph, s.feeds)
    assert_same(actual, {"0": np.array([1, INF, np.float16(6e-8), 0, -0.0], np.float32)})


# ---------------------------------------------------------------------------------------------------------------- where


@pytest.mark.parametrize("data_type", ANY)
def test_where_selects_in_every_type(device: Device, data_type: str) -> None:
    rng = np.random.default_rng(1)
    condition = np.array([0, 1, 2, 255, 0, 128, 0], np.uint8)
    a, b = random_array(rng, data_type, (3, 7)), random_array(rng, data_type, (3, 1))
    (actual,) = check_op(device, "where", [condition, a, b], tolerance=0)
    assert_same({"": actual}, {"": np.where(condition != 0, a, b)})


@pytest.mark.parametrize("data_type", FLOATS)
def test_what_is_not_selected_does_not_leak(device: Device, data_type: str) -> None:
    condition = np.array([1, 0, 1, 0], np.uint8)
    values = np.array([1.0, NAN, -0.0, INF], data_type)
    (actual,) = check_op(device, "where", [condition, values, np.zeros((), data_type)])
    assert_same({"": actual}, {"": np.array([1, 0, -0.0, 0], data_type)})
    (actual,) = check_op(device, "where", [condition, np.zeros((), data_type), values])
    assert_same({"": actual}, {"": np.array([0, NAN, 0, INF], data_type)})


def test_where_broadcasts_all_three(device: Device) -> None:
    rng = np.random.default_rng(2)
    condition = rng.integers(0, 2, (4, 1, 1)).astype(np.uint8)
    (actual,) = check_op(device, "where", [condition, random_array(rng, "float32", (3, 1)), random_array(rng, "float32", (8,))])
    assert actual.shape == (4, 3, 8)


def test_where_refuses_other_types() -> None:
    condition, x = TensorType("uint8", (2,)), TensorType("int8", (2,))
    with pytest.raises(MLTypeError, match="falseValue data type must equal trueValue data type; got falseValue uint8"):
        OPS["where"].check([condition, x, condition], {})
