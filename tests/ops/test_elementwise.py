from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support import Sketch, assert_same, check_op, open_profile, random_array, run_graph
from webnn_wgpu.core.data_types import ANY, FLOATS, numpy_dtype
from webnn_wgpu.costs import Target
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops.elementwise import BINARY, LOGIC, SIGNED, UNARY
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Array, Graph
    from webnn_wgpu.ops._def import OpDef
    from webnn_wgpu.runtime.device import Device

INF, NAN = math.inf, math.nan
SPECIALS = (
    *(0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, -3.5, 3.5),
    *(0.1, -9.868, 1e-3, 65504.0, 1000.0, -1000.0, 2.0**24, 1e30, -1e30, 1e-30, 3e38),
)
ROWS = (*UNARY, *BINARY, *LOGIC)
CASES = [(op, data_type) for op in ROWS for data_type in op.operands[0].data_types]


def elements(data_type: str) -> Array:
    """Return every special value of a type and some random ones."""
    dtype = numpy_dtype(data_type)
    rng = np.random.default_rng(0)
    if data_type in FLOATS:
        with np.errstate(over="ignore"):
            return np.concatenate([np.array(SPECIALS, np.float64).astype(dtype), random_array(rng, data_type, (17,))])
    limits = np.iinfo(dtype)  # pyright: ignore[reportArgumentType] - an integer type
    near = [limits.min, limits.min + 1, 0, 1, 2, 3, 7, 8, 31, 33, limits.max - 1, limits.max]
    if limits.min:
        near += [-1, -2, -3, -7]
    return np.concatenate([np.array(near, dtype), random_array(rng, data_type, (9,))])


@pytest.mark.parametrize(("op", "data_type"), CASES, ids=[f"{op.name}-{t}" for op, t in CASES])
def test_every_operator_and_type(device: Device, op: OpDef, data_type: str) -> None:
    x = elements(data_type)
    if len(op.operands) == 1:
        check_op(device, op.name, [x])
    else:
        check_op(device, op.name, [np.repeat(x, x.size), np.tile(x, x.size)])


# ------------------------------------------------------------------------------------ values that are easy to get wrong


