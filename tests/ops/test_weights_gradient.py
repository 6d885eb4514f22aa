"""The weights of attention and the gradient of its scores, in one kernel: against the reference, and against its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.ops.movers import refusal, typed
from tests.support import interpret, op_graph, open_profile, random_array, run_graph
from webnn_wgpu.accuracy.bounds import bounds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

NAME = "weightsGradient"
SHAPES = (
    ((2, 3, 5, 128), (5, 128)),
    ((2, 3, 5, 130), (5, 130)),
    ((3, 5, 64), (3, 1, 64)),
    ((3, 5, 64), (5, 1)),
    ((7, 3), (1,)),
    ((4, 2000), (4, 2000)),
    ((2, 6, 40), None),
    ((2, 2001), None),
)
"""Shapes of scores and of what is seen: rows held in registers and longer ones, in quads or not, and broadcast masks."""


def check(
    device: Device,
    given: Sequence[Array],
    seen: Array | None,
    attrs: Mapping[str, float] | None = None,
    forced: Mapping[str, str] | None = None,
) -> list[Array]:
    """Run the operator, and compare it with the reference within the bounds that it states."""
    inputs = [*given, seen]
    graph = op_graph(NAME, inputs, attrs)
    feeds = {str(i): x for i, x in enumerate(inputs) if x is not None}
    expected = list(interpret(graph, feeds).values())
    found = list(run_graph(device, graph, feeds, forced=forced).values())
    allowed = bounds(graph, graph.nodes[0], inputs, expected)
    assert allowed is not None
    for actual, wanted, most in zip(found, expected, allowed, strict=True):
        assert (np.abs(actual - wanted) <= most).all()
    return found


@pytest.mark.parametrize("profile", ["hardware", "default-limits"])
@pytest.mark.parametrize("variant", ["plain", "workgroup", ""])
@pytest.mark.parametrize(("shape", "seen"), SHAPES)
def test_rows(profile: str, variant: str, shape: Sequence[int], seen: Sequence[int] | None) -> None:
    rng = np.random.default_rng(0)
    arrays = [random_array(rng, "float32", tuple(shape), 3) for _ in range(2)]
    mask = None if seen is None else (rng.random(seen) < 0.7).astype(np.uint8)
    check(open_profile(profile), arrays, mask, {"scale": 0.25}, {NAME: variant} if variant else None)


def test_on_the_device_of_the_tests(device: Device) -> None:
    rng = np.random.default_rng(1)
    for shape, seen in SHAPES:
        arrays = [random_array(rng, "float32", shape, 3) for _ in range(2)]
        check(device, arrays, None if seen is None else (rng.random(seen) < 0.7).astype(np.uint8))


def test_scores_that_are_not_seen_have_no_influence(device: Device) -> None:
    scores = np.array([[1, np.nan, 2, np.inf], [3, 4, 5, 6]], np.float32)
    gradient = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32)
    seen = np.array([[1, 0, 1, 0], [0, 0, 0, 0]], np.uint8)
    weights, of_scores = check(device, [scores, gradient], seen)
    assert np.isfinite(of_scores).all()
    np.testing.assert_array_equal(weights[1], 0)
    np.testing.assert_array_equal(of_scores[1], 0)


def test_refusals() -> None:
    x = typed("float32", 2, 4)
    assert "gradient must have the type of scores" in str(refusal(NAME, [x, typed("float32", 2, 3), None], {}))
    assert "seen must broadcast to scores" in str(refusal(NAME, [x, x, typed("uint8", 3, 4)], {}))
