from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import Sketch, assert_same, check_bounded, check_op, random_array, type_of
from webnn_wgpu.core.data_types import ANY, FLOATS, numpy_dtype
from webnn_wgpu.core.errors import MLTypeError
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops.activation import OPS as ACTIVATIONS
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.ops._def import OpDef
    from webnn_wgpu.runtime.device import Device

INF, NAN = math.inf, math.nan
CASES = [(op, data_type) for op in ACTIVATIONS if not op.internal for data_type in op.operands[0].data_types]
OPTIONS: dict[str, dict[str, Any]] = {
    "clamp": {"min_value": -1.5, "max_value": 3.0},
    "elu": {"alpha": 0.7},
    "leakyRelu": {"alpha": -0.3},
}


def elements(data_type: str) -> Array:
    rng = np.random.default_rng(0)
    x = random_array(rng, data_type, (61,))
    if data_type in FLOATS:
        special = [0.0, -0.0, INF, -INF, NAN, 1e-3, -1e-3, -3.0, 3.0, -12.0, 12.0, 88.0, -88.0, 65504.0]
        x = np.concatenate([x, np.array(special, numpy_dtype(data_type))])
    return x


@pytest.mark.parametrize(("op", "data_type"), CASES, ids=[f"{op.name}-{t}" for op, t in CASES])
def test_every_operator_and_type(device: Device, op: OpDef, data_type: str) -> None:
    x = elements(data_type)
    if op.name == "prelu":
        slopes = elements(data_type)[:3]
        check_op(device, "prelu", [np.tile(x, 3), np.repeat(slopes, x.size)])
    elif op.name in ("linear", "hardSigmoid"):
        # Where the sum cancels, its rounding error counts for many ULP of the result.
        finite = x[np.abs(x.astype(np.float64)) < 100]
        check_op(device, op.name, [finite], atol=float(np.finfo(numpy_dtype(data_type)).eps) * 50)
        check_op(device, op.name, [np.abs(x)], {"alpha": 0.3, "beta": 0.7})
    else:
        check_op(device, op.name, [x], OPTIONS.get(op.name))


@pytest.mark.parametrize(
    ("op", "options", "inputs", "expected"),
    [
        ("relu", {}, [NAN, -1.0, INF, -INF], [NAN, 0, INF, 0]),
        ("leakyRelu", {"alpha": 0.0}, [INF, -INF, -1.0, NAN], [INF, NAN, -0.0, NAN]),
        ("leakyRelu", {"alpha": 2.0}, [3.0, -3.0], [3, -6]),
        ("elu", {"alpha": 0.5}, [-INF, INF, NAN, 0.0], [-0.5, INF, NAN, 0]),
        ("gelu", {}, [-INF, INF, NAN, -0.0], [-0.0, INF, NAN, -0.0]),
        ("hardSwish", {}, [-INF, INF, NAN, -3.0, 3.0], [-0.0, INF, NAN, -0.0, 3]),
        ("hardSigmoid", {}, [-INF, INF, NAN, 0.0], [0, 1, NAN, 0.5]),
        ("linear", {"alpha": 2.0, "beta": 0.5}, [INF, -INF, NAN, 1.0], [INF, -INF, NAN, 2.5]),
        ("sigmoid", {}, [-INF, INF, NAN, 0.0, -200.0, 200.0], [0, 1, NAN, 0.5, 0, 1]),
        ("tanh", {}, [-INF, INF, NAN, 100.0, -0.0], [-1, 1, NAN, 1, -0.0]),
        ("softplus", {}, [-INF, INF, NAN, 200.0, -200.0], [0, INF, NAN, 200, 0]),
        # The product with the steepness overflows.
        ("softplus", {"steepness": 2.0}, [-INF, INF, NAN, 3e38, -3e38], [0, INF, NAN, 3e38, 0]),
        ("softplus", {"steepness": -2.0}, [-INF, INF, NAN, 3e38, -3e38], [-INF, 0, NAN, 0, -3e38]),
        ("softsign", {}, [-INF, INF, NAN, 1.0, -0.0], [-1, 1, NAN, 0.5, -0.0]),
        ("clamp", {"min_value": -1, "max_value": 1}, [-INF, INF, NAN, 0.5], [-1, 1, NAN, 0.5]),
        ("clamp", {"min_value": NAN, "max_value": 1}, [-INF, INF, -7.0], [-INF, 1, -7]),
        ("clamp", {"min_value": INF}, [-INF, 0.0, NAN], [INF, INF, NAN]),
        ("clamp", {"max_value": -INF}, [INF, 0.0], [-INF, -INF]),
        ("clamp", {}, [INF, -0.5], [INF, -0.5]),
    ],
)
@pytest.mark.parametrize("data_type", FLOATS)
def test_special_values(
    device: Device, op: str, options: dict[str, Any], inputs: list[float], expected: list[float], data_type: str
) -> None:
    (actual,) = check_op(device, op, [np.array(inputs, data_type)], options)
    wanted = np.array(expected, data_type)
    # Of two zeros that a maximum meets, either is right.
    assert_same({"": actual + 0.0 if op == "relu" else actual}, {"": wanted})


