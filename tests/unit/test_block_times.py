"""The estimated times of the tiled kernel, against those that were measured on a GPU."""

from __future__ import annotations

import json
from math import exp, log
from pathlib import Path
from statistics import mean, median
from typing import Any

import pytest

from webnn_wgpu.core.caps import Caps
from webnn_wgpu.costs import Choice, ProductSize, Target
from webnn_wgpu.costs.tiles import BLOCK_TILES

MEASURED = Path(__file__).resolve().parents[1] / "data" / "measured"
RECORDS = sorted(MEASURED.glob("*-products.json"))
TILES = {str(tile): tile for tile in BLOCK_TILES}
CHOICE = Choice("tiled", "")

Product = dict[str, Any]


def parsed(times: dict[str, float]) -> dict[tuple[str, int], float]:
    """Return the times by tile and parts."""
    split = {name.partition("/"): us for name, us in times.items() if "/" in name}
    return {(tile, int(parts)): us for (tile, _, parts), us in split.items()}


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_chosen_tiles_are_about_as_fast_as_the_fastest_measured_ones(record: Path) -> None:
    found = json.loads(record.read_text(encoding="utf-8"))
    products = Target.of(Caps(adapter_type="DiscreteGPU", device=found["device"])).costs.products
    lost: list[float] = []
    errors: list[float] = []
    measured: list[Product] = found["products"]
    for each in measured:
        size, reads, times = ProductSize(*each["size"]), each["patch_reads"], parsed(each["microseconds"])
        tile, parts = products.tile_and_parts(CHOICE, size, most_rows=128, most_parts=64, patch_reads=reads)
        taken = times.get((str(tile), parts))
        if taken is None:  # its estimate was too high for a measurement
            continue
        lost.append(taken / min(times.values()))
        errors += [products.blocks.cycles(TILES[t], n, size, patch_reads=reads) / us for (t, n), us in times.items()]
    assert len(lost) > 0.9 * len(measured)
    assert exp(mean(map(log, lost))) < 1.08
    assert max(lost) < 1.6
    middle = median(errors)
    assert median(abs(log(error / middle)) for error in errors) < 0.2


def test_each_term_of_the_estimate_has_its_effect() -> None:
    blocks = Target.of(Caps(adapter_type="DiscreteGPU", device="NVIDIA H200")).costs.products.blocks
    large, small = TILES["128x64"], TILES["16x16x8"]
    size = ProductSize(1024, 1024, 1024)
    assert blocks.cycles(large, 1, size) < blocks.cycles(small, 1, size)
    assert blocks.cycles(large, 1, size) < blocks.cycles(large, 1, size, patch_reads=1)
    # Four reads of a quad take less time if all invocations copy the same steps.
    shared, own = TILES["128x64"], TILES["64x128"]
    added = [blocks.cycles(tile, 1, size, patch_reads=4) - blocks.cycles(tile, 1, size) for tile in (shared, own)]
    assert added[0] / shared.copies_a < added[1] / own.copies_a
    few = ProductSize(49, 512, 4608)
    assert blocks.cycles(large, 8, few) < blocks.cycles(large, 1, few)
    # Fewer cores have more workgroups each.
    another = Target.of(Caps(adapter_type="DiscreteGPU", device="NVIDIA GeForce RTX 4070")).costs.products.blocks
    assert blocks.cycles(large, 1, size) < another.cycles(large, 1, size)
    # A sum that ends within a slice has guards in all copies.
    assert blocks.cycles(large, 1, ProductSize(1024, 1024, 1022)) > blocks.cycles(large, 1, size)
    # Normalizing takes instructions for each copied quad, and a dispatch of its own moves all rows.
    narrow = TILES["128x32"]
    more = [blocks.cycles(tile, 1, size, normalized=True) - blocks.cycles(tile, 1, size) for tile in (large, narrow)]
    assert 0 < more[0] < more[1]
    assert blocks.normalizing(64, 768) < blocks.normalizing(4096, 768)


def test_products_normalize_their_rows_where_that_takes_less_time() -> None:
    products = Target.of(Caps(adapter_type="DiscreteGPU", device="NVIDIA H200")).costs.products
    layer, wide = ProductSize(512, 1024, 256), ProductSize(4096, 16_384, 1024)
    assert products.normalizes([layer])
    # Every product finds the deviations again, and so does every column of tiles.
    assert not products.normalizes([layer] * 12)
    assert not products.normalizes([wide])
    for few in (ProductSize(4, 1024, 256), ProductSize(64, 64, 4096)):
        assert not products.normalizes([few])


def test_products_add_projections_where_one_dispatch_takes_less_time_than_two() -> None:
    products = Target.of(Caps(adapter_type="DiscreteGPU", device="NVIDIA H200")).costs.products
    assert products.projects(ProductSize(784, 512, 128), ProductSize(784, 512, 256))
    # Few rows have a kernel of their own.
    assert not products.projects(ProductSize(4, 512, 128), ProductSize(4, 512, 256))


def test_parts_of_a_projection_may_take_the_dispatch_that_it_saves() -> None:
    products = Target.of(Caps(adapter_type="DiscreteGPU", device="AMD RADV NAVI21")).costs.products
    size, options = ProductSize(196, 1024, 768), {"most_rows": 128, "most_parts": 16}
    assert products.tile_and_parts(Choice("tiled", ""), size, **options)[1] == 1
    assert products.tile_and_parts(Choice("tiled", ""), size, **options, projected=True)[1] > 1
