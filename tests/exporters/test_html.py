"""Pages that show a graph."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.formats.test_writing import NAMES
from webnn_wgpu.exporters.html import to_html

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def reference() -> Iterator[wn.MLContext]:
    with wn.ml.create_context(backend="reference") as context:
        yield context


def drawing(page: str) -> Any:
    return json.loads(re.search(r"^const graph = (.*);$", page, re.MULTILINE)[1])  # pyright: ignore[reportOptionalSubscript]


def test_boxes_lines_and_details(reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float32", "shape": [2, 2]})
    w = builder.constant(np.float32([[1, 2], [np.nan, -4]]))
    graph = drawing(to_html(builder.build({"y": builder.softmax(builder.matmul(x, w), 1, label="scores")}), "g"))
    assert [(box["kind"], box["title"]) for box in graph["boxes"]] == [
        ("input", "x"),
        ("operator", "matmul"),
        ("operator", "softmax"),
        ("output", "y"),
    ]
    assert graph["lines"] == [[0, 1], [1, 2], [2, 3]]
    assert graph["boxes"][1]["operands"][1] == ["float32[2, 2]", "constant, -4 to 2, mean -0.333333, 1 not finite"]
    assert (graph["boxes"][2]["label"], graph["boxes"][2]["options"]) == ("scores", {"axis": "1"})
    rows = [box["y"] for box in graph["boxes"]]
    assert rows == sorted(set(rows))


def test_boxes_of_a_rank_do_not_overlap(reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float32", "shape": [2]})
    graph = drawing(to_html(builder.build({"y": builder.concat([builder.add(x, x) for _ in range(9)], 0)})))
    places = [(box["x"], box["y"]) for box in graph["boxes"]]
    assert len(set(places)) == len(places)
    row = sorted(a for a, b in places if b == graph["boxes"][1]["y"])
    assert all(second - first >= 170 for first, second in pairwise(row))


HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "&lt;", "\u2028", "*/", *NAMES]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text_and_nothing_is_loaded(name: str, reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input(name, {"dataType": "float32", "shape": [2]})
    page = to_html(builder.build({f"{name}!": builder.relu(x, label=name)}), name)
    boxes = drawing(page)["boxes"]
    assert [box["title"] for box in boxes] == [name, "relu", f"{name}!"]
    assert boxes[1]["label"] == name
    assert page.count("</script>") == 1
    assert "<img" not in page
    assert not re.search(r"(src|href)\s*=\s*[\"']", page)
    assert "default-src 'none'" in page
