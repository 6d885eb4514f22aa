"""`webnn-wgpu benchmark_model`: the times of a TFLite model, as TFLite's tool of this name prints them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

import webnn_wgpu as wn
from webnn_wgpu.frontends.common.held import Array
from webnn_wgpu.frontends.timing import watched

from ..models import failing_well
from .flags import WEBNN, flags, ignored, interpreter_of, model_file, switch, webnn_context

HEADINGS = ("node type", "start", "first", "avg ms", "%", "cdf%", "times called", "name")

Inputs = dict[str, Array]

MEGABYTE = 1 << 20


def _parts(text: str, separator: str = ":") -> list[str]:
    return [part for part in text.split(separator) if part]


def _shapes(names: str, shapes: str) -> dict[str, list[int]]:
    """Return shapes by name, from `a,b` and `1,30:1,10`."""
    keys, values = _parts(names, ","), _parts(shapes)
    if len(keys) != len(values):
        raise click.BadParameter(f"{len(keys)} names have {len(values)} shapes", param_hint="--input_layer_shape")
    try:
        return {key: [int(size) for size in value.split(",")] for key, value in zip(keys, values, strict=True)}
    except ValueError as error:
        raise click.BadParameter(f"{shapes!r} is not of the form 1,30:1,10", param_hint="--input_layer_shape") from error


def _ranges(text: str) -> dict[str, tuple[float, float]]:
    """Return ranges by name, from `a,0,255:b,-1,1`."""
    found: dict[str, tuple[float, float]] = {}
    for part in _parts(text):
        try:
            name, low, high = part.split(",")
            found[name] = float(low), float(high)
        except ValueError as error:
            raise click.BadParameter(
                f"{part!r} is not of the form name,low,high", param_hint="--input_layer_value_range"
            ) from error
    return found


def _files(text: str) -> dict[str, Path]:
    """Return files of raw values by name, from `a:file,b:file`."""
    found: dict[str, Path] = {}
    for part in _parts(text, ","):
        name, _, file = part.rpartition(":")
        if not name or not Path(file).is_file():
            raise click.BadParameter(f"{part!r} names no input and file", param_hint="--input_layer_value_files")
        found[name] = Path(file)
    return found


class Subject:
    """A model, or one of its signatures, whose runs are measured.

    Args:
        interpreter: the interpreter of the model.
        signature: the key of the signature. Without it, the inputs have the names of their tensors.
    """

    def __init__(self, interpreter: Any, signature: str) -> None:
        self._interpreter, self._runner = interpreter, None
        if signature:
            known = interpreter.get_signature_list()
            if signature not in known:
                raise click.BadParameter(f"the model has {', '.join(known) or 'none'}", param_hint="--signature_to_run_for")
            self._runner: Any = interpreter.get_signature_runner(signature)
        self._feeds: Inputs = {}
        self._results: list[Array] = []

    def inputs(self) -> dict[str, dict[str, Any]]:
        """Return the details of the inputs, by name."""
        if self._runner is not None:
            return self._runner.get_input_details()
        return {details["name"]: details for details in self._interpreter.get_input_details()}

    def feed(self, feeds: Inputs) -> None:
        """Set the inputs of all runs."""
        self._feeds = feeds
        if self._runner is None:
            for name, details in self.inputs().items():
                self._interpreter.set_tensor(details["index"], feeds[name])

    def run(self) -> None:
        """Run once. A signature's run copies its inputs and outputs, as programs that use it do."""
        if self._runner is None:
            self._interpreter.invoke()
        else:
            self._results = list(self._runner(**self._feeds).values())

    def outputs(self) -> list[Array]:
        """Return the outputs of the last run."""
        if self._runner is not None:
            return self._results
        return [self._interpreter.get_tensor(d["index"]) for d in self._interpreter.get_output_details()]


