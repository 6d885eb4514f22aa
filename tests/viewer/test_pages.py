"""What a page holds, by its data and by its text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from examples.models import bert
from tests.runtime.graphs import ROWS, network
from tests.viewer.graphs import transformer
from webnn_wgpu import debug
from webnn_wgpu.ops.interfaces.family import Family

if TYPE_CHECKING:
    from pathlib import Path


def data(page: debug.Page) -> dict[str, Any]:
    """What the page's script reads."""
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page.html, re.DOTALL)
    assert found
    return json.loads(found[1])


def operators(picture: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {box["label"]: box for box in picture["boxes"] if box["kind"] == "op"}


@pytest.fixture(scope="module")
def graph(context: wn.MLContext) -> wn.MLGraph:
    return network(context)


def test_both_forms_of_the_graph_with_their_kernels(graph: wn.MLGraph) -> None:
    (shown,) = data(debug.view(graph))["graphs"]
    assert [kernel["name"] for kernel in shown["kernels"]] == list(graph.kernels)
    assert [shown["sources"][kernel["source"]] for kernel in shown["kernels"]] == [k.wgsl for k in graph.kernels.values()]
    built, run = operators(shown["built"]), operators(shown["run"])
    assert list(built) == ["matmul_0", "add_1", "gelu_2", "layer_normalization_3", "softmax_4", "slice_5", "transpose_6"]
    (product,) = (box for box in run.values() if box["members"])
    assert product["title"] == "matmul + add + gelu"
    assert product["members"][0] == ["matmul", "matmul_0", "float32[4, 32]"]
    assert product["origins"] == ["matmul_0", "add_1", "gelu_2"]
    assert [operand[:3] for operand in product["operands"]] == [
        ["a of matmul", "float32[4, 16]", ""],
        ["b of matmul", "float32[16, 32]", "constant"],
        ["b of add", "float32[32]", "constant"],
    ]
    # Every operator of the source knows the kernels that compute it, and every kernel of the others has its box.
    for label in ("matmul_0", "add_1", "gelu_2"):
        assert built[label]["kernels"] == product["kernels"]
    assert sorted(k for box in run.values() for k in box["kernels"]) == list(range(len(shown["kernels"])))
    assert [line[:3] for line in shown["built"]["lines"]][:2] == [[0, 1, "float32[4, 16]"], [1, 2, "float32[4, 32]"]]


def test_what_no_kernel_computes_says_why(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [2, 3]})
    folded = builder.add(builder.constant(np.ones(3, np.float32)), builder.constant(np.ones(3, np.float32)), label="folded")
    moved = builder.reshape(builder.mul(x, folded), [3, 2], label="moved")
    shown = data(debug.view(builder.build({"y": builder.transpose(moved)})))["graphs"][0]
    fates = {label: box["fate"] for label, box in operators(shown["built"]).items()}
    assert fates["folded"].startswith("gone")
    assert fates["moved"].startswith("a view")
    assert fates["mul_1"] == ""


def test_memory_is_the_plans(context: wn.MLContext) -> None:
    graph = transformer(context, 2)
    plan = graph.plan
    assert plan is not None
    memory = data(debug.view(graph))["graphs"][0]["memory"]
    assert memory["slots"] == [slot.size_bytes for slot in plan.slots]
    live = [0] * len(plan.dispatches)
    for label, type_, slot, offset, size, first, last in memory["values"]:
        assert label
        assert type_.startswith("float32[")
        assert 0 <= offset <= offset + size <= plan.slots[slot].size_bytes
        for at in range(first, last + 1):
            live[at] += size
    assert memory["live"] == live
    assert max(live) <= plan.slot_bytes


