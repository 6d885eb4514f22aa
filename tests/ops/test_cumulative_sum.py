from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.movers import refusal, typed
from tests.ops.rows import VARIANTS, as_hardware, plan_of, positive, run_plan, runs, variants_of
from tests.rotation import first_of
from tests.support import check_op, op_graph
from tests.targets import SOFTWARE
from webnn_wgpu.accuracy.distance import assert_within
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.errors import OperationError
from webnn_wgpu.ops import OPS
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

TYPES = OPS["cumulativeSum"].operands[0].data_types
WAYS = tuple({"exclusive": e, "reversed": r} for e, r in product((False, True), repeat=2))
# One row, quads, ragged, columns in quads, columns, one element, a dimension of size 1 within and innermost.
SHAPES = ((7,), (3, 64), (5, 33), (2, 40, 8), (2, 40, 3), (1,), (4, 3, 1, 2), (3, 1), (2, 37, 1))


def check(
    device: Device, x: Array, axis: int, way: Mapping[str, bool], variant: str | None = None, tolerance: float = 8
) -> Array:
    forced = {"cumulative_sum": variant} if variant else None
    return check_op(device, "cumulativeSum", [x], {"axis": axis, **way}, forced=forced, tolerance=tolerance)[0]


def of(device: Device, values: list[Any], data_type: str = "float32", variant: str | None = None, **way: bool) -> list[Any]:
    return check(device, np.array(values, data_type), 0, way, variant).tolist()


@pytest.mark.repeats
@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("variant", [*VARIANTS, None])
def test_variants(device: Device, data_type: str, variant: str | None) -> None:
    if variant and not runs(variant, data_type):
        return
    rng = np.random.default_rng(1)
    for shape, way in product(SHAPES, WAYS):
        for axis in range(len(shape)):
            check(device, positive(rng, data_type, shape), axis, way, variant, 40)


@pytest.mark.parametrize("data_type", first_of(TYPES))
def test_profiles(profile_device: Device, data_type: str) -> None:
    rng = np.random.default_rng(2)
    for shape, axis in (((3, 70), 1), ((3, 64), 1), ((33, 8), 0), ((1, 20_000), 1), ((20_001,), 0), ((9000, 4), 0)):
        for way in WAYS:
            x = positive(rng, data_type, shape)
            check(profile_device, x, axis, way, tolerance=40)
            check(profile_device, x, axis, way, "workgroup", tolerance=40)


def test_by_example(device: Device) -> None:
    for data_type, variant in product(TYPES, ("plain", "workgroup")):
        assert of(device, [1, 2, 3, 4], data_type, variant) == [1, 3, 6, 10]
        assert of(device, [1, 2, 3, 4], data_type, variant, exclusive=True) == [0, 1, 3, 6]
        assert of(device, [1, 2, 3, 4], data_type, variant, reversed=True) == [10, 9, 7, 4]
        assert of(device, [1, 2, 3, 4], data_type, variant, exclusive=True, reversed=True) == [9, 7, 4, 0]
    x = np.arange(1, 7, dtype=np.int32).reshape(2, 3)
    assert check(device, x, 0, {}).tolist() == [[1, 2, 3], [5, 7, 9]]
    assert check(device, x, 1, {}).tolist() == [[1, 3, 6], [4, 9, 15]]


def test_half_precision_is_rounded_once(device: Device) -> None:
    # Beyond 2048 a half's own sums stop at adding 1.
    assert of(device, [1.0] * 5000, "float16")[-1] == 5000
    assert of(device, [60000.0, 60000.0, -60000.0], "float16") == [60000, math.inf, 60000]


def test_integers_wrap(device: Device) -> None:
    assert of(device, [2**31 - 1, 1, 1], "int32") == [2**31 - 1, -(2**31), 1 - 2**31]
    assert of(device, [2**32 - 1, 2], "uint32") == [2**32 - 1, 1]
    assert of(device, [2**63 - 1, 1], "int64") == [2**63 - 1, -(2**63)]
    assert of(device, [2**64 - 1, 2], "uint64") == [2**64 - 1, 1]
    assert of(device, [2**53, 1, 1], "int64") == [2**53, 2**53 + 1, 2**53 + 2]


