"""Pieces of a value that are read where they lie: which those are, that no kernel copies them, and that results are right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.unit.plans import DEVICES, caps_of, check_plan
from webnn_wgpu.costs import Target
from webnn_wgpu.plan import make_plan

Make = Callable[[wn.MLGraphBuilder, wn.MLOperand], dict[str, wn.MLOperand]]

SHAPE = (4, 128)
"""Each row begins where a binding may on every device that is recorded: 512 bytes after the one before."""


def halves(b: wn.MLGraphBuilder, x: wn.MLOperand) -> dict[str, wn.MLOperand]:
    first, second = b.split(x, 2)
    return {"sum": b.add(first, second), "relu": b.relu(second)}


def of_a_result(b: wn.MLGraphBuilder, x: wn.MLOperand) -> dict[str, wn.MLOperand]:
    rows = b.split(b.softmax(x, 1), 4)
    weights = b.constant(np.linspace(-1, 1, 128 * 8, dtype=np.float32).reshape(128, 8))
    return {"product": b.matmul(rows[2], weights), "sums": b.reduce_sum(rows[1]), "wide": b.concat([rows[3], rows[0]], 1)}


def of_pieces(b: wn.MLGraphBuilder, x: wn.MLOperand) -> dict[str, wn.MLOperand]:
    _, lower = b.split(b.tanh(x), 2)
    rows = b.split(b.reshape(lower, [2, 1, 128]), 2)
    return {"last": b.exp(b.reshape(rows[1], [8, 16])), "first": b.neg(rows[0])}


def slices(b: wn.MLGraphBuilder, x: wn.MLOperand) -> dict[str, wn.MLOperand]:
    y = b.sigmoid(x)
    middle = b.slice(y, [1, 0], [2, 128])
    part = b.slice(y, [2, 64], [1, 64])
    return {"middle": b.transpose(middle), "part": b.exp(part)}


def turned(b: wn.MLGraphBuilder, x: wn.MLOperand) -> dict[str, wn.MLOperand]:
    """Channels first, with one image: channels are runs."""
    y = b.relu(b.reshape(x, [1, 4, 8, 16]))
    first, second = b.split(y, [1, 3], axis=1)
    return {"first": b.average_pool2d(first), "second": b.max_pool2d(second)}


def unaligned(b: wn.MLGraphBuilder, x: wn.MLOperand) -> dict[str, wn.MLOperand]:
    first, second = b.split(b.reshape(b.exp(x), [512]), [6, 506])
    return {"first": b.neg(first), "second": b.reduce_sum(second)}


def columns(b: wn.MLGraphBuilder, x: wn.MLOperand) -> dict[str, wn.MLOperand]:
    first, second = b.split(b.exp(x), 2, axis=1)
    return {"difference": b.sub(first, b.tanh(second))}


def ends(b: wn.MLGraphBuilder, x: wn.MLOperand) -> dict[str, wn.MLOperand]:
    first, second = b.split(b.exp(x), 2)
    return {"first": first, "second": second}


def views_as_ends(b: wn.MLGraphBuilder, x: wn.MLOperand) -> dict[str, wn.MLOperand]:
    first, second = b.split(b.exp(x), 2)
    return {"first": b.reshape(first, [2, 8, 16]), "second": b.reshape(b.reshape(second, [256]), [16, 16])}


def steps(b: wn.MLGraphBuilder, x: wn.MLOperand) -> dict[str, wn.MLOperand]:
    return {"every second": b.neg(b.slice(b.exp(x), [0, 0], [4, 128], strides=[2, 1]))}


def joined(b: wn.MLGraphBuilder, x: wn.MLOperand) -> dict[str, wn.MLOperand]:
    """Results of several kinds, some of them through views, one after the other."""
    parts = [b.softmax(x, 1), b.reshape(b.reduce_sum(b.reshape(x, [4, 2, 64]), axes=[0]), [1, 128]), b.tanh(x)]
    return {"sums": b.reduce_sum(b.concat(parts, 0), axes=[1])}


def joined_by_one(b: wn.MLGraphBuilder, x: wn.MLOperand) -> dict[str, wn.MLOperand]:
    """A dispatch must not read a part of the buffer that it writes: only the first of these may be there."""
    first = b.matmul(x, b.constant(np.linspace(-1, 1, 128 * 128, dtype=np.float32).reshape(128, 128)))
    return {"sums": b.reduce_sum(b.concat([first, b.softmax(first, 1)], 0), axes=[1])}


def joined_unaligned(b: wn.MLGraphBuilder, x: wn.MLOperand) -> dict[str, wn.MLOperand]:
    parts = [b.reshape(b.reduce_max(x, axes=[1]), [4]), b.reshape(b.softmax(x, 1), [512])]
    return {"negative": b.neg(b.concat(parts, 0))}


JOINED = (joined, joined_by_one, joined_unaligned)
IN_PLACE = (halves, of_a_result, of_pieces, slices, turned, joined)
COPIED = (joined_by_one, joined_unaligned, unaligned, columns, ends, views_as_ends, steps)


@pytest.mark.parametrize("make", [*IN_PLACE, *COPIED])
def test_results_are_those_of_the_reference(context: wn.MLContext, make: Make) -> None:
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    results: list[dict[str, np.ndarray]] = []
    with wn.ml.create_context(backend="reference") as reference:
        for where in (context, reference):
            builder = wn.MLGraphBuilder(where)
            graph = builder.build(make(builder, builder.input("x", SHAPE, "float32")))
            results.append(dict(where.compute(graph, {"x": x})))
    for name, expected in results[1].items():
        np.testing.assert_allclose(results[0][name], expected, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("make", [*IN_PLACE, *COPIED])
def test_no_kernel_copies_what_lies_in_one_run(context: wn.MLContext, make: Make, device: str) -> None:
    builder, caps = wn.MLGraphBuilder(context), caps_of(device)
    graph = builder.build(make(builder, builder.input("x", SHAPE, "float32")))
    assert graph.plan is not None
    plan = make_plan(graph.plan.graph, Target.of(caps))
    check_plan(plan, caps)
    kinds = ("concat",) if make in JOINED else ("split", "slice")
    copies = [d.label for d in plan.dispatches if d.label.startswith(kinds)]
    assert bool(copies) == (make in COPIED)
