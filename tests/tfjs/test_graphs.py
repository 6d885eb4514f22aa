"""Graph models give the results of TensorFlow.js: operators, quantized weights, control flow of both generations, lists."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.optional import REPOSITORY, TFJS
from tests.tfjs.cases import TOLERANCE, array_of, distance
from tests.tfjs.graphs import GRAPHS, Writer, write
from webnn_wgpu.frontends.tfjs.host import EVALUATED
from webnn_wgpu.frontends.tfjs.operators import HANDLERS

EXPECTED = json.loads((REPOSITORY / "tests" / "data" / "tfjs" / "graphs.json").read_text())

OPERATORS = (REPOSITORY / "tests" / "data" / "tfjs" / "operators.txt").read_text().split()
"""The operators of TensorFlow.js's converter."""

ABSENT = {
    "strings": {"StaticRegexReplace", "StringNGrams", "StringSplit", "StringToHashBucketFast"},
    "ragged tensors": {"RaggedGather", "RaggedRange", "RaggedTensorToTensor"},
    "decision forests": {
        "SimpleMLCreateModelResource", "SimpleMLInferenceOpWithHandle", "SimpleMLLoadModelFromPathWithHandle",
    },
    "nodes that the reading of the graph replaces": {
        "Const", "Placeholder", "Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch", "HashTable", "HashTableV2",
        "InitializeTable", "InitializeTableV2", "LookupTableImport", "LookupTableImportV2",
    },
}  # fmt: skip
"""Operators without a function, and why."""


def test_every_operator_of_the_converter_is_there() -> None:
    absent = set().union(*ABSENT.values())
    assert {op for op in OPERATORS if op not in HANDLERS and op not in EVALUATED} == absent


@pytest.mark.parametrize("name", GRAPHS)
def test_results_are_tensorflow_js_s(name: str, context: wn.MLContext, tmp_path: Path) -> None:
    writer = write(name, tmp_path)
    with wn.load(tmp_path / "model.json", context, fallback="host") as model:
        results = model.run(writer.inputs)
        again = model.run(writer.inputs)
    for (output, result), expected in zip(results.items(), EXPECTED[name]["outputs"], strict=True):
        assert str(result.dtype) == expected["dtype"], output
        assert distance(result, array_of({**expected, "dtype": "float64"})) < TOLERANCE, output
        assert np.array_equal(result, again[output], equal_nan=result.dtype.kind == "f")


def _model(fill: Callable[[Writer], list[str]], folder: Path) -> Writer:
    writer = Writer()
    document = writer.finish(fill(writer))
    (folder / "model.json").write_text(json.dumps(document))
    (folder / "weights.bin").write_bytes(writer.data)
    return writer


def test_known_loops_are_unrolled_and_others_run_on_the_host(context: wn.MLContext, tmp_path: Path) -> None:
    for name, hosted in (("loops", "StatelessWhile"), ("frames", "While")):
        writer = write(name, tmp_path / name)
        with wn.load(tmp_path / name / "model.json", context, fallback="host") as model:
            model.run(writer.inputs)
            assert [p.op for p in model.placement.on("host")] == [hosted]
        with pytest.raises(wn.NotSupportedError, match="number of iterations"):
            wn.load(tmp_path / name / "model.json", context, fallback="error")


def test_small_branches_run_on_the_device(context: wn.MLContext, tmp_path: Path) -> None:
    writer = write("condition", tmp_path)
    with wn.load(tmp_path / "model.json", context, fallback="error") as model:
        yes = model.run(writer.inputs)
        no = model.run({**writer.inputs, "x1": np.array(False)})
    first = next(iter(yes))
    assert np.allclose(yes[first], np.exp(writer.inputs["x0"]))
    assert np.allclose(no[first], -writer.inputs["x0"])


def test_random_numbers_have_the_right_range(context: wn.MLContext, tmp_path: Path) -> None:
    def fill(w: Writer) -> list[str]:
        sizes = w.constant([1000], "int32")
        w.input([0.0])
        ops = ("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
        drawn = w.node("Multinomial", w.constant([[0.0, 0, -99]]), w.constant(50, "int32"), seed=1)
        return [*(w.node(op, sizes, dtype="DT_FLOAT", seed=3) for op in ops), drawn]

    writer = _model(fill, tmp_path)
    with wn.load(tmp_path / "model.json", context) as model:
        uniform, normal, truncated, drawn = model.run(writer.inputs).values()
    assert 0 <= uniform.min() < 0.05
    assert 0.95 < uniform.max() < 1
    assert abs(normal.mean()) < 0.15
    assert abs(normal.std() - 1) < 0.1
    assert 1.7 < np.abs(truncated).max() < 2.01
    assert set(np.unique(drawn)) == {0, 1}


MODELS = TFJS.folder()


@pytest.mark.skipif(MODELS is None, reason="no TensorFlow.js models in ../shared")
@pytest.mark.parametrize("name", json.loads((MODELS / "models" / "index.json").read_text()) if MODELS is not None else ["none"])
def test_models_of_others(name: str, context: wn.MLContext) -> None:
    assert MODELS is not None
    folder = MODELS / "models"
    entry = json.loads((folder / "index.json").read_text())[name]
    with np.load(folder / "expected.npz") as expected:
        outputs = [expected[f"{name}.{i}"] for i in range(len(entry["outputs"]))]
    state, feeds = entry["seed"], {}
    for info in entry["inputs"]:
        numbers: list[float] = []
        for _ in range(int(np.prod(info["shape"]))):
            # The generator of the program that made the results.
            state = (1664525 * state + 1013904223) % 2**32
            numbers.append(state / 2**32)
        low, high = info.get("lo", 0), info.get("hi", 1)
        values = low + (high - low) * np.array(numbers)
        feeds[info["name"]] = values.astype(info["dtype"]).reshape(info["shape"])
    with wn.load(folder / name / "model.json", context, fallback="error") as model:
        results = model.run(feeds)
    for number, (info, wanted) in enumerate(zip(entry["outputs"], outputs, strict=True)):
        result = results[info["name"]] if info["name"] else list(results.values())[number]
        assert list(result.shape) == info["shape"]
        assert np.abs(result.reshape(-1)[:: info["step"]] - wanted.reshape(-1)).max() < TOLERANCE * info["largest"]
