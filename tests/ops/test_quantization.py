from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.movers import FOLDED_ELEMENTS, refusal, typed
from tests.support import assert_same, check_op, op_graph, random_array
from webnn_wgpu.core.data_types import FLOATS, PACKED_TYPES, numpy_dtype
from webnn_wgpu.costs import Target
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops.quantization import QUANTIZED
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from webnn_wgpu.core.caps import Caps
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

BLOCKS = [
    ((), ()),
    ((1,), (1,)),
    ((7,), (1,)),
    ((7,), (7,)),
    ((12,), (3,)),
    ((3, 4), (3, 1)),
    ((3, 5), (1, 5)),
    ((3, 5), (1, 1)),
    ((4, 6), (2, 3)),
    ((2, 12, 5), (1, 3, 5)),
    ((2, 3, 16), (2, 3, 2)),
    ((1, 4, 6, 8), (1, 2, 3, 4)),
    ((2, 2, 2, 2, 2, 2, 2, 4), (1, 2, 1, 2, 1, 2, 1, 2)),
    ((4, 4, 4, 4, 4, 4, 1, 4), (2, 2, 2, 2, 2, 2, 1, 2)),
]
"""Shapes of inputs and scales."""

SPECIALS = (0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-30, 65504.0, -65504.0)


def scales(rng: np.random.Generator, data_type: str, shape: tuple[int, ...]) -> Array:
    return np.asarray(rng.uniform(0.01, 2.0, shape), data_type)


def meant_quantized(x: Array, scale: Array, zero_point: Array) -> list[int]:
    """quantizeLinear by its formula in Python's integers; scale and zero point of the input's shape."""
    limits = np.iinfo(zero_point.dtype)
    found: list[int] = []
    for a, s, z in zip(x.reshape(-1), scale.reshape(-1), zero_point.reshape(-1), strict=True):
        with np.errstate(all="ignore"):
            quotient = float(np.float32(a) / np.float32(s))
        if math.isnan(quotient):
            found.append(0)
        elif math.isinf(quotient):
            found.append(int(limits.max if quotient > 0 else limits.min))
        else:
            found.append(max(int(limits.min), min(int(limits.max), round(Fraction(quotient)) + int(z))))
    return found


# quantizeLinear -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data_type", QUANTIZED)
@pytest.mark.parametrize("float_type", FLOATS)
def test_quantize_every_type_on_every_device(profile_device: Device, float_type: str, data_type: str) -> None:
    rng = np.random.default_rng(1)
    for shape, blocks in BLOCKS:
        x = random_array(rng, float_type, shape, 100.0)
        if x.size > 2:
            x.reshape(-1)[rng.integers(0, x.size, 3)] = rng.choice(SPECIALS, 3)
        check_op(profile_device, "quantizeLinear", [x, scales(rng, float_type, blocks), random_array(rng, data_type, blocks)])


@pytest.mark.parametrize("data_type", QUANTIZED)
def test_quantized_numbers(device: Device, data_type: str) -> None:
    rng = np.random.default_rng(2)
    limits = np.iinfo(data_type)
    halves = np.arange(-300, 300, dtype=np.float32) + np.float32(0.5)
    powers = np.float32(
        [sign * m * 2.0**e for e in (7, 8, 15, 23, 24, 30, 31, 32, 33, 64, 127) for m in (1, 1.5) for sign in (1, -1)]
    )
    x = np.concatenate([halves, powers, np.float32(SPECIALS), np.nextafter(powers, np.float32(0))])
    ends = np.array([limits.min, limits.min + 1, -1 if limits.min else 1, 0, 1, limits.max - 1, limits.max], data_type)
    steps = np.float32([1.0, 0.5, 3.0, -1.0, 1e-30, 0.0])
    x, scale, zero_point = np.broadcast_arrays(x, rng.choice(steps, x.size), rng.choice(ends, (6, 1)))
    x, scale, zero_point = (np.ascontiguousarray(a) for a in (x, np.where(rng.random(x.shape) < 0.5, 1, scale), zero_point))
    scale = scale.astype(np.float32)
    (actual,) = check_op(device, "quantizeLinear", [x, scale, zero_point])
    assert actual.reshape(-1).tolist() == meant_quantized(x, scale, zero_point)


