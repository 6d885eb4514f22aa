from __future__ import annotations

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

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

EXTREMES = (-(2**31), -(2**31) + 1, 2**31 - 2, 2**31 - 1)


def by_definition(x: Array, upper: bool, diagonal: int) -> Array:
    kept = np.zeros_like(x)
    for i in range(x.shape[-2]):
        for j in range(x.shape[-1]):
            if (j - i >= diagonal) if upper else (j - i <= diagonal):
                kept[..., i, j] = x[..., i, j]
    return kept


@pytest.mark.parametrize("data_type", TYPES)
def test_every_type_on_every_device(profile_device: Device, data_type: str) -> None:
    rng = np.random.default_rng(1)
    for shape in ((2, 5, 8), (3, 7, 5)):
        x = random_bits(rng, data_type, shape)
        for upper in (True, False):
            (actual,) = check_moves(profile_device, "triangular", [x], {"upper": upper, "diagonal": 1})
            assert_same_bits(actual, by_definition(x, upper, 1))


@pytest.mark.parametrize("data_type", SIZES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 13), (13, 1), (4, 4), (2, 1, 6, 3), (17, 31), (1, 1, 1, 2, 1, 1, 3, 4)])
def test_diagonals(device: Device, data_type: str, shape: tuple[int, ...]) -> None:
    x = random_bits(np.random.default_rng(2), data_type, shape)
    height, width = shape[-2:]
    for upper in (True, False):
        for diagonal in (-height, 1 - height, -1, 0, 2, width - 1, width, *EXTREMES):
            (actual,) = check_moves(device, "triangular", [x], {"upper": upper, "diagonal": diagonal})
            assert_same_bits(actual, by_definition(x, upper, diagonal))


def test_removed_elements_are_zero_whatever_they_were(device: Device) -> None:
    for data_type in ("float32", "float16"):
        x = np.full((3, 3), np.nan, data_type)
        x[2, 0], x[1, 0] = np.inf, -np.inf
        (actual,) = check_moves(device, "triangular", [x])
        assert actual[np.tril_indices(3, -1)].tobytes() == bytes(3 * x.itemsize)
        assert np.isnan(actual[np.triu_indices(3)]).all()


def test_defaults_are_upper_and_the_main_diagonal(device: Device) -> None:
    x = np.arange(1, 10, dtype=np.int32).reshape(3, 3)
    (actual,) = check_moves(device, "triangular", [x])
    assert actual.tolist() == [[1, 2, 3], [0, 5, 6], [0, 0, 9]]


def test_more_workgroups_than_a_grid_dimension_holds(device: Device) -> None:
    rng = np.random.default_rng(3)
    for width in (4099, 4100):
        x = random_bits(rng, "uint8", (FOLDED_ELEMENTS // width + 1, width))
        check_moves(device, "triangular", [x], {"upper": False, "diagonal": -9}, folded=True)


@settings(max_examples=30)
@given(
    st.sampled_from(SIZES),
    st.lists(st.integers(1, 9), min_size=2, max_size=4),
    st.booleans(),
    st.integers(-10, 10) | st.integers(-(2**31), 2**31 - 1),
)
def test_any_diagonal(device: Device, data_type: str, shape: list[int], upper: bool, diagonal: int) -> None:
    x = random_bits(np.random.default_rng(sum(shape)), data_type, shape)
    (actual,) = check_moves(device, "triangular", [x], {"upper": upper, "diagonal": diagonal})
    assert_same_bits(actual, by_definition(x, upper, diagonal))


def test_kernels() -> None:
    # Triangle and diagonal are uniforms: one shader serves both.
    assert kernels("triangular", [typed("float32", 2, 8)], {"upper": True}) == ["triangular[whole_quads=True]"]
    assert kernels("triangular", [typed("float32", 2, 8)], {"upper": False}) == ["triangular[whole_quads=True]"]
    assert kernels("triangular", [typed("float32", 2, 7)]) == ["triangular[whole_quads=False]"]


def test_refusals() -> None:
    assert refusal("triangular", [typed("float32", 3)]) == (
        "triangular('here'): rank(input) is not allowed; got input float32[3] of rank 1; allowed: rank 2..8. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-triangular"
    )
    assert "rank 0" in refusal("triangular", [typed("float32")])
    x = typed("float32", 3, 3)
    assert "diagonal must be an integer; got 0.5" in refusal("triangular", [x], {"diagonal": 0.5})
    assert refusal("triangular", [x], {"diagonal": 2**31}) == (
        "triangular('here'): diagonal must be a signed 32-bit integer; got 2147483648; "
        "allowed: -2147483648..2147483647. See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-triangular"
    )
    assert "unknown option 'k'; allowed: upper, diagonal" in refusal("triangular", [x], {"k": 1})
