"""The tiles for products of few rows, against those that were measured on a GPU."""

from __future__ import annotations

import json
from math import exp, log
from pathlib import Path
from statistics import mean

from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.data_types import DATA_TYPES
from webnn_wgpu.costs import ProductSize, Target

SWEEPS = Path(__file__).resolve().parents[1] / "data" / "measured" / "nvidia-h200-sweeps.json"


def test_chosen_tiles_are_about_as_fast_as_the_fastest_measured_ones() -> None:
    found = json.loads(SWEEPS.read_text(encoding="utf-8"))
    products = Target.of(Caps(adapter_type="DiscreteGPU", device=found["device"])).costs.products
    lost: list[float] = []
    measured: dict[str, dict[str, float]] = found["few rows"]
    for name, times in measured.items():
        sizes, data_type = name.split()
        rows, steps, columns = map(int, sizes.split("x"))
        size = ProductSize(rows, columns, steps)
        tile = products.row_tile(size, steps=steps // 4, lane_bytes=4 * DATA_TYPES[data_type].size_bytes)
        if str(tile) in times:  # the narrowest and the smallest ones were left out
            lost.append(times[str(tile)] / min(times.values()))
    assert len(lost) > 0.8 * len(measured)
    assert exp(mean(map(log, lost))) < 1.05
    assert max(lost) < 1.2


def test_a_short_row_of_few_columns_fills_a_gpu() -> None:
    products = Target.of(Caps(adapter_type="DiscreteGPU")).costs.products
    for columns, steps, narrow in ((128, 64, True), (160, 256, True), (164, 64, False), (128, 260, False)):
        size = ProductSize(1, columns, steps)
        tile = products.row_tile(size, steps=steps // 4, may_be_narrow=True)
        assert tile.narrow == narrow
        if narrow:
            # A GPU of 40 cores with two SIMDs each is filled by two subgroups of each.
            assert -(-columns // tile.columns) * tile.invocations >= 160 * 32
        assert not products.row_tile(size, steps=steps // 4).narrow
