"""TFLite_Detection_PostProcess: boxes of objects from the predictions of an SSD."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...common.held import Array
from ..call import NodeFacts
from ._registry import hosted
from .hosted import Arrays, given, intersection_over_union


@dataclass(frozen=True, kw_only=True)
class DetectionOptions:
    """The options of the operator."""

    most: int
    classes_each: int
    per_class: int
    regular: bool
    least: float
    overlap: float
    classes: int


def _options(facts: NodeFacts) -> DetectionOptions:
    found = facts.attributes
    return DetectionOptions(
        most=int(found.get("max_detections", 0)),
        classes_each=int(found.get("max_classes_per_detection", 1)),
        per_class=int(found.get("detections_per_class", 100)),
        regular=bool(found.get("use_regular_nms", False)),
        least=float(found.get("nms_score_threshold", 0.0)),
        overlap=float(found.get("nms_iou_threshold", 0.0)),
        classes=int(found.get("num_classes", 0)),
    )


def _numbers(facts: NodeFacts, arrays: Arrays, index: int) -> Array:
    """Return an input as float32, dequantized if it is quantized."""
    array, record = given(facts, arrays, index), facts.records[index]
    quantization = record.quantization if record is not None else None
    if array.dtype.kind not in "iu" or quantization is None:
        return array.astype(np.float32)
    return (array.astype(np.float32) - np.float32(quantization.zero_point)) * np.float32(quantization.scale)


def decoded_boxes(facts: NodeFacts, encodings: Array, anchors: Array) -> Array:
    """Return boxes (ymin, xmin, ymax, xmax) of encodings (y, x, h, w) relative to anchors (y, x, h, w)."""
    scales = [np.float32(facts.attributes.get(f"{name}_scale", 1.0)) for name in "yxhw"]
    y, x, h, w = (encodings[:, i] / scales[i] for i in range(4))
    ay, ax, ah, aw = (anchors[:, i] for i in range(4))
    center_y, center_x = y * ah + ay, x * aw + ax
    half_h, half_w = np.float32(0.5) * np.exp(h) * ah, np.float32(0.5) * np.exp(w) * aw
    return np.stack([center_y - half_h, center_x - half_w, center_y + half_h, center_x + half_w], 1)


def _suppressed(boxes: Array, scores: Array, most: int, options: DetectionOptions) -> list[int]:
    """Return the indices of the best boxes that do not overlap."""
    order = [int(i) for i in np.argsort(-scores, kind="stable") if scores[i] >= options.least]
    chosen: list[int] = []
    alive = np.ones(len(scores), bool)
    for index in order:
        if len(chosen) == most:
            break
        if alive[index]:
            chosen.append(index)
            alive &= intersection_over_union(boxes[index], boxes) <= options.overlap
    return chosen


def _regular(boxes: Array, scores: Array, options: DetectionOptions) -> list[tuple[int, int, float]]:
    """Suppress boxes class by class, then take the best: box, class and score."""
    found: list[tuple[int, int, float]] = []
    for c in range(scores.shape[1]):
        chosen = _suppressed(boxes, scores[:, c], options.per_class, options)
        found += [(i, c, float(scores[i, c])) for i in chosen]
        found = sorted(found, key=lambda f: -f[2])[: options.most]
    return found


def _fast(boxes: Array, scores: Array, options: DetectionOptions) -> list[tuple[int, int, float]]:
    """Suppress boxes by their best class, then take the best classes of each: box, class and score."""
    each = min(options.classes_each, scores.shape[1])
    best = np.argsort(-scores, axis=1, kind="stable")[:, :each]
    chosen = _suppressed(boxes, scores.max(1), options.most, options)
    return [(i, int(c), float(scores[i, c])) for i in chosen for c in best[i]]


@hosted({"TFLite_Detection_PostProcess": 1}, custom=True)
def detection_postprocess(facts: NodeFacts, arrays: Arrays) -> list[Array]:
    """Boxes, classes, scores and their number, with zeros behind them."""
    options = _options(facts)
    encodings, scores, anchors = (_numbers(facts, arrays, i) for i in range(3))
    fits = encodings.ndim == scores.ndim == 3 and anchors.ndim == 2 and encodings.shape[2] >= 4 and anchors.shape[1] >= 4
    if not fits or not encodings.shape[:2] == scores.shape[:2] == (1, len(anchors)):
        facts.fail(f"boxes {list(encodings.shape)}, scores {list(scores.shape)} and anchors {list(anchors.shape)}")
    if not 1 <= options.classes <= scores.shape[2] or options.most < 1 or options.classes_each < 1:
        facts.fail(f"{options.classes} classes of {scores.shape[2]}, at most {options.most} detections")
    boxes = decoded_boxes(facts, encodings[0], anchors)
    # Where there is one score more than classes, the first is that of the background.
    of_classes = scores[0][:, scores.shape[2] - options.classes :]
    found = (_regular if options.regular else _fast)(boxes, of_classes, options)
    size = options.most * (1 if options.regular else options.classes_each)
    # The fast suppression counts boxes, not their classes.
    count = len({box for box, _, _ in found}) if not options.regular else len(found)
    found = found[:size]
    result = [np.zeros((1, size, 4), np.float32), np.zeros((1, size), np.float32), np.zeros((1, size), np.float32)]
    for place, (box, kind, score) in enumerate(found):
        result[0][0, place], result[1][0, place], result[2][0, place] = boxes[box], kind, score
    return [*result, np.array([count], np.float32)]
