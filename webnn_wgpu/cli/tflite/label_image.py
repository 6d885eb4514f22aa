"""`webnn-wgpu label_image`: the classes of a picture, as TFLite's example of this name prints them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..models import failing_well
from .flags import WEBNN, flags, ignored, interpreter_of, model_file, switch
from .pictures import input_for, labels_of, pixels_of, scores_of

LEAST = 0.001
"""The score below which a class is not printed."""

_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("label_image")
@flags(
    model_file("-m", "--tflite_model", "--model_file"),
    click.option("-i", "--image", type=_file, required=True, help="The picture."),
    click.option("-l", "--labels", "--label_file", "labels", type=_file, help="A label a line."),
    click.option("-b", "--input_mean", type=float, default=127.5, show_default=True),
    click.option("-s", "--input_std", type=float, default=127.5, show_default=True),
    click.option("-c", "--count", type=click.IntRange(1), default=1, show_default=True, help="The number of measured runs."),
    click.option("-r", "--num_results", type=click.IntRange(1), default=5, show_default=True),
    click.option("-t", "--threads", "--num_threads", "threads", type=int, default=-1, help="Threads of TFLite's kernels."),
    click.option("-w", "--warmup_runs", type=click.IntRange(0), default=2, show_default=True),
    switch("-v", "--verbose", text="Print the tensors."),
    *WEBNN,
    *ignored("profiling", "ext_delegate"),
)
@failing_well
def label_image(
    model_path: Path,
    image: Path,
    labels: Path | None,
    input_mean: float,
    input_std: float,
    count: int,
    num_results: int,
    threads: int,
    warmup_runs: int,
    verbose: bool,
    **webnn: Any,
) -> None:
    """Classify a picture with a TFLite model and the flags of TFLite's label_image.

    Without --use_webnn, the kernels of TFLite run the model, if one of its Python packages is installed.
    """
    interpreter = interpreter_of(model_path, webnn, threads)
    if verbose:
        for details in interpreter.get_tensor_details():
            shape = ", ".join(map(str, details["shape"]))
            click.echo(f"{details['index']}: {details['name']}, {np.dtype(details['dtype']).name}[{shape}]")
    details = interpreter.get_input_details()[0]
    interpreter.set_tensor(details["index"], input_for(details, pixels_of(image), input_mean, input_std))
    for _ in range(warmup_runs):
        interpreter.invoke()
    begin = time.perf_counter()
    for _ in range(count):
        interpreter.invoke()
    click.echo(f"average time: {(time.perf_counter() - begin) / count * 1000:.2f} ms")
    scores = scores_of(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    names = labels_of(labels) if labels is not None else []
    for index in np.argsort(-scores, kind="stable")[:num_results]:
        if scores[index] >= LEAST:
            click.echo(f"{scores[index]:.6g}: {index} {names[index] if index < len(names) else ''}".rstrip())
