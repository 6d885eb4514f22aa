"""The programs that show what is wrong with one operator: the calls that build it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.kernels.operators import calls
from tests.support import assert_same, op_graph
from webnn_wgpu.debug.repro import _operators
from webnn_wgpu.ops import OPS
from webnn_wgpu.reference import interpret

CALLS = {call.name: call for call in calls()}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_the_calls_build_the_operator(name: str) -> None:
    call = CALLS[name]
    arrays = call.arrays()
    graph = op_graph(name, arrays, call.attrs, call.constants)
    given = {i: a for i, a in enumerate(arrays) if a is not None}
    named = {f"v{i}": graph.inputs[str(i)] for i in given if str(i) in graph.inputs}
    outputs = {f"v{value}": value for value in graph.outputs.values()}
    part = dataclasses.replace(graph, inputs=named, outputs=outputs)
    lines = list(_operators(part))
    assert f"builder.{OPS[name].python_name}(" in "\n".join(lines), lines
    with wn.ml.create_context(backend="reference") as context:
        scope: dict[str, Any] = {"wn": wn, "np": np, "context": context, "data": {f"v{i}": a for i, a in given.items()}}
        exec("\n".join(lines), scope)
        with np.errstate(all="ignore"):
            wanted = interpret(graph, {str(i): given[i] for i in given if str(i) in graph.inputs})
    assert_same(dict(scope["found"]), {f"v{graph.outputs[output]}": array for output, array in wanted.items()})
