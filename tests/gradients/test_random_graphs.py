"""Gradients of random graphs of differentiable operators agree with central differences."""

from __future__ import annotations

import numpy as np

from tests.gradients.drawn import differentiable_graph, rebuilt
from webnn_wgpu.testing import check_gradients

GRAPHS = 200


def test_gradients_of_random_graphs_agree_with_central_differences() -> None:
    checked = 0
    for seed in range(GRAPHS):
        drawn = differentiable_graph(f"gradients:{seed}")
        if drawn is None:
            continue
        graph, feeds = drawn
        checked += 1
        with np.errstate(all="ignore"):
            check_gradients(
                lambda builder, *given, graph=graph: rebuilt(
                    graph, builder, dict(zip(graph.inputs.values(), given, strict=True))
                ),
                [feeds[name] for name in graph.inputs],
                together=True,
                step=1e-6,
                tolerance=1e-4,
            )
    assert checked >= 60
