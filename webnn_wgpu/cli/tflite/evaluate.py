"""`webnn-wgpu evaluate`: TFLite's evaluation tasks, with their flags and lines."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..models import failing_well
from .detection_task import coco_object_detection
from .evaluation import FILE, OUTPUT, PICTURES, latency, pictures_in, report
from .flags import WEBNN, flags, ignored, interpreter_of, model_file
from .pictures import central, input_for, labels_of, pixels_of, scores_of

CROP = 0.875
"""The part of each side of a picture that models see."""

TOP = 10
"""The greatest number of classes among which the right one is looked for."""


@click.group()
def evaluate() -> None:
    """Evaluate TFLite models on data sets of pictures, with the flags of TFLite's tools."""


evaluate.add_command(coco_object_detection)


@evaluate.command("imagenet_image_classification")
@flags(
    model_file("--model_file"),
    PICTURES,
    click.option("--ground_truth_labels", type=FILE, required=True, help="The label of each picture, one a line."),
    click.option("--model_output_labels", type=FILE, required=True, help="The labels of the model's classes, one a line."),
    click.option("--denylist_file_path", type=FILE, help="The numbers of pictures to leave out, from 1, one a line."),
    click.option("--num_images", type=click.IntRange(0), default=0, help="The number of pictures, 0 for all."),
    click.option("--num_threads", type=int, default=4, help="Threads of TFLite's kernels."),
    OUTPUT,
    *WEBNN,
    *ignored("delegate"),
)
@failing_well
def imagenet_image_classification(
    model_path: Path,
    ground_truth_images_path: Path,
    ground_truth_labels: Path,
    model_output_labels: Path,
    denylist_file_path: Path | None,
    num_images: int,
    num_threads: int,
    output_file_path: Path | None,
    **webnn: Any,
) -> None:
    """Print the share of pictures whose right class is among the first 1 to 10 of a model.

    Without --use_webnn, the kernels of TFLite run the model, if one of its Python packages is installed.
    """
    pictures = pictures_in(ground_truth_images_path)
    truths, names = labels_of(ground_truth_labels), labels_of(model_output_labels)
    if len(pictures) != len(truths):
        raise click.ClickException(f"{len(pictures)} pictures have {len(truths)} labels in {ground_truth_labels}")
    denied = {int(line) for line in labels_of(denylist_file_path)} if denylist_file_path is not None else set[int]()
    chosen = [(p, t) for i, (p, t) in enumerate(zip(pictures, truths, strict=True), 1) if i not in denied]
    chosen = chosen[: num_images or None]
    if not chosen:
        raise click.ClickException("no picture is left to evaluate")
    interpreter = interpreter_of(model_path, webnn, num_threads)
    details, output = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    hits = np.zeros(TOP)
    times: list[float] = []
    for path, truth in chosen:
        interpreter.set_tensor(details["index"], input_for(details, central(pixels_of(path), CROP), 127.5, 127.5))
        begin = time.perf_counter()
        interpreter.invoke()
        times.append((time.perf_counter() - begin) * 1e6)
        scores = scores_of(interpreter.get_tensor(output["index"]))
        if len(scores) != len(names):
            raise click.ClickException(f"the model has {len(scores)} classes; {model_output_labels} has {len(names)} labels")
        best: list[str] = [names[int(i)] for i in np.argsort(-scores, kind="stable")[:TOP]]
        if truth in best:
            hits[best.index(truth) :] += 1
    lines = [
        f"Num evaluation runs: {len(chosen)}",
        latency("Inference", times),
        *(f"Top-{i} Accuracy: {hit / len(chosen):.6g}" for i, hit in enumerate(hits, 1)),
    ]
    report(lines, output_file_path)
