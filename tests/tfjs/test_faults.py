"""Broken files are refused with the file and the culprit, before anything is allocated."""

from __future__ import annotations

import copy
import json
import os
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.fuzzing import mutate_bytes
from tests.tfjs.cases import cases, written
from tests.tfjs.graphs import GRAPHS, write
from webnn_wgpu.frontends.kinds import is_tfjs
from webnn_wgpu.frontends.tfjs import analyze

Change = Callable[[dict[str, Any]], None]


def _layers(folder: Path, change: Change, name: str = "residual block") -> Path:
    found = {c["name"]: c for c in cases("layers.json")}
    case = copy.deepcopy(found.get(name) or found["nested model"])
    change(case["artefact"])
    return written(case, folder)


def _graph(folder: Path, change: Change, name: str = "products") -> Path:
    write(name, folder)
    path = folder / "model.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    return path


def _weight(**changed: Any) -> Change:
    return lambda document: document["weightsManifest"][0]["weights"][0].update(changed)


def _paths(*paths: Any) -> Change:
    return lambda document: document["weightsManifest"][0].update(paths=list(paths))


def _node(index: int, **changed: Any) -> Change:
    return lambda document: document["modelTopology"]["node"][index].update(changed)


GRAPH_FAULTS: dict[str, tuple[Change, str]] = {
    "shape beyond the file": (
        _weight(shape=[1 << 20, 1 << 20]),
        "weight 'const_0' of shape .* needs .* bytes, but weights.bin has",
    ),
    "negative size": (_weight(shape=[-1, 5]), "weight 'const_0' has the shape"),
    "many dimensions": (_weight(shape=[1] * 40), "at most 16 sizes"),
    "strings beyond the file": (_weight(dtype="string", shape=[1 << 40]), "strings, but the files have"),
    "unknown dtype": (_weight(dtype="float99"), "weight 'const_0' has the dtype 'float99'"),
    "quantized booleans": (_weight(dtype="bool", quantization={"dtype": "uint8"}), "quantization to uint8"),
    "quantized complex numbers": (_weight(dtype="complex64", quantization={"dtype": "uint16"}), "quantization to uint16"),
    "infinite scale": (_weight(quantization={"dtype": "uint8", "scale": float("inf")}), "finite numbers"),
    "parent folder": (_paths("../weights.bin"), "must be a path of a file inside the folder"),
    "absolute path": (_paths("/etc/passwd"), "must be a path of a file inside the folder"),
    "Windows path": (_paths("..\\weights.bin"), "must be a path of a file inside the folder"),
    "drive": (_paths("C:weights.bin"), "must be a path of a file inside the folder"),
    "address": (_paths("http://example.org/w.bin"), "must be a path of a file inside the folder"),
    "path of another kind": (_paths(7), "must be a path of a file inside the folder"),
    "absent file": (_paths("other.bin"), "there is no file 'other.bin'"),
    "no nodes": (lambda d: d["modelTopology"].pop("node"), "does not exist"),
    "node without a name": (_node(1, name=None), "no name and operator"),
    "two of a name": (_node(1, name="x0"), "two nodes have the name 'x0'"),
    "unknown input": (_node(3, input=["nothing"]), "uses 'nothing', which does not exist"),
    "unknown operator": (lambda d: d["modelTopology"]["node"][-1].update(op="Fly"), "Fly"),
    "cycle": (lambda d: d["modelTopology"]["node"][-1].update(input=[d["modelTopology"]["node"][-1]["name"]] * 2), "cycle"),
    "no format": (lambda d: d.update(format="none"), "format 'none'"),
    "manifest of another kind": (lambda d: d.update(weightsManifest=3), "weightsManifest is not a list"),
    "huge result": (
        lambda d: d["modelTopology"]["node"][0]["attr"]["shape"]["shape"].update(dim=[{"size": "1000000000"}, {"size": "4"}]),
        "elements|memory|buffer",
    ),
}


@pytest.mark.parametrize("fault", GRAPH_FAULTS)
def test_broken_graph_models_are_refused(fault: str, tmp_path: Path) -> None:
    change, message = GRAPH_FAULTS[fault]
    path = _graph(tmp_path, change)
    tracemalloc.start()
    with wn.ml.create_context(backend="reference") as context, pytest.raises(wn.WebNNError, match=message) as error:
        wn.load(path, context)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert tmp_path.name in str(error.value)
    assert most < 1 << 26


@pytest.mark.skipif(os.name == "nt", reason="Windows lets administrators alone make symbolic links")
def test_links_lead_out_of_the_folder_only_with_the_model(tmp_path: Path, context: wn.MLContext) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    blobs.mkdir()
    snapshot.mkdir()
    _graph(blobs, lambda document: None)
    (snapshot / "weights.bin").symlink_to(blobs / "weights.bin")
    (snapshot / "model.json").write_bytes((blobs / "model.json").read_bytes())
    with pytest.raises(wn.NotSupportedError, match=r"'weights\.bin', which is a link out of the folder"):
        wn.load(snapshot / "model.json", context)
    # A download cache links to all files of a model.
    (snapshot / "model.json").unlink()
    (snapshot / "model.json").symlink_to(blobs / "model.json")
    wn.load(snapshot / "model.json", context).destroy()


def test_functions_that_call_themselves_are_refused(tmp_path: Path, context: wn.MLContext) -> None:
    def change(document: dict[str, Any]) -> None:
        functions = document["modelTopology"]["library"]["function"]
        functions[0]["nodeDef"].append(
            {"name": "again", "op": functions[0]["signature"]["name"], "input": ["arg0"], "attr": {}}
        )

    with pytest.raises(wn.NotSupportedError, match="calls itself"):
        wn.load(_graph(tmp_path, change, "condition"), context)


