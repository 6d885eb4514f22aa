"""Kernels as they are installed, launched once more on their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.support import new_context
from webnn_wgpu.debug.launch import Launch, installed, launch
from webnn_wgpu.kernels.templates import render

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Iterator[wn.MLContext]:
    """A context that compiles as for a software adapter, for which constants are packed into textures."""
    monkeypatch.setenv("WEBNN_WGPU_TARGET", "software")
    with new_context() as context:
        yield context


def test_kernels_that_read_textures_either_way(context: wn.MLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBNN_WGPU_FORCE", "lstm=persistent")
    rng = np.random.default_rng(0)
    steps, hidden = 5, 12
    given = rng.standard_normal((steps, 1, 6)).astype(np.float32)
    b = wn.MLGraphBuilder(context)
    x = b.input("x", {"dataType": "float32", "shape": given.shape})
    weight, recurrent = (b.constant(rng.standard_normal((1, 4 * hidden, n)).astype(np.float32)) for n in (6, hidden))
    made = b.lstm(x, weight, recurrent, steps=steps, hidden_size=hidden, return_sequence=True)
    graph = b.build(dict(zip(("hidden", "cell", "sequence"), made, strict=True)))
    expected = context.compute(graph, {"x": given})
    plan = graph.plan
    assert plan is not None
    assert {binding.access for d in plan.dispatches for binding in d.spec.bindings} == {"read", "write", "texture", "sampled"}
    places = {str(r.key): r for d in plan.dispatches for r in d.bindings if r.kind in ("input", "output")}
    found = installed(graph, plan.dispatches, places)
    launches: list[Launch] = []
    for i, (dispatch, each) in enumerate(zip(plan.dispatches, found.launches, strict=True)):
        source = tmp_path / f"{i}.wgsl"
        source.write_text(render(dispatch.spec), encoding="utf-8")
        launches.append(replace(each, source=source))
    outputs = {name: ("float32", array.shape) for name, array in expected.items()}
    again = launch(context, launches, {"x": given, **found.constants}, outputs)
    for name, array in expected.items():
        np.testing.assert_array_equal(again[name], array, err_msg=name)
