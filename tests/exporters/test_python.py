"""Python programs build the graphs that they were written from."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import webnn_wgpu as wn
from tests.exporters.operator_calls import calls
from tests.formats.test_writing import NAMES, content
from tests.support import op_graph
from webnn_wgpu.exporters.python import to_python

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.kernels.operators import Call


@pytest.fixture(scope="module")
def reference() -> Iterator[wn.MLContext]:
    with wn.ml.create_context(backend="reference") as context:
        yield context


def built(program: str, context: wn.MLContext, file: str = "g.py") -> wn.MLGraph:
    names: dict[str, Any] = {"__name__": "g", "__file__": file}
    exec(compile(program, file, "exec"), names)
    builder = wn.MLGraphBuilder(context)
    return builder.build(names["build"](builder))


@pytest.mark.parametrize("call", calls(), ids=str)
def test_calls_of_all_operators(call: Call, reference: wn.MLContext) -> None:
    graph = reference._compile(op_graph(call.name, call.arrays(), call.attrs, call.constants), None, (), "test")
    assert content(built(to_python(graph), reference).source) == content(graph.source)


def several(context: wn.MLContext) -> wn.MLGraph:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [4, 64]})
    large = builder.constant(np.random.default_rng(0).random((64, 8), np.float32))
    strange = builder.constant(np.array([0x7FC12345, 0x80000000], np.uint32).view(np.float32))
    packed = builder.constant({"dataType": "uint4", "shape": [3000]}, (np.arange(3000) % 16).astype(ml_dtypes.uint4))
    one, zero = (
        builder.constant(np.ones(1, np.float32)),
        builder.constant({"dataType": "uint4", "shape": [1]}, np.zeros(1, ml_dtypes.uint4)),
    )
    return builder.build(
        {
            "a long name with spaces": builder.matmul(x, large, label="product"),
            "bits": builder.neg(strange),
            "w": builder.dequantize_linear(packed, one, zero),
            "t": builder.ext.top_k(x, 3)[0],
        }
    )


@pytest.mark.parametrize("weights", ["auto", "inline"])
def test_constants_of_all_kinds(weights: Any, tmp_path: Path, reference: wn.MLContext) -> None:
    graph = several(reference)
    graph.save(tmp_path / "g.py", weights=weights)
    assert {p.name for p in tmp_path.iterdir()} == ({"g.py", "g.safetensors"} if weights == "auto" else {"g.py"})
    program = (tmp_path / "g.py").read_text()
    assert content(built(program, reference, str(tmp_path / "g.py")).source) == content(graph.source)


def test_programs_are_formatted_and_run(tmp_path: Path, reference: wn.MLContext) -> None:
    several(reference).save(tmp_path / "g.py")
    config = ["--config", "line-length=128", "--isolated"]
    subprocess.run([sys.executable, "-m", "ruff", "format", "--check", *config, tmp_path / "g.py"], check=True)
    done = subprocess.run([sys.executable, tmp_path / "g.py"], capture_output=True, text=True, check=True)
    assert "a long name with spaces float32 (4, 8)" in done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_names_survive(name: str, reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input(name, {"dataType": "float32", "shape": [2]})
    graph = builder.build({f"{name}!": builder.relu(x, label=name), "build": builder.identity(x)})
    other = built(to_python(graph), reference)
    assert (list(other.inputs), list(other.outputs)) == ([name], [f"{name}!", "build"])
    assert other.source.nodes[0].label == name
