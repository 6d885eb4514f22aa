"""What exporters say of an argument that is no graph."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

import webnn_wgpu as wn
from examples.models import mlp

if TYPE_CHECKING:
    from pathlib import Path

FUNCTIONS = ("to_coreml", "to_dot", "to_html", "to_javascript", "to_onnx", "to_python")


def exporter(name: str) -> Any:
    module = "graphviz" if name == "to_dot" else name.removeprefix("to_")
    if module == "coreml":
        pytest.importorskip("coremltools", reason="the extra `coreml` is not installed")
    return getattr(import_module(f"webnn_wgpu.exporters.{module}"), name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_argument_that_is_no_graph_is_refused(name: str) -> None:
    with pytest.raises(wn.MLTypeError, match=f"{name}: graph must be an MLGraph; got str"):
        exporter(name)("graph.onnx")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_model_is_told_where_its_graphs_are(name: str) -> None:
    with wn.ml.create_context(backend="reference") as context:
        model = wn.load_onnx(mlp(), context)
        with pytest.raises(wn.MLTypeError, match=r"got Model.*`graphs`"):
            exporter(name)(model)


def test_a_page_is_of_a_graph_or_a_model(tmp_path: Path) -> None:
    with pytest.raises(wn.MLTypeError, match="export: model must be an MLGraph or an imported model; got PosixPath"):
        wn.exporters.web.write(tmp_path, tmp_path)  # pyright: ignore[reportArgumentType]
