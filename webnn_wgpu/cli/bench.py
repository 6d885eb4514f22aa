"""`webnn-wgpu bench`: the times of a model, with the circumstances of the measurement."""

from __future__ import annotations

import hashlib
import json
import math
import platform
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.core import ParameterSource
from rich import box
from rich.table import Table

from webnn_wgpu import MLContext, WebNNError, __version__
from webnn_wgpu.frontends.description import counted_places
from webnn_wgpu.testing.suite import MODELS, SuiteRecord

from .inputs import GivenInputs, sizes_of
from .models import (
    device_option,
    failing_well,
    fallback_option,
    input_options,
    is_tfjs,
    is_tflite,
    is_webnn,
    load_model_or_folder,
    open_context,
    options,
    printed_file,
    shape_options,
    values,
    written_file,
)
from .progress import loading
from .suite import SUITE_SECONDS, bench_suite, compare_suites
from .text import result_console, write_section

PERCENTILES = (50, 90, 95, 99)
GPU_RUNS = 5
"""Most runs that are timed by the device's timestamps, after those that are timed by the host's clock."""

SUITE_OPTIONS = ("suite", "only", "tune", "html", "json_path", "device", "seconds")
"""Parameters that --suite takes."""

IGNORED = {
    "-e": "the execution provider",
    "-x": "threads within a node",
    "-y": "threads between nodes",
    "-c": "concurrent runs",
    "--num_threads": "threads",
    "--use_gpu": "the choice of a GPU",
    "--use_xnnpack": "XNNPACK",
    "--use_nnapi": "NNAPI",
    "--enable_op_profiling": "profiles of operators",
    "--max_secs": "the longest time",
}
"""Options of onnxruntime_perf_test and TFLite's benchmark_model that have a value and no meaning here."""

compatible = tuple(
    click.option(name, f"ignored_{name.strip('-')}", metavar="VALUE", hidden=True, expose_value=True) for name in IGNORED
)


def _finite(_context: click.Context, parameter: click.Parameter, seconds: float) -> float:
    if not math.isfinite(seconds):  # nan is in every range
        raise click.BadParameter(f"{seconds} seconds never pass", param=parameter)
    return seconds


