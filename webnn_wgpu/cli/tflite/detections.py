"""Objects in pictures: the true ones of a file, and the average precision of those that a detector finds."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

RECALL_POINTS = 100
"""The number of steps of the recall at which precisions are averaged."""


class GroundTruthError(Exception):
    """A file holds no serialized `tflite.evaluation.ObjectDetectionGroundTruth`."""


@dataclass(frozen=True)
class Box:
    """A rectangle, in parts of the picture's sides."""

    top: float = 0.0
    bottom: float = 0.0
    left: float = 0.0
    right: float = 0.0

    @property
    def area(self) -> float:
        """The area, 0 if a side is negative."""
        return max(self.bottom - self.top, 0.0) * max(self.right - self.left, 0.0)

    def overlap(self, other: Box) -> float:
        """Return the intersection over the union.

        Example:
            >>> Box(0, 1, 0, 1).overlap(Box(0, 1, 0.5, 1))
            0.5
        """
        common = Box(
            max(self.top, other.top), min(self.bottom, other.bottom), max(self.left, other.left), min(self.right, other.right)
        ).area
        union = self.area + other.area - common
        return common / union if union > 0 else 0.0


@dataclass(frozen=True)
class Detected:
    """An object of a class in a picture."""

    label: int
    box: Box
    score: float = 1.0


# files ------------------------------------------------------------------------------------------------------------------


def _fields(data: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """Yield the numbers and values of the fields of a message."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            yield number, varint()
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            (value,) = struct.unpack_from("<d" if kind == 1 else "<f", data, at)
            at += size
            yield number, value
        elif kind == 2:
            size = varint()
            if at + size > len(data):
                raise GroundTruthError("a field is longer than its message")
            yield number, data[at : at + size]
            at += size
        else:
            raise GroundTruthError(f"a field has the wire type {kind}")


def _message(value: int | float | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise GroundTruthError(f"{value} is no message")
    return value


def _number(value: int | float | bytes) -> float:
    if isinstance(value, bytes):
        raise GroundTruthError("a message is no number")
    return value


def ground_truth(data: bytes) -> dict[str, list[Detected]]:
    """Return the objects of a serialized `ObjectDetectionGroundTruth`, by the names of the pictures.

    Raises:
        GroundTruthError: the bytes are no such message.
    """
    found: dict[str, list[Detected]] = {}
    try:
        for number, value in _fields(data):
            if number == 1:
                result = list(_fields(_message(value)))
                names = [_message(v).decode("utf-8") for n, v in result if n == 2]
                found[names[-1] if names else ""] = [_detected(_message(v)) for n, v in result if n == 1]
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise GroundTruthError(str(error)) from error
    return found


def _detected(data: bytes) -> Detected:
    label, score, box = 0, 1.0, Box()
    for number, value in _fields(data):
        if number == 1:
            label = int(_number(value))
        elif number == 2:
            sides = {n: _number(v) for n, v in _fields(_message(value))}
            box = Box(*(sides.get(n, 0.0) for n in range(1, 5)))
        elif number == 3:
            score = _number(value)
    return Detected(label, box, score)


def described(name: str, detections: Sequence[Detected]) -> str:
    """Return the objects found in a picture as the text of an `ObjectDetectionResult`."""
    lines: list[str] = []
    for d in detections:
        sides = {"top": d.box.top, "bottom": d.box.bottom, "left": d.box.left, "right": d.box.right}
        lines += ["objects {", f"  class_id: {d.label}", "  bounding_box {"]
        lines += [f"    normalized_{side}: {value:.9g}" for side, value in sides.items()]
        lines += ["  }", f"  score: {d.score:.9g}", "}"]
    return "\n".join([*lines, f'image_name: "{name}"'])


# agreement --------------------------------------------------------------------------------------------------------------


def average_precision(truths: Sequence[Sequence[Box]], found: Sequence[Sequence[Detected]], threshold: float) -> float:
    """Return the average precision of the objects of one class.

    Each found object, from the highest score on, takes the true one that it overlaps most, if that is at least the threshold.

    Args:
        truths: the true objects of each picture.
        found: the objects found in each picture.
        threshold: the overlap.

    Example:
        >>> one = Box(0, 1, 0, 1)
        >>> average_precision([[one]], [[Detected(0, one, 0.9), Detected(0, Box(0, 0.1, 0, 0.1), 0.5)]], 0.5)
        1.0
    """
    left = [list(boxes) for boxes in truths]
    count = sum(map(len, left))
    if not count:
        return 0.0
    ranked = sorted(((d, i) for i, part in enumerate(found) for d in part), key=lambda pair: -pair[0].score)
    curve: list[tuple[float, float]] = []
    correct = 0
    for number, (detected, picture) in enumerate(ranked, 1):
        best = max(left[picture], key=detected.box.overlap, default=None)
        if best is not None and detected.box.overlap(best) >= threshold:
            left[picture].remove(best)
            correct += 1
        curve.append((correct / number, correct / count))
    total, precision, level = 0.0, 0.0, RECALL_POINTS
    for p, recall in reversed(curve):
        while level >= 0 and recall * RECALL_POINTS < level:
            total += precision
            level -= 1
        precision = max(precision, p)
    return (total + precision * (level + 1)) / (1 + RECALL_POINTS)
