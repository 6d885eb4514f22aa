"""`debug.diff` of ONNX models."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest

import webnn_wgpu as wn
from examples import models
from tests.debug.faults import FEEDS, wrong_index
from webnn_wgpu import debug
from webnn_wgpu.debug import onnx_nodes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.programs import Programs


@pytest.mark.parametrize("name", FEEDS)
def test_a_model_that_is_right_agrees_with_onnxruntime(context: wn.MLContext, tmp_path: Path, name: str) -> None:
    pytest.importorskip("onnxruntime", reason="the other implementation")
    made = models.MODELS[name]()
    # Of a file, most weights stay there.
    onnx.save(made, tmp_path / "model.onnx")
    with wn.load(tmp_path / "model.onnx", context, fallback="host") as model:
        found = debug.diff(model, FEEDS[name], against="onnxruntime")
    assert found.first is None, str(found)
    assert [each.label for each in found.operators] == [node.name for node in made.graph.node]
    assert set(found.outputs) == {output.name for output in made.graph.output}


def test_a_node_that_is_wrong_is_shown_by_a_program(
    context: wn.MLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: Programs
) -> None:
    """Another implementation that doubles what Erf gives: of the nodes that are off for it, Erf alone is named."""
    pytest.importorskip("onnxruntime", reason="the other implementation")
    plain = onnx_nodes.run_onnxruntime

    def doubling(model: bytes, feeds: Mapping[str, Any], outputs: Any = None) -> dict[str, Any]:
        changed = onnx.load_from_string(model)
        for node in list(changed.graph.node):
            if node.op_type == "Erf":
                changed.graph.node.insert(
                    list(changed.graph.node).index(node) + 1,
                    onnx.helper.make_node("Add", ["half", "half"], [node.output[0]], f"{node.name}+"),
                )
                node.output[0] = "half"
                break
        return plain(changed.SerializeToString(), feeds, outputs)

    monkeypatch.setattr(onnx_nodes, "run_onnxruntime", doubling)
    with wn.load_onnx(models.bert(layers=1), context) as model:
        found = debug.diff(model, FEEDS["bert"], against="onnxruntime", folder=tmp_path)
    assert [each.op for each in found.wrong] == ["Erf"]
    first = found.first
    assert first is not None
    assert found.outputs["embedding"].max_abs_error > 0.01
    shown = programs.run([first.repro_path])
    assert shown.returncode == 1, shown.stderr
    assert f"{first.label}: {first.wrong} of {first.elements} elements of {first.type} are wrong" in shown.stdout


@pytest.mark.parametrize("name", ["detector", "quantized_4bit"])
def test_the_graphs_of_a_model(context: wn.MLContext, name: str, tmp_path: Path) -> None:
    made = models.MODELS[name]()
    path = tmp_path / "model.onnx"
    onnx.save(made, path)
    assert debug.diff(path, FEEDS[name]).first is None
    with wn.load_onnx(path, context, fallback="host") as model:
        model.run(FEEDS[name])
        last = list(model.graph.kernels)[-1]
        model.graph.override(last, wrong_index(model.graph.kernels[last].wgsl))
        found = debug.diff(model, FEEDS[name], folder=tmp_path)
    assert found.first is not None
    assert found.first.kernels == (last,)


def test_what_is_refused(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    with wn.load_onnx(models.gpt(), context, kv_cache=16) as decoder:
        feeds = {"input_ids": np.int64([[1, 2]]), "attention_mask": np.int64([[1, 1]])}
        with pytest.raises(wn.NotSupportedError, match=r"diff: the model has run no graph .*Load it without kv_cache"):
            debug.diff(decoder, feeds)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with (
        wn.load_onnx(models.mlp(), context) as model,
        pytest.raises(wn.NotSupportedError, match=r"onnxruntime is not installed\. pip install onnxruntime"),
    ):
        debug.diff(model, FEEDS["mlp"], against="onnxruntime")
