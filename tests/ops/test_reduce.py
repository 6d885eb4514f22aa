from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.movers import refusal, typed
from tests.ops.products import ENDINGS, Chain, Ending, check_fused
from tests.ops.reduced import Reduced
from tests.ops.rows import VARIANTS, as_hardware, plan_of, positive, run_plan, runs, variants_of
from tests.support import PROFILES, check_op, op_graph, open_profile, run_graph
from tests.targets import SOFTWARE
from webnn_wgpu.accuracy.distance import assert_within
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.data_types import FLOATS
from webnn_wgpu.core.errors import OperationError
from webnn_wgpu.ops import OPS
from webnn_wgpu.passes import run_passes
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

NAMES = (
    "reduceL1",
    "reduceL2",
    "reduceLogSum",
    "reduceLogSumExp",
    "reduceMax",
    "reduceMean",
    "reduceMin",
    "reduceProduct",
    "reduceSum",
    "reduceSumSquare",
)
TYPED = [(name, t, v) for name in NAMES for t in OPS[name].operands[0].data_types for v in VARIANTS if runs(v, t)]

# Ragged rows, rows of quads, columns of quads, columns, two dimensions that do not merge (innermost and not).
CASES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((3, 37), (1,)),
    ((5, 136), (1,)),
    ((2, 35, 8), (1,)),
    ((3, 40, 5), (1,)),
    ((2, 3, 5, 12), (1, 3)),
    ((4, 3, 9, 2), (0, 2)),
)


def tolerance(name: str, length: int) -> float:
    """The ULP that the conformance tests allow for rows of some length."""
    return {
        "reduceMax": 0,
        "reduceMin": 0,
        "reduceMean": length + 2,
        "reduceL2": 2 * length + 1,
        "reduceSumSquare": 2 * length,
        "reduceLogSum": length + 18,
        "reduceLogSumExp": 2 * length + 18,
    }.get(name, length)


def check(device: Device, name: str, x: Array, axes: Any = None, variant: str | None = None, **attrs: Any) -> Array:
    reduced = range(x.ndim) if axes is None else axes
    allowed = tolerance(name, math.prod(x.shape[d] for d in reduced))
    forced = {"reduce": variant} if variant else None
    return check_op(device, name, [x], {"axes": axes, **attrs}, forced=forced, tolerance=allowed)[0]


@pytest.mark.repeats
@pytest.mark.parametrize(("name", "data_type", "variant"), TYPED)
def test_variants(device: Device, name: str, data_type: str, variant: str) -> None:
    rng = np.random.default_rng(1)
    shapes = CASES if data_type in ("float32", "uint8") else CASES[:1]
    for shape, axes in shapes:
        check(device, name, positive(rng, data_type, shape), axes, variant)


@pytest.mark.parametrize("name", NAMES)
def test_profiles(profile_device: Device, name: str) -> None:
    rng = np.random.default_rng(2)
    for data_type in OPS[name].operands[0].data_types:
        check(profile_device, name, positive(rng, data_type, (3, 70)), (1,))
        check(profile_device, name, positive(rng, data_type, (33, 8)), (0,), keep_dimensions=True)


@pytest.mark.parametrize("name", NAMES)
def test_all_and_no_axes(device: Device, name: str) -> None:
    x = positive(np.random.default_rng(3), "float32", (3, 5, 7))
    assert check(device, name, x).shape == ()
    assert check(device, name, x, keep_dimensions=True).shape == (1, 1, 1)
    assert check(device, name, x, ()).shape == (3, 5, 7)
    assert check(device, name, np.float32(1.25).reshape(())).shape == ()
    assert check(device, name, np.full((1,), 1.25, np.float32)).shape == ()


def test_no_axes_apply_the_function(device: Device) -> None:
    x = np.array([0.5, -2.0, 3.0, -4.0, 100.0], np.float32)
    expected = {
        "reduceL1": np.abs(x),
        "reduceL2": np.abs(x),
        "reduceLogSumExp": x,
        "reduceSumSquare": x * x,
        "reduceSum": x,
        "reduceMean": x,
        "reduceProduct": x,
        "reduceMax": x,
        "reduceMin": x,
    }
    for name, wanted in expected.items():
        assert_within(check_op(device, name, [x], {"axes": []}, tolerance=1)[0], wanted, "ULP", 1)


