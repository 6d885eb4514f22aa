"""Tensors larger than the device can bind at once: here the limit is lowered, so that small ones are."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support import Sketch, assert_same, op_graph, open_profile, random_array
from webnn_wgpu.core.errors import OutOfMemoryError
from webnn_wgpu.passes import run_passes
from webnn_wgpu.plan import ExecutionPlan, make_plan
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime.program import Program
from webnn_wgpu.testing.compare import assert_within

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webnn_wgpu.core.caps import Caps
    from webnn_wgpu.ir.graph import Array, Graph
    from webnn_wgpu.runtime.device import Device

LIMIT = 2048
"""Bytes of a binding, unless a test says otherwise: 512 float32."""


def limited(caps: Caps, binding: int = LIMIT, **limits: int) -> Caps:
    changed = dict(caps.limits) | {"max-storage-buffer-binding-size": binding}
    changed |= {name.replace("_", "-"): value for name, value in limits.items()}
    return replace(caps, limits=tuple(changed.items()))


def run_limited(
    device: Device, graph: Graph, feeds: Mapping[str, Array], caps: Caps, forced: Mapping[str, str] | None = None
) -> tuple[ExecutionPlan, dict[str, Array]]:
    """Run a graph planned for lowered limits, and check that the plan keeps them."""
    plan = make_plan(graph, caps, forced)
    limit, alignment = (
        caps.limit(f"{name}") for name in ("max-storage-buffer-binding-size", "min-storage-buffer-offset-alignment")
    )
    for dispatch in plan.dispatches:
        for binding, resource in zip(dispatch.spec.bindings, dispatch.bindings, strict=True):
            assert binding.access == "texture" or resource.size_bytes <= limit
            assert resource.offset_bytes % alignment == 0
    program = Program(device, plan)
    try:
        return plan, program.start(feeds, list(graph.outputs)).result()
    finally:
        program.destroy()


def check_large(
    device: Device,
    name: str,
    inputs: Sequence[Array | None],
    attrs: Mapping[str, Any] | None = None,
    *,
    constants: Collection[int] = (),
    forced: Mapping[str, str] | None = None,
    caps: Caps | None = None,
    atol: float = 0,
    divided: bool = True,
) -> ExecutionPlan:
    """Run one operator with a lowered limit and compare it with its reference; `divided` says that not everything fits."""
    graph = op_graph(name, inputs, attrs, constants)
    feeds = {str(i): a for i, a in enumerate(inputs) if a is not None and i not in constants}
    plan, actual = run_limited(device, graph, feeds, caps or limited(device.caps), forced)
    parts = any(b.window for d in plan.dispatches for b in d.spec.bindings) or len(plan.constants) > len(constants)
    assert parts or not divided, "everything fits: nothing is tested"
    for output, wanted in interpret(graph, feeds).items():
        assert_within(actual[output], wanted, "ATOL", atol)
    return plan


def numbered(data_type: str, shape: Sequence[int]) -> Array:
    """Elements that are all different, as far as the data type has so many."""
    return np.arange(math.prod(shape), dtype=np.int64).astype(data_type).reshape(shape)


# ---------------------------------------------------------------------------------------------------------------- movers

MOVES: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("transpose", (40, 50), {}),
    ("transpose", (7, 41, 13), {"permutation": [2, 0, 1]}),
    ("transpose", (64, 64), {}),
    ("transpose", (3, 5, 7, 5, 4), {"permutation": [4, 2, 0, 3, 1]}),
    ("slice", (60, 50), {"starts": [3, 1], "sizes": [50, 48]}),
    ("slice", (3000,), {"starts": [5], "sizes": [2900], "strides": [2]}),
    ("slice", (5000,), {"starts": [2000], "sizes": [30]}),
    ("split", (30, 64), {"splits": [1, 20, 9]}),
    ("split", (30, 64), {"splits": [3, 40, 21], "axis": 1}),
    ("expand", (1, 700), {"new_shape": [3, 700]}),
    ("expand", (701, 1), {"new_shape": [701, 3]}),
    ("expand", (1, 701), {"new_shape": [3, 701]}),
    ("tile", (33, 21), {"repetitions": [3, 2]}),
    ("reverse", (31, 43), {}),
    ("reverse", (31, 44), {"axes": [1]}),
    ("triangular", (37, 41), {"diagonal": 1}),
    ("pad", (33, 21), {"beginning_padding": [2, 3], "ending_padding": [4, 1], "value": 7}),
    ("pad", (33, 24), {"beginning_padding": [20, 0], "ending_padding": [40, 0], "mode": "constant"}),
    ("pad", (1000,), {"beginning_padding": [900], "ending_padding": [500], "mode": "reflection"}),
    ("pad", (31, 30), {"beginning_padding": [3, 3], "ending_padding": [3, 3], "mode": "symmetric"}),
    ("pad", (2, 900), {"beginning_padding": [5, 0], "ending_padding": [5, 2], "mode": "edge"}),
]


@pytest.mark.parametrize(("name", "shape", "attrs"), MOVES)
@pytest.mark.parametrize("data_type", ["float32", "uint8", "float16", "int64"])
def test_movers(device: Device, name: str, shape: tuple[int, ...], attrs: dict[str, Any], data_type: str) -> None:
    caps = limited(device.caps, 512 if data_type == "uint8" else 1024 if data_type == "float16" else LIMIT)
    check_large(device, name, [numbered(data_type, shape)], attrs, caps=caps)


def test_a_transpose_repeats_runs_for_parts_of_its_input(device: Device) -> None:
    plan = check_large(device, "transpose", [numbered("float32", (32, 32))])
    # Two halves of the output, each from two halves of the input.
    assert [d.grid for d in plan.dispatches] == [(2, 1, 1)] * 4
    assert [b.window for b in plan.dispatches[0].spec.bindings] == ["masked", "masked"]
    assert len({d.spec for d in plan.dispatches}) == 1


def test_a_copy_reads_what_it_writes(device: Device) -> None:
    x = numbered("float32", (1024,))
    s = Sketch()
    plan, actual = run_limited(device, s.graph(s.input(x)), {"0": x}, limited(device.caps))
    assert [[(r.offset_bytes, r.size_bytes) for r in d.bindings] for d in plan.dispatches] == [
        [(0, 2048)] * 2,
        [(2048, 2048)] * 2,
    ]
    assert_same(actual, {"0": x})


@pytest.mark.parametrize("data_type", ["float32", "uint8", "float16", "int64"])
@pytest.mark.parametrize(
    ("shapes", "axis"),
    [
        ([(700,), (3,), (900,)], 0),
        ([(20, 64), (10, 64), (1, 64)], 0),
        ([(20, 64), (20, 32)], 1),
        ([(20, 63), (20, 5), (20, 1)], 1),
        ([(2, 2)] * 400, 1),
        ([(1, 4)] * 400, 0),
    ],
)
def test_concat(device: Device, shapes: list[tuple[int, ...]], axis: int, data_type: str) -> None:
    inputs = [numbered(data_type, shape) for shape in shapes]
    caps = limited(device.caps, 512)
    check_large(device, "concat", inputs, {"axis": axis}, caps=caps)


@pytest.mark.parametrize("indices_type", ["int32", "int64", "uint32"])
@pytest.mark.parametrize("data_type", ["float32", "uint8", "int64"])
@pytest.mark.parametrize(
    ("table", "indices", "axis"),
    [
        ((300, 8), (5,), 0),
        ((300, 7), (5, 2), 0),
        ((7, 300), (400,), 1),
        ((3, 50, 9), (2, 3), 1),
        ((3000,), (2500,), 0),
        ((5,), (2500,), 0),
    ],
)
def test_gather(
    device: Device, table: tuple[int, ...], indices: tuple[int, ...], axis: int, data_type: str, indices_type: str
) -> None:
    rng = np.random.default_rng(1)
    given = rng.integers(0, table[axis] + 2, indices).astype(indices_type)
    caps = limited(device.caps, 1024)
    check_large(device, "gather", [numbered(data_type, table), given], {"axis": axis}, caps=caps)


@pytest.mark.parametrize("data_type", ["float32", "uint8"])
def test_gathered_elements(device: Device, data_type: str) -> None:
    rng = np.random.default_rng(2)
    x = numbered(data_type, (40, 50))
    caps = limited(device.caps, 1024)
    check_large(device, "gatherElements", [x, rng.integers(-40, 40, (60, 50)).astype(np.int32)], {"axis": 0}, caps=caps)
    check_large(device, "gatherElements", [x, rng.integers(-50, 50, (40, 5)).astype(np.int64)], {"axis": 1}, caps=caps)
    check_large(device, "gatherND", [x, rng.integers(-40, 40, (700, 2)).astype(np.int32)], caps=caps)
    check_large(device, "gatherND", [x, rng.integers(-40, 40, (700, 1)).astype(np.int64)], caps=caps)


# ---------------------------------------------------------------------------------------------------------- element-wise


@pytest.mark.parametrize("data_type", ["float32", "uint8", "int64"])
@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 700), (1, 700)), ((3, 701), (1, 701)), ((701, 1), (1, 3)), ((5, 1, 300), (5, 3, 1)), ((2, 3, 301), (3, 301))],
)
def test_operands_that_broadcast(device: Device, a: tuple[int, ...], b: tuple[int, ...], data_type: str) -> None:
    inputs = [numbered(data_type, a), numbered(data_type, b)]
    caps = limited(device.caps, 512 if data_type == "uint8" else LIMIT)
    for both in (inputs, inputs[::-1]):
        check_large(device, "sub", both, caps=caps)


def test_normalization_along_a_dimension(device: Device) -> None:
    rng = np.random.default_rng(3)
    inputs: list[Array] = [random_array(rng, "float32", (5, 30, 17)), *(np.float32(rng.random(30) + 1) for _ in range(4))]
    check_large(device, "batchNormalization", inputs, {"axis": 1}, atol=1e-5)


# ------------------------------------------------------------------------------------------------------------------ rows

ROWS: list[tuple[tuple[int, ...], list[int]]] = [
    ((40, 64), [1]),
    ((41, 63), [1]),
    ((64, 40), [0]),
    ((63, 41), [0]),
    ((1200, 2), [0]),
    ((2, 1201), [1]),
    ((6, 30, 20), [1]),
    ((6, 7, 50), [0, 2]),
    ((2000,), [0]),
    ((3, 40, 5, 7), [1, 2]),
    ((1, 1024), [0, 1]),
    ((1500, 2), []),
]


@pytest.mark.parametrize("variant", ["plain", "subgroup", "workgroup"])
@pytest.mark.parametrize(("shape", "axes"), ROWS)
@pytest.mark.parametrize("name", ["reduceSum", "reduceMax", "reduceLogSumExp", "reduceMean"])
def test_reductions(device: Device, name: str, shape: tuple[int, ...], axes: list[int], variant: str) -> None:
    x = random_array(np.random.default_rng(4), "float32", shape)
    check_large(device, name, [x], {"axes": axes}, forced={name: variant}, atol=0 if name == "reduceMax" else 1e-3)


@pytest.mark.parametrize("data_type", ["int8", "uint8", "float16", "int64"])
@pytest.mark.parametrize(("shape", "axes"), ROWS)
def test_reductions_of_other_types(device: Device, shape: tuple[int, ...], axes: list[int], data_type: str) -> None:
    x = random_array(np.random.default_rng(5), data_type, shape)
    caps = limited(device.caps, 512 if data_type.endswith("8") else 1024)
    check_large(device, "reduceMin", [x], {"axes": axes}, caps=caps)


@pytest.mark.parametrize("variant", ["plain", "subgroup", "workgroup"])
@pytest.mark.parametrize(("shape", "axes"), [(s, a) for s, a in ROWS if math.prod(s[d] for d in a) <= 450])
def test_indices_of_extremes(device: Device, shape: tuple[int, ...], axes: list[int], variant: str) -> None:
    x = np.random.default_rng(6).integers(-20, 20, shape).astype(np.float32)
    for name, output in (("argMax", "int32"), ("argMin", "int64")):
        check_large(device, name, [x], {"axes": axes, "output_data_type": output}, forced={name: variant})


@pytest.mark.parametrize("variant", [None, "plain", "subgroup", "workgroup"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((40, 64), 1), ((41, 63), 1), ((64, 40), 0), ((2, 1201), 1), ((6, 30, 20), 1), ((1500,), 0)]
)
@pytest.mark.parametrize("data_type", ["float32", "float16"])
def test_softmax(device: Device, shape: tuple[int, ...], axis: int, data_type: str, variant: str | None) -> None:
    x = random_array(np.random.default_rng(7), data_type, shape)
    forced = {"softmax": variant} if variant else None
    caps = limited(device.caps, 2048 if data_type == "float32" else 1024)
    check_large(device, "softmax", [x], {"axis": axis}, forced=forced, caps=caps, atol=1e-3)


def test_long_rows_keep_the_rules_of_softmax(device: Device) -> None:
    x = np.zeros((4, 700), np.float32)
    x[1, 3], x[2, 5], x[3] = np.inf, np.nan, -np.inf
    check_large(device, "softmax", [x], {"axis": 1}, atol=1e-6)


@pytest.mark.parametrize("given", [(), (1,), (1, 2)])
@pytest.mark.parametrize(
    ("shape", "axes"), [((40, 64), [1]), ((41, 63), [1]), ((3, 40, 30), [2, 1]), ((3, 41, 17), [0, 2]), ((2, 900), [1])]
)
def test_layer_normalization(device: Device, shape: tuple[int, ...], axes: list[int], given: tuple[int, ...]) -> None:
    rng = np.random.default_rng(8)
    parameters = [random_array(rng, "float32", [shape[d] for d in axes]) if i in given else None for i in (1, 2)]
    inputs = [random_array(rng, "float32", shape), *parameters]
    check_large(device, "layerNormalization", inputs, {"axes": axes}, atol=1e-4)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("shape", [(2, 3, 20, 17), (5, 4, 6, 4), (1, 30, 30, 2)])
def test_instance_normalization(device: Device, shape: tuple[int, ...], layout: str) -> None:
    rng = np.random.default_rng(9)
    channels = shape[1 if layout == "nchw" else 3]
    inputs = [random_array(rng, "float32", shape), *(random_array(rng, "float32", (channels,)) for _ in range(2))]
    check_large(device, "instanceNormalization", inputs, {"layout": layout}, caps=limited(device.caps, 1024), atol=1e-4)


# -------------------------------------------------------------------------------------------------------------- products

VARIANTS = ["subgroup", "tiled", "plain", "gemv"]


@pytest.mark.parametrize("constants", [(), (1,)])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((300, 20), (20, 24)),
        ((301, 19), (19, 23)),
        ((3, 64), (64, 300)),
        ((2, 63), (63, 301)),
        ((5, 40, 32), (5, 32, 28)),
        ((2, 1, 30, 32), (5, 32, 31)),
        ((4, 70, 8), (8, 30)),
    ],
)
def test_products(device: Device, a: tuple[int, ...], b: tuple[int, ...], variant: str, constants: tuple[int, ...]) -> None:
    rng = np.random.default_rng(10)
    inputs = [random_array(rng, "float32", shape) for shape in (a, b)]
    caps = limited(device.caps, 8192, max_texture_dimension_2d=64)
    check_large(device, "matmul", inputs, constants=constants, forced={"matmul": variant}, caps=caps, atol=1e-3)


@pytest.mark.parametrize("constants", [(), (0, 1, 2)])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("a_transpose", "b_transpose"), [(False, True), (True, False), (True, True)])
@pytest.mark.parametrize("c", [(200, 120), (120,), (200, 1), ()])
def test_transposed_products(
    device: Device, a_transpose: bool, b_transpose: bool, variant: str, constants: tuple[int, ...], c: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(11)
    a, b = (200, 100), (100, 120)
    shapes = (a[::-1] if a_transpose else a, b[::-1] if b_transpose else b, c)
    inputs = [random_array(rng, "float32", shape) for shape in shapes]
    attrs = {"alpha": 0.5, "beta": 2.0, "a_transpose": a_transpose, "b_transpose": b_transpose}
    caps = limited(device.caps, 32768, max_texture_dimension_2d=128)
    check_large(device, "gemm", inputs, attrs, constants=constants, forced={"gemm": variant}, caps=caps, atol=1e-3)


@pytest.mark.parametrize("variant", VARIANTS)
def test_epilogues_of_divided_products(device: Device, variant: str) -> None:
    rng = np.random.default_rng(12)
    s = Sketch()
    x, bias, other = (s.input(random_array(rng, "float32", shape)) for shape in ((90, 100), (120,), (90, 120)))
    product = s.apply("matmul", x, s.constant(random_array(rng, "float32", (100, 120))))
    graph, _ = run_passes(s.graph(s.apply("mul", s.apply("relu", s.apply("add", product, bias)), other)))
    caps = limited(device.caps, 32768, max_texture_dimension_2d=64)
    plan, actual = run_limited(device, graph, s.feeds, caps, {"matmul": variant})
    assert all(d.spec.template == f"matmul.{variant}" for d in plan.dispatches)
    assert len(plan.dispatches) > 1
    np.testing.assert_allclose(actual["0"], interpret(graph, s.feeds)["0"], rtol=1e-5, atol=1e-3)


def test_textures_hold_as_many_panels_as_they_can(device: Device) -> None:
    rng = np.random.default_rng(13)
    inputs = [random_array(rng, "float32", shape) for shape in ((4, 48), (48, 500))]
    caps = limited(device.caps, 1 << 20, max_texture_dimension_2d=64)
    plan = check_large(device, "matmul", inputs, constants={1}, forced={"matmul": "subgroup"}, caps=caps, atol=1e-3)
    assert len(plan.dispatches) == len(plan.constants) > 1
    for use in plan.constants:
        assert use.packing is not None
        height, width, _ = use.packing.pack(inputs[1]).shape
        assert max(height, width) <= 64


def test_rows_too_long_for_a_tile_are_taken_one_by_one(device: Device) -> None:
    rng = np.random.default_rng(14)
    inputs = [random_array(rng, "float32", shape) for shape in ((20, 100), (100, 4))]
    (plan, *_) = [check_large(device, "matmul", inputs, atol=1e-3)]
    assert plan.dispatches[0].spec.template == "matmul.gemv"


# ---------------------------------------------------------------------------------------------------------- convolutions


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("variant", ["implicit", "tiled", "plain"])
@pytest.mark.parametrize("constants", [(), (1,)])
@pytest.mark.parametrize(
    ("x", "weights", "groups"),
    [((2, 4, 24, 9), (8, 4, 3, 3), 1), ((1, 6, 20, 9), (6, 3, 3, 2), 2), ((1, 8, 5, 5), (50, 8, 3, 3), 1)],
)
def test_convolutions(
    device: Device,
    x: tuple[int, ...],
    weights: tuple[int, ...],
    groups: int,
    variant: str,
    constants: tuple[int, ...],
    layout: str,
) -> None:
    rng = np.random.default_rng(18)
    shape = x if layout == "nchw" else (x[0], x[2], x[3], x[1])
    inputs = [random_array(rng, "float32", s) for s in (shape, weights, weights[:1])]
    attrs = {"groups": groups, "input_layout": layout, "padding": [1, 0, 2, 1]}
    caps = limited(device.caps, 16384 if weights[0] == 50 else 3072)
    forced = {"conv2d": variant, "matmul": "plain"}
    check_large(device, "conv2d", inputs, attrs, constants=constants, forced=forced, caps=caps, atol=1e-3, divided=False)


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize(
    ("x", "weights", "groups"),
    [
        ((1, 4, 40, 9), (4, 4, 3, 3), 1),
        ((5, 4, 6, 6), (4, 4, 3, 3), 1),
        ((2, 4, 20, 9), (4, 1, 3, 3), 4),
        ((1, 300, 3, 3), (4, 300, 2, 2), 1),
    ],
)
def test_epilogues_of_divided_convolutions(
    device: Device, x: tuple[int, ...], weights: tuple[int, ...], groups: int, layout: str, data_type: str
) -> None:
    rng = np.random.default_rng(19)
    n, c, h, w = x
    s = Sketch()
    image = s.input(random_array(rng, data_type, x if layout == "nchw" else (n, h, w, c), 1.0))
    filter_ = s.constant(random_array(rng, data_type, weights, 1.0))
    y = s.apply("conv2d", image, filter_, groups=groups, input_layout=layout)
    shape = s.type(y).shape
    scale = s.input(random_array(rng, data_type, (4, 1, 1) if layout == "nchw" else (4,), 1.0))
    y = s.apply("add", s.apply("relu", s.apply("mul", y, scale)), s.input(random_array(rng, data_type, shape, 1.0)))
    graph, _ = run_passes(s.graph(y))
    assert len(graph.nodes) == 1
    caps = limited(device.caps, 2048 if data_type == "float32" else 1024)
    plan, actual = run_limited(device, graph, s.feeds, caps)
    assert len(plan.dispatches) > 1
    wanted = interpret(graph, s.feeds)["0"]
    close = {"float32": 1e-4, "float16": 1e-2}[data_type]
    np.testing.assert_allclose(actual["0"], wanted, rtol=close, atol=close * 20)


# ----------------------------------------------------------------------------------------------------------- many at once


@settings(max_examples=150)
@given(st.data())
def test_any_mover_on_any_device(data: st.DataObject) -> None:
    device = open_profile(data.draw(st.sampled_from(["full", "default-limits"])))
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 7, 8, 16, 31]), min_size=1, max_size=4)))
    data_type = data.draw(st.sampled_from(["float32", "uint8", "float16", "int64"]))
    assume(math.prod(shape) <= 20000)
    rank = len(shape)
    name = data.draw(st.sampled_from(["transpose", "reverse", "tile", "slice", "pad", "expand", "gather", "concat"]))
    inputs, attrs = [numbered(data_type, shape)], dict[str, Any]()
    sizes = st.sampled_from([0, 1, 2, 5, 8])
    if name == "transpose":
        attrs["permutation"] = data.draw(st.permutations(range(rank)))
    elif name == "reverse":
        attrs["axes"] = sorted(data.draw(st.sets(st.sampled_from(range(rank)))))
    elif name == "tile":
        attrs["repetitions"] = [data.draw(st.sampled_from([1, 2, 3])) for _ in shape]
    elif name == "slice":
        attrs["starts"] = [data.draw(st.integers(0, n - 1)) for n in shape]
        attrs["sizes"] = [data.draw(st.integers(1, n - b)) for n, b in zip(shape, attrs["starts"], strict=True)]
        attrs["strides"] = [data.draw(st.integers(1, n)) for n in attrs["sizes"]]
    elif name == "pad":
        attrs["mode"] = data.draw(st.sampled_from(["constant", "edge"]))
        attrs["beginning_padding"], attrs["ending_padding"] = ([data.draw(sizes) for _ in shape] for _ in range(2))
    elif name == "expand":
        inputs = [numbered(data_type, [data.draw(st.sampled_from([1, n])) for n in shape])]
        attrs["new_shape"] = shape
    elif name == "gather":
        attrs["axis"] = axis = data.draw(st.integers(0, rank - 1))
        inputs.append(np.random.default_rng(0).integers(-shape[axis], shape[axis], (9, 5)).astype(np.int32))
    else:
        attrs["axis"] = axis = data.draw(st.integers(0, rank - 1))
        inputs.append(numbered(data_type, [4 if d == axis else n for d, n in enumerate(shape)]))
    caps = limited(device.caps, data.draw(st.sampled_from([512, 1024, 4096])))
    check_large(device, name, inputs, attrs, caps=caps, divided=False)


@settings(max_examples=80)
@given(st.data())
def test_any_rows_on_any_device(data: st.DataObject) -> None:
    device = open_profile(data.draw(st.sampled_from(["full", "default-limits"])))
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 8, 17, 32]), min_size=1, max_size=4)))
    assume(math.prod(shape) <= 20000)
    axes = sorted(data.draw(st.sets(st.sampled_from(range(len(shape))), min_size=1)))
    x = random_array(np.random.default_rng(0), "float32", shape, 1.0)
    caps = limited(device.caps, data.draw(st.sampled_from([1024, 4096])))
    check_large(device, "reduceSumSquare", [x], {"axes": axes}, caps=caps, atol=1e-1, divided=False)
    check_large(device, "layerNormalization", [x, None, None], {"axes": axes}, caps=caps, atol=1e-4, divided=False)
    check_large(device, "softmax", [x], {"axis": axes[0]}, caps=caps, atol=1e-5, divided=False)


def test_a_chain_of_large_results(device: Device) -> None:
    rng = np.random.default_rng(15)
    s = Sketch()
    x = s.input(random_array(rng, "float32", (60, 40)))
    y = s.apply("softmax", s.apply("transpose", s.apply("exp", x)), axis=0)
    z = s.apply("matmul", y, x)
    graph = s.graph(s.apply("reduceSum", z, axes=[0]), y)
    _, actual = run_limited(device, graph, s.feeds, limited(device.caps, 4096))
    for name, wanted in interpret(graph, s.feeds).items():
        np.testing.assert_allclose(actual[name], wanted, rtol=1e-4, atol=1e-4)


# --------------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("name", "shapes", "attrs", "got"),
    [
        ("argMax", [(600,)], {"axis": 0}, "input float32[600], 2400 bytes"),
        ("averagePool2d", [(1, 1, 30, 30)], {"window_dimensions": [20, 20]}, "input float32[1, 1, 30, 30], 3616 bytes"),
    ],
)
def test_what_does_not_fit_is_named(
    device: Device, name: str, shapes: list[tuple[int, ...]], attrs: dict[str, Any], got: str
) -> None:
    graph = op_graph(name, [np.zeros(shape, np.float32) for shape in shapes], attrs)
    with pytest.raises(OutOfMemoryError) as raised:
        make_plan(graph, limited(device.caps))
    assert (raised.value.label, raised.value.got) == ("test", got)
    assert raised.value.allowed == "max-storage-buffer-binding-size 2048 bytes"


def test_what_the_device_cannot_hold_is_named(device: Device) -> None:
    s = Sketch()
    x = s.input(np.zeros((40, 128), np.float32))
    graph = s.graph(s.apply("tile", x, label="many", repetitions=[2, 2]))
    with pytest.raises(OutOfMemoryError) as raised:
        make_plan(graph, limited(device.caps, max_buffer_size=40000))
    assert str(raised.value) == (
        "tile('many'): a tensor is larger than the device can hold; got output float32[80, 256], 81920 bytes; "
        "allowed: max-buffer-size 40000 bytes"
    )


# --------------------------------------------------------------------------------------------------------- the real limits


@pytest.fixture(scope="module")
def embeddings() -> Array:
    """As many as GPT-2 has: 154 MB."""
    return np.random.default_rng(16).standard_normal((50257, 768), np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("constants", [(), (0,)])
def test_rows_of_a_large_embedding_table(device: Device, embeddings: Array, constants: tuple[int, ...]) -> None:
    indices = np.array([[0, 50256, -1], [43690, 43691, 20000]], np.int64)
    check_large(device, "gather", [embeddings, indices], constants=constants, caps=device.caps)


@pytest.mark.slow
@pytest.mark.parametrize("variant", [None, "tiled", "gemv"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("constants", [(), (1,)])
def test_a_large_embedding_table_as_a_factor(
    device: Device, embeddings: Array, transposed: bool, variant: str | None, constants: tuple[int, ...]
) -> None:
    a = np.random.default_rng(17).standard_normal((1, 768), np.float32)
    b = embeddings if transposed else np.ascontiguousarray(embeddings.T)
    graph = op_graph("gemm", [a, b, None], {"b_transpose": transposed}, constants)
    feeds = {"0": a} if constants else {"0": a, "1": b}
    _, actual = run_limited(device, graph, feeds, device.caps, {"gemm": variant} if variant else None)
    np.testing.assert_allclose(actual["0"], a @ embeddings.T, atol=1e-2)
