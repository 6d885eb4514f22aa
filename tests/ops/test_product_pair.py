"""Two products of few rows in one kernel: against the reference, within the bounds of their operators."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support import Sketch, open_profile
from tests.unit.pairs import PAIRS, Pair, multiplied, optimized
from webnn_wgpu.accuracy.bounds import bounds
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference.interpreter import evaluate
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webnn_wgpu.ir.graph import Array, Graph
    from webnn_wgpu.runtime.device import Device


def run(device: Device, graph: Graph, feeds: Mapping[str, Array]) -> Array:
    """Run a graph that becomes one kernel of a GPU, whatever the device, and check its result within the bounds."""
    after = verify(optimized(graph))
    plan = make_plan(after, device.target)
    assert [dispatch.spec.template for dispatch in plan.dispatches] == ["product_pair"]
    program = Program(device, plan)
    try:
        found = program.start(feeds, list(after.outputs)).result()["0"]
    finally:
        program.destroy()
    (node,) = after.nodes
    named = {value: feeds[name] for name, value in after.inputs.items()} | dict(after.constants)
    operands = [named[value] for value in node.operands]
    (wanted,) = evaluate(after, node, operands)
    allowed = bounds(after, node, operands, [wanted])
    assert allowed is not None
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    with np.errstate(invalid="ignore"):  # of equal infinities
        off = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
    assert not (off > allowed[0]).any(), f"off by up to {np.nanmax(off / allowed[0]):.3g} times the bound"
    return found


@pytest.mark.parametrize("profile", ["hardware", "default-limits", "f16-only"])
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name: str, data_type: str, profile: str) -> None:
    run(open_profile(profile), *replace(PAIRS[name], data_type=data_type).graph())


@pytest.mark.parametrize("data_type", ["float32", "float16"])
def test_infinite_weights_count_once(data_type: str) -> None:
    # The kernel reads the last row of weights again in place of those past the end.
    s = Sketch()
    dtype = np.dtype(data_type)
    h = s.apply("relu", multiplied(s, s.input(np.ones((1, 16), dtype)), 5))
    weights = np.ones((5, 36), dtype)
    weights[4] = np.inf
    weights[4, 20:] = 1
    found = run(open_profile("hardware"), s.graph(s.apply("gemm", s.apply("add", h, h), s.constant(weights), None)), s.feeds)
    assert np.isinf(found[0, :20]).all() or np.isnan(found[0, :20]).all()
    assert np.isfinite(found[0, 20:]).all()


def test_hidden_numbers_are_rounded_to_float16() -> None:
    # 2049 is no float16. The tensor between the products would hold 2048.
    s = Sketch()
    ones = s.constant(np.ones((4, 1), np.float16))
    x = s.input(np.float16([[2048, 1, 0, 0]]))
    h = s.apply("matmul", x, ones)
    result = s.apply("gemm", h, s.constant(np.ones((1, 4), np.float16)), s.constant(np.full(4, -2048, np.float16)))
    np.testing.assert_array_equal(run(open_profile("hardware"), s.graph(result), s.feeds), np.zeros((1, 4)))


def test_results_are_parts_of_a_concatenation() -> None:
    pair, device = Pair(rows=2, columns=12), open_profile("hardware")
    s, y = pair.sketch()
    graph = s.graph(s.apply("concat", s.apply("identity", s.input(np.ones((2, 4), np.float32))), y, axis=1))
    plan = make_plan(verify(optimized(graph)), device.target)
    assert [d.spec.template for d in plan.dispatches].count("product_pair") == 1
    assert not plan.intermediates
    program = Program(device, plan)
    try:
        found = program.start(s.feeds, ["0"]).result()["0"]
    finally:
        program.destroy()
    np.testing.assert_array_equal(found[:, :4], 1)
    np.testing.assert_array_equal(found[:, 4:], run(device, *pair.graph()))
