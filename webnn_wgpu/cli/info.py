"""`webnn-wgpu info` and `check`: the content of a model, the placement of its nodes and its memory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich import box
from rich.table import Table
from rich.text import Text

from webnn_wgpu import MLContext
from webnn_wgpu.core.wording import counted
from webnn_wgpu.display.tables import first_few
from webnn_wgpu.frontends.dims import assumed, sidecar
from webnn_wgpu.passes import PASSES

from .inputs import check_names, described_sizes
from .models import (
    check_folder_options,
    check_onnx_options,
    check_tensorflow_options,
    device_option,
    failing_well,
    is_tfjs,
    is_tflite,
    is_webnn,
    json_option,
    model_or_folder,
    open_context,
    options,
    shape_options,
)
from .text import amount, result_console, write_section

if TYPE_CHECKING:
    from webnn_wgpu.frontends.description import Analysis, ValueInfo
    from webnn_wgpu.passes import PassReport

BUFFER = "max-buffer-size"


@click.command()
@options(model_or_folder, shape_options, device_option, json_option)
@click.option("--passes", is_flag=True, help="Tell what each optimization pass does to the model, and why.")
@failing_well
def info(model: Path, device: str, as_json: bool, passes: bool, **shaping: Any) -> None:
    """Print the content of MODEL and its memory, before anything is allocated."""
    with open_context(device) as context:
        found = _analyzed(model, context, **shaping)
        limits = met_limits(found, context)
        if as_json:
            record = record_of(found, context)
            record["limits"] = [{"name": n, "needed": needed, "allowed": allowed} for n, needed, allowed in limits]
            if passes:
                record["passes"] = [[asdict(report) for report in graph] for graph in found.passes]
                record["rules"] = {each.name: [rule.describe() for rule in each.rules] for each in PASSES if each.rules}
            click.echo(json.dumps(record, indent=2))
            return
        console = result_console()
        write_section(console, "Model", _facts(found))
        write_section(console, "Inputs", [(i.name, _typed(i) + _settled(i, found)) for i in found.inputs])
        write_section(console, "Outputs", [(o.name, _typed(o)) for o in found.outputs])
        title = "Kernels" if found.parameters is None else "Operators"
        write_section(console, title, [(name, str(count)) for name, count in found.operators.items()])
        write_section(console, f"On {context.description}", [*_device(found), *_limit_rows(limits, found.problem)])
        for number, reports in enumerate(found.passes if passes else (), 1):
            title = "Passes" if len(found.passes) == 1 else f"Passes over graph {number}"
            write_section(console, title, _pass_rows(reports))
        write_section(console, "Rules of the passes", _rule_rows() if passes else ())


@click.command()
@options(model_or_folder, shape_options, device_option, json_option)
@click.option(
    "--fallback",
    type=click.Choice(["error", "host"]),
    default="error",
    show_default=True,
    help="Whether nodes on the host fail the check.",
)
@click.option("--all", "every", is_flag=True, help="List every node, not every operator.")
@click.pass_context
@failing_well
def check(
    click_context: click.Context, model: Path, device: str, as_json: bool, fallback: str, every: bool, **shaping: Any
) -> None:
    """Print where each operator of MODEL would run, and why. Nothing is run.

    Exits with 0 if everything runs on the device (or, with --fallback host, at all), else with 1. Nodes whose shapes depend on
    values of the host ("later") are settled only by a run.
    """
    with open_context(device) as context:
        found = _analyzed(model, context, **shaping)
        passed = not found.problem and not found.placement.on("unsupported")
        if fallback == "error":
            passed = passed and not found.placement.on("host")
        if as_json:
            record = record_of(found, context)
            record["passed"] = passed
            record["nodes"] = [asdict(placed) for placed in found.placement]
            click.echo(json.dumps(record, indent=2))
        else:
            console = result_console()
            console.print(_table(found, every))
            write_section(console, "Partitions", [(str(i), _numbers(part)) for i, part in enumerate(found.partitions)])
            rows = [("nodes", found.placement.summary()), ("verdict", _verdict(passed, found, fallback))]
            if sizes := _assumed(model, found, **shaping):
                rows.insert(1, ("sizes", described_sizes(sizes)))
            if unnamed := [i.name for i in found.inputs if i.name not in shaping["shapes"] and None in (i.shape or ())]:
                shapes = ", ".join(f"{name} = {list(found.shapes[name])}" for name in unnamed)
                rows.insert(-1, ("shapes", f"{shapes} by default; --input-shape NAME=SIZES sets others"))
            write_section(console, "In all", rows)
    click_context.exit(0 if passed else 1)


def _analyzed(
    model: Path,
    context: MLContext,
    *,
    dims: Mapping[str, int],
    shapes: Mapping[str, Sequence[int]],
    simplify: Any,
    weights: Path | None,
    manifest: Path | None,
) -> Analysis:
    """Analyze a model for the values of `shape_options`."""
    if model.is_dir():
        from webnn_wgpu.frontends.stored import analyze

        check_folder_options(weights, manifest, simplify)
        found = analyze(model, context)
    elif is_webnn(model):
        from webnn_wgpu.frontends import webnn

        if simplify is not None:
            raise click.BadParameter("only ONNX models can be simplified", param_hint="--simplify")
        found = webnn.analyze(
            model, context, weights=weights, manifest=manifest, override_dims={**sidecar(model), **dims}, input_shapes=shapes
        )
    elif is_tflite(model) or is_tfjs(model):
        check_tensorflow_options(model, weights, manifest, simplify)
        frontend = import_module(f"webnn_wgpu.frontends.{'tflite' if is_tflite(model) else 'tfjs'}")
        found = frontend.analyze(model, context, override_dims=dims, input_shapes=shapes)
    else:
        from webnn_wgpu.frontends import onnx

        check_onnx_options(weights, manifest)
        found = onnx.analyze(model, context, override_dims=dims, input_shapes=shapes, simplify=simplify)
    check_names(dims, shapes, found.inputs)
    return found


def _assumed(model: Path, found: Analysis, *, dims: Mapping[str, int], shapes: Mapping[str, Any], **_: Any) -> dict[str, int]:
    """Return the symbolic dimensions for which the analysis took default sizes."""
    pairs = [(i.shape, found.shapes[i.name]) for i in found.inputs if i.name not in shapes]
    return assumed(pairs, {**sidecar(model), **dims})


def _pass_rows(reports: Sequence[PassReport]) -> list[tuple[str, str]]:
    """Return the effect of each pass, with its reason in a column of its own, and the lines of a graph file that it changed."""
    counts = [f"{report.nodes_before} -> {report.nodes_after} nodes" for report in reports]
    width = max(map(len, counts), default=0)
    rounding = {each.name for each in PASSES if not each.exact}
    rows: list[tuple[str, str]] = []
    for report, count in zip(reports, counts, strict=True):
        mark = " (may change rounding)" if report.name in rounding else ""
        rows.append((report.name, f"{count:<{width}}  {report.reason}{mark}"))
        if report.places:
            rows.append(("", f"{'':<{width}}  from {first_few(report.places)}"))
    return rows


def _rule_rows() -> list[tuple[str, str]]:
    """Return the rules of the passes that are made of rules: the result, and the formula that it takes the place of."""
    rows: list[tuple[str, str]] = []
    for each in PASSES:
        lines = [line for rule in each.rules for line in rule.describe().splitlines()]
        rows += [(each.name if i == 0 else "", line) for i, line in enumerate(lines)]
    return rows


def _settled(info: ValueInfo, found: Analysis) -> str:
    """Return the shape for which a model was analyzed, if its own has other dimensions than sizes."""
    shape = list(found.shapes[info.name])
    return "" if info.shape is not None and list(info.shape) == shape else f", here {shape}"


def _typed(info: Any) -> str:
    return str(info).partition(": ")[2]


def _facts(found: Analysis) -> list[tuple[str, str]]:
    opsets = ", ".join(f"{domain} {version}" for domain, version in found.opsets.items())
    count = "" if found.parameters is None else f"{found.parameters:,}, "
    return [
        ("name", found.name),
        ("operator sets", opsets),
        ("nodes", str(sum(found.operators.values()))),
        ("parameters", count + amount(found.parameter_bytes)),
    ]


def _device(found: Analysis) -> list[tuple[str, str]]:
    rows = [
        ("nodes", found.placement.summary()),
        *(("unsupported", f"{placed.op} '{placed.name}': {placed.note}") for placed in found.placement.on("unsupported")),
        ("graphs", f"{found.graphs}, {counted(found.dispatches, 'dispatch', 'dispatches')} a run"),
    ]
    if found.memory is not None:
        memory = found.memory
        rows += [
            ("weights", amount(memory.weights)),
            ("intermediates", f"{amount(memory.slots)} ({amount(memory.unshared)} without sharing)"),
            ("inputs, outputs", amount(memory.ends)),
            ("peak", amount(memory.peak)),
        ]
    if found.placement.on("later"):
        rows.append(("not counted", f"{len(found.placement.on('later'))} nodes, whose shapes are known only in a run"))
    return rows


def met_limits(found: Analysis, context: MLContext) -> list[tuple[str, int, int]]:
    """Return the device's limits on sizes with the need of the model: (name, needed, allowed), in bytes."""
    if found.memory is None:
        return []
    return [(BUFFER, found.memory.largest, context.caps.limit(BUFFER))]


