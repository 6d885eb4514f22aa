from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.movers import (
    FOLDED_ELEMENTS,
    SIZES,
    TYPES,
    assert_same_bits,
    check_moves,
    kernels,
    random_bits,
    refusal,
    typed,
)
from webnn_wgpu.core.data_types import MAX_DIMENSION

if TYPE_CHECKING:
    from webnn_wgpu.runtime.device import Device

Case = tuple[str, tuple[int, ...], dict[str, Any]]

# Of every operator one call per way to read: whole quads, rows of quads with a step, element by element; and a scalar.
CASES: tuple[Case, ...] = (
    ("transpose", (), {}),
    ("transpose", (1,), {}),
    ("transpose", (5, 7), {}),
    ("transpose", (8, 4), {}),
    ("transpose", (3, 5, 8), {"permutation": [1, 0, 2]}),
    ("transpose", (3, 8, 5), {"permutation": [0, 2, 1]}),
    ("transpose", (2, 3, 4, 5), {"permutation": [3, 1, 0, 2]}),
    ("transpose", (2, 3, 4, 5), {"permutation": [0, 1, 2, 3]}),
    ("transpose", (1, 2, 3, 1, 2, 2, 3, 2), {}),
    ("transpose", (2, 2, 2, 2, 2, 2, 2, 3), {"permutation": [7, 0, 6, 1, 5, 2, 4, 3]}),
    ("slice", (), {"starts": [], "sizes": []}),
    ("slice", (11,), {"starts": [3], "sizes": [7]}),
    ("slice", (11,), {"starts": [3], "sizes": [8]}),
    ("slice", (11,), {"starts": [4], "sizes": [7]}),
    ("slice", (13,), {"starts": [2], "sizes": [10], "strides": [4]}),
    ("slice", (13,), {"starts": [12], "sizes": [1], "strides": [7]}),
    ("slice", (5, 16), {"starts": [1, 4], "sizes": [3, 8]}),
    ("slice", (5, 16), {"starts": [0, 0], "sizes": [5, 16], "strides": [2, 2]}),
    ("slice", (4, 5, 6, 7), {"starts": [1, 0, 2, 3], "sizes": [2, 5, 3, 4], "strides": [1, 2, 1, 3]}),
    ("split", (12,), {"splits": 3}),
    ("split", (12,), {"splits": [1, 4, 7]}),
    ("split", (5, 24), {"splits": [8, 4, 12], "axis": 1}),
    ("split", (5, 9), {"splits": [1, 3, 5], "axis": 1}),
    ("split", (2, 6, 3), {"splits": 2, "axis": 1}),
    ("split", (7, 3), {"splits": 1}),
    ("split", (60, 2), {"splits": 60}),
    ("expand", (), {"new_shape": []}),
    ("expand", (), {"new_shape": [3, 5]}),
    ("expand", (1,), {"new_shape": [16]}),
    ("expand", (8,), {"new_shape": [5, 8]}),
    ("expand", (5, 1), {"new_shape": [5, 8]}),
    ("expand", (3, 1, 5), {"new_shape": [2, 3, 7, 5]}),
    ("expand", (2, 1, 2, 1, 2, 1, 2, 1), {"new_shape": [2, 3, 2, 3, 2, 3, 2, 3]}),
    ("tile", (), {"repetitions": []}),
    ("tile", (5,), {"repetitions": [1]}),
    ("tile", (1,), {"repetitions": [13]}),
    ("tile", (3,), {"repetitions": [5]}),
    ("tile", (3, 8), {"repetitions": [2, 3]}),
    ("tile", (2, 3, 5), {"repetitions": [3, 2, 2]}),
    # Each dimension becomes two: more than the eight that a tensor may have.
    ("tile", (2, 1, 2, 3, 1, 2, 2, 3), {"repetitions": [2, 3, 1, 2, 2, 2, 1, 2]}),
    ("tile", (2,) * 8, {"repetitions": [2] * 8}),
    ("reverse", (), {}),
    ("reverse", (7,), {}),
    ("reverse", (3, 8), {"axes": [0]}),
    ("reverse", (3, 8), {"axes": [1]}),
    ("reverse", (3, 8), {"axes": []}),
    ("reverse", (3, 4, 5), {"axes": [2, 0]}),
    ("reverse", (2, 3, 1, 2, 2, 1, 2, 3), {}),
)


