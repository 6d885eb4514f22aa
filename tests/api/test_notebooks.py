"""What objects show of themselves in notebooks."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.runtime.graphs import ROWS, network

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '<b onclick="x">&'


def parsed(html: str) -> ElementTree.Element:
    """What is well-formed enough for a page."""
    return ElementTree.fromstring(f"<div>{html}</div>")


def text(html: str) -> str:
    return " ".join(parsed(html).itertext())


def test_a_graph_shows_its_ends_and_its_picture(anywhere: wn.MLContext) -> None:
    graph = network(anywhere)
    shown = graph._repr_html_()
    assert "x: float32[4, 16]" in text(shown)
    assert anywhere.description in text(shown)
    svg = graph._repr_svg_()
    assert svg is not None
    assert svg in shown
    root = ElementTree.fromstring(svg)
    assert len(root.findall(f"{SVG}rect")) == len(graph.source.nodes) + len(graph.inputs) + len(graph.outputs)
    assert len(root.findall(f"{SVG}path")) == 9
    graph.destroy()
    assert "destroyed" in graph._repr_html_()


def test_large_graphs_are_not_drawn(reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    y = builder.input("x", {"dataType": "float32", "shape": [2]})
    for _ in range(151):
        y = builder.neg(y)
    graph = builder.build({"y": y})
    assert graph._repr_svg_() is None
    assert "debug.view" in graph._repr_html_()


def test_names_are_text(reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input(HOSTILE, {"dataType": "float32", "shape": [2]})
    assert HOSTILE in text(x._repr_html_())
    assert HOSTILE in text(builder.build({HOSTILE: builder.neg(x, label=HOSTILE)})._repr_html_())


def test_operands_and_tensors(anywhere: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(anywhere)
    x = builder.input("x", {"dataType": "float16", "shape": [2, 3]})
    assert text(x._repr_html_()).split() == "MLOperand input x data type float16 shape [2, 3] bytes 12".split()
    with anywhere.create_tensor([2, 3], "float16", readable=True) as tensor:
        assert "may be readable" in text(tensor._repr_html_())
    assert "MLTensor, destroyed" in text(tensor._repr_html_())


def test_profiles_and_comparisons(context: wn.MLContext) -> None:
    graph = network(context)
    profile = graph.profile({"x": np.float32(ROWS)})
    if not profile.kernels:
        pytest.skip(profile.note)
    for shown in (profile, profile.compare(profile)):
        assert shown.summary() in text(shown._repr_html_())
        assert len(parsed(shown._repr_html_()).findall("table/tr")) == 1 + len(shown.rows())