@pytest.mark.parametrize("data_type", [t for t in ANY if t not in FLOATS])
def test_integer_bounds_are_rounded_and_saturate(device: Device, data_type: str) -> None:
    limits = np.iinfo(data_type)
    x = np.array([limits.min, 0, 1, 2, 3, 4, 5, limits.max], data_type)
    (actual,) = check_op(device, "clamp", [x], {"min_value": 1.5, "max_value": 4.5})
    assert actual.tolist() == [2, 2, 2, 2, 3, 4, 4, 4]
    (actual,) = check_op(device, "clamp", [x], {"min_value": -1e30, "max_value": INF})
    assert actual.tolist() == x.tolist()
    (actual,) = check_op(device, "clamp", [x], {"min_value": 3})
    assert actual.tolist() == [3, 3, 3, 3, 3, 4, 5, limits.max]


def test_bounds_keep_64_bits(device: Device) -> None:
    exact = 9007199254740995  # no float64 is this number
    for data_type in ("int64", "uint64"):
        x = np.array([0, exact - 1, exact, exact + 1, 2**62], data_type)
        (actual,) = check_op(device, "clamp", [x], {"min_value": exact, "max_value": exact + 1})
        assert actual.tolist() == [exact, exact, exact, exact + 1, exact + 1]
    (actual,) = check_op(device, "clamp", [np.array([-(2**40), -1, 5])], {"min_value": -(2**35) - 1, "max_value": -1})
    assert actual.tolist() == [-(2**35) - 1, -1, -1]


def test_steepness(device: Device) -> None:
    x = np.linspace(-8, 8, 33, dtype=np.float32)
    for steepness in (0.5, 2.0, -1.0):
        check_op(device, "softplus", [x], {"steepness": steepness}, tolerance=8)
    (actual,) = check_op(device, "softplus", [x], {"steepness": 0.0})
    assert np.all(actual == INF)


def test_the_far_tail_of_gelu_keeps_its_digits(device: Device) -> None:
    x = np.array([-5.0, -8.0, -10.0, -13.0], np.float32)
    (actual,) = check_op(device, "gelu", [x])
    exact = [0.5 * v * math.erfc(-v / math.sqrt(2)) for v in x.tolist()]
    assert np.allclose(actual, exact, rtol=1e-6, atol=0)


def test_the_derivative_of_gelu(device: Device) -> None:
    x = np.concatenate([np.linspace(-16, 16, 4001), [0.0, -0.0, 1e-40, -1e-30, -0.7517916, 1e30, INF, -INF, NAN]])
    (actual,) = check_bounded(device, "geluSlope", [x.astype(np.float32)])
    np.testing.assert_array_equal(actual[-4:], np.array([1, 1, 0, NAN], np.float32))
    # The digits of the tail, where both terms are normal numbers.
    tail = x[x < -2][x[x < -2] > -12]
    (actual,) = check_bounded(device, "geluSlope", [tail.astype(np.float32)])
    wide = tail.astype(np.float32).astype(np.float64)
    exact = [0.5 * math.erfc(-v / math.sqrt(2)) + v * math.exp(-v * v / 2) / math.sqrt(2 * math.pi) for v in wide.tolist()]
    np.testing.assert_allclose(actual, exact, rtol=2e-6)


def test_options_are_cast_to_the_operands_type(device: Device) -> None:
    x = np.array([-1000.0], np.float16)
    (actual,) = check_op(device, "leakyRelu", [x], {"alpha": 0.1})
    assert actual[0] == np.float16(-1000 * float(np.float16(0.1)))


@pytest.mark.parametrize("shapes", [((2, 3, 8), (8,)), ((2, 3, 5), (3, 1)), ((4,), (3, 1)), ((), (2,))])
def test_slopes_broadcast_both_ways(device: Device, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    rng = np.random.default_rng(1)
    check_op(device, "prelu", [random_array(rng, "float32", shape) for shape in shapes])


def test_operators_that_differ_in_options_share_a_shader(device: Device) -> None:
    for op, options in (("elu", ({"alpha": 1.0}, {"alpha": 2.0})), ("clamp", ({"min_value": 1}, {"max_value": 2}))):
        s = Sketch()
        x = s.input(np.zeros(4, np.float32))
        plan = make_plan(s.graph(*(s.apply(op, x, **each) for each in options)), device.target)
        assert len({d.spec for d in plan.dispatches}) == 1


def test_clamp_refuses_bounds_in_the_wrong_order() -> None:
    x = TensorType("float16", (2,))
    OPS["clamp"].check([x], {"min_value": 1, "max_value": 1})
    OPS["clamp"].check([x], {"min_value": 5, "max_value": NAN})
    # Equal once they are float16.
    OPS["clamp"].check([x], {"min_value": 1.0001, "max_value": 1.0})
    with pytest.raises(MLTypeError) as raised:
        OPS["clamp"].check([x], {"min_value": INF, "max_value": 1.0}, "c")
    assert str(raised.value) == (
        "clamp('c'): min_value must be <= max_value, compared as the input's data type; "
        "got min_value=inf, max_value=1.0. See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-clamp"
    )


def test_references_are_accurate_where_formulas_cancel() -> None:
    s = Sketch()
    x = s.input(np.array([-1e-6, 1e-6, -30.0], np.float32))
    names = ("elu", "gelu", "softplus", "sigmoid")
    outputs = interpret(s.graph(**{name: s.apply(name, x) for name in names}), s.feeds)
    assert type_of(outputs["elu"]) == TensorType("float32", (3,))
    assert outputs["elu"].tolist()[:2] == [np.float32(-9.999995e-07), np.float32(1e-6)]
    assert outputs["softplus"][2] == np.float32(9.357623e-14)
    assert outputs["sigmoid"][2] == np.float32(9.357623e-14)
    assert outputs["gelu"][0] == np.float32(-4.999996e-07)