@pytest.mark.parametrize("variant", VARIANTS)
def test_long_sums_stay_accurate(device: Device, variant: str) -> None:
    # A serial float32 sum of these is off by thousands of ULP.
    x = np.random.default_rng(4).uniform(0.5, 1.5, 1_000_003).astype(np.float32)
    forced = {"reduce": variant}
    check_op(device, "reduceSum", [x], forced=forced, tolerance=32)
    check_op(device, "reduceMean", [x], forced=forced, tolerance=32)
    check_op(device, "reduceLogSumExp", [x], forced=forced, tolerance=4)
    check_op(device, "reduceSum", [x[:999_936].reshape(-1, 8)], {"axes": [0]}, forced=forced, tolerance=32)
    check_op(device, "reduceMax", [x.astype(np.float16)], forced=forced)
    check_op(device, "reduceMin", [(x * 100).astype(np.int8)], forced=forced)


def test_long_rows_are_cut_into_parts(device: Device) -> None:
    x = np.zeros(1_000_000, np.float32)
    for caps in (device.caps, as_hardware(device.caps), Caps(adapter_type="CPU"), Caps()):
        plan = plan_of(caps, "reduceSum", [x])
        assert len(plan.dispatches) > 1
        assert math.prod(plan.dispatches[0].grid) > 1
        assert "parts" in plan.dispatches[0].reason


