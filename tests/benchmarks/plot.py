"""Draws what `make bench` has found: `python -m tests.benchmarks.plot [build/benchmarks.json [build/benchmarks.svg]]`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.benchmarks.results import FILE

BAR, BACK, INK = "#3b82f6", "#e5e9f0", "#3c4454"


def draw(record: dict[str, Any], target: Path) -> None:
    """Write a picture of a record: shares of the peaks by kernel, runs by model, and first results with and without caches."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise SystemExit("plots need matplotlib: pip install 'webnn-wgpu[viz]'") from error
    panels = [
        ("share of the device's peak, in %", _rows(record, "kernels", "share_of_peak", 100), "{:.0f} %", True),
        ("a run, median in ms", _rows(record, "models", "median_ms"), "{:.2f} ms", False),
        ("first result of a process, CPU time in s: cold, then warm", _first_results(record), "{:.1f} s", False),
        ("CPU time of recording a dispatch, in us", _rows(record, "overhead", "cpu_us_per_dispatch"), "{:.2f} us", False),
    ]
    panels = [panel for panel in panels if panel[1]]
    heights = [0.32 * len(rows) + 0.7 for _, rows, _, _ in panels]
    figure: Any = Figure(figsize=(9, sum(heights) + 0.6), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
    for axis, (title, rows, text, whole) in zip(axes, panels, strict=True):
        names, values = zip(*reversed(rows), strict=True)
        if whole:
            axis.barh(names, [100] * len(names), color=BACK)
        bars = axis.barh(names, [min(value, 120) if whole else value for value in values], color=BAR)
        axis.bar_label(bars, [text.format(value) for value in values], padding=3, fontsize=8, color=INK)
        axis.set_title(title, loc="left", fontsize=10, color=INK)
        axis.tick_params(labelsize=8, colors=INK, length=0)
        # More than the peak of buffers can be reached from textures and caches: such bars end at the edge.
        axis.set_xlim(0, 130 if whole else max(values) * 1.15)
        axis.xaxis.set_visible(False)
        for side in axis.spines.values():
            side.set_visible(False)
    peak = record["peak"]
    rates = f"{peak['flops'] / 1e9:.0f} GFLOP/s, {peak['bytes_per_second'] / 1e9:.1f} GB/s"
    figure.suptitle(f"{record['adapter']}, {record['driver']}: {rates}", fontsize=11, color=INK)
    figure.savefig(target)


def _rows(record: dict[str, Any], kind: str, figure: str, factor: float = 1.0) -> list[tuple[str, float]]:
    return [(found["name"], found[figure] * factor) for found in record.get(kind, [])]


def _first_results(record: dict[str, Any]) -> list[tuple[str, float]]:
    found = record.get("cold start", [])
    return [(f"{each['name']}, {which}", each[f"{which}_cpu_s"]) for each in found for which in ("cold", "warm")]


def main() -> None:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else source.with_suffix(".svg")
    draw(json.loads(source.read_text(encoding="utf-8")), target)
    print(f"written: {target}")


if __name__ == "__main__":
    main()