@click.command()
@click.argument("model", required=False, type=click.Path(exists=True, path_type=Path))
@click.argument("output", required=False, type=printed_file)
@options(input_options, fallback_option, device_option)
@click.option("--graph", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="MODEL, as benchmark_model has it.")
@click.option("-r", "--runs", "--num_runs", default=50, show_default=True, type=click.IntRange(1), help="Runs to measure.")
@click.option("-w", "--warmup", "--warmup_runs", default=3, show_default=True, type=click.IntRange(0), help="Runs before them.")
@click.option(
    "-m",
    "--mode",
    type=click.Choice(["times", "duration"]),
    default="times",
    show_default=True,
    help="Measure -r runs, or for -t seconds.",
)
@click.option(
    "-t",
    "--seconds",
    "--min_secs",
    default=10.0,
    show_default=True,
    type=click.FloatRange(0),
    callback=_finite,
    help="Of -m duration. With --suite: for each model, 2.0 by default.",
)
@click.option("--run_delay", default=0.0, type=click.FloatRange(0), callback=_finite, help="Seconds between runs.")
@click.option("-I", "random_inputs", is_flag=True, help="Random inputs, which is what inputs get anyway.")
@click.option("--input_layer", help="Names of inputs, in the order of --input_layer_shape.")
@click.option("--input_layer_shape", help="Their shapes, as benchmark_model has them: 1,224,224,3:1,10.")
@options(shape_options)
@click.option("--json", "json_path", type=printed_file, help="Write the record to a file; - prints it.")
@click.option(
    "--compare", nargs=2, type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Compare two records instead."
)
@click.option("--suite", is_flag=True, help="Measure the built-in models instead of MODEL.")
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    help=f"Of --suite: this model; may be given several times. One of {', '.join(MODELS)}.",
)
@click.option("--tune", is_flag=True, help="Of --suite: measure the kernel variants too, which takes minutes.")
@click.option("--html", type=written_file, help="Of --suite: write the record as a page.")
@options(compatible)
@failing_well
def bench(**given: Any) -> None:
    """Measure the time of runs of MODEL. With OUTPUT write the record there, as --json does.

    With --suite, measure built-in models: networks of common architectures with random weights, which need no file. It takes
    about a minute and prints one table. The file of --json has all figures, the device and the versions, and no data of yours:
    send it with a report about speed. --compare compares two of these files, too.

    The spellings of onnxruntime_perf_test (-r, -m, -t, -f NAME:SIZE, -I) and TFLite's benchmark_model (--graph=, --num_runs=,
    --warmup_runs=, --input_layer=, --input_layer_shape=) are taken. Those of their options that mean nothing here are passed
    over with a message.
    """
    for name, meaning in IGNORED.items():
        if given.pop(f"ignored_{name.strip('-')}") is not None:
            click.echo(f"{name} is passed over: {meaning} cannot be chosen here", err=True)
    if given["compare"]:
        compare(*given["compare"])
        return
    model: Path | None = given["graph"] or given["model"]
    if given["suite"]:
        if model is not None:
            raise click.UsageError("--suite has models of its own: name no MODEL")
        _refuse_options_of_models()
        is_default = click.get_current_context().get_parameter_source("seconds") is ParameterSource.DEFAULT
        seconds = SUITE_SECONDS if is_default else given["seconds"]
        bench_suite(seconds=seconds, **{name: given[name] for name in ("device", "only", "tune", "json_path", "html")})
        return
    for option in ("only", "tune", "html"):
        if given[option]:
            raise click.UsageError(f"--{option} is an option of --suite")
    if model is None:
        raise click.UsageError("name a MODEL, give --suite, or two records to --compare")
    given["shapes"] = {**layer_shapes(given["input_layer"], given["input_layer_shape"]), **given["shapes"]}
    inputs = values(model, given)
    with open_context(given["device"]) as context:
        record = measure(
            model,
            context,
            inputs,
            fallback=given["fallback"],
            simplify=given["simplify"],
            runs=given["runs"] if given["mode"] == "times" else None,
            seconds=given["seconds"],
            warmup=given["warmup"],
            delay=given["run_delay"],
        )
    path: Path | None = given["json_path"] or given["output"]
    if path is not None and str(path) == "-":
        click.echo(json.dumps(record, indent=2))
        return
    _write(record)
    if path is not None:
        path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _refuse_options_of_models() -> None:
    """Raise a usage error if the command line has an option that means nothing to --suite."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and name not in SUITE_OPTIONS:
            raise click.UsageError(f"{max(parameter.opts, key=len)} is an option of MODEL, and --suite has models of its own")


def layer_shapes(names: str | None, shapes: str | None) -> dict[str, list[int]]:
    """Return the shapes in benchmark_model's spelling: names parted by commas, shapes by colons."""
    if not shapes:
        return {}
    listed, parts = (names or "").split(","), shapes.split(":")
    if len(listed) != len(parts) or not all(listed):
        raise click.BadParameter("as many names as shapes are needed", param_hint="--input_layer")
    try:
        return {name: sizes_of(part) for name, part in zip(listed, parts, strict=True)}
    except ValueError:
        raise click.BadParameter(f"{shapes!r} are no shapes", param_hint="--input_layer_shape") from None