@pytest.mark.parametrize("variant", first_of([None, *VARIANTS]))
def test_long_sums_stay_accurate(device: Device, variant: str | None) -> None:
    # A serial float32 sum of these is off by thousands of ULP.
    x = np.random.default_rng(3).uniform(0.5, 1.5, 1_000_003).astype(np.float32)
    for way in WAYS:
        check(device, x, 0, way, variant, 48)
    check(device, x[:1_000_000], 0, {}, variant, 48)
    check(device, x[:999_936].reshape(-1, 8), 0, {"reversed": True}, variant, 48)
    check(device, x[:999_999].reshape(3, -1, 3), 1, {"exclusive": True}, variant, 48)
    bits = np.random.default_rng(4).integers(-(2**31), 2**31, 300_001).astype(np.int32)
    check(device, bits, 0, {}, variant)


def test_long_rows_are_cut_into_parts(device: Device) -> None:
    x = np.zeros(1_000_000, np.float32)
    for caps in (device.caps, as_hardware(device.caps), Caps(adapter_type="CPU"), Caps()):
        plan = plan_of(caps, "cumulativeSum", [x], {"axis": 0})
        templates = [d.spec.template for d in plan.dispatches]
        assert templates[0] == "reduce"
        assert set(templates[1:]) == {"cumulative_sum"}
        last = plan.dispatches[-1]
        assert "parts" in last.reason
        assert math.prod(last.grid) > 1 or last.spec.param("rows").lanes == 1


@pytest.mark.parametrize("variant", first_of(VARIANTS))
def test_more_rows_than_a_grid_dimension(device: Device, variant: str) -> None:
    rows = 70_001 if variant != "plain" else 65536 * 64 + 3
    x = np.random.default_rng(5).integers(0, 100, (rows, 3)).astype(np.int32)
    plan = plan_of(as_hardware(device.caps), "cumulativeSum", [x], {"axis": 1}, {"cumulativeSum": variant})
    assert plan.dispatches[0].grid[1] > 1
    assert_within(run_plan(device, plan, [x]), np.cumsum(x, axis=1, dtype=np.int32), "ULP", 0)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("length", [6, 40, 4099, 70_000])
def test_nan_and_infinity(device: Device, data_type: str, length: int, variant: str) -> None:
    nan, inf = math.nan, math.inf
    x = positive(np.random.default_rng(6), "float32", (6, length))
    x = (x / length if data_type == "float16" else x).astype(data_type)
    x[0, 3], x[1, length - 1], x[2, 0], x[3, length // 2] = nan, inf, -inf, np.copysign(nan, -1.0)
    x[4, 1], x[4, length - 2] = inf, -inf
    x[5] = inf
    for way in WAYS:
        check(device, x, 1, way, variant, 40)
        if length < 5000:
            check(device, np.ascontiguousarray(np.moveaxis(x, 0, 1)), 0, way, variant, 40)


@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=4),
    st.data(),
    st.sampled_from([*VARIANTS, None]),
    st.sampled_from(["float32", "int32", "uint64"]),
    st.sampled_from(WAYS),
)
def test_any_shape(
    device: Device, shape: list[int], data: st.DataObject, variant: str | None, data_type: str, way: Mapping[str, bool]
) -> None:
    variant = variant if variant is None or runs(variant, data_type) else "plain"
    axis = data.draw(st.integers(0, len(shape) - 1))
    shape[axis] *= data.draw(st.sampled_from([1, 1, 4, 11]))
    # Sums of small integers are exact.
    x = np.random.default_rng(sum(shape)).integers(0, 50, shape).astype(data_type)
    wanted = np.zeros_like(x)
    order = range(shape[axis])
    for i in order:
        for j in order:
            before = j >= i if way["reversed"] else j <= i
            if before and not (way["exclusive"] and i == j):
                wanted[(slice(None),) * axis + (i,)] += x.take(j, axis)
    attrs = {"axis": axis, **way}
    assert np.array_equal(interpret(op_graph("cumulativeSum", [x], attrs), {"0": x})["0"], wanted)
    assert np.array_equal(check(device, x, axis, way, variant, 0), wanted)