def test_what_is_saturated_too_early_in_32_bits(device: Device) -> None:
    x, one = np.float32([3e9, -3e9, 4e9, -4e9, 5e9]), np.ones(5, np.float32)
    zero_point = np.array([-(2**31), 2**31 - 1, -(2**31), 2**31 - 1, -(2**31)], np.int32)
    (actual,) = check_op(device, "quantizeLinear", [x, one, zero_point])
    assert actual.tolist() == [3 * 10**9 - 2**31, 2**31 - 1 - 3 * 10**9, 4 * 10**9 - 2**31, 2**31 - 1 - 4 * 10**9, 2**31 - 1]
    zero_point = np.array([0, 2**32 - 1, 2**32 - 1, 2**32 - 1, 7], np.uint32)
    (actual,) = check_op(device, "quantizeLinear", [x, one, zero_point])
    assert actual.tolist() == [3 * 10**9, 2**32 - 1 - 3 * 10**9, 2**32 - 1, 2**32 - 1 - 4 * 10**9, 2**32 - 1]


@settings(max_examples=40)
@given(st.sampled_from(QUANTIZED), st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), max_size=5), st.integers(0, 1000))
def test_quantize_any_blocks(device: Device, data_type: str, dims: list[tuple[int, int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape, blocks = tuple(n * m for n, m in dims), tuple(n for n, _ in dims)
    x, scale = random_array(rng, "float32", shape, 300.0), scales(rng, "float32", blocks)
    zero_point = random_array(rng, data_type, blocks)
    (actual,) = check_op(device, "quantizeLinear", [x, scale, zero_point])
    whole = [np.empty(shape, a.dtype) for a in (scale, zero_point)]
    for place in np.ndindex(shape):
        block = tuple(i // m for i, (_, m) in zip(place, dims, strict=True))
        whole[0][place], whole[1][place] = scale[block], zero_point[block]
    assert actual.reshape(-1).tolist() == meant_quantized(x, *whole)


# dequantizeLinear -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data_type", QUANTIZED)
@pytest.mark.parametrize("float_type", FLOATS)
def test_dequantize_every_type_on_every_device(profile_device: Device, float_type: str, data_type: str) -> None:
    rng = np.random.default_rng(1)
    for shape, blocks in BLOCKS:
        x, zero_point = random_array(rng, data_type, shape), random_array(rng, data_type, blocks)
        check_op(profile_device, "dequantizeLinear", [x, scales(rng, float_type, blocks), zero_point])


@pytest.mark.parametrize("data_type", QUANTIZED)
def test_differences_do_not_wrap(device: Device, data_type: str) -> None:
    limits = np.iinfo(data_type)
    ends = np.array([limits.min, limits.min + 1, 0, 1, 100, limits.max - 1, limits.max], data_type)
    x, zero_point = (np.ascontiguousarray(a) for a in np.broadcast_arrays(ends[:, None], ends))
    (actual,) = check_op(device, "dequantizeLinear", [x, np.full(x.shape, 0.5, np.float32), zero_point], tolerance=0)
    exact = [[np.float32((int(a) - int(b)) / 2) for b in ends] for a in ends]
    assert actual.tolist() == [[float(n) for n in row] for row in exact]


def test_float16_products_do_not_overflow_on_the_way(device: Device) -> None:
    x, scale = np.array([2**30, -(2**30), 2**31 - 1], np.int32), np.float16([2**-24, 2**-24, 6e-8])
    (actual,) = check_op(device, "dequantizeLinear", [x, scale, np.array([0, 2**30, -(2**31)], np.int32)])
    assert actual.tolist() == [64, -128, 256]


def test_special_scales(device: Device) -> None:
    x, zero_point = np.array([3, 3, 3, 3, 5], np.int8), np.array([3, 1, 5, 1, 1], np.int8)
    scale = np.float32([np.inf, np.inf, np.inf, np.nan, -2])
    (actual,) = check_op(device, "dequantizeLinear", [x, scale, zero_point])
    assert str(actual.tolist()) == "[nan, inf, -inf, nan, -8.0]"


@settings(max_examples=40)
@given(
    st.sampled_from(QUANTIZED),
    st.sampled_from(FLOATS),
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), max_size=5),
    st.integers(0, 1000),
)
def test_dequantize_any_blocks(device: Device, data_type: str, float_type: str, dims: list[tuple[int, int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape, blocks = tuple(n * m for n, m in dims), tuple(n for n, _ in dims)
    x, zero_point = random_array(rng, data_type, shape), random_array(rng, data_type, blocks)
    scale = scales(rng, float_type, blocks)
    (actual,) = check_op(device, "dequantizeLinear", [x, scale, zero_point])
    for place in np.ndindex(shape):
        block = tuple(i // m for i, (_, m) in zip(place, dims, strict=True))
        exact = (int(x[place]) - int(zero_point[block])) * Fraction(float(scale[block]))
        with np.errstate(over="ignore"):
            nearest = numpy_dtype(float_type).type(float(exact))
            low, high = np.nextafter(nearest, nearest.dtype.type(-np.inf)), np.nextafter(nearest, nearest.dtype.type(np.inf))
        assert low <= actual[place] <= high


# both -----------------------------------------------------------------------------------------------------------------


def test_quantizing_what_was_dequantized_gives_it_back(device: Device) -> None:
    rng = np.random.default_rng(3)
    for data_type in ("int8", "uint8"):
        x, zero_point = random_array(rng, data_type, (6, 50)), random_array(rng, data_type, (3, 10))
        scale = scales(rng, "float32", (3, 10))
        (floats,) = check_op(device, "dequantizeLinear", [x, scale, zero_point])
        (again,) = check_op(device, "quantizeLinear", [floats, scale, zero_point])
        assert again.tolist() == x.tolist()


@pytest.mark.parametrize("operator", ["quantizeLinear", "dequantizeLinear"])
@pytest.mark.parametrize("blocks", [(1, 1), (331, 1), (331, 4)])
def test_tensors_larger_than_a_binding(device: Device, operator: str, blocks: tuple[int, int]) -> None:
    rng = np.random.default_rng(4)
    limits = (*device.caps.limits, ("max-storage-buffer-binding-size", 8192))
    _run(device, operator, (331, 12), blocks, rng, replace(device.caps, limits=limits), windows=True)


@pytest.mark.repeats
@pytest.mark.parametrize("operator", ["quantizeLinear", "dequantizeLinear"])
def test_more_workgroups_than_a_grid_dimension_holds(device: Device, operator: str) -> None:
    rng = np.random.default_rng(5)
    shape = (3, FOLDED_ELEMENTS // 3 + 1)
    _run(device, operator, shape, (3, 1), rng, replace(device.caps, adapter_type="DiscreteGPU"), windows=False)


def _run(
    device: Device,
    operator: str,
    shape: tuple[int, ...],
    blocks: tuple[int, ...],
    rng: np.random.Generator,
    caps: Caps,
    *,
    windows: bool,
) -> None:
    x = random_array(rng, "float32" if operator == "quantizeLinear" else "uint8", shape)
    inputs = [x, scales(rng, "float32", blocks), random_array(rng, "uint8", blocks)]
    graph = op_graph(operator, inputs)
    plan = make_plan(graph, Target.of(caps))
    assert len(plan.dispatches) > 1 if windows else plan.dispatches[0].grid[1] > 1
    feeds = {str(i): a for i, a in enumerate(inputs)}
    program = Program(device, plan)
    try:
        assert_same(program.start(feeds, ["0"]).result(), interpret(graph, feeds))
    finally:
        program.destroy()


@pytest.mark.parametrize("operator", ["quantizeLinear", "dequantizeLinear"])
def test_refusals(operator: str) -> None:
    quantize = operator == "quantizeLinear"
    name, anchor = ("quantize_linear", "quantizelinear") if quantize else ("dequantize_linear", "dequantizelinear")
    data_type = "float32" if quantize else "int8"
    x, scale, zero_point = typed(data_type, 4, 6), typed("float32", 2, 3), typed("int8", 2, 3)
    more = f"See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-{anchor}"
    assert refusal(operator, [x, typed("float32", 2, 4), typed("int8", 2, 4)]) == (
        f"{name}('here'): Incompatible shapes: scale.shape[1] must divide input.shape[1]; "
        f"got input {data_type}[4, 6], scale float32[2, 4]; allowed: divisors of 6. {more}"
    )
    assert refusal(operator, [x, typed("float32", 1), typed("int8", 1)]) == (
        f"{name}('here'): Incompatible shapes: scale must have the rank of input; "
        f"got input {data_type}[4, 6], scale float32[1]; allowed: rank 2. {more}"
    )
    assert refusal(operator, [x, scale, typed("int8", 1, 1)]) == (
        f"{name}('here'): Incompatible shapes: scale and zeroPoint must have the same shape; "
        f"got scale float32[2, 3], zeroPoint int8[1, 1]; allowed: zeroPoint of shape [2, 3]. {more}"
    )
    assert "zeroPoint must have the rank of input" in refusal(operator, [x, scale, typed("int8", 6)])
    assert "scale.shape[0] must divide input.shape[0]" in refusal(operator, [x, typed("float32", 8, 1), typed("int8", 8, 1)])
    assert "scale data type" in refusal(operator, [x, typed("int32", 2, 3), zero_point])
    assert "zeroPoint is required" in refusal(operator, [x, scale, None])
    for wrong in ("int64", "uint64", "int8" if quantize else "float32"):
        assert "input data type is not allowed" in refusal(operator, [typed(wrong, 4, 6), scale, zero_point])
    if quantize:
        assert "scale data type must equal input data type" in refusal(operator, [x, typed("float16", 2, 3), zero_point])
        for wrong in ("int64", "uint64", "float32"):
            assert "zeroPoint data type is not allowed" in refusal(operator, [x, scale, typed(wrong, 2, 3)])
    else:
        assert "zeroPoint data type must equal input data type" in refusal(operator, [x, scale, typed("uint8", 2, 3)])


# packed data types ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data_type", PACKED_TYPES)
@pytest.mark.parametrize("float_type", FLOATS)
def test_constants_of_half_a_byte_on_every_device(profile_device: Device, float_type: str, data_type: str) -> None:
    rng = np.random.default_rng(1)
    for shape, blocks in BLOCKS:
        x, zero_point = half_bytes(rng, data_type, shape), half_bytes(rng, data_type, blocks)
        inputs = [x, scales(rng, float_type, blocks), zero_point]
        (actual,) = check_op(profile_device, "dequantizeLinear", inputs, constants={0, 2})
        assert actual.shape == shape


@pytest.mark.parametrize("data_type", PACKED_TYPES)
def test_every_half_byte_at_every_place(device: Device, data_type: str) -> None:
    low, high = PACKED_TYPES[data_type].limits
    for count in (16, 17):
        numbers = np.resize(np.arange(low, high + 1), (count, count))
        x = numbers.astype(numpy_dtype(data_type))
        inputs = [x, np.ones((1, count), np.float32), x[-1:].copy()]
        (actual,) = check_op(device, "dequantizeLinear", inputs, constants={0, 2})
        assert actual.tolist() == (numbers - numbers[-1:]).tolist()


@pytest.mark.parametrize("data_type", PACKED_TYPES)
def test_constants_of_half_a_byte_that_are_larger_than_a_binding(device: Device, data_type: str) -> None:
    rng = np.random.default_rng(4)
    x, zero_point = half_bytes(rng, data_type, (331, 12)), half_bytes(rng, data_type, (331, 1))
    inputs = [x, scales(rng, "float32", (331, 1)), zero_point]
    caps = replace(device.caps, limits=(*device.caps.limits, ("max-storage-buffer-binding-size", 1024)))
    graph = op_graph("dequantizeLinear", inputs, constants={0, 2})
    plan = make_plan(graph, Target.of(caps))
    assert {r.offset_bytes for d in plan.dispatches for r in d.bindings if r.kind == "constant"} > {0, 256}
    program = Program(device, plan)
    try:
        feeds = {"1": inputs[1]}
        assert_same(program.start(feeds, ["0"]).result(), interpret(graph, feeds))
    finally:
        program.destroy()


def half_bytes(rng: np.random.Generator, data_type: str, shape: tuple[int, ...]) -> Array:
    low, high = PACKED_TYPES[data_type].limits
    return rng.integers(low, high, shape, endpoint=True).astype(numpy_dtype(data_type))


def test_half_bytes_are_for_dequantizing_alone() -> None:
    for name, op in OPS.items():
        for operand in op.operands:
            takes = {t for t in operand.data_types if t in PACKED_TYPES}
            assert not takes or (name, operand.name) in {("dequantizeLinear", "input"), ("dequantizeLinear", "zeroPoint")}
    wrong = [typed("float32", 2), typed("float32", 1), typed("int4", 1)]
    assert "zeroPoint data type is not allowed" in refusal("quantizeLinear", wrong)
    assert "input data type is not allowed; got input int4[2]" in refusal("reshape", [typed("int4", 2)], {"new_shape": [2]})
    mixed = [typed("int4", 2), typed("float32", 1), typed("uint4", 1)]
    assert "zeroPoint data type must equal input data type" in refusal("dequantizeLinear", mixed)