@pytest.mark.parametrize("data_type", SIZES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_shapes(device: Device, data_type: str, case: Case) -> None:
    name, shape, attrs = case
    check_moves(device, name, [random_bits(np.random.default_rng(1), data_type, shape)], attrs)


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize(
    ("name", "attrs"),
    [
        ("transpose", {"permutation": [1, 0, 2]}),
        ("transpose", {"permutation": [2, 1, 0]}),
        ("slice", {"starts": [1, 0, 1], "sizes": [4, 2, 7], "strides": [1, 1, 3]}),
        ("split", {"splits": [1, 7], "axis": 2}),
        ("expand", {"new_shape": [3, 5, 2, 8]}),
        ("tile", {"repetitions": [1, 2, 2]}),
        ("reverse", {"axes": [0, 2]}),
    ],
)
def test_every_type_on_every_device(profile_device: Device, data_type: str, name: str, attrs: dict[str, Any]) -> None:
    check_moves(profile_device, name, [random_bits(np.random.default_rng(2), data_type, (5, 2, 8))], attrs)


def test_more_workgroups_than_a_grid_dimension_holds(device: Device) -> None:
    x = random_bits(np.random.default_rng(3), "uint8", (FOLDED_ELEMENTS,))
    rows = np.resize(x, (4097, 4096))
    for name, array, attrs in (
        ("slice", x, {"starts": [0], "sizes": [FOLDED_ELEMENTS]}),
        ("reverse", x, {}),
        ("expand", rows[:1], {"new_shape": [4097, 4096]}),
        ("transpose", rows, {}),
        ("tile", x.reshape(3, -1), {"repetitions": [1, 2]}),
    ):
        check_moves(device, name, [array], attrs, folded=True)


def test_many_quads_per_invocation_on_a_cpu(device: Device) -> None:
    x = random_bits(np.random.default_rng(4), "uint8", (5, 64 * 16 * 4 * 9 + 1))
    for shape in (x.shape, (x.shape[1], x.shape[0])):
        check_moves(device, "reverse", [x.reshape(shape)])


@st.composite
def calls(draw: st.DrawFn) -> Case:
    name = draw(st.sampled_from(["transpose", "slice", "split", "expand", "tile", "reverse"]))
    shape = draw(st.lists(st.integers(1, 8), min_size=name == "split", max_size=4))
    axes = range(len(shape))
    attrs: dict[str, Any] = {}
    if name == "transpose":
        attrs["permutation"] = draw(st.permutations(axes))
    elif name == "slice":
        attrs["starts"] = [draw(st.integers(0, n - 1)) for n in shape]
        attrs["sizes"] = [draw(st.integers(1, n - b)) for n, b in zip(shape, attrs["starts"], strict=True)]
        attrs["strides"] = [draw(st.integers(1, 9)) for _ in shape]
    elif name == "split":
        attrs["axis"] = draw(st.sampled_from(axes))
        size = shape[attrs["axis"]]
        cuts = sorted(draw(st.sets(st.integers(1, size - 1), max_size=3))) if size > 1 else []
        attrs["splits"] = [b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    elif name == "expand":
        attrs["new_shape"] = [2, *(draw(st.integers(1, 5)) if n == 1 else n for n in shape)]
    elif name == "tile":
        attrs["repetitions"] = [draw(st.integers(1, 3)) for _ in shape]
    else:
        attrs["axes"] = draw(st.permutations(axes))[: draw(st.integers(0, len(shape)))]
    return name, tuple(shape), attrs


@settings(max_examples=100)
@given(calls(), st.sampled_from(SIZES))
def test_any_call(device: Device, case: Case, data_type: str) -> None:
    name, shape, attrs = case
    check_moves(device, name, [random_bits(np.random.default_rng(sum(shape)), data_type, shape)], attrs)


def test_results_by_example(device: Device) -> None:
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    (turned,) = check_moves(device, "transpose", [x])
    assert turned.tolist() == [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]
    (part,) = check_moves(device, "slice", [x], {"starts": [1, 1], "sizes": [2, 3], "strides": [1, 2]})
    assert part.tolist() == [[5, 7], [9, 11]]
    # `sizes` is the span before striding.
    span = {"starts": [2], "sizes": [10], "strides": [4]}
    (steps,) = check_moves(device, "slice", [x.ravel()], span)
    assert steps.tolist() == [2, 6, 10]
    left, right = check_moves(device, "split", [x], {"splits": [1, 3], "axis": 1})
    assert (left.tolist(), right.tolist()) == ([[0], [4], [8]], [[1, 2, 3], [5, 6, 7], [9, 10, 11]])
    (wide,) = check_moves(device, "expand", [x[:, :1]], {"new_shape": [3, 2]})
    assert wide.tolist() == [[0, 0], [4, 4], [8, 8]]
    (tiled,) = check_moves(device, "tile", [x[:2, :2]], {"repetitions": [1, 2]})
    assert tiled.tolist() == [[0, 1, 0, 1], [4, 5, 4, 5]]
    (back,) = check_moves(device, "reverse", [x], {"axes": [1]})
    assert back.tolist() == [[3, 2, 1, 0], [7, 6, 5, 4], [11, 10, 9, 8]]
    (all_back,) = check_moves(device, "reverse", [x])
    assert_same_bits(all_back, np.ascontiguousarray(x[::-1, ::-1]))


@pytest.mark.parametrize(
    ("name", "shape", "attrs", "expected"),
    [
        ("transpose", (2, 3, 4), {"permutation": [0, 1, 2]}, "rank=0, read=same"),
        ("transpose", (5, 1, 7), {"permutation": [1, 0, 2]}, "rank=0, read=same"),
        ("transpose", (2, 3, 8), {"permutation": [1, 0, 2]}, "rank=3, read=quad"),
        ("transpose", (8, 3), {}, "rank=2, read=row"),
        ("transpose", (3, 8), {}, "rank=2, read=strided"),
        # Heads of attention: neighbors that stay neighbors are one dimension.
        ("transpose", (2, 3, 4, 5, 8), {"permutation": [2, 0, 1, 3, 4]}, "rank=3, read=quad"),
        ("slice", (9, 8), {"starts": [2, 0], "sizes": [5, 8]}, "rank=0, read=same"),
        ("slice", (9, 8), {"starts": [2, 4], "sizes": [5, 4]}, "rank=2, read=quad"),
        ("slice", (9, 8), {"starts": [2, 1], "sizes": [5, 4]}, "rank=2, read=row"),
        ("slice", (9,), {"starts": [1], "sizes": [8]}, "rank=1, read=row"),
        ("expand", (1, 8), {"new_shape": [3, 8]}, "rank=2, read=quad"),
        ("expand", (3, 1), {"new_shape": [3, 8]}, "rank=2, read=row"),
        ("expand", (3, 1), {"new_shape": [3, 7]}, "rank=2, read=strided"),
        ("tile", (3, 8), {"repetitions": [2, 1]}, "rank=2, read=quad"),
        ("reverse", (3, 8), {"axes": [0]}, "rank=2, read=quad"),
        ("reverse", (3, 8), {}, "rank=1, read=row"),
    ],
)
def test_kernels(name: str, shape: tuple[int, ...], attrs: dict[str, Any], expected: str) -> None:
    assert kernels(name, [typed("float32", *shape)], attrs) == [f"strided[{expected}]"]


X = typed("float32", 2, 6)


@pytest.mark.parametrize(
    ("name", "attrs", "message"),
    [
        (
            "transpose",
            {"permutation": [0]},
            "transpose('here'): permutation must have one item per dimension; got permutation=[0], input float32[2, 6]; "
            "allowed: 2 items. See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-transpose",
        ),
        ("transpose", {"permutation": [0, 2]}, "Axis 2 out of bounds for rank 2"),
        ("transpose", {"permutation": [1, 1]}, "Duplicate axis 1"),
        ("transpose", {"permutation": [0, -1]}, "permutation must be an unsigned 32-bit integer; got -1"),
        (
            "slice",
            {"starts": [1, 2], "sizes": [1, 5]},
            "slice('here'): starts[1] + sizes[1] must be <= input.shape[1]: slice is out of bounds; "
            "got starts=[1, 2], sizes=[1, 5], input float32[2, 6]; allowed: <= 6. "
            "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-slice",
        ),
        ("slice", {"starts": [2**32 - 1, 0], "sizes": [1, 1]}, "slice is out of bounds"),
        ("slice", {"starts": [0], "sizes": [1, 1]}, "starts must have one item per dimension"),
        ("slice", {"starts": [0, 0], "sizes": [1]}, "sizes must have one item per dimension"),
        ("slice", {"starts": [0, 0], "sizes": [1, 1], "strides": [1]}, "strides must have one item per dimension"),
        ("slice", {"starts": [0, 0], "sizes": [0, 1]}, "every item of sizes must be at least 1; got sizes=[0, 1]"),
        ("slice", {"starts": [0, 0], "sizes": [1, 1], "strides": [1, 0]}, "every item of strides must be at least 1"),
        ("slice", {"starts": [0, 0]}, "sizes is required"),
        ("split", {"splits": 2, "axis": 2}, "Axis 2 out of bounds for rank 2"),
        (
            "split",
            {"splits": 4, "axis": 1},
            "split('here'): splits must divide input.shape[axis]; got splits=4, axis=1, input float32[2, 6]; "
            "allowed: divisors of 6. See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-split",
        ),
        ("split", {"splits": 0}, "splits is out of range; got splits=0; allowed: 1..8192"),
        ("split", {"splits": 8193}, "splits is out of range; got splits=8193"),
        ("split", {"splits": []}, "splits must name 1 to 8192 parts; got 0 parts"),
        ("split", {"splits": [1] * 8193}, "splits must name 1 to 8192 parts; got 8193 parts"),
        ("split", {"splits": [0, 2]}, "no part of splits may be 0; got splits=[0, 2]"),
        ("split", {"splits": [1, 2]}, "splits must sum to input.shape[axis]; got splits=[1, 2] (sum 3), axis=0"),
        (
            "expand",
            {"new_shape": [4, 6]},
            "expand('here'): Incompatible shapes: input must broadcast to new_shape; "
            "got new_shape=[4, 6], input float32[2, 6]. See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-expand",
        ),
        ("expand", {"new_shape": [6]}, "Incompatible shapes"),
        ("expand", {"new_shape": [2, 1]}, "Incompatible shapes"),
        ("expand", {"new_shape": [0, 2, 6]}, "every item of new_shape must be a valid dimension; got new_shape=[0, 2, 6]"),
        ("expand", {"new_shape": [MAX_DIMENSION + 1, 2, 6]}, "every item of new_shape must be a valid dimension"),
        ("expand", {"new_shape": [MAX_DIMENSION, 2, 6]}, "element count must be valid dimensions"),
        ("expand", {"new_shape": [1] * 7 + [2, 6]}, "output rank is not supported"),
        ("tile", {"repetitions": [2]}, "repetitions must have one item per dimension; got repetitions=[2]"),
        ("tile", {"repetitions": [2, 0]}, "no item of repetitions may be 0; got repetitions=[2, 0]"),
        ("tile", {"repetitions": [2**31, 1]}, "must be valid dimensions"),
        ("reverse", {"axes": [2]}, "Axis 2 out of bounds for rank 2"),
        ("reverse", {"axes": [1, 1]}, "Duplicate axis 1"),
    ],
)
def test_refusals(name: str, attrs: dict[str, Any], message: str) -> None:
    refused = refusal(name, [X], attrs)
    assert refused == message if "See" in message else message in refused


def test_split_needs_a_dimension() -> None:
    assert "rank(input) is not allowed; got input int8[] of rank 0" in refusal("split", [typed("int8")], {"splits": 1})
