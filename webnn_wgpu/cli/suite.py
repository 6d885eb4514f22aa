"""`webnn-wgpu bench --suite`: the built-in models, measured and printed as one table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click
from rich import box
from rich.table import Table

from webnn_wgpu.testing.suite import MODELS, ModelFigures, SuiteRecord, built_in, report, run_suite

from .models import open_context
from .text import amount, result_console, write_section

SUITE_SECONDS = 2.0
"""The time for the runs of a model."""

TUNING_MINUTES = 10
"""The time after which tuning ends."""


def bench_suite(
    device: str, *, only: Sequence[str], seconds: float, tune: bool, json_path: Path | None, html: Path | None
) -> None:
    """Measure the built-in models, print the table, and write the record.

    Args:
        device: the choice of --device.
        only: names of the models, empty for all.
        seconds: the time for the runs of each.
        tune: whether to measure the variants of their kernels too.
        json_path: the file for the record. `-` prints it instead of the table.
        html: the file for the page.
    """
    if unknown := set(only) - set(MODELS):
        raise click.BadParameter(f"no model is called {min(unknown)!r}; there are {', '.join(MODELS)}", param_hint="--only")
    with open_context(device) as context:
        if context.device is None:
            raise click.ClickException("the suite measures a device: --device reference has none")
        record = run_suite(
            SuiteRecord.begin(context),
            built_in(context, only),
            seconds=seconds,
            tune_until=time.monotonic() + 60 * TUNING_MINUTES if tune else None,
            tell=lambda name: click.echo(name, err=True),
        )
    if json_path is not None and str(json_path) == "-":
        click.echo(record.to_json())
    else:
        write_suite(record)
        if json_path is not None:
            json_path.write_text(record.to_json() + "\n", encoding="utf-8")
            click.echo(f"written: {json_path}")
    if html is not None:
        html.write_text(report(record), encoding="utf-8")
        click.echo(f"written: {html}", err=json_path is not None and str(json_path) == "-")


def write_suite(record: SuiteRecord) -> None:
    """Print a record: the device, and a line for each model."""
    console = result_console()
    rows = [
        ("adapter", record.adapter),
        ("peak", str(record.peak) if record.peak else "not measured"),
        ("machine", record.processor),
        ("versions", ", ".join(f"{name} {version}" for name, version in record.versions.items())),
    ]
    if record.target:
        rows.append(("compiled", f"as for {record.target}"))
    if cases := record.conformance:
        counts = f"{cases.passed} passed, {len(cases.failed)} failed, {cases.not_run} not run"
        rows += [("conformance", counts), *((name, why) for name, why in cases.failed.items())]
    write_section(console, "Benchmark", rows)
    peers = list(dict.fromkeys(name for figures in record.models for name in figures.peers))
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("model", no_wrap=True)
    titles = ("run ms", "GPU ms", "GFLOP/s", "tuned ms", "load ms", "dispatches", "memory", *(f"{peer} ms" for peer in peers))
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    for figures in record.models:
        table.add_row(figures.name, *_cells(figures, peers))
    console.print(table)
    write_section(console, "Errors", [(figures.name, figures.error) for figures in record.models if figures.error])
    write_section(console, "Left out", [(figures.name, figures.note) for figures in record.models if figures.note])


def compare_suites(first: SuiteRecord, second: SuiteRecord, names: tuple[str, str]) -> None:
    """Print the times of two records side by side, and the differences of their circumstances.

    Args:
        first: one record.
        second: the other one.
        names: the names of both for people.
    """
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("model", no_wrap=True)
    for what in ("run ms", "GPU ms"):
        for title in (what, "second", "ratio"):
            table.add_column(title, justify="right", no_wrap=True)
    later = {figures.name: figures for figures in second.models}
    for one in first.models:
        two = later.get(one.name)
        if two is not None and one.runs and two.runs:
            pairs = ((one.wall_ms, two.wall_ms), (one.gpu_ms, two.gpu_ms))
            cells = ((_number(a), _number(b), _number(b / a, 3) if a and b is not None else "") for a, b in pairs)
            table.add_row(one.name, *(cell for each in cells for cell in each))
    console = result_console()
    write_section(console, "Records", [("first", names[0]), ("second", names[1])])
    console.print(table)
    circumstances = [
        {"adapter": r.adapter, "machine": r.processor, "versions": r.versions, "compiled as for": r.target, "peak": str(r.peak)}
        for r in (first, second)
    ]
    one, two = circumstances
    write_section(
        console, "What else differs", [(name, f"{one[name]} | {two[name]}") for name in one if one[name] != two[name]]
    )


def _cells(figures: ModelFigures, peers: Sequence[str]) -> list[str]:
    times = [figures.peers[peer].wall_ms if peer in figures.peers else None for peer in peers]
    if not figures.runs:
        return ["", "", "", "", "", "", "", *map(_number, times)]
    return [
        _number(figures.wall_ms),
        _number(figures.gpu_ms),
        _number(figures.gflop_per_s, 1),
        _number(figures.tuned_ms),
        _number(figures.load_ms, 0),
        str(figures.dispatches),
        amount(figures.device_bytes),
        *map(_number, times),
    ]


def _number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"