def inputs_of(
    described: dict[str, dict[str, Any]], ranges: dict[str, tuple[float, float]], files: dict[str, Path], seed: int = 0
) -> Inputs:
    """Return random elements for the inputs, or those of files, by the names of the inputs."""
    rng = np.random.default_rng(seed)
    found: Inputs = {}
    for name, details in described.items():
        dtype, shape = np.dtype(details["dtype"]), tuple(map(int, details["shape"]))
        if name in files:
            data = np.fromfile(files[name], dtype)
            if data.size != int(np.prod(shape)):
                raise click.ClickException(f"{files[name]} has {data.size} elements; input '{name}' has {int(np.prod(shape))}")
            found[name] = data.reshape(shape)
        elif name in ranges:
            found[name] = np.asarray(rng.uniform(*ranges[name], shape)).astype(dtype)
        elif dtype.kind == "f":
            found[name] = np.asarray(rng.uniform(-0.5, 0.5, shape)).astype(dtype)
        elif dtype.kind == "b":
            found[name] = np.asarray(rng.integers(0, 2, shape)).astype(dtype)
        else:
            limits = np.iinfo(dtype)
            low, high = max(limits.min, -128), min(limits.max, 99 if dtype.itemsize > 1 else 255)
            found[name] = np.asarray(rng.integers(low, high, shape, endpoint=True)).astype(dtype)
    return found


def timed_runs(
    run: Callable[[], object], least: int, least_seconds: float, most_seconds: float, pause: float = 0, rate: float = 0
) -> list[float]:
    """Return the microseconds of runs: so many, then more until the time is over.

    Args:
        run: runs once.
        least: the least number of runs.
        least_seconds: the least time.
        most_seconds: the time after which no run begins.
        pause: seconds between two runs.
        rate: the number of runs per second, which a late run tries to catch up with. It replaces `pause`.
    """
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < least or time.perf_counter() - begin < least_seconds:
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e6)
        if time.perf_counter() - begin > most_seconds:
            break
        wait = begin + len(times) / rate - time.perf_counter() if rate > 0 else pause
        if wait > 0:
            time.sleep(wait)
    return times


def _line(title: str, times: Sequence[float]) -> str:
    array = np.array(times)
    return (
        f"{title}: count={len(times)} first={array[0]:.0f} curr={array[-1]:.0f} min={array.min():.0f} max={array.max():.0f} "
        f"avg={array.mean():.6g} std={array.std():.0f}"
    )


def peak_bytes() -> int:
    """Return the greatest resident memory that the process has had.

    Raises:
        ClickException: the operating system does not tell it.
    """
    try:
        import resource
    except ModuleNotFoundError as error:
        raise click.ClickException("this operating system does not tell a process its peak memory") from error
    # Linux counts kilobytes, macOS bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _profile(path: Path, webnn: dict[str, Any], feeds: Inputs, runs: int, signature: str) -> list[tuple[str, ...]]:
    """Return a row for each kernel of the model on WebNN."""
    with webnn_context(webnn) as context, wn.load(path, context, signature=signature or None) as model:
        given = dict(zip([i.name for i in model.inputs], feeds.values(), strict=True))
        with watched() as watch:
            model.run(given)
        kernels = [k for graph, inputs in watch.inputs.items() for k in graph.profile(inputs, runs=runs).kernels]
    total = sum(kernel.microseconds for kernel in kernels) or 1
    rows: list[tuple[str, ...]] = []
    start = 0.0
    for kernel in kernels:
        share, done = 100 * kernel.microseconds / total, 100 * (start + kernel.microseconds) / total
        milliseconds = f"{kernel.microseconds / 1000:.3f}"
        rows.append(
            (
                kernel.template,
                f"{start / 1000:.3f}",
                milliseconds,
                milliseconds,
                f"{share:.3f}%",
                f"{done:.3f}%",
                str(runs),
                ", ".join(kernel.labels) or kernel.name,
            )
        )
        start += kernel.microseconds
    return rows


def _table(rows: Iterable[Sequence[str]], mode: str) -> str:
    every = [HEADINGS, *rows]
    if mode == "csv":
        return "\n".join(",".join(cell.replace(",", ";") for cell in row) for row in every)
    return "\n".join("".join(f"\t[{cell}]" if row is HEADINGS else f"\t{cell}" for cell in row) for row in every)