def test_loops_without_an_end_are_refused(tmp_path: Path, context: wn.MLContext) -> None:
    def change(document: dict[str, Any]) -> None:
        for function in document["modelTopology"]["library"]["function"]:
            if function["signature"]["name"] == "known_cond":
                node = function["nodeDef"][0]
                node["input"] = ["arg0", "arg0"]
                node["op"] = "LessEqual"

    with pytest.raises(wn.NotSupportedError, match="more than"):
        wn.load(_graph(tmp_path, change, "loops"), context)


LAYERS_FAULTS: dict[str, tuple[Change, str]] = {
    "class": (lambda d: d["modelTopology"].update(class_name="Graph"), "a model of the class 'Graph'"),
    "no layers": (lambda d: d["modelTopology"]["config"].update(layers=[]), "no layers"),
    "unknown layer": (lambda d: d["modelTopology"]["config"]["layers"][-1].update(class_name="Own"), "Own"),
    "no configuration": (lambda d: d["modelTopology"]["config"]["layers"][-1].update(config=None), "no class and config"),
    "unknown source": (
        lambda d: d["modelTopology"]["config"]["layers"][-1].update(inbound_nodes=[[["gone", 0, 0, {}]]]), "uses 'gone'"),
    "cycle": (lambda d: d["modelTopology"]["config"]["layers"][-1].update(
        inbound_nodes=[[[d["modelTopology"]["config"]["layers"][-1]["name"], 0, 0, {}]]]), "cycle"),
    "weight of another name": (_weight(name="other/kernel"), "the model has no weight"),
    "weight of another shape": (_weight(shape=[1]), "has the shape"),
    "huge input": (
        lambda d: d["modelTopology"]["config"]["layers"][0]["config"].update(batch_input_shape=[None, 1 << 40]), "the shape"),
    "output": (lambda d: d["modelTopology"]["config"].update(output_layers=[["gone", 0, 0]]), "does not exist"),
}  # fmt: skip


@pytest.mark.parametrize("fault", LAYERS_FAULTS)
def test_broken_layers_models_are_refused(fault: str, tmp_path: Path) -> None:
    change, message = LAYERS_FAULTS[fault]
    path = _layers(tmp_path, change, "nested model")
    with wn.ml.create_context(backend="reference") as context, pytest.raises(wn.WebNNError, match=message) as error:
        with wn.load(path, context) as model:
            model.run(
                {i.name: np.zeros([d if isinstance(d, int) else 2 for d in i.shape or ()], i.dtype) for i in model.inputs}
            )
    assert tmp_path.name in str(error.value)


def test_json_files_are_told_apart_by_content(tmp_path: Path, context: wn.MLContext) -> None:
    assert is_tfjs(_graph(tmp_path, lambda _: None))
    b = wn.MLGraphBuilder(context)
    graph = b.build({"y": b.relu(b.input("x", [2], "float32"))})
    graph.save(tmp_path / "relu.json")
    assert not is_tfjs(tmp_path / "relu.json")
    (tmp_path / "text.json").write_text('["modelTopology"]')
    assert not is_tfjs(tmp_path / "text.json")
    assert type(wn.load(tmp_path / "relu.json", context)).__name__ == "WebNNModel"
    assert type(wn.load(tmp_path / "model.json", context)).__name__ == "TfjsModel"


def test_shards_hold_a_weight_together(tmp_path: Path, context: wn.MLContext) -> None:
    writer = write("products", tmp_path)
    with wn.load(tmp_path / "model.json", context) as model:
        whole = model.run(writer.inputs)
    document = json.loads((tmp_path / "model.json").read_text())
    document["weightsManifest"][0]["paths"] = ["a.bin", "b.bin", "c.bin"]
    for name, part in zip("abc", (writer.data[:7], writer.data[7:150], writer.data[150:]), strict=True):
        (tmp_path / f"{name}.bin").write_bytes(part)
    (tmp_path / "model.json").write_text(json.dumps(document))
    with wn.load(tmp_path / "model.json", context) as model:
        for name, result in model.run(writer.inputs).items():
            assert np.array_equal(result, whole[name])


def _spoiled(rng: random.Random, entry: Any) -> Any:
    """Return a document with a few of its parts replaced, cut out or repeated."""
    if rng.random() < 0.02:
        return rng.choice((None, [], {}, -1, 0, 1 << 40, "x", True, 0.5, [-1], [[]]))
    if isinstance(entry, dict):
        return {k: _spoiled(rng, v) for k, v in entry.items() if rng.random() > 0.01}
    if isinstance(entry, list):
        return [_spoiled(rng, v) for v in entry if rng.random() > 0.01]
    return entry


@pytest.mark.parametrize("seed", range(6))
def test_spoiled_files_load_or_are_refused(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    names = sorted(GRAPHS)
    layers = cases("layers.json")
    with wn.ml.create_context(backend="reference") as context:
        for round_ in range(40):
            folder = tmp_path / str(round_)
            folder.mkdir()
            if round_ % 2:
                case = layers[rng.randrange(len(layers))]
                path = written(case, folder)
            else:
                write(rng.choice(names), folder)
                path = folder / "model.json"
            document = _spoiled(rng, json.loads(path.read_text()))
            data = json.dumps(document).encode()
            path.write_bytes(mutate_bytes(rng, data) if rng.random() < 0.2 else data)
            try:
                analyze(path, context)
            except wn.WebNNError:
                pass
