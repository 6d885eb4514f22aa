"""Operators of the host: results whose sizes depend on elements, random numbers, and the suppression of boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...common.held import Array
from ..call import NodeFacts
from ._registry import hosted

Arrays = Sequence[Array | None]
MOST_RANDOM = 1 << 26
"""The maximum number of random numbers of a node."""


def given(facts: NodeFacts, arrays: Arrays, index: int) -> Array:
    """Return a required input."""
    array = arrays[index] if index < len(arrays) else None
    return array if array is not None else facts.fail(f"input {index} is missing")


@hosted(WHERE=2)
def where(facts: NodeFacts, arrays: Arrays) -> list[Array]:
    """The coordinates of the elements that are not 0."""
    condition = given(facts, arrays, 0)
    return [np.argwhere(condition).astype(np.int64)]


@hosted(UNIQUE=1)
def unique(facts: NodeFacts, arrays: Arrays) -> list[Array]:
    """The different elements in the order of their first occurrence, and the position of each element among them."""
    values, first, inverse = np.unique(given(facts, arrays, 0).reshape(-1), return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    dtype = facts.outputs[1].dtype if len(facts.outputs) > 1 else None
    return [values[order], places[inverse].astype(dtype or np.int32)]


def intersection_over_union(box: Array, boxes: Array) -> Array:
    """Return the overlap of a box (ymin, xmin, ymax, xmax, in any order of corners) with others, 0 for empty boxes."""
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    own_low, own_high = np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:])
    sides = np.maximum(np.minimum(high, own_high) - np.maximum(low, own_low), 0)
    overlap = sides[:, 0] * sides[:, 1]
    areas, own = np.prod(high - low, 1), np.prod(own_high - own_low)
    total = areas + own - overlap
    valid = (areas > 0) & (own > 0) & (total > 0)
    return np.where(valid, overlap / np.where(valid, total, 1), 0)


@hosted(NON_MAX_SUPPRESSION_V4=1, NON_MAX_SUPPRESSION_V5=1)
def non_max_suppression(facts: NodeFacts, arrays: Arrays) -> list[Array]:
    """The best boxes that do not overlap. V5 lowers the scores of boxes that do. Zeros fill the outputs."""
    boxes, scores = (given(facts, arrays, i).astype(np.float32) for i in (0, 1))
    size = int(given(facts, arrays, 2).reshape(-1)[0])
    overlap, least = (float(given(facts, arrays, i).reshape(-1)[0]) for i in (3, 4))
    soft = facts.node.record.name.endswith("V5")
    sigma = float(given(facts, arrays, 5).reshape(-1)[0]) if soft else 0.0
    if boxes.ndim != 2 or boxes.shape[1:] != (4,) or scores.shape != (len(boxes),) or size < 0:
        facts.fail(f"boxes {list(boxes.shape)} with scores {list(scores.shape)}, at most {size}")
    chosen, found = suppressed(boxes, scores, min(size, len(boxes)), overlap, least, sigma)
    indices = np.zeros(size, np.int32)
    indices[: len(chosen)] = chosen
    kept = np.zeros(size, np.float32)
    kept[: len(found)] = found
    count = np.array(len(chosen), np.int32)
    return [indices, kept, count] if soft else [indices, count]


def suppressed(
    boxes: Array, scores: Array, size: int, overlap: float, least: float, sigma: float
) -> tuple[list[int], list[float]]:
    """Return the indices of the chosen boxes and their scores.

    Args:
        boxes: float32 [n, 4].
        scores: float32 [n].
        size: the maximum number of chosen boxes.
        overlap: the overlap above which a box is dropped.
        least: the exclusive minimum of scores.
        sigma: the width of the Gaussian that lowers the scores of overlapping boxes. 0 for none.
    """
    current = scores.astype(np.float64).copy()
    alive = current > least
    chosen: list[int] = []
    found: list[float] = []
    factor = np.float32(-0.5 / sigma) if sigma > 0 else 0.0
    while len(chosen) < size and alive.any():
        best = int(np.argmax(np.where(alive, current, -np.inf)))
        alive[best] = False
        chosen.append(best)
        found.append(float(current[best]))
        shares = intersection_over_union(boxes[best], boxes)
        if sigma > 0:
            current = np.where(shares <= overlap, current * np.exp(factor * shares**2), 0.0)
            alive &= current > least
        else:
            alive &= shares <= overlap
    return chosen, found


@hosted(RANDOM_UNIFORM=1, RANDOM_STANDARD_NORMAL=1)
def random_numbers(facts: NodeFacts, arrays: Arrays) -> list[Array]:
    """Random numbers of a shape."""
    shape = tuple(int(d) for d in given(facts, arrays, 0).reshape(-1))
    if any(d < 0 for d in shape) or float(np.prod(shape)) > MOST_RANDOM:
        facts.fail(f"random numbers of the shape {list(shape)}")
    generator = _generator(facts)
    uniform = facts.node.record.name == "RANDOM_UNIFORM"
    return [(generator.random(shape) if uniform else generator.standard_normal(shape)).astype(np.float32)]


def _generator(facts: NodeFacts) -> np.random.Generator:
    seeds = [int(facts.option(name)) for name in ("Seed", "Seed2")]
    return np.random.default_rng([abs(s) for s in seeds] if any(seeds) else None)


@hosted(MULTINOMIAL=1)
def multinomial(facts: NodeFacts, arrays: Arrays) -> list[Array]:
    """Random classes, with the probabilities of softmax of each row."""
    logits, count = given(facts, arrays, 0).astype(np.float64), int(given(facts, arrays, 1).reshape(-1)[0])
    if logits.ndim != 2 or count < 0 or count * len(logits) > MOST_RANDOM:
        facts.fail(f"{count} samples of {list(logits.shape)}")
    exponentials = np.exp(logits - logits.max(1, keepdims=True))
    borders = np.cumsum(exponentials / exponentials.sum(1, keepdims=True), 1)
    drawn = _generator(facts).random((len(logits), count))
    classes = (drawn[:, :, None] > borders[:, None, :]).sum(2).clip(max=logits.shape[1] - 1)
    return [classes.astype(facts.outputs[0].dtype or np.int64)]
