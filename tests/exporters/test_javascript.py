"""JavaScript modules: node runs them against a recorder, and what they build computes what the graph does."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.conformance import sources
from tests.exporters.operator_calls import first_calls
from tests.formats.test_writing import NAMES
from tests.optional import REPOSITORY
from tests.rotation import share_of_today
from tests.support import op_graph
from webnn_wgpu.api.signatures import call_form, camel, operator_names
from webnn_wgpu.core.data_types import numpy_dtype, of_tensor_bytes
from webnn_wgpu.exporters.javascript import to_javascript
from webnn_wgpu.testing import build_case

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.kernels.operators import Call

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

RECORDER = __file__.replace("test_javascript.py", "recorder.mjs")
IN_OPTIONS = {"triangular": ("upper", "diagonal")}
"""Arguments by position in Python that are options in JavaScript."""
ALONE = {"argMax": ("axes", "selectLastIndex"), "argMin": ("axes", "selectLastIndex"), "softplus": ("steepness",)}
"""Options that the specification does not have."""


@pytest.fixture(scope="module")
def reference() -> Iterator[wn.MLContext]:
    with wn.ml.create_context(backend="reference") as context:
        yield context


def forms() -> dict[str, Any]:
    """Return what the recorder knows of each operator: number of operands, names of arguments and options."""
    found: dict[str, Any] = {}
    for name in operator_names():
        if name.startswith("x."):
            continue
        form = call_form(name)
        arguments = [a for a in form.arguments if a not in IN_OPTIONS.get(name, ())]
        options = [camel(o) for o in (*form.operands[len(form.positional) :], *form.annotations) if o not in arguments]
        options = [o for o in options if o not in ALONE.get(name, ())]
        found[name] = {
            "operands": len(form.positional),
            "arguments": [camel(a) for a in arguments],
            "options": [*options, "label"],
            "list": form.returns.startswith("list"),
        }
    return found


def all_recorded(folder: Path, modules: list[dict[str, str]]) -> list[Any]:
    """Return the records of modules from one process of node, or an error for a module that failed."""
    (folder / "forms.json").write_text(json.dumps(forms()))
    (folder / "modules.json").write_text(json.dumps(modules))
    assert NODE is not None
    command = [NODE, RECORDER, str(folder / "forms.json"), str(folder / "modules.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def recorded(module: Path, **weights: Path) -> Any:
    given = {"module": str(module), **{name: str(path) for name, path in weights.items()}}
    (record,) = all_recorded(module.parent, [given])
    assert "error" not in record, record["error"]
    return record


def value(found: Any, operands: dict[int, Any]) -> Any:
    if isinstance(found, list):
        return [value(v, operands) for v in found]
    if isinstance(found, dict):
        if "operand" in found:
            return operands[found["operand"]]
        return int(found["integer"]) if "integer" in found else float(found["number"].replace("Infinity", "inf"))
    return found


def replayed(record: Any, context: wn.MLContext) -> wn.MLGraph:
    builder = wn.MLGraphBuilder(context)
    operands: dict[int, Any] = {}
    for call in record["calls"]:
        match call["method"]:
            case "input":
                operands[call["id"]] = builder.input(call["name"], call["type"])
            case "constant":
                kind, shape = call["type"]["dataType"], call["type"]["shape"]
                data = np.frombuffer(base64.b64decode(call["data"]), np.uint8)
                array = of_tensor_bytes(data, kind, int(np.prod(shape))) if "int4" in kind else data.view(numpy_dtype(kind))
                operands[call["id"]] = builder.constant(call["type"], array.reshape(shape))
            case method:
                given = [value(v, operands) for v in call["operands"]]
                given += [value(v, operands) for v in call["arguments"].values()]
                options = {n: value(v, operands) for n, v in call["options"].items()}
                result = getattr(builder, method)(*given, options)
                results = result if isinstance(result, list) else [result]
                operands.update(zip(call["results"], results, strict=False))
    return builder.build({name: operands[i] for name, i in record["outputs"]})


def check(graph: wn.MLGraph, feeds: dict[str, Any], context: wn.MLContext, record: Any, *, exact: bool = True) -> None:
    """Compare a graph with the one that its module builds, of which node has made a record."""
    other = replayed(record, context)
    expected, results = (context.compute(g, {n: feeds[n] for n in g.inputs}) for g in (graph, other))
    assert list(results) == list(expected)
    for name, array in expected.items():
        if exact:
            np.testing.assert_array_equal(results[name], array)
        else:
            np.testing.assert_allclose(results[name], array, rtol=1e-4, atol=1e-5)
    assert [name for name, _ in record["inputs"]] == list(graph.inputs)


FEW = first_calls()
NO_COMPOSITION = frozenset(
    """x.bitcast x.cache_update x.bitwise_and x.bitwise_or x.bitwise_xor x.shift_left x.shift_right x.grid_sample
    x.random_bits x.round_bfloat16 x.round_float8 x.top_k""".split()
)
"""Operators whose first call has no composition of WebNN's operators."""


