"""The models that golden plans are made of, by name."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import webnn_wgpu as wn
from examples.models import MODELS as EXAMPLES
from tests.golden.operators import operator_names, plan_operator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def names() -> list[str]:
    """Return the names of all models."""
    return [f"example/{name}" for name in EXAMPLES] + [f"operator/{name}" for name in operator_names()]


@cache
def _example(name: str) -> bytes:
    return EXAMPLES[name]().SerializeToString()


def plan_model(context: wn.MLContext, name: str) -> None:
    """Plan all graphs of a model; the context's backend collects the plans."""
    kind, _, name = name.partition("/")
    if kind == "operator":
        plan_operator(context, name)
        return
    for sizes in SIZES[name]:
        options: Any = {"override_dims": sizes, "fallback": "host", "tuning": False}
        wn.load_onnx(_example(name), context, **options).destroy()