def _limit_rows(limits: Sequence[tuple[str, int, int]], problem: str) -> list[tuple[str, str]]:
    rows = [
        (name, f"{'met' if needed <= allowed else 'NOT MET'}: {amount(needed)} of {amount(allowed)}")
        for name, needed, allowed in limits
    ]
    return [*rows, ("problem", problem) if problem else ("limits", "all met")]


def record_of(found: Analysis, context: MLContext) -> dict[str, Any]:
    """Return an analysis as data for JSON."""
    return {
        "model": found.name,
        "adapter": context.description,
        "inputs": [
            {"name": i.name, "type": i.dtype.name, "shape": i.shape, "taken": found.shapes[i.name]} for i in found.inputs
        ],
        "outputs": [{"name": o.name, "type": o.dtype.name, "shape": o.shape} for o in found.outputs],
        "opsets": found.opsets,
        "operators": found.operators,
        "parameters": found.parameters,
        "parameter_bytes": found.parameter_bytes,
        "graphs": found.graphs,
        "dispatches": found.dispatches,
        "memory": None if found.memory is None else {**asdict(found.memory), "peak": found.memory.peak},
        "partitions": found.partitions,
        "placement": {where: len(found.placement.on(where)) for where in PLACES},
        "problem": found.problem,
    }