def measure(
    path: Path,
    context: MLContext,
    inputs: GivenInputs,
    *,
    fallback: Any = "warn",
    simplify: Any = None,
    runs: int | None = 50,
    seconds: float = 10.0,
    warmup: int = 3,
    delay: float = 0.0,
) -> dict[str, Any]:
    """Load a model, run it and return the record.

    Args:
        path: the model.
        context: where it runs.
        inputs: its inputs.
        fallback: as for `load`.
        simplify: as for `load`.
        runs: runs to measure. None measures for `seconds`.
        seconds: how long.
        warmup: runs before them, the first one not counted.
        delay: seconds between runs.
    """
    with loading(path) as progress:
        start = time.perf_counter()
        model = load_model_or_folder(path, context, inputs, fallback=fallback, simplify=simplify, progress=progress)
        loaded = time.perf_counter()
        feeds = inputs.feeds(model.inputs)
        first = time.perf_counter()
        model.run(feeds)
        first_run = time.perf_counter() - first
    with model:
        for _ in range(warmup):
            model.run(feeds)
        walls: list[float] = []
        cpu = time.process_time()
        end = time.perf_counter() + seconds
        while len(walls) < runs if runs is not None else (not walls or time.perf_counter() < end):
            began = time.perf_counter()
            model.run(feeds)
            walls.append((time.perf_counter() - began) * 1e3)
            if delay:
                time.sleep(delay)
        cpu = time.process_time() - cpu
        profiles = [model.profile(feeds) for _ in range(min(GPU_RUNS, len(walls)))]
        gpu = [p.gpu_ms for p in profiles if p.gpu_ms is not None]
        placement = model.placement
    return {
        "model": path.name,
        "sha256": _digest(path),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "adapter": context.description,
        "adapter_type": context.caps.adapter_type,
        "versions": {
            "webnn_wgpu": __version__,
            "wgpu": metadata.version("wgpu"),
            "numpy": np.__version__,
            **(
                {}
                if path.is_dir() or any(kind(path) for kind in (is_webnn, is_tflite, is_tfjs))
                else {"onnx": metadata.version("onnx")}
            ),
            "python": platform.python_version(),
            "platform": platform.platform(),
        },
        "inputs": {name: f"{a.dtype}{list(a.shape)}" for name, a in feeds.items()},
        "placement": {where: len(placement.on(where)) for where in ("device", "folded", "host")},
        "load_ms": (loaded - start) * 1e3,
        "first_run_ms": first_run * 1e3,
        "warmup": warmup,
        "runs": len(walls),
        "wall_ms": {
            "min": min(walls),
            "mean": float(np.mean(walls)),
            "max": max(walls),
            **{f"p{p}": float(np.percentile(walls, p)) for p in PERCENTILES},
        },
        "cpu_ms": cpu * 1e3 / len(walls),
        "gpu_ms": float(np.median(gpu)) if gpu else None,
        "gpu_note": profiles[0].note,
        "walls_ms": walls,
    }


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents of a folder's files."""
    if not path.is_dir():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    found = hashlib.sha256()
    for file in sorted(each for each in path.rglob("*") if each.is_file()):
        found.update(f"{file.relative_to(path).as_posix()}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()


def _write(record: Mapping[str, Any]) -> None:
    console = result_console()
    wall: Mapping[str, float] = record["wall_ms"]
    placement: Mapping[str, int] = record["placement"]
    software = ", a software adapter: it runs on the CPU" if record["adapter_type"] == "CPU" else ""
    write_section(
        console,
        record["model"],
        [
            ("adapter", record["adapter"] + software),
            ("nodes", counted_places(placement)),
            ("inputs", ", ".join(f"{name} {kind}" for name, kind in record["inputs"].items())),
            ("load", f"{record['load_ms']:.1f} ms"),
            ("first run", f"{record['first_run_ms']:.1f} ms"),
            ("runs", f"{record['runs']} after {record['warmup']} to warm up"),
            ("wall time", ", ".join(f"{name} {ms:.3f}" for name, ms in wall.items()) + " ms"),
            ("CPU time", f"{record['cpu_ms']:.3f} ms a run, all threads of this process"),
            ("GPU time", gpu_time(record)),
            ("versions", ", ".join(f"{name} {version}" for name, version in record["versions"].items())),
        ],
    )


def gpu_time(record: Mapping[str, Any]) -> str:
    """Return the time of a run's kernels and its share of the wall time, or why it is not known."""
    gpu, wall = record["gpu_ms"], record["wall_ms"]["p50"]
    if gpu is None:
        return f"not measured: {record['gpu_note']}"
    share = f"{gpu / wall:.0%} of the wall time's median"
    return f"{gpu:.3f} ms a run, {share}, by the device's timestamps in separate runs with a pass per kernel"


def compare(first: Path, second: Path) -> None:
    """Print two records side by side, and the differences of their circumstances. Both are of a model, or both of the suite."""
    try:
        earlier, later = (SuiteRecord.from_json(path.read_text(encoding="utf-8")) for path in (first, second))
    except WebNNError:
        pass  # of models, or no records at all
    else:
        compare_suites(earlier, later, (first.name, second.name))
        return
    records: list[dict[str, Any]] = []
    times: list[dict[str, float | None]] = []
    for path in (first, second):
        try:
            records.append(json.loads(path.read_text(encoding="utf-8")))
            times.append(_times(records[-1]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WebNNError(f"{path} is no record of this command: {type(error).__name__}: {error}") from error
    one, two = records
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("ms", first.name, second.name, "second / first"):
        table.add_column(title, justify="left" if title == "ms" else "right", no_wrap=True)
    for name, a in times[0].items():
        b = times[1].get(name)
        if a is not None and b is not None:
            table.add_row(name, f"{a:.3f}", f"{b:.3f}", f"{b / a:.3f}" if a else "")
    console = result_console()
    console.print(table)
    kept: Sequence[str] = ("model", "sha256", "adapter", "versions", "inputs", "placement", "runs", "warmup")
    changed = [(name, f"{one.get(name)} | {two.get(name)}") for name in kept if one.get(name) != two.get(name)]
    write_section(console, "What else differs", changed)


def _times(record: Mapping[str, Any]) -> dict[str, float | None]:
    """Return all times of a record by name, or None for a time that was not measured."""
    walls = {f"wall {name}": ms for name, ms in record["wall_ms"].items()}
    times = {"load": record["load_ms"], "first run": record["first_run_ms"], **walls}
    times |= {"CPU": record["cpu_ms"], "GPU": record["gpu_ms"]}
    return {name: None if ms is None else float(ms) for name, ms in times.items()}
