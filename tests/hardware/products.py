"""The times of matrix products in all tiles and parts on a GPU, to which `webnn_wgpu/costs/block_times.py` is fitted.

python -m tests.hardware.products                  on the default adapter, in at most 5 minutes
python -m tests.hardware.products --only 128x384x384

The record goes to `tests/data/measured`, where `tests/unit/test_block_times.py` compares the choices of the costs with it.
Tiles are left out whose estimate is more than twice the least one.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import webnn_wgpu as wn
from tests.support import op_graph
from webnn_wgpu.costs import Choice, ProductSize
from webnn_wgpu.costs.hardware import HardwareProducts, costs_of
from webnn_wgpu.costs.tiles import BLOCK_TILES, BlockTile
from webnn_wgpu.plan import make_plan
from webnn_wgpu.runtime.device import Device
from webnn_wgpu.runtime.program import Program
from webnn_wgpu.runtime.timestamps import FEATURE

if TYPE_CHECKING:
    from collections.abc import Sequence

MEASURED = Path(__file__).resolve().parents[1] / "data" / "measured"

SIZES = (
    *((49, n, k) for n, k in ((160, 576), (320, 960), (512, 2048), (960, 160), (1280, 320), (3072, 768))),
    *((196, n, k) for n, k in ((64, 384), (80, 480), (256, 2304), (384, 1536), (576, 96), (1024, 512))),
    *((784, n, k) for n, k in ((40, 144), (128, 512), (192, 32), (256, 512), (768, 192))),
    *((128, n, k) for n, k in ((384, 384), (384, 1536), (1536, 384))),
    *((n, 64, n // 2) for n in (400, 1600)),
    (12544, 16, 32),
    (3136, 256, 64),
    (1500, 384, 1536),
    *((n, n, n) for n in (512, 1024, 2048)),
)
"""Rows, columns and length of the sums, as models have them."""

PARTS = (1, 2, 4, 8, 16)

_MOST_ESTIMATED = 2.0
"""The ratio to the least estimate up to which a tile is measured."""

_RUNS = 5


@dataclass(frozen=True, kw_only=True)
class OneTile(HardwareProducts):
    """Costs that always choose one tile.

    Attributes:
        wanted: the tile and the number of parts.
    """

    wanted: tuple[BlockTile, int]

    def tile_and_parts(
        self,
        choice: Choice,
        size: ProductSize,
        *,
        most_rows: int,
        most_parts: int,
        patch_reads: int = 0,
        normalized: bool = False,
        projected: bool = False,
    ) -> tuple[BlockTile, int]:
        """Return the wanted tile."""
        return self.wanted


def candidates(device: Device, size: ProductSize) -> list[tuple[BlockTile, int]]:
    """Return the tiles and parts that are worth a measurement."""
    blocks = costs_of(device.caps).products.blocks
    found = {
        (tile, parts): blocks.cycles(tile, parts, size)
        for tile in BLOCK_TILES
        for parts in PARTS
        if parts == 1 or size.K >= parts * 4 * tile.depth
    }
    return [pair for pair, cycles in found.items() if cycles <= _MOST_ESTIMATED * min(found.values())]


def microseconds(device: Device, size: ProductSize, wanted: tuple[BlockTile, int]) -> float:
    """Return the median time of a product in a tile."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, np.float32) for shape in ((size.M, size.K), (size.K, size.N)))
    costs = costs_of(device.caps)
    usual = {field.name: getattr(costs.products, field.name) for field in fields(costs.products)}
    target = replace(device.target, costs=replace(costs, products=OneTile(**usual, wanted=wanted)))
    program = Program(device, make_plan(op_graph("matmul", [a, b], constants={1}), target, {"matmul": "tiled"}))
    try:
        times = [program.kernel_times({"0": a}) for _ in range(1 + _RUNS)]
    finally:
        program.destroy()
    return float(np.median([each.sum() for each in times[1:] if each is not None]))


def measure(device: Device, sizes: Sequence[ProductSize], until: float) -> list[dict[str, Any]]:
    """Return the record of each product. After `until` no other one begins."""
    found: list[dict[str, Any]] = []
    for size in sizes:
        if time.monotonic() > until:
            print(f"{len(sizes) - len(found)} products are left out: the time is over")
            break
        times = {f"{tile}/{parts}": microseconds(device, size, (tile, parts)) for tile, parts in candidates(device, size)}
        best = min(times, key=lambda name: times[name])
        print(f"{size.M}x{size.N}x{size.K}: {best}, {times[best]:.1f} us")
        rounded = {name: round(us, 2) for name, us in times.items()}
        found.append({"size": [size.M, size.N, size.K, size.matrices], "patch_reads": 0, "microseconds": rounded})
    return found


def main(arguments: Sequence[str] | None = None) -> Path:
    """Run the command line and return the record's file."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.hardware.products", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5.0, help="the time after which no other product begins (default: 5)")
    parser.add_argument("--only", nargs="*", default=[], metavar="MxNxK", help="measure these products alone")
    parser.add_argument("--output", type=Path, default=MEASURED, metavar="FOLDER", help="for the record")
    options = parser.parse_args(arguments)
    given = [tuple(map(int, size.split("x"))) for size in options.only]
    with wn.ml.create_context() as context:
        device = Device.of(context.device)
        if FEATURE not in device.caps.features:
            raise SystemExit(f"{device.caps.device} has no feature {FEATURE!r}: the times of kernels are unknown")
        sizes = [ProductSize(*size) for size in given or SIZES]
        products = measure(device, sizes, time.monotonic() + 60 * options.minutes)
        caps = device.caps
    note = f"Medians of {_RUNS} runs by timestamps. Keys of times are tiles and parts of the sums."
    record = {"device": caps.device, "driver": caps.driver, "date": f"{datetime.now(UTC):%Y-%m-%d}", "note": note}
    name = re.sub(r"[^a-z0-9]+", "-", caps.device.lower()).strip("-")
    file = options.output / f"{name}-products.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**record, "products": products}, separators=(",", ":")), encoding="utf-8")
    print(f"written: {file}")
    return file


if __name__ == "__main__":
    main()
