from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import assert_same, check_op, random_array
from webnn_wgpu.core.data_types import ANY, FLOATS
from webnn_wgpu.core.errors import MLTypeError
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ops import OPS

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

ELEMENTS, ND = "x.scatter_elements", "x.scatter_nd"
REDUCTIONS = ("none", "add", "mul", "max", "min")


def check(device: Device, name: str, inputs: list[Array], attrs: dict[str, Any]) -> Array:
    """Compare with the reference, exactly where nothing is rounded."""
    rounded = str(inputs[0].dtype) in FLOATS and attrs["reduction"] in ("add", "mul")
    atol = (1e-4 if inputs[0].dtype == np.float32 else 0.05) if rounded else None
    return check_op(device, name, inputs, attrs, atol=atol)[0]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("data_type", ANY)
def test_every_type(profile_device: Device, data_type: str, reduction: str) -> None:
    rng = np.random.default_rng(0)
    x, updates = random_array(rng, data_type, (5, 7), 1), random_array(rng, data_type, (9, 7), 1)
    indices = rng.integers(-5, 5, (9, 7))
    check(profile_device, ELEMENTS, [x, indices, updates], {"reduction": reduction})
    slices = random_array(rng, data_type, (6, 7), 1)
    check(profile_device, ND, [x, rng.integers(-5, 5, (6, 1)).astype(np.int32), slices], {"reduction": reduction})


@pytest.mark.parametrize(
    ("shape", "indices", "axis"),
    [((7,), (3,), 0), ((4, 5, 6), (4, 9, 6), 1), ((4, 5, 6), (2, 3, 4), 2), ((4, 5, 6), (3, 1, 6), -3), ((2, 3), (1, 1), -1)],
)
def test_indices_may_cover_a_part(profile_device: Device, shape: tuple[int, ...], indices: tuple[int, ...], axis: int) -> None:
    rng = np.random.default_rng(1)
    places = rng.integers(0, shape[axis], indices)
    x, updates = random_array(rng, "int32", shape), random_array(rng, "int32", indices)
    for reduction in REDUCTIONS:
        actual = check(profile_device, ELEMENTS, [x, places, updates], {"axis": axis, "reduction": reduction})
        wanted = x.copy()
        for spot in np.ndindex(*indices):
            target = list(spot)
            target[axis] = places[spot]
            old, new = wanted[tuple(target)], updates[spot]
            with np.errstate(over="ignore"):
                one = {"none": new, "add": old + new, "mul": old * new, "max": max(old, new), "min": min(old, new)}
            wanted[tuple(target)] = one[reduction]
        np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("data_type", ANY)
def test_slices_of_whole_quads(profile_device: Device, data_type: str, reduction: str) -> None:
    """The elements of a quad share their updates, which come in groups: places have none, one group, parts of it, several."""
    rng = np.random.default_rng(4)
    counts = (0, 4, 11, 1, 0, 3, 0)
    indices = rng.permutation(np.repeat(np.arange(len(counts)), counts)).astype(np.int32)
    x, updates = random_array(rng, data_type, (len(counts), 8), 1), random_array(rng, data_type, (sum(counts), 8), 1)
    check(profile_device, ND, [x, indices[:, None], updates], {"reduction": reduction})


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_slices(profile_device: Device, rank: int) -> None:
    rng = np.random.default_rng(2)
    shape = (4, 3, 5)
    x = random_array(rng, "uint8", shape)
    indices = np.stack([rng.integers(0, n, (3, 7)) for n in shape[:rank]], -1).astype(np.int64)
    updates = random_array(rng, "uint8", (3, 7, *shape[rank:]))
    for reduction in REDUCTIONS:
        check(profile_device, ND, [x, indices, updates], {"reduction": reduction})


def test_updates_of_one_place_are_taken_in_order(profile_device: Device) -> None:
    # In any other order the 1s would be lost beside 2^24, or the numbers before the last be left.
    x = np.float32([0, 5])
    updates = np.float32([1, 1, 1, 1, 2.0**24, 1, -(2.0**24)])
    indices = np.zeros(7, np.int32)
    (added,) = check_op(profile_device, ELEMENTS, [x, indices, updates], {"reduction": "add"}, atol=1)
    total = np.float32(0)
    for update in updates:
        total += update
    assert added.tolist() == [total, 5]
    assert check(profile_device, ELEMENTS, [x, indices, updates], {"reduction": "none"}).tolist() == [-(2.0**24), 5]


def test_nan(device: Device) -> None:
    x = np.float32([math.nan, 1, 2, -math.inf])
    indices, updates = np.int32([0, 1, 2, 3]), np.float32([1, math.nan, math.inf, math.nan])
    for reduction in ("max", "min"):
        actual = check(device, ELEMENTS, [x, indices, updates], {"reduction": reduction})
        assert np.isnan(actual).tolist() == [True, True, False, True]
    bits = np.array([0x7F800001, 0xFFC12345], np.uint32).view(np.float32)
    moved = check(device, ELEMENTS, [x, np.int32([1, 1]), bits], {"reduction": "none"})
    assert moved.view(np.uint32)[1] == 0xFFC12345


@pytest.mark.parametrize("reduction", ["add", "max", "none"])
def test_many_updates(device: Device, reduction: str) -> None:
    rng = np.random.default_rng(3)
    x, updates = random_array(rng, "int32", (100,)), random_array(rng, "int32", (40000,))
    check(device, ELEMENTS, [x, rng.integers(0, 100, 40000), updates], {"reduction": reduction})
    # All of one place: more than a software adapter does in one dispatch.
    actual = check(device, ELEMENTS, [x, np.zeros(40000, np.int32), updates], {"reduction": reduction})
    assert_same({"": actual[1:]}, {"": x[1:]})


def test_refusals() -> None:
    def refusal(name: str, shapes: list[tuple[int, ...]], **attrs: Any) -> str:
        types = [TensorType(t, s) for t, s in zip(("float32", "int32", "float32"), shapes, strict=True)]
        with pytest.raises(MLTypeError) as raised:
            OPS[name].check(types, attrs, "here")
        return str(raised.value)

    assert "ext.scatter_elements('here'): Incompatible shapes: indices must have the rank of input" in refusal(
        ELEMENTS, [(2, 3), (2,), (2,)]
    )
    assert "indices must not be larger than input in any dimension except axis 0" in refusal(ELEMENTS, [(2, 3), (5, 4), (5, 4)])
    assert "updates must have the shape of indices" in refusal(ELEMENTS, [(2, 3), (1, 3), (1, 2)])
    assert "Invalid reduction; got 'mean'" in refusal(ELEMENTS, [(2,), (2,), (2,)], reduction="mean")
    assert "updates must have the shape of indices without its last dimension" in refusal(ND, [(2, 3), (4, 1), (4, 2)])
    assert "must be <= rank(input)" in refusal(ND, [(2,), (4, 2), (4,)])
