from __future__ import annotations

import math
from typing import TYPE_CHECKING

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
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops.pad import MODES

if TYPE_CHECKING:
    from webnn_wgpu.runtime.device import Device


def padding(begins: list[int], ends: list[int], **options: object) -> dict[str, object]:
    return {"beginning_padding": begins, "ending_padding": ends, **options}


def below(items: list[int], shape: tuple[int, ...]) -> list[int]:
    """Return padding made smaller than the dimensions, as reflection wants it."""
    return [min(n, d - 1) for n, d in zip(items, shape, strict=True)]


CASES = (
    # Innermost dimension: padded, padded to whole quads, padded by whole quads, not padded.
    ((3, 4, 5), [1, 2, 3], [2, 0, 1]),
    ((3, 4, 5), [1, 0, 1], [0, 2, 2]),
    ((2, 3, 32), [1, 2, 16], [0, 1, 16]),
    ((3, 2, 16), [1, 0, 0], [2, 1, 0]),
    ((3, 2, 3), [1, 0, 0], [2, 1, 0]),
    ((1,), [0], [0]),
    ((17,), [5], [7]),
    ((5, 3), [0, 0], [0, 0]),
    ((3, 3, 3, 2, 4), [0, 1, 1, 0, 0], [0, 1, 2, 0, 0]),
    ((2, 2, 2, 2, 2, 2, 2, 2), [1, 0, 1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1, 0, 1]),
    ((2, 2, 2, 2, 2, 2, 2, 2), [1] * 8, [0, 0, 0, 0, 0, 0, 0, 1]),
)


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("mode", MODES)
def test_every_type_on_every_device(profile_device: Device, data_type: str, mode: str) -> None:
    rng = np.random.default_rng(1)
    for shape, begins, ends in CASES[:4]:
        x = random_bits(rng, data_type, shape)
        attrs = padding(below(begins, shape), below(ends, shape), mode=mode, value=-7)
        check_moves(profile_device, "pad", [x], attrs)


@pytest.mark.parametrize("data_type", SIZES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("shape", "begins", "ends"), CASES)
def test_shapes(device: Device, data_type: str, mode: str, shape: tuple[int, ...], begins: list[int], ends: list[int]) -> None:
    begins, ends = below(begins, shape), below(ends, shape)
    x = random_bits(np.random.default_rng(2), data_type, shape)
    (actual,) = check_moves(device, "pad", [x], padding(begins, ends, mode=mode, value=3))
    name = {"reflection": "reflect"}.get(mode, mode)
    fill = {"constant_values": 3} if mode == "constant" else {}
    assert_same_bits(actual, np.pad(x, list(zip(begins, ends, strict=True)), name, **fill))  # pyright: ignore


def test_scalar(device: Device) -> None:
    (actual,) = check_moves(device, "pad", [np.array(3, np.float32)], padding([], [], value=9))
    assert (actual.shape, actual.item()) == ((), 3)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("constant", [9, 9, 1, 2, 3, 9, 9]),
        ("edge", [1, 1, 1, 2, 3, 3, 3]),
        ("reflection", [3, 2, 1, 2, 3, 2, 1]),
        ("symmetric", [2, 1, 1, 2, 3, 3, 2]),
    ],
)
def test_modes_by_example(device: Device, mode: str, expected: list[int]) -> None:
    (actual,) = check_moves(device, "pad", [np.array([1, 2, 3], np.int32)], padding([2], [2], mode=mode, value=9))
    assert actual.tolist() == expected


def test_corners_combine_both_dimensions(device: Device) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (actual,) = check_moves(device, "pad", [x], padding([1, 2], [1, 2], mode="reflection"))
    assert actual.tolist() == [
        [5, 4, 3, 4, 5, 4, 3],
        [2, 1, 0, 1, 2, 1, 0],
        [5, 4, 3, 4, 5, 4, 3],
        [2, 1, 0, 1, 2, 1, 0],
    ]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_symmetric_goes_on_mirroring(device: Device, size: int) -> None:
    x = np.arange(size, dtype=np.int32)
    (actual,) = check_moves(device, "pad", [x], padding([11], [14], mode="symmetric"))
    there_and_back = [*range(size), *reversed(range(size))]
    assert actual.tolist() == [there_and_back[i % (2 * size)] for i in range(-11, size + 14)]


@pytest.mark.parametrize(
    ("data_type", "value", "stored"),
    [
        ("float32", 0.1, np.float32(0.1)),
        ("float32", math.inf, np.float32(math.inf)),
        ("float32", -0.0, np.float32(-0.0)),
        ("float16", 0.1, np.float16(0.1)),
        ("float16", 1e9, np.float16(math.inf)),
        ("int8", -300, np.int8(-128)),
        ("int8", 2.5, np.int8(2)),
        ("uint8", -1, np.uint8(0)),
        ("uint8", math.nan, np.uint8(0)),
        ("int32", 2**40, np.int32(2**31 - 1)),
        ("uint32", 2**32 - 1, np.uint32(2**32 - 1)),
        ("int64", -(2**62) - 5, np.int64(-(2**62) - 5)),
        ("uint64", 2**64 - 2, np.uint64(2**64 - 2)),
    ],
)
def test_value_is_cast_to_the_data_type(device: Device, data_type: str, value: float, stored: np.generic) -> None:
    for size in (3, 16):
        x = np.zeros(size, data_type)
        (actual,) = check_moves(device, "pad", [x], padding([size], [0], value=value))
        assert actual[:size].tobytes() == stored.tobytes() * size


