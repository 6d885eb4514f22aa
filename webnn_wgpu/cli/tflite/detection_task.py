"""`webnn-wgpu evaluate coco_object_detection`: the average precision of a detector."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from ..models import failing_well
from .detections import Box, Detected, GroundTruthError, average_precision, described, ground_truth
from .evaluation import FILE, OUTPUT, PICTURES, latency, pictures_in, report
from .flags import WEBNN, flags, ignored, interpreter_of, model_file, switch
from .pictures import input_for, labels_of, pixels_of

OFFSET = 1
"""The number of the first class: 0 is the background in label files."""

THRESHOLDS = tuple(0.5 + 0.05 * i for i in range(10))
"""The overlaps from which an object counts as found."""


def _found(interpreter: Any) -> list[Detected]:
    """Return the objects that a detector found: its outputs are boxes, classes, scores and their number."""
    outputs = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    if len(outputs) < 4:
        raise click.ClickException(f"the model has {len(outputs)} outputs; a detector has boxes, classes, scores and a count")
    boxes, labels, scores, count = (np.asarray(o, np.float64).reshape(-1) for o in outputs[:4])
    most = min(len(labels), len(scores), len(boxes) // 4)
    sides = boxes[: 4 * most].reshape(most, 4).tolist()
    return [
        Detected(int(labels[i]) + OFFSET, Box(top=top, bottom=bottom, left=left, right=right), float(scores[i]))
        for i, (top, left, bottom, right) in enumerate(sides[: int(count[0])])
    ]


def precisions(truths: Sequence[Sequence[Detected]], found: Sequence[Sequence[Detected]]) -> list[float]:
    """Return the mean over the classes of the average precision, for each threshold."""
    labels = sorted({d.label for part in (*truths, *found) for d in part})
    parts = [
        (
            [[d.box for d in part if d.label == label] for part in truths],
            [[d for d in part if d.label == label] for part in found],
        )
        for label in labels
    ]
    return [
        float(np.mean([average_precision(*part, threshold) for part in parts])) if parts else 0.0 for threshold in THRESHOLDS
    ]


@click.command("coco_object_detection")
@flags(
    model_file("--model_file"),
    click.option("--model_output_labels", type=FILE, required=True, help="The labels, one a line, the background first."),
    PICTURES,
    click.option("--ground_truth_proto", type=FILE, help="A serialized ObjectDetectionGroundTruth. Without it, only times."),
    click.option("--num_interpreter_threads", type=int, default=1, help="Threads of TFLite's kernels."),
    switch("--debug_mode", text="Write the objects found in each picture, too."),
    OUTPUT,
    *WEBNN,
    *ignored("delegate"),
)
@failing_well
def coco_object_detection(
    model_path: Path,
    model_output_labels: Path,
    ground_truth_images_path: Path,
    ground_truth_proto: Path | None,
    num_interpreter_threads: int,
    debug_mode: bool,
    output_file_path: Path | None,
    **webnn: Any,
) -> None:
    """Print the average precision of a detector for overlaps of 0.5 to 0.95, and their mean.

    Without --use_webnn, the kernels of TFLite run the model, if one of its Python packages is installed.
    """
    pictures = pictures_in(ground_truth_images_path)
    if not pictures:
        raise click.ClickException(f"no picture in {ground_truth_images_path}")
    try:
        known = ground_truth(ground_truth_proto.read_bytes()) if ground_truth_proto is not None else {}
    except GroundTruthError as error:
        raise click.ClickException(f"{ground_truth_proto} is no serialized ObjectDetectionGroundTruth: {error}") from error
    classes = len(labels_of(model_output_labels))
    interpreter = interpreter_of(model_path, webnn, num_interpreter_threads)
    details = interpreter.get_input_details()[0]
    preparation: list[float] = []
    times: list[float] = []
    found: list[list[Detected]] = []
    lines: list[str] = []
    for path in pictures:
        begin = time.perf_counter()
        interpreter.set_tensor(details["index"], input_for(details, pixels_of(path), 127.5, 127.5))
        start = time.perf_counter()
        interpreter.invoke()
        times.append((time.perf_counter() - start) * 1e6)
        preparation.append((start - begin) * 1e6)
        found.append(_found(interpreter))
        if debug_mode:
            lines += [described(path.name, found[-1]), "=" * 54]
    truths = [known.get(path.name, []) for path in pictures]
    for detected in (d for part in (*truths, *found) for d in part):
        if not 0 <= detected.label < classes:
            raise click.ClickException(f"class {detected.label} is beyond the {classes} labels of {model_output_labels}")
    lines += [
        f"Num evaluation runs: {len(pictures)}",
        latency("Preprocessing", preparation),
        latency("Inference", times),
    ]
    if ground_truth_proto is not None:
        values = precisions(truths, found)
        pairs = zip(THRESHOLDS, values, strict=True)
        lines += [f"Average Precision [IOU Threshold={threshold:.6g}]: {value:.6g}" for threshold, value in pairs]
        lines.append(f"Overall mAP: {np.mean(values):.6g}")
    report(lines, output_file_path)