@pytest.mark.parametrize(
    ("name", "shape", "data_type", "dispatches"),
    [
        ("reduceMean", (49, 8), "float32", 1),
        ("reduceProduct", (7, 1000), "int32", 1),
        ("reduceMean", (1000, 68), "float32", 1),
        ("reduceMax", (2, 500, 33, 4), "float16", 1),
        ("reduceLogSumExp", (777, 64), "float32", 2),
        ("reduceSum", (20_000, 64), "float32", 2),
    ],
)
def test_workgroups_of_gpus_share_the_rows_of_columns(
    device: Device, name: str, shape: tuple[int, ...], data_type: str, dispatches: int
) -> None:
    x = positive(np.random.default_rng(6), data_type, shape)
    axes = [0] if len(shape) == 2 else [0, 1]
    plan = plan_of(as_hardware(device.caps), name, [x], {"axes": axes})
    assert "shared" in [d.spec.param("form") for d in plan.dispatches]
    assert len(plan.dispatches) == dispatches
    expected = interpret(op_graph(name, [x], {"axes": axes}), {"0": x})["0"]
    assert_within(run_plan(device, plan, [x]), expected, "ULP", 4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_lanes_with_a_last_item_more_than_others(device: Device, variant: str) -> None:
    # A subgroup of 8 shares 130 quads: two lanes take 17 of them, the others 16. A driver once added others twice.
    x = np.random.default_rng(0).standard_normal((4, 130), np.float32)
    check_op(device, "reduceLogSumExp", [x], {"axes": [0, 1]}, forced={"reduce": variant}, tolerance=4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_more_rows_than_a_grid_dimension(device: Device, variant: str) -> None:
    x = positive(np.random.default_rng(5), "float32", (70_001, 4))
    plan = plan_of(as_hardware(SOFTWARE), "reduceSum", [x], {"axes": [1]}, {"reduce": variant})
    assert variant == "plain" or plan.dispatches[0].grid[1] > 1
    assert_within(run_plan(device, plan, [x]), x.sum(axis=1, dtype=np.float64).astype(np.float32), "ULP", 4)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("length", [7, 40, 4099])
@pytest.mark.parametrize("data_type", ["float32", "float16"])
def test_nan_and_infinity(device: Device, data_type: str, length: int, variant: str) -> None:
    x = positive(np.random.default_rng(6), data_type, (8, length))
    nan, inf = math.nan, math.inf
    x[0, 3], x[1, length - 1], x[2, 0] = nan, inf, -inf
    x[3], x[4], x[5, 5] = inf, -inf, np.copysign(nan, -1.0)
    x[6, 1:5] = [inf, 1.0, 2.0, -inf]
    for name in NAMES:
        if name == "reduceProduct" and length > 100:
            continue  # underflows
        check(device, name, x, (1,), variant)


def test_special_values_of_single_reductions(device: Device) -> None:
    def one(name: str, values: list[float], data_type: str = "float32") -> float:
        return float(check_op(device, name, [np.array(values, data_type)], tolerance=2)[0])

    assert one("reduceLogSum", [0.0, 0.0]) == -math.inf
    assert math.isnan(one("reduceLogSum", [-1.0, 0.5]))
    assert one("reduceLogSum", [65504.0] * 4, "float16") == 12.4765625
    assert one("reduceSumSquare", [52.5625], "float16") == 2762
    assert one("reduceSumSquare", [52.5625] * 30, "float16") == math.inf
    assert one("reduceMean", [65504.0] * 5, "float16") == 65504
    assert one("reduceLogSumExp", [1000.0, 1000.0]) == pytest.approx(1000 + math.log(2))
    assert one("reduceLogSumExp", [-1000.0, -1000.0]) == pytest.approx(-1000 + math.log(2))
    assert one("reduceMax", [-math.inf, -3.0]) == -3
    assert one("reduceMin", [math.inf] * 3) == math.inf


def test_integers_wrap(device: Device) -> None:
    for data_type in ("int32", "uint32", "int64", "uint64"):
        limits = np.iinfo(data_type)
        x = np.array([[limits.max, 2], [limits.min, 1], [limits.max, limits.max]], data_type)
        for name in ("reduceSum", "reduceL1", "reduceProduct", "reduceSumSquare", "reduceMax", "reduceMin"):
            check(device, name, x, (1,))
    lowest = np.array([-(2**31)], np.int32)
    assert check(device, "reduceL1", lowest) == -(2**31)


SMALL = st.lists(st.integers(1, 6), min_size=0, max_size=4)


@given(SMALL, st.data())
def test_any_shape_and_axes(device: Device, shape: list[int], data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True) if shape else st.just([]))
    name = data.draw(st.sampled_from(["reduceSum", "reduceMax", "reduceMin", "reduceL1"]))
    data_type = data.draw(st.sampled_from(["float32", "int32"] + (["uint8"] if name in ("reduceMax", "reduceMin") else [])))
    variant = data.draw(st.sampled_from([*VARIANTS, None]))
    x = np.random.default_rng(len(shape)).integers(-50, 50, shape).astype(data_type)
    # Sums of small integers are exact.
    forced = {"reduce": variant} if variant else None
    attrs = {"axes": axes, "keep_dimensions": data.draw(st.booleans())}
    check_op(device, name, [np.asarray(x)], attrs, forced=forced, tolerance=0)


@pytest.mark.repeats
@pytest.mark.parametrize("variant", [*VARIANTS, None])
@pytest.mark.parametrize("kind", ENDINGS)
def test_epilogue_changes_no_number(kind: str, variant: str | None) -> None:
    device = open_profile("hardware")
    rng = np.random.default_rng(10)
    # Rows, rows in parts, quads of columns, pairs of quads of columns, columns that workgroups share, a single result.
    for name, data_type, shape, axes, keep in (
        ("reduceMean", "float32", (5, 136), (1,), True),
        ("reduceMean", "float16", (3, 40, 5), (1,), True),
        ("reduceL2", "float32", (3, 5000), (1,), True),
        ("reduceMax", "float16", (2, 35, 8), (1,), False),
        ("reduceSumSquare", "float32", (2, 35, 16), (1,), False),
        ("reduceLogSumExp", "float32", (4, 3, 90, 12), (0, 2), False),
        ("reduceMean", "float32", (300, 64), (0,), True),
        ("reduceMin", "float32", (7, 100), (0, 1), True),
    ):
        chain = Chain()
        x = chain.input(positive(rng, data_type, shape))
        result = chain.apply(name, [x], axes=axes, keep_dimensions=keep)
        output = getattr(Ending(chain, result, -1, rng), kind)()
        check_fused(device, chain, output, {"reduce": variant} if variant else {})


@pytest.mark.parametrize("name", [name for name in NAMES if name != "reduceSum"])
@pytest.mark.parametrize("data_type", FLOATS)
def test_an_epilogue_computes_what_the_reference_does(name: str, data_type: str) -> None:
    device = open_profile("hardware")
    for shape, axes in CASES:
        graph, feeds = Reduced(name, shape, {"axes": axes}, data_type=data_type).graph()
        assert len(run_passes(graph, device.target)[0].nodes) == 1
        found, wanted = run_graph(device, graph, feeds)["0"], interpret(graph, feeds)["0"]
        np.testing.assert_allclose(found, wanted, rtol=2e-5 if data_type == "float32" else 4e-3)


def test_choice_of_variant() -> None:
    def chosen(caps: Caps, shape: tuple[int, ...], axes: list[int], data_type: str = "float32") -> list[str]:
        return variants_of(plan_of(caps, "reduceMax", [np.zeros(shape, data_type)], {"axes": axes}))

    hardware, plain_cpu = as_hardware(SOFTWARE), Caps(adapter_type="CPU")
    assert chosen(SOFTWARE, (64, 128), [1]) == ["subgroup"]
    assert chosen(SOFTWARE, (64, 128), [1], "int64") == ["plain"]
    assert chosen(hardware, (64, 128), [1]) == ["workgroup"]
    assert chosen(hardware, (64, 128), [1], "uint8") == ["workgroup", "plain"]
    assert chosen(plain_cpu, (64, 128), [1]) == ["plain"]
    assert chosen(plain_cpu, (4, 1000), [1]) == ["workgroup"]
    for caps in (SOFTWARE, hardware, plain_cpu):
        assert chosen(caps, (128, 66), [0]) == ["plain"]
        assert chosen(caps, (128, 8), [1]) == ["plain"]
    assert chosen(SOFTWARE, (128, 64), [0]) == chosen(plain_cpu, (128, 64), [0]) == ["plain"]


def test_workgroups_share_columns_where_there_are_few() -> None:
    def forms(shape: tuple[int, ...]) -> list[str]:
        plan = plan_of(as_hardware(SOFTWARE), "reduceSum", [np.zeros(shape, np.float32)], {"axes": [0]})
        return [dispatch.spec.param("form") for dispatch in plan.dispatches]

    assert forms((128, 64)) == ["shared"]
    assert forms((50_000, 64)) == ["shared", "shared"]
    # One load at once takes no longer than a barrier.
    assert forms((4, 64)) == ["columns"]
    # There are as many quads of columns as the device has room for invocations.
    assert forms((32, 1 << 18)) == ["columns"]


def test_forced_variant_that_cannot_be_had() -> None:
    x = np.zeros((4, 64), np.float32)
    with pytest.raises(OperationError) as refused:
        plan_of(Caps(), "reduceSum", [x], forced={"reduce": "subgroup"})
    expected = "reduce_sum('test'): the forced kernel variant cannot be had; got reduceSum=subgroup; allowed: plain, workgroup"
    assert str(refused.value) == expected
    assert "subgroup" not in (PROFILES["default-limits"] or ())
    assert open_profile("default-limits").caps.subgroup_size == 0


def test_refusals() -> None:
    assert refusal("reduceSum", [typed("float32", 2, 3)], {"axes": [2]}) == (
        "reduce_sum('here'): every item of axes must be < rank(input): Axis 2 out of bounds for rank 2; "
        "got every item of axes=2, input float32[2, 3]; allowed: 0..1. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reduce"
    )
    assert "axes must be unique: Duplicate axis 1" in refusal("reduceMax", [typed("int8", 2, 3)], {"axes": [1, 1]})
    assert "axes must be a list of unsigned integers" in refusal("reduceMin", [typed("int8", 2)], {"axes": 0})
    for name, allowed in (("reduceMean", "float32, float16"), ("reduceL1", "float32, float16, int32, uint32, int64, uint64")):
        refused = refusal(name, [typed("uint8", 2)], {})
        assert f"input data type is not allowed; got input uint8[2]; allowed: {allowed}." in refused


def test_many_long_rows_in_one_invocation(device: Device) -> None:
    # Mesa's software driver ends the loops of an invocation after 65535 iterations, over all rows that it works on.
    x = np.zeros((20_000, 4095), np.uint8)
    x[:, 4000] = 255
    check(device, "reduceMax", x, (1,), "plain")