def test_nan_value(device: Device) -> None:
    for data_type in ("float32", "float16"):
        (actual,) = check_moves(device, "pad", [np.ones(3, data_type)], padding([1], [1], value=math.nan))
        assert np.isnan(actual).tolist() == [True, False, False, False, True]


def test_more_workgroups_than_a_grid_dimension_holds(device: Device) -> None:
    rng = np.random.default_rng(3)
    x = random_bits(rng, "uint8", (FOLDED_ELEMENTS // 4096, 4096))
    for mode, ends in (("edge", [1, 1]), ("constant", [1, 3])):
        check_moves(device, "pad", [x], padding([2, 0], ends, mode=mode, value=1), folded=True)


@settings(max_examples=40)
@given(
    st.sampled_from(SIZES),
    st.sampled_from(MODES),
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6), st.integers(0, 6)), max_size=4),
)
def test_any_padding(device: Device, data_type: str, mode: str, dims: list[tuple[int, int, int]]) -> None:
    if mode == "reflection":
        dims = [(n, b % n, e % n) for n, b, e in dims]
    x = random_bits(np.random.default_rng(len(dims)), data_type, [n for n, _, _ in dims])
    check_moves(device, "pad", [x], padding([b for _, b, _ in dims], [e for _, _, e in dims], mode=mode, value=5))


def test_kernels() -> None:
    x = typed("float32", 2, 6, 6, 8)
    spatial = padding([0, 1, 1, 0], [0, 1, 1, 0])
    # A constant lets channels merge with the padded dimension outside them, mirroring does not.
    assert kernels("pad", [x], spatial) == ["pad[mode=constant, rank=3, read=quad]"]
    assert kernels("pad", [x], {**spatial, "mode": "edge"}) == ["pad[mode=edge, rank=4, read=quad]"]
    first = padding([1, 0, 0, 0], [0, 0, 0, 0])
    assert kernels("pad", [x], {**first, "mode": "edge"}) == ["pad[mode=edge, rank=2, read=quad]"]
    assert kernels("pad", [x], first) == ["pad[mode=constant, rank=1, read=quad]"]
    assert kernels("pad", [typed("float32", 5, 5)], padding([1, 1], [1, 2])) == ["pad[mode=constant, rank=2, read=row]"]
    assert kernels("pad", [typed("uint8", 7)], padding([1], [1])) == ["pad[mode=constant, rank=1, read=strided]"]
    assert kernels("pad", [x], padding([0] * 4, [0] * 4)) == ["strided[rank=0, read=same]"]


def test_canonical_value() -> None:
    _, attrs = OPS["pad"].check([typed("float16", 3)], padding([1], [1], value=0.1))
    assert attrs["value"] == float(np.float16(0.1))
    assert OPS["pad"].check([typed("int8", 3)], padding([1], [1]))[1]["value"] == 0


def test_refusals() -> None:
    x = typed("float32", 2, 3)
    assert refusal("pad", [x], padding([1], [1, 1])) == (
        "pad('here'): beginning_padding must have one item per dimension; "
        "got beginning_padding=[1], input float32[2, 3]; allowed: 2 items. See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-pad"
    )
    assert "ending_padding must have one item per dimension; got ending_padding=[1, 1, 1]" in refusal(
        "pad", [x], padding([1, 1], [1, 1, 1])
    )
    assert refusal("pad", [x], padding([1, 2], [1, 3], mode="reflection")) == (
        "pad('here'): ending_padding[1] must be < input.shape[1] in reflection mode; "
        "got ending_padding=[1, 3], input float32[2, 3]; allowed: 0..2. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-pad"
    )
    assert "beginning_padding[0] must be < input.shape[0]" in refusal("pad", [x], padding([2, 0], [0, 0], mode="reflection"))
    assert "Invalid mode; got 'wrap'; allowed: constant, edge, reflection, symmetric" in refusal(
        "pad", [x], padding([1, 1], [1, 1], mode="wrap")
    )
    assert "value must be a number" in refusal("pad", [x], padding([1, 1], [1, 1], value="0"))
    assert "beginning_padding must be an unsigned 32-bit integer; got -1" in refusal("pad", [x], padding([-1, 0], [0, 0]))
    assert "ending_padding is required" in refusal("pad", [x], {"beginning_padding": [1, 1]})
    assert "must be valid dimensions" in refusal("pad", [x], padding([0, 0], [MAX_DIMENSION, 0]))
    assert "must be valid dimensions" in refusal("pad", [x], padding([2**20, 2**20], [0, 0]))
