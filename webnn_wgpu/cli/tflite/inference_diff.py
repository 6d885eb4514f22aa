"""`webnn-wgpu inference_diff`: the distance of WebNN's results from those of TFLite's kernels, as TFLite's tool prints it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from webnn_wgpu.frontends.common.held import Array

from ..models import failing_well
from .flags import WEBNN, flags, ignored, interpreter_of, model_file

INVOCATIONS = 3
"""The number of invocations of a run, whose mean time is its latency."""


def gaussian(rng: np.random.Generator, details: dict[str, Any]) -> Array:
    """Return an input: a normal distribution in [0, 1), spread over [-1, 1) or the range of the integer type."""
    shape, dtype = tuple(map(int, details["shape"])), np.dtype(details["dtype"])
    values = np.clip(rng.normal(0.5, 1 / 3, shape), 0, np.nextafter(1, 0))
    if dtype.kind == "f":
        return np.asarray(2 * values - 1).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(values >= 0.5)
    limits = np.iinfo(dtype)
    return np.floor(limits.min + values * (float(limits.max) - float(limits.min) + 1)).astype(dtype)


def _run(interpreter: Any, feeds: list[Array]) -> tuple[list[Array], float]:
    """Return the outputs and the mean microseconds of an invocation."""
    for details, array in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(details["index"], array)
    begin = time.perf_counter()
    for _ in range(INVOCATIONS):
        interpreter.invoke()
    latency = (time.perf_counter() - begin) / INVOCATIONS * 1e6
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()], latency


@click.command("inference_diff")
@flags(
    model_file("--model_file"),
    click.option("--num_runs", type=click.IntRange(1), default=50, show_default=True),
    click.option("--num_interpreter_threads", type=int, default=1, show_default=True),
    click.option("--output_file_path", type=click.Path(dir_okay=False, path_type=Path), help="A file for the lines, too."),
    *WEBNN,
    *ignored("delegate"),
)
@failing_well
def inference_diff(
    model_path: Path, num_runs: int, num_interpreter_threads: int, output_file_path: Path | None, **webnn: Any
) -> None:
    """Compare a TFLite model on WebNN with TFLite's kernels on random inputs.

    The reference runs on one of TFLite's Python packages. Without --use_webnn, both runs do.
    """
    reference = interpreter_of(model_path, {**webnn, "use_webnn": False}, num_interpreter_threads)
    test = interpreter_of(model_path, webnn, num_interpreter_threads)
    rng = np.random.default_rng(0)
    latencies: tuple[list[float], list[float]] = [], []
    errors: list[list[float]] = []
    for _ in range(num_runs):
        feeds = [gaussian(rng, details) for details in reference.get_input_details()]
        (expected, first), (found, second) = _run(reference, feeds), _run(test, feeds)
        latencies[0].append(first)
        latencies[1].append(second)
        errors.append(
            [
                float(np.mean(np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)))) if np.size(a) else 0.0
                for a, b in zip(expected, found, strict=True)
            ]
        )
    lines = [f"Num evaluation runs: {num_runs}"]
    for name, times in zip(("Reference", "Test"), latencies, strict=True):
        lines.append(f"{name} run latency: avg={np.mean(times):.6g}(us), std_dev={np.std(times):.0f}(us)")
    for i, column in enumerate(zip(*errors, strict=True)):
        lines.append(f"OutputDiff[{i}]: avg_error={np.mean(column):.6g}, std_dev={np.std(column):.6g}")
    click.echo("\n".join(lines))
    if output_file_path is not None:
        output_file_path.write_text("\n".join(lines) + "\n", encoding="utf-8")