def test_choice_of_variant() -> None:
    def chosen(caps: Caps, shape: tuple[int, ...], axis: int, data_type: str = "float32") -> list[str]:
        return variants_of(plan_of(caps, "cumulativeSum", [np.zeros(shape, data_type)], {"axis": axis}))

    hardware, plain_cpu = as_hardware(SOFTWARE), Caps(adapter_type="CPU")
    assert chosen(SOFTWARE, (64, 128), 1) == ["subgroup"]
    assert chosen(SOFTWARE, (64, 128), 1, "int64") == ["plain"]
    assert chosen(hardware, (64, 128), 1) == ["workgroup"]
    assert chosen(plain_cpu, (64, 128), 1) == ["plain"]
    for caps in (SOFTWARE, hardware, plain_cpu):
        assert chosen(caps, (128, 64), 0) == ["plain"]
        assert chosen(caps, (128, 8), 1) == ["plain"]


def test_forced_variant_that_cannot_be_had() -> None:
    for data_type, caps in (("float32", Caps()), ("int32", Caps(adapter_type="CPU"))):
        with pytest.raises(OperationError) as refused:
            plan_of(caps, "cumulativeSum", [np.zeros(64, data_type)], {"axis": 0}, {"cumulativeSum": "subgroup"})
        assert "cumulative_sum('test'): the forced kernel variant cannot be had; got cumulativeSum=subgroup" in str(
            refused.value
        )


def test_refusals() -> None:
    assert refusal("cumulativeSum", [typed("float32", 2, 3)], {"axis": 2}) == (
        "cumulative_sum('here'): axis must be < rank(input): Axis 2 out of bounds for rank 2; "
        "got axis=2, input float32[2, 3]; allowed: 0..1. See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-cumulativesum"
    )
    assert "axis is required" in refusal("cumulativeSum", [typed("float32", 2)])
    assert "axis must be an unsigned 32-bit integer; got -1" in refusal("cumulativeSum", [typed("float32", 2)], {"axis": -1})
    assert "rank(input) is not allowed; got input float32[] of rank 0; allowed: rank 1..8" in refusal(
        "cumulativeSum", [typed("float32")], {"axis": 0}
    )
    for data_type in ("int8", "uint8"):
        assert "input data type is not allowed" in refusal("cumulativeSum", [typed(data_type, 2)], {"axis": 0})
    assert "unknown option 'reverse'" in refusal("cumulativeSum", [typed("int32", 2)], {"axis": 0, "reverse": True})


# products ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("variant", [*VARIANTS, None])
def test_products(device: Device, data_type: str, variant: str | None) -> None:
    if variant and not runs(variant, data_type):
        return
    rng = np.random.default_rng(11)
    forced = {"cumulative_sum": variant} if variant else None
    for shape, way in product(((7,), (64,), (9001,), (2, 40, 8), (2, 40, 3)), (WAYS[0], WAYS[-1])):
        attrs = {"axis": len(shape) // 2, **way}
        if data_type in ("float32", "float16"):
            x = np.exp(rng.standard_normal(shape) * 0.02).astype(data_type)
            # Roundings of the factors of a product add up like steps in random directions.
            tolerance = min(100.0, 2.0 * shape[len(shape) // 2] ** 0.5)
            check_op(device, "x.cumulative_product", [x], attrs, forced=forced, tolerance=tolerance)
        else:
            # Odd numbers: an even one would soon leave nothing but zeros.
            x = (rng.integers(0, 100, shape) * 2 + 1).astype(data_type)
            check_op(device, "x.cumulative_product", [x], attrs, forced=forced)


def test_products_by_example(profile_device: Device) -> None:
    def of_product(values: list[Any], data_type: str, **way: bool) -> list[Any]:
        return check_op(profile_device, "x.cumulative_product", [np.array(values, data_type)], {"axis": 0, **way})[0].tolist()

    for data_type in TYPES:
        assert of_product([1, 2, 3, 4], data_type) == [1, 2, 6, 24]
        assert of_product([5, 2, 3], data_type, exclusive=True) == [1, 5, 10]
        assert of_product([1, 2, 3, 4], data_type, exclusive=True, reversed=True) == [24, 12, 4, 1]
    assert of_product([2**62, 2, 2, 3], "int64") == [2**62, -(2**63), 0, 0]
    assert of_product([2, 0, math.inf], "float32")[:2] == [2, 0]
