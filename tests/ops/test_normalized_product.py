"""Products that normalize the rows of their left factor: against the reference, and as accurate as two kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ops.movers import refusal, typed
from tests.ops.products import in_tiles
from tests.support import check_bounded, op_graph, open_profile, run_graph
from webnn_wgpu.costs.tiles import BLOCK_TILES, BlockTile
from webnn_wgpu.ops.normalized_product import LONGEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

NAME = "normalizedMatmul"

SIZES = {
    "tiles and slices": (128, 96, 64),
    "ragged rows": (37, 52, 44),
    "a shorter first slice": (130, 388, 20),
    "columns that are no quads": (20, 48, 9),
    "sums that are no quads": (20, 47, 12),
    "sums shorter than a slice": (70, 8, 20),
    "three terms": (33, 3, 8),
    "one row": (1, 32, 16),
}


def factors(a: Sequence[int], b: Sequence[int], *, mean: float = 0, centered: bool = True) -> list[Array]:
    """Return rows around a mean, and columns that add up to 0 if they are to."""
    rng = np.random.default_rng(0)
    columns = rng.standard_normal(tuple(b))
    if centered:
        columns -= columns.mean(axis=-2, keepdims=True)
    return [(rng.standard_normal(tuple(a)) + mean).astype(np.float32), columns.astype(np.float32)]


@pytest.mark.parametrize("profile", ["hardware", "default-limits"])
@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("name", SIZES)
def test_sizes(profile: str, name: str, centered: bool) -> None:
    M, K, N = SIZES[name]
    check_bounded(open_profile(profile), NAME, factors((M, K), (K, N), centered=centered), {"centered": centered})


@pytest.mark.parametrize("shapes", [((2, 3, 20, 36), (36, 8)), ((1, 40, 36), (3, 36, 8)), ((2, 1, 33, 36), (3, 36, 8))])
def test_leading_dimensions(device: Device, shapes: tuple[Sequence[int], Sequence[int]]) -> None:
    check_bounded(device, NAME, factors(*shapes))
    check_bounded(open_profile("hardware"), NAME, factors(*shapes))


@pytest.mark.repeats
@pytest.mark.parametrize("tile", BLOCK_TILES, ids=str)
def test_every_tile(device: Device, tile: BlockTile, monkeypatch: pytest.MonkeyPatch) -> None:
    in_tiles(monkeypatch, tile.sides)
    for centered in (True, False):
        for M, K, N in ((133, 68, 36), (20, 128, 70), (18, 21, 7)):
            check_bounded(device, NAME, factors((M, K), (K, N), centered=centered), {"centered": centered})


def deviation(found: Array, a: Array, b: Array, epsilon: float) -> float:
    """Return the root of the mean squared error of normalized rows times columns."""
    wide = a.astype(np.float64)
    d = wide - wide.mean(-1, keepdims=True)
    wanted = d / np.sqrt((d * d).mean(-1, keepdims=True) + epsilon) @ b.astype(np.float64)
    return float(np.sqrt(np.mean((found - wanted) ** 2)))


def outliers(a: Array) -> Array:
    """Return rows of which the first numbers, which the kernel's center may be made of, are far from the others."""
    a[:, :4] += np.float32(5000)
    return a


@pytest.mark.parametrize("rows", ["around 0", "around 1000", "with outliers"])
def test_as_accurate_as_a_kernel_for_each_operator(rows: str) -> None:
    device = open_profile("hardware")
    a, b = factors((64, 768), (768, 96), mean=1000 if rows == "around 1000" else 0)
    a = outliers(a) if rows == "with outliers" else a
    (found,) = run_graph(device, op_graph(NAME, [a, b]), {"0": a, "1": b}).values()
    (normal,) = run_graph(device, op_graph("layerNormalization", [a, None, None], {"axes": [1]}), {"0": a}).values()
    (apart,) = run_graph(device, op_graph("matmul", [normal, b]), {"0": normal, "1": b}).values()
    assert deviation(found, a, b, 1e-5) < 1.25 * deviation(apart, a, b, 1e-5)


def test_rows_of_one_number_are_zero() -> None:
    # The variance is 0, and so are all numbers less the mean.
    a, b = np.full((40, 64), 3e5, np.float32), factors((1, 64), (64, 8))[1]
    (found,) = run_graph(open_profile("hardware"), op_graph(NAME, [a, b]), {"0": a, "1": b}).values()
    np.testing.assert_array_equal(found, np.zeros((40, 8)))


def test_rows_that_are_not_finite_are_nan() -> None:
    a, b = factors((40, 64), (64, 8))
    a[3, 40], a[7, 63], a[9, 0] = np.inf, np.nan, -np.inf
    (found,) = run_graph(open_profile("hardware"), op_graph(NAME, [a, b]), {"0": a, "1": b}).values()
    np.testing.assert_array_equal(np.isnan(found).all(1), np.isin(np.arange(40), (3, 7, 9)))
    assert np.isfinite(np.delete(found, (3, 7, 9), 0)).all()


def test_refusals() -> None:
    def message(*shapes: Sequence[int]) -> str:
        types: list[Any] = [typed("float32", *shape) for shape in shapes]
        return refusal(NAME, types)

    assert "must equal the second last of b" in message((4, 8), (9, 8))
    assert f"at most {LONGEST} terms" in message((4, LONGEST + 1), (LONGEST + 1, 8))
    assert "must broadcast together" in message((2, 4, 8), (3, 8, 8))