@click.command("benchmark_model")
@flags(
    model_file("--graph"),
    click.option("--signature_to_run_for", default="", help="The signature to run. The main subgraph by default."),
    click.option("--num_threads", type=int, default=-1, help="Threads of TFLite's kernels."),
    click.option("--warmup_runs", type=click.IntRange(0), default=1, show_default=True),
    click.option("--num_runs", type=click.IntRange(1), default=50, show_default=True, help="The least number of runs."),
    click.option("--min_secs", type=float, default=1.0, show_default=True, help="The least time of all runs."),
    click.option("--max_secs", type=float, default=150.0, show_default=True, help="The time after which runs end."),
    click.option("--run_delay", type=float, default=-1.0, help="Seconds between runs."),
    click.option("--run_frequency", type=float, default=-1.0, help="Runs per second, in place of a delay."),
    click.option("--input_layer", default="", help="Names of inputs with another shape: a,b."),
    click.option("--input_layer_shape", default="", help="Their shapes: 1,30:1,10."),
    click.option("--input_layer_value_range", default="", metavar="NAME,LOW,HIGH:...", help="Ranges of random inputs."),
    click.option("--input_layer_value_files", default="", metavar="NAME:FILE,...", help="Files of raw elements."),
    click.option("--output_filepath", type=click.Path(dir_okay=False, path_type=Path), help="A file for the raw outputs."),
    switch("--enable_op_profiling", text="Print the time of each kernel. Needs --use_webnn."),
    click.option("--op_profiling_output_mode", type=click.Choice(["stdout", "csv"]), default="stdout", show_default=True),
    click.option("--op_profiling_output_file", type=click.Path(dir_okay=False, path_type=Path)),
    switch("--report_peak_memory_footprint", text="Print the greatest memory of the process so far."),
    switch("--dry_run", text="Load the model, and end."),
    *WEBNN,
    *ignored("verbose", "print_preinvoke_state", "allow_fp16", "require_full_delegation"),
)
@failing_well
def benchmark_model(
    model_path: Path,
    signature_to_run_for: str,
    num_threads: int,
    warmup_runs: int,
    num_runs: int,
    min_secs: float,
    max_secs: float,
    run_delay: float,
    run_frequency: float,
    input_layer: str,
    input_layer_shape: str,
    input_layer_value_range: str,
    input_layer_value_files: str,
    output_filepath: Path | None,
    enable_op_profiling: bool,
    op_profiling_output_mode: str,
    op_profiling_output_file: Path | None,
    report_peak_memory_footprint: bool,
    dry_run: bool,
    **webnn: Any,
) -> None:
    """Measure a TFLite model with the flags of TFLite's benchmark_model.

    Without --use_webnn, the kernels of TFLite run the model, if one of its Python packages is installed.
    """
    shapes, ranges = _shapes(input_layer, input_layer_shape), _ranges(input_layer_value_range)
    files = _files(input_layer_value_files)
    if enable_op_profiling and not webnn["use_webnn"]:
        raise click.BadParameter("profiles are those of WebNN's kernels: add --use_webnn", param_hint="--enable_op_profiling")
    begin = time.perf_counter()
    interpreter = interpreter_of(model_path, webnn, num_threads)
    for details in interpreter.get_input_details():
        if details["name"] in shapes:
            interpreter.resize_tensor_input(details["index"], shapes[details["name"]])
    if shapes:
        interpreter.allocate_tensors()
    init = (time.perf_counter() - begin) * 1e6
    click.echo(f"Loaded model {model_path}")
    if dry_run:
        return
    subject = Subject(interpreter, signature_to_run_for)
    feeds = inputs_of(subject.inputs(), ranges, files)
    subject.feed(feeds)
    # The first run compiles kernels and is counted on its own, as TFLite does.
    warmup = timed_runs(subject.run, max(warmup_runs, 1), 0, max_secs)
    times = timed_runs(subject.run, num_runs, min_secs, max_secs, run_delay, run_frequency)
    click.echo(_line("Warmup", warmup))
    click.echo(_line("Inference", times))
    click.echo(
        f"Inference timings in us: Init: {init:.0f}, First inference: {warmup[0]:.0f}, "
        f"Warmup (avg): {np.mean(warmup):.6g}, Inference (avg): {np.mean(times):.6g}"
    )
    if output_filepath is not None:
        output_filepath.write_bytes(b"".join(np.ascontiguousarray(o).tobytes() for o in subject.outputs()))
    if report_peak_memory_footprint:
        click.echo(f"Overall peak memory footprint (MB): {peak_bytes() / MEGABYTE:.6g}")
    if enable_op_profiling:
        table = _table(_profile(model_path, webnn, feeds, min(num_runs, 10), signature_to_run_for), op_profiling_output_mode)
        if op_profiling_output_file is not None:
            op_profiling_output_file.write_text(table + "\n", encoding="utf-8")
        else:
            click.echo(table)