def test_times_and_errors(graph: wn.MLGraph, tmp_path: Path) -> None:
    profile = graph.profile({"x": ROWS})
    if not profile.kernels:
        pytest.skip(profile.note)

    wgsl = graph.kernels["softmax_4"].wgsl
    graph.override("softmax_4", wgsl.replace("x.x, x.y, x.z, x.w);", "x.y, x.x, x.z, x.w);"))
    diff = debug.diff(graph, {"x": ROWS}, folder=tmp_path)
    found = data(debug.view(graph, profile=profile, diff=diff, title="a title"))
    graph.restore()
    (shown,) = found["graphs"]
    assert [kernel["us"] for kernel in shown["kernels"]] == [kernel.microseconds for kernel in profile.kernels]
    assert list(shown["kernels"][0]["rates"]) == ["share", "GB/s", "GFLOP/s", "of peak", "limit"]
    assert (found["title"], found["profile"], found["diff"]) == ("a title", profile.summary(), diff.summary())
    for picture in (shown["built"], shown["run"]):
        assert operators(picture)["softmax_4"]["error"] > 1
        assert all(box["error"] <= 1 for label, box in operators(picture).items() if label != "softmax_4" and box["error"])


def test_a_page_is_one_file_that_loads_nothing(graph: wn.MLGraph, tmp_path: Path) -> None:
    page = debug.view(graph, tmp_path / "page.html")
    assert page.path == tmp_path / "page.html"
    assert page.path.read_text(encoding="utf-8") == page.html
    assert not re.search(r"\b(?:src|href)\s*=|@import|url\(|https?://|\bfetch\(|XMLHttpRequest", page.html)


def test_what_programs_name_is_data(context: wn.MLContext) -> None:
    hostile = '</script><script>document.title="taken"</script><!--'
    builder = wn.MLGraphBuilder(context)
    x = builder.input("</script>", {"dataType": "float32", "shape": [2]})
    page = debug.view(builder.build({"<b>": builder.relu(x, label=hostile)}), title="<i>")
    assert hostile not in page.html
    assert page.html.count("</script>") == 2
    shown = data(page)
    assert operators(shown["graphs"][0]["built"])[hostile]["title"] == "relu"
    assert shown["title"] == "<i>"
    assert "<title>&lt;i&gt;</title>" in page.html


def test_notebooks_show_a_page_in_a_frame(graph: wn.MLGraph) -> None:
    shown = debug.view(graph)._repr_html_()
    assert re.fullmatch(r'<iframe srcdoc="[^"<>]*" style="[^"]*"></iframe>', shown)


def test_a_model_with_where_its_nodes_run() -> None:
    with wn.load_onnx(bert()) as model:
        with pytest.raises(wn.MLTypeError, match=r"view: the model has no graph of its own yet"):
            debug.view(model)
        model.run({"input_ids": [[5, 6, 7]], "attention_mask": [[1, 1, 1]]})
        shown = data(debug.view(model))
        with pytest.raises(wn.MLTypeError, match=r"view: there must be a profile for each graph; got 2; allowed: 1"):
            debug.view(model, profile=[debug.GraphProfile(kernels=(), gpu_ms=None, wall_ms=1.0, runs=1, device="")] * 2)
    assert shown["title"] == model.name
    assert len(shown["placement"]) == len(model.placement)
    assert {row[2] for row in shown["placement"]} >= {"device"}


def test_the_numpy_reference_has_graphs_without_kernels() -> None:
    with wn.ml.create_context(backend="reference") as context:
        (shown,) = data(debug.view(network(context)))["graphs"]
    assert (shown["kernels"], shown["memory"], shown["summary"]) == ([], None, "the numpy reference has no kernels")


def test_every_family_of_operators_has_a_color(repository: Path) -> None:
    style = (repository / "webnn_wgpu/debug/viewer/page/page.css").read_text(encoding="utf-8")
    for family in Family:
        assert style.count(f"--{family}:") == 2, family


def test_kernels_are_shown_in_other_languages(graph: wn.MLGraph) -> None:
    (shown,) = data(debug.view(graph))["graphs"]
    assert shown["translations"] == [{} for _ in shown["sources"]]
    try:
        page = debug.view(graph, languages=["hlsl", "msl"])
    except wn.NotSupportedError as error:
        pytest.skip(str(error))
    (shown,) = data(page)["graphs"]
    assert [list(texts) for texts in shown["translations"]] == [["hlsl", "msl"] for _ in shown["sources"]]
    for wgsl, texts in zip(shown["sources"], shown["translations"], strict=True):
        assert texts["msl"] == debug.translate(wgsl, "msl")
