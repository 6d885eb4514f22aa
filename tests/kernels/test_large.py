"""Tensors larger than the device can bind at once: here the limit is lowered, so that small ones are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.kernels.large import LIMIT, check_large, limited, numbered, run_limited
from tests.ops.reduced import Reduced
from tests.ops.rows import as_hardware
from tests.rotation import first_of
from tests.support import Sketch, assert_same, op_graph, open_profile, random_array
from webnn_wgpu.core.errors import OutOfMemoryError
from webnn_wgpu.costs import Target
from webnn_wgpu.passes import run_passes
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

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
@pytest.mark.parametrize("data_type", first_of(["float32", "uint8", "float16", "int64"]))
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


@pytest.mark.parametrize("data_type", first_of(["float32", "uint8", "float16", "int64"]))
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


@pytest.mark.parametrize("indices_type", first_of(["int32", "int64", "uint32"]))
@pytest.mark.parametrize("data_type", first_of(["float32", "uint8", "int64"]))
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


WINDOW = {"window_dimensions": [3, 2], "padding": [1, 0, 0, 1]}


@pytest.mark.parametrize("variant", [None, "plain", "subgroup", "workgroup"])
@pytest.mark.parametrize(
    "reduced",
    [
        Reduced("averagePool2d", (2, 8, 20, 9), WINDOW, -3),
        Reduced("maxPool2d", (2, 20, 9, 8), WINDOW | {"layout": "nhwc"}),
        Reduced("averagePool2d", (60, 5, 5, 16), {"layout": "nhwc"}),
        Reduced("reduceMean", (30, 20, 50), {"axes": [2]}),
        Reduced("reduceMax", (3, 40, 30, 7), {"axes": [1, 2]}),
    ],
    ids=str,
)
def test_operators_behind_reductions(device: Device, reduced: Reduced, variant: str | None) -> None:
    graph, feeds = reduced.graph()
    optimized, _ = run_passes(graph, Target.of(as_hardware(device.caps)))
    assert len(optimized.nodes) == 1
    forced = {reduced.op: variant} if variant else None
    plan, actual = run_limited(device, optimized, feeds, limited(as_hardware(device.caps)), forced)
    assert any(binding.window for dispatch in plan.dispatches for binding in dispatch.spec.bindings)
    np.testing.assert_allclose(actual["0"], interpret(graph, feeds)["0"], rtol=1e-5)


@pytest.mark.parametrize("data_type", first_of(["int8", "uint8", "float16", "int64"]))
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
@pytest.mark.parametrize("data_type", first_of(["float32", "float16"]))
def test_softmax(device: Device, shape: tuple[int, ...], axis: int, data_type: str, variant: str | None) -> None:
    x = random_array(np.random.default_rng(7), data_type, shape)
    forced = {"softmax": variant} if variant else None
    caps = limited(device.caps, 2048 if data_type == "float32" else 1024)
    check_large(device, "softmax", [x], {"axis": axis}, forced=forced, caps=caps, atol=1e-3)


@pytest.mark.parametrize("op", ["softmax", "x.log_softmax"])
def test_long_rows_keep_the_rules_of_softmax(device: Device, op: str) -> None:
    x = np.zeros((4, 700), np.float32)
    x[1, 3], x[2, 5], x[3] = np.inf, np.nan, -np.inf
    check_large(device, op, [x], {"axis": 1}, atol=1e-6)


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
        make_plan(graph, Target.of(limited(device.caps)))
    assert (raised.value.label, raised.value.got) == ("test", got)
    assert raised.value.allowed == "max-storage-buffer-binding-size 2048 bytes"


def test_what_the_device_cannot_hold_is_named(device: Device) -> None:
    s = Sketch()
    x = s.input(np.zeros((40, 128), np.float32))
    graph = s.graph(s.apply("tile", x, label="many", repetitions=[2, 2]))
    with pytest.raises(OutOfMemoryError) as raised:
        make_plan(graph, Target.of(limited(device.caps, max_buffer_size=40000)))
    assert str(raised.value) == (
        "tile('many'): a tensor is larger than the device can hold; got output float32[80, 256], 81920 bytes; "
        "allowed: max-buffer-size 40000 bytes"
    )