@pytest.mark.parametrize(
    ("op", "inputs", "expected"),
    [
        (
            "roundEven",
            ([-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 8388609.0, NAN, INF],),
            [-4, -2, -2, -0.0, 0, 2, 2, 4, 8388609, NAN, INF],
        ),
        ("ceil", ([-0.5, 0.5, -0.0, -INF],), [-0.0, 1, -0.0, -INF]),
        ("floor", ([-0.5, 0.5, -0.0, 1e30],), [-1, 0, -0.0, 1e30]),
        ("sqrt", ([-0.0, 0.0, -1.0, INF],), [-0.0, 0, NAN, INF]),
        ("sign", ([-0.0, NAN, -INF, 1e-7],), [0, 0, -1, 1]),
        ("neg", ([0.0, -0.0, NAN, INF],), [-0.0, 0, NAN, -INF]),
        ("abs", ([-0.0, -INF, NAN],), [0, INF, NAN]),
        ("reciprocal", ([0.0, -0.0, INF, -INF],), [INF, -INF, 0, -0.0]),
        ("log", ([0.0, -0.0, -1.0, 1.0, INF],), [-INF, -INF, NAN, 0, INF]),
        ("exp", ([100.0, -200.0, INF, -INF, 0.0],), [INF, 0, INF, 0, 1]),
        ("erf", ([INF, -INF, NAN, 0.0, 10.0],), [1, -1, NAN, 0, 1]),
        ("div", ([1.0, -1.0, 1.0, 0.0, INF, 1.0], [0.0, 0.0, -0.0, 0.0, INF, INF]), [INF, -INF, -INF, NAN, NAN, 0]),
        ("max", ([NAN, 1.0, INF, -INF], [1.0, NAN, 0.0, 0.0]), [NAN, NAN, INF, 0]),
        ("min", ([NAN, 1.0, INF, -INF], [1.0, NAN, 0.0, 0.0]), [NAN, NAN, 0, -INF]),
        ("sub", ([INF, NAN, 3.0], [INF, 0.0, 3.0]), [NAN, NAN, 0]),
        ("mul", ([0.0, INF, -1.0], [INF, 0.0, 0.0]), [NAN, NAN, -0.0]),
        (
            "pow",
            (
                [NAN, 1.0, 0.0, 0.0, -0.0, -2.0, -2.0, -2.0, -2.0, 4.0, INF, 1.0],
                [0.0, NAN, -1.0, 0.0, -1.0, 2.0, 3.0, 0.5, -1.0, 0.5, -1.0, INF],
            ),
            [1, 1, INF, 1, -INF, 4, -8, NAN, -0.5, 2, 0, 1],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("data_type", FLOATS)
def test_special_floats(
    device: Device, op: str, inputs: Sequence[Sequence[float]], expected: Sequence[float], data_type: str
) -> None:
    dtype = numpy_dtype(data_type)
    with np.errstate(over="ignore"):
        arrays = [np.array(values, np.float64).astype(dtype) for values in inputs]
        wanted = np.array(expected, np.float64).astype(dtype)
    if data_type == "float16" and op == "roundEven":
        arrays, wanted = [arrays[0][:8]], wanted[:8]
    if data_type == "float16" and op == "floor":
        wanted[3] = INF
    (actual,) = check_op(device, op, arrays)
    assert_same({"": actual}, {"": wanted})


@pytest.mark.parametrize("data_type", FLOATS)
def test_comparisons_with_nan(device: Device, data_type: str) -> None:
    a = np.array([NAN, NAN, 1, 1, 2, 0.0], data_type)
    b = np.array([NAN, 1, NAN, 1, 1, -0.0], data_type)
    expected = {
        "equal": [0, 0, 0, 1, 0, 1],
        "notEqual": [1, 1, 1, 0, 1, 0],
        "greater": [0, 0, 0, 0, 1, 0],
        "greaterOrEqual": [0, 0, 0, 1, 1, 1],
        "lesser": [0, 0, 0, 0, 0, 0],
        "lesserOrEqual": [0, 0, 0, 1, 0, 1],
    }
    for op, wanted in expected.items():
        assert check_op(device, op, [a, b])[0].tolist() == wanted, op


def test_half_precision_subnormals_compare_by_value(device: Device) -> None:
    a, b = np.array([6e-8, 0, 1.2e-7], np.float16), np.array([0, 6e-8, 6e-8], np.float16)
    assert check_op(device, "greater", [a, b])[0].tolist() == [1, 0, 1]


@pytest.mark.parametrize("data_type", [t for t in ANY if t not in FLOATS])
def test_integers(device: Device, data_type: str) -> None:
    limits = np.iinfo(data_type)
    low, high = int(limits.min), int(limits.max)
    signed = low < 0

    def both(op: str, pairs: list[tuple[int, int]], expected: list[int]) -> None:
        a, b = (np.array(side, data_type) for side in zip(*pairs, strict=True))
        assert check_op(device, op, [a, b])[0].tolist() == expected, op

    both("add", [(high, 1), (low, 0)], [low, low])
    both("sub", [(low, 1), (high, high)], [high, 0])
    both("mul", [(high, high), (high, 2)], [1, -2 if signed else high - 1])
    both("div", [(7, 2), (7, 0), (0, 0), (high, 1)], [3, 0, 0, high])
    both("pow", [(3, 3), (2, 0), (0, 0), (2, 8 * np.dtype(data_type).itemsize)], [27, 1, 1, 0])
    if signed:
        both("div", [(-7, 2), (7, -2), (-7, -2), (low, -1), (-7, 0)], [-3, -3, 3, low, 0])
        both("pow", [(1, -5), (-1, -5), (-1, -4), (2, -1), (0, -1), (-2, 3)], [1, -1, 1, 0, 0, -8])
        for op, expected in (("neg", [low, -high, 0]), ("abs", [low, high, 0])):
            assert data_type in SIGNED
            assert check_op(device, op, [np.array([low, high, 0], data_type)])[0].tolist() == expected


def test_any_byte_but_0_is_true(device: Device) -> None:
    a, b = np.array([0, 0, 2, 255], np.uint8), np.array([0, 3, 0, 128], np.uint8)
    assert check_op(device, "logicalAnd", [a, b])[0].tolist() == [0, 0, 0, 1]
    assert check_op(device, "logicalOr", [a, b])[0].tolist() == [0, 1, 1, 1]
    assert check_op(device, "logicalXor", [a, b])[0].tolist() == [0, 1, 1, 0]
    assert check_op(device, "logicalNot", [a])[0].tolist() == [1, 1, 0, 0]


def test_every_nan_is_one(device: Device) -> None:
    bits = np.array([0x7F800001, 0xFFFFFFFF, 0x7FC00000, 0x7F800000, 0xFF800000, 0x007FFFFF], np.uint32)
    assert check_op(device, "isNaN", [bits.view(np.float32)])[0].tolist() == [1, 1, 1, 0, 0, 0]
    assert check_op(device, "isInfinite", [bits.view(np.float32)])[0].tolist() == [0, 0, 0, 1, 1, 0]


# --------------------------------------------------------------------------------------------------------- broadcasting

SHAPES = {
    "0-d": ((), ()),
    "one element": ((1,), (1, 1, 1)),
    "same, odd": ((3, 5), (3, 5)),
    "same, longer than a round": ((257, 129), (257, 129)),
    "scalar": ((3, 7), ()),
    "one": ((1, 1), (5, 9)),
    "suffix": ((6, 8), (8,)),
    "suffix of two": ((3, 2, 4), (2, 4)),
    "odd suffix": ((6, 7), (7,)),
    "quad": ((3, 1, 8), (3, 5, 8)),
    "repeat": ((3, 8), (3, 1)),
    "quad and repeat": ((5, 1, 8), (1, 6, 1)),
    "strided": ((3, 1, 5), (1, 4, 1)),
    "strided in whole quads": ((3, 1, 4), (3, 2, 1)),
    "both ways": ((2, 1, 3, 1), (1, 5, 1, 7)),
    "rank 8": ((2, 1, 2, 1, 2, 1, 2, 1), (1, 3, 1, 2, 1, 2, 1, 3)),
    "rank 8, whole quads": ((2, 1, 2, 1, 2, 1, 1, 4), (1, 3, 1, 2, 1, 2, 2, 1)),
    "ranks differ": ((4,), (2, 3, 1)),
}
SIZES = ("float32", "float16", "int64", "uint8")
"""One data type of each size."""


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("data_type", SIZES)
def test_broadcasting(device: Device, shapes: tuple[tuple[int, ...], tuple[int, ...]], data_type: str) -> None:
    rng = np.random.default_rng(1)
    a, b = (random_array(rng, data_type, shape) for shape in shapes)
    for inputs in ([a, b], [b, a]):
        (actual,) = check_op(device, "sub", inputs)
        assert actual.shape == np.broadcast_shapes(*shapes)


@pytest.mark.parametrize(
    ("shapes", "reads"),
    [
        (((3, 5), (3, 5)), ("same", "same")),
        (((3, 5), (1, 1)), ("same", "scalar")),
        (((6, 8), (1, 8)), ("same", "suffix")),
        (((3, 1, 8), (3, 5, 8)), ("quad", "same")),
        (((3, 8), (3, 1)), ("same", "repeat")),
        (((3, 1, 4), (3, 2, 1)), ("quad", "repeat")),
        (((6, 7), (7,)), ("same", "strided")),
        (((2, 8), (2, 1)), ("same", "repeat")),
    ],
)
def test_reads_are_as_wide_as_shapes_allow(
    device: Device, shapes: tuple[tuple[int, ...], tuple[int, ...]], reads: tuple[str, str]
) -> None:
    s = Sketch()
    graph = s.graph(s.apply("add", *(s.input(np.zeros(shape, np.float32)) for shape in shapes)))
    (dispatch,) = make_plan(graph, device.target).dispatches
    assert dispatch.spec.param("reads") == reads


def test_three_operands_broadcast(device: Device) -> None:
    rng = np.random.default_rng(2)
    condition = rng.integers(0, 2, (3, 1, 8)).astype(np.uint8)
    check_op(device, "where", [condition, random_array(rng, "float32", (4, 1)), random_array(rng, "float32", (8,))])


def test_constants_are_read_alike(device: Device) -> None:
    rng = np.random.default_rng(3)
    a, b = random_array(rng, "float32", (6, 8)), random_array(rng, "float32", (8,))
    for constants in ({0}, {1}):
        check_op(device, "sub", [a, b], constants=constants)


# ------------------------------------------------------------------------------------------------------ sizes and limits


def run_planned(device: Device, graph: Graph, feeds: dict[str, Array], **limits: int) -> tuple[int, dict[str, Array]]:
    """Run a graph planned for the device with some limits changed; return the number of dispatches and the outputs."""
    changed = dict(device.caps.limits) | {name.replace("_", "-"): value for name, value in limits.items()}
    plan = make_plan(graph, Target.of(replace(device.caps, limits=tuple(changed.items()))))
    program = Program(device, plan)
    try:
        return len(plan.dispatches), program.start(feeds, list(graph.outputs)).result()
    finally:
        program.destroy()


@pytest.mark.parametrize("data_type", ["float32", "uint8", "int64"])
@pytest.mark.parametrize("kind", ["same", "scalar", "suffix", "quad", "strided"])
def test_tensors_larger_than_a_binding(device: Device, kind: str, data_type: str) -> None:
    shape = {"strided": (37, 3, 33), "quad": (9, 31, 12)}.get(kind, (331, 12))
    other = {"same": shape, "scalar": (), "suffix": (12,), "quad": (9, 1, 12), "strided": (1, 3, 1)}[kind]
    rng = np.random.default_rng(4)
    s = Sketch()
    x, y = (s.input(random_array(rng, data_type, d)) for d in (shape, other))
    graph = s.graph(s.apply("equal", s.apply("sub", x, y), x))
    count, actual = run_planned(device, graph, s.feeds, max_storage_buffer_binding_size=2048)
    assert count > 2
    assert_same(actual, interpret(graph, s.feeds))


def test_more_workgroups_than_a_grid_dimension_holds(device: Device) -> None:
    s = Sketch()
    x, y = s.input(np.arange(40_003, dtype=np.int32).reshape(-1, 1)[::-1].copy()), s.input(np.arange(3, dtype=np.int32))
    graph = s.graph(s.apply("sub", x, y))
    _, actual = run_planned(device, graph, s.feeds, max_compute_workgroups_per_dimension=7)
    assert_same(actual, interpret(graph, s.feeds))


def test_the_real_limit_of_a_grid_dimension(device: Device) -> None:
    # As on hardware, where each invocation computes one quad: 65536 workgroups of 256 elements and a bit.
    count = 65536 * 256 + 5
    s = Sketch()
    graph = s.graph(s.apply("neg", s.input(np.arange(count, dtype=np.uint32).astype(np.int8))))
    plan = make_plan(graph, Target.of(replace(device.caps, adapter_type="DiscreteGPU")))
    assert plan.dispatches[0].grid[1] == 2
    program = Program(device, plan)
    try:
        assert_same(program.start(s.feeds, ["0"]).result(), interpret(graph, s.feeds))
    finally:
        program.destroy()


# ------------------------------------------------------------------------------------------------------ kinds of devices


@pytest.mark.parametrize("data_type", ANY)
def test_every_profile_computes_with_all_types(profile_device: Device, data_type: str) -> None:
    rng = np.random.default_rng(5)
    for shapes in (((3, 8), (8,)), ((3, 7), (3, 1)), ((5,), ())):
        check_op(profile_device, "sub", [random_array(rng, data_type, shape) for shape in shapes])


def test_library_functions_need_no_feature() -> None:
    device = open_profile("default-limits")
    x = elements("float32")
    for op in ("exp", "pow", "erf"):
        check_op(device, op, [x] * len(OPS[op].operands))


def test_shaders_do_not_depend_on_sizes(device: Device) -> None:
    s = Sketch()
    x, y = (s.input(np.zeros(shape, np.float32)) for shape in ((3, 5), (4, 1, 7)))
    plan = make_plan(s.graph(s.apply("elu", x, alpha=0.5), s.apply("elu", y)), device.target)
    assert len({d.spec for d in plan.dispatches}) == 1


def test_runs_of_one_graph_follow_their_inputs(device: Device) -> None:
    s = Sketch()
    x = s.input(np.zeros(5, np.float32))
    graph = s.graph(s.apply("add", x, x))
    for value in (1.0, -2.0):
        feeds = {"0": np.full(5, value, np.float32)}
        assert_same(run_graph(device, graph, feeds), interpret(graph, feeds))