def _numbers(nodes: Sequence[int]) -> str:
    """Return numbers of nodes as ranges.

    >>> _numbers((0, 1, 2, 5, 7, 8))
    '6 nodes: 0 to 2, 5, 7 to 8'
    """
    ranges: list[list[int]] = []
    for n in sorted(nodes):
        if ranges and n == ranges[-1][-1] + 1:
            ranges[-1][-1] = n
        else:
            ranges.append([n, n])
    parts = (str(first) if first == last else f"{first} to {last}" for first, last in ranges)
    return f"{len(nodes)} nodes: {', '.join(parts)}"


PLACES = ("device", "folded", "host", "later", "unsupported")


def _table(found: Analysis, every: bool) -> Table:
    table = Table(title=found.name, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("operator", no_wrap=True)
    table.add_column("node" if every else "nodes", justify="left" if every else "right")
    table.add_column("where", no_wrap=True)
    table.add_column("why", overflow="fold")
    rows: dict[tuple[str, str, str, str], int] = {}
    for placed in found.placement:
        key = (placed.op, placed.name if every else "", placed.where, placed.note)
        rows[key] = rows.get(key, 0) + 1
    order = {where: i for i, where in enumerate(reversed(PLACES))}
    for (op, name, where, note), count in sorted(rows.items(), key=lambda row: () if every else (order[row[0][2]], row[0])):
        table.add_row(Text(op), Text(name or str(count)), where, Text(note))
    return table


def _verdict(passed: bool, found: Analysis, fallback: str) -> str:
    if found.problem:
        return f"cannot run: {found.problem}"
    if found.placement.on("unsupported"):
        return "cannot run"
    if passed:
        return "runs on the device" if fallback == "error" or not found.placement.on("host") else "runs, in part on the host"
    return "needs the host"
