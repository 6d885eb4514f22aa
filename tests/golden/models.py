"""Planning of golden models. This module runs with the package of any revision, of which it imports no parts."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import webnn_wgpu as wn
from examples.models import MODELS as EXAMPLES
from tests.golden import bench
from tests.golden.graphs import plan_graph

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Graphs = Mapping[str, Sequence[Mapping[str, Any]]]

SIZES: Mapping[str, Sequence[Mapping[str, int]]] = {
    "mlp": [{"N": 1}, {"N": 33}],
    "mobilenet_v2": [{"batch": 1}],
    "bert": [{"batch": 1, "sequence": 16}, {"batch": 2, "sequence": 64}],
    "gpt": [
        {"batch": 1, "sequence": 12, "past": 0, "past + sequence": 12},
        {"batch": 1, "sequence": 1, "past": 24, "past + sequence": 25},
    ],
    "detector": [{}],
    "quantized_8bit": [{"batch": 4}],
    "quantized_4bit": [{"batch": 1}, {"batch": 20}],
}
"""The sizes of symbolic dimensions that the example models are compiled for."""


@cache
def _example(name: str) -> bytes:
    return EXAMPLES[name]().SerializeToString()


def plan_model(context: wn.MLContext, model: str, graphs: Graphs) -> None:
    """Plan all graphs of a model; the context's backend collects the plans.

    Args:
        context: on a recorded device.
        model: "example/NAME", "bench/NAME", or a model of `graphs`.
        graphs: the graphs of models, as data.
    """
    kind, _, name = model.partition("/")
    options: dict[str, Any] = {"fallback": "host", "tuning": False}
    if kind == "example":
        for sizes in SIZES[name]:
            wn.load_onnx(_example(name), context, override_dims=sizes, **options).destroy()
    elif kind == "bench":
        wn.load_onnx(bench.path(name), context, **options).destroy()
    else:
        for graph in graphs[model]:
            plan_graph(context, graph)
