"""The bounds of the campaign: wide where roundings decide, and narrow elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.gradients.roundings import distance, roundings
from webnn_wgpu.ir.graph import Graph


def graph_of(name: str) -> Graph:
    """Return a graph of one periodic function, whose operand a multiplication rounds."""
    builder = wn.MLGraphBuilder(wn.ml.create_context(backend="reference"))
    x = builder.input("x", {"dataType": "float32", "shape": [3]})
    return builder.build({"y": getattr(builder, name)(builder.mul(x, builder.constant("float32", 3.1)))}).source


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_a_rounded_angle_of_many_turns_has_any_sine(name: str) -> None:
    ran = roundings(graph_of(name), {"x": np.float32([3e8, 3.1e8, 2e9])})
    assert ran is not None
    for wanted in (-1, 1):
        assert distance(np.full(3, wanted), ran.exact["y"]) <= ran.allowed("y")


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_a_small_angle_has_one_sine(name: str) -> None:
    ran = roundings(graph_of(name), {"x": np.float32([0.3, -1, 7])})
    assert ran is not None
    assert 0 < ran.allowed("y") < 1e-3


def test_a_rounded_angle_of_many_turns_has_a_tangent_beyond_any_promise() -> None:
    assert roundings(graph_of("tan"), {"x": np.float32([0.3, 1, 3e8])}) is None