COMPOSED = [call for call in FEW.values() if call.name not in NO_COMPOSITION]


def graph_of(call: Call, reference: wn.MLContext) -> wn.MLGraph:
    return reference._compile(op_graph(call.name, call.arrays(), call.attrs, call.constants), None, (), "test")


@pytest.fixture(scope="module")
def records(reference: wn.MLContext, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The records of the modules of all operators, by operator. One process of node makes them."""
    folder = tmp_path_factory.mktemp("modules")
    modules = [folder / f"{i}.mjs" for i in range(len(COMPOSED))]
    for call, module in zip(COMPOSED, modules, strict=True):
        module.write_text(to_javascript(graph_of(call, reference)))
    found = all_recorded(folder, [{"module": str(module)} for module in modules])
    return {call.name: record for call, record in zip(COMPOSED, found, strict=True)}


@pytest.mark.parametrize("call", COMPOSED, ids=str)
def test_a_module_of_each_operator_builds_the_same_graph(call: Call, records: dict[str, Any], reference: wn.MLContext) -> None:
    record = records[call.name]
    assert "error" not in record, record["error"]
    feeds = {str(i): a for i, a in enumerate(call.arrays()) if a is not None}
    check(graph_of(call, reference), feeds, reference, record, exact=not call.name.startswith("x."))


@pytest.mark.parametrize("call", [c for c in FEW.values() if c.name in NO_COMPOSITION], ids=str)
def test_operators_without_a_composition_are_refused_by_name(call: Call, reference: wn.MLContext) -> None:
    graph = graph_of(call, reference)
    with pytest.raises(wn.NotSupportedError, match=rf"save\('test'\): {call.name} has no composition"):
        to_javascript(graph)


def test_weights_in_a_file(tmp_path: Path, reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float32", "shape": [4, 64]})
    weights = builder.constant(np.random.default_rng(0).random((64, 8), np.float32))
    half = builder.constant(np.arange(8, dtype=np.float16))
    graph = builder.build(
        {"y": builder.matmul(x, weights), "h": builder.neg(half), "n": builder.add(x, builder.constant(np.nan))}
    )
    graph.save(tmp_path / "g.mjs")
    assert {p.name for p in tmp_path.iterdir()} == {"g.mjs", "g.weights", "g.manifest.json"}
    record = recorded(tmp_path / "g.mjs", weights=tmp_path / "g.weights", manifest=tmp_path / "g.manifest.json")
    feeds = {"x": np.ones((4, 64), np.float32)}
    expected, results = (reference.compute(g, feeds) for g in (graph, replayed(record, reference)))
    for name, array in expected.items():
        np.testing.assert_array_equal(results[name], array)
    first = (tmp_path / "g.mjs").read_bytes()
    graph.save(tmp_path / "g.mjs")
    assert (tmp_path / "g.mjs").read_bytes() == first


SHARES = 50
TODAY, _ = share_of_today(REPOSITORY, SHARES)
"""The share of the conformance cases that has its turn."""


def test_modules_of_conformance_cases_compute_what_the_graphs_do(tmp_path: Path, reference: wn.MLContext) -> None:
    cases = [c for c in sources.all_cases() if crc32(f"{c.operator}: {c.name}".encode()) % SHARES == TODAY - 1]
    assert len(cases) > 50
    modules: list[dict[str, str]] = []
    computed: list[tuple[dict[str, Any], Mapping[str, Any]]] = []
    for i, case in enumerate(cases):
        builder = wn.MLGraphBuilder(reference)
        built = build_case(builder, case)
        with builder.build(built.outputs) as graph:
            feeds = {name: built.feeds[name] for name in graph.inputs}
            computed.append((feeds, reference.compute(graph, feeds)))
            (tmp_path / f"{i}.mjs").write_text(to_javascript(graph))
        modules.append({"module": str(tmp_path / f"{i}.mjs")})
    wrong: list[str] = []
    for case, record, (feeds, expected) in zip(cases, all_recorded(tmp_path, modules), computed, strict=True):
        said = record.get("error", "")
        if not said:
            with replayed(record, reference) as graph:
                results = reference.compute(graph, feeds)
            differ = [n for n, a in expected.items() if not np.array_equal(results[n], a, equal_nan=a.dtype.kind == "f")]
            said = f"{differ} differ" if differ or list(results) != list(expected) else ""
        if said:
            wrong.append(f"{case.operator}: {case.name}: {said}")
    assert not wrong, f"{len(wrong)} of {len(cases)} are wrong:\n" + "\n".join(wrong)


LIMITS = """{
  input: {dataTypes: ["float16"]}, output: {dataTypes: ["float32"]},
  matmul: {a: {dataTypes: ["float32"], rankRange: {min: 3, max: 5}}, b: {dataTypes: ["int8"]}},
}"""


def test_what_a_browser_lacks_is_named_before_anything_is_built(tmp_path: Path, reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float32", "shape": [2, 2]})
    graph = builder.build({"y": builder.softmax(builder.matmul(x, builder.add(x, x)), 1)})
    graph.save(tmp_path / "g.mjs")
    program = f"""
      globalThis.MLGraphBuilder = class {{ constructor() {{ console.log("built"); }} add() {{}} matmul() {{}} }};
      const {{buildGraph, missing, uses}} = await import({json.dumps((tmp_path / "g.mjs").as_uri())});
      console.log(Object.keys(uses).join());
      console.log(missing({{}}).join());
      await buildGraph({{opSupportLimits: () => ({LIMITS})}}).catch((error) => console.log(error.message));
    """
    assert NODE is not None
    command = [NODE, "--input-type=module", "-e", program]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert found.splitlines() == [
        "add,matmul,softmax",
        "the operator softmax",
        "this browser's WebNN lacks matmul of rank 2 as a, matmul of float32 as b, the operator softmax, an input of float32",
    ]


@pytest.mark.parametrize(
    ("ml", "message"),
    [
        ("undefined", "this browser has no WebNN"),
        (
            "{createContext: async () => { throw new Error('not supported on this platform'); }}",
            "this browser's WebNN opens no context: not supported on this platform",
        ),
        ("{createContext: async () => ({opSupportLimits: () => ({})})}", "this browser's WebNN lacks the operator relu"),
    ],
)
def test_load_names_what_a_browser_lacks(ml: str, message: str, tmp_path: Path, reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float32", "shape": [2]})
    builder.build({"y": builder.relu(x)}).save(tmp_path / "g.mjs")
    program = f"""
      globalThis.MLGraphBuilder = class {{}};
      Object.defineProperty(globalThis, "navigator", {{value: {{ml: {ml}}}, configurable: true}});
      const {{load}} = await import({json.dumps((tmp_path / "g.mjs").as_uri())});
      await load().catch((error) => console.log(error.message));
    """
    assert NODE is not None
    command = [NODE, "--input-type=module", "-e", program]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == message


@pytest.mark.parametrize("name", NAMES)
def test_names_survive(name: str, tmp_path: Path, reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input(name, {"dataType": "float32", "shape": [2]})
    graph = builder.build({f"{name}!": builder.relu(x, label=name), "__proto__": builder.neg(x)})
    module = tmp_path / "g.mjs"
    module.write_text(to_javascript(graph))
    assert "</script" not in module.read_text()
    record = recorded(module)
    assert [n for n, _ in record["inputs"]] == [name]
    assert {n for n, _ in record["types"]} == {f"{name}!", "__proto__"}
    assert [c["options"].get("label") for c in record["calls"] if c["method"] == "relu"] == [name]
