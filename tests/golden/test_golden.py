"""Golden plans are those whose digests are checked in; the tool that compares them sees every difference."""

from __future__ import annotations

import copy
import json
import os
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.golden import bench, digests, patterns, trees
from tests.golden.__main__ import main
from tests.golden.catalog import graphs, names
from tests.golden.comparing import compare
from tests.golden.dumping import digest_of, dump_plans
from tests.golden.graphs import packed, unpacked
from tests.golden.models import plan_model
from tests.golden.operators import INTERNAL
from tests.golden.planning import planning_context
from tests.golden.records import RECORDS, record
from tests.golden.worker import missing_operators
from tests.rotation import part_of
from webnn_wgpu.ops import OPS

if TYPE_CHECKING:
    from pathlib import Path

HARDWARE = ("nvidia", "amd", "intel", "apple", "qualcomm", "d3d12", "webgpu-default")

GIT = pytest.mark.skipif(not (trees.REPOSITORY / ".git").exists(), reason="the tool compares revisions of a git checkout")


SOON = "nvidia"
"""The record whose plans `make test-quick` compares."""

ALWAYS = (SOON, "lavapipe")
"""The records of which each run compares all plans. Of the others it compares a sixth, which the commit picks."""

EACH_RECORD = [pytest.param(name, marks=() if name == SOON else pytest.mark.slow) for name in RECORDS]


@cache
def planned_soon(model: str, device: str = SOON) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the golden plans of a model for the record of `make test-quick`, and the operators in them. Several tests look."""
    context, planning = planning_context(record(device))
    plan_model(context, model, graphs())
    nodes = [node for plan in planning.plans if not isinstance(plan, Exception) for node in plan.graph.nodes]
    bodies = [node.attrs["body"].nodes for node in nodes if "body" in node.attrs]
    return dump_plans(planning.plans), frozenset(node.op for each in (nodes, *bodies) for node in each)


@pytest.mark.parametrize("device", EACH_RECORD)
def test_plans_are_the_golden_ones(device: str, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    monkeypatch.delenv("WEBNN_WGPU_FORCE", raising=False)
    wanted = digests.read()
    if device == SOON:
        found = {model: digest_of(planned_soon(model)[0]) for model in names()}
    else:
        found = digests.of_record(device, names() if device in ALWAYS else part_of(pytestconfig, names(), 6))
    changed = [model for model in found if wanted.get(model, {}).get(device) != found[model]]
    assert not changed, (
        f"plans for {device} changed: {', '.join(changed)}. `python -m tests.golden --against main` shows how. Where the "
        "change is meant, `python -m tests.golden --update` rewrites the digests"
    )


def test_digests_are_of_the_models_and_records_there_are() -> None:
    found = {(model, record) for model, row in digests.read().items() for record in row}
    wanted = {(model, record) for model in names() for record in RECORDS}
    differ = sorted({model for model, _ in found ^ wanted})
    assert not differ, f"digests of {', '.join(differ)} are missing or left over: run `python -m tests.golden --update`"


def test_there_is_a_record_of_each_kind_of_hardware() -> None:
    assert set(HARDWARE) <= set(RECORDS)


@pytest.mark.parametrize("operator", [name for name in OPS if name not in INTERNAL])
def test_every_operator_has_a_golden_graph(operator: str) -> None:
    plans = planned_soon(f"operator/{operator}")[0]["plans"]
    assert plans, (
        f"there is no call of {operator}: add one to tests/kernels/operators.py, or, if its kernels cannot be divided, to "
        "EXTENSIONS in tests/golden/operators.py"
    )
    assert all("error" not in plan for plan in plans)


def test_only_internal_operators_have_no_golden_graph_of_their_own() -> None:
    assert {name for name in OPS if OPS[name].internal} == {*INTERNAL, "wgslOp"}


def test_every_pattern_is_planned_and_internal_operators_occur() -> None:
    found: set[str] = set()
    for model in patterns.graphs():
        dumped, operators = planned_soon(f"pattern/{model}")
        assert len(dumped["plans"]) == len(patterns.graphs()[model]), model
        assert not [plan for plan in dumped["plans"] if "error" in plan], model
        found |= operators
    # Software adapters alone compute gradients of attention by products.
    found |= planned_soon("pattern/gradient_passes.software_adapters_compute_gradients_of_attention_by_products", "lavapipe")[1]
    assert found >= set(INTERNAL)


def test_graphs_that_hypothesis_drew_stay_as_they_are() -> None:
    (random, stored), (other, _) = list(patterns.graphs().items())[:2]
    drawn = {random: ['{"nodes": []}'], other: ['{"nodes": []}'], "a.new": ['{"nodes": []}'], "no.graphs": []}
    expected = {random: stored, other: [{"nodes": []}], "a.new": [{"nodes": []}]}
    assert json.loads(patterns.text_of(drawn, random={random, "a.new"})) == expected


@pytest.mark.parametrize("what", ["zeros", "normal", "shifted", "int8", "scalar", "empty shape of float16"])
def test_constants_are_restored_from_data(what: str) -> None:
    normal = np.random.default_rng(7).standard_normal((3, 5)).astype(np.float32)
    array = {
        "zeros": np.zeros((3, 5), np.float32),
        "normal": normal,
        "shifted": normal + 1,
        "int8": np.arange(-3, 4, dtype=np.int8),
        "scalar": normal[0, :1],
        "empty shape of float16": np.array(-0.0, np.float16),
    }[what]
    data = packed(array)
    assert ("normal" in data) == (what == "normal")
    found = unpacked(json.loads(json.dumps(data)))
    assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())


# Models of the benchmark ----------------------------------------------------------------------------------------------


def test_without_models_of_the_benchmark_the_list_says_how_to_have_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(bench.VARIABLE, raising=False)
    assert main(["--list"]) == 0
    *lines, note = capsys.readouterr().out.splitlines()
    assert note == "models of the benchmark: none; BENCH_MODELS names the folder of their ONNX files"
    assert not [line for line in lines if "bench/" in line]


def test_models_of_the_benchmark_are_planned_with_their_new_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WEBNN_WGPU_GOLDEN", str(tmp_path / "results"))
    monkeypatch.setenv(bench.VARIABLE, str(tmp_path))
    weights = helper.make_tensor("w", TensorProto.FLOAT, [3, 5], np.ones(15, np.float32))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 5])],
        [weights],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), tmp_path / "one.onnx")
    assert main(["--list"]) == 0
    assert "  bench/one" in capsys.readouterr().out.splitlines()
    tree, task = trees.working_tree(), ("bench/one", "nvidia")
    trees.make(tree, [task], 1, lambda done, total: None)
    assert len(trees.load(tree, *task)["plans"][0]["dispatches"]) == 1
    os.utime(tmp_path / "one.onnx", (1, 1))
    with pytest.raises(FileNotFoundError):
        trees.load(tree, *task)


# Processes ------------------------------------------------------------------------------------------------------------

SOME = [("example/bert", "nvidia"), ("example/gpt", "lavapipe"), ("operator/conv2d", "amd")]


@pytest.mark.slow
@pytest.mark.repeats
def test_plans_are_the_same_in_every_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[list[dict[str, Any]]] = []
    for seed in ("0", "1"):
        monkeypatch.setenv("WEBNN_WGPU_GOLDEN", str(tmp_path / seed))
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        tree = trees.working_tree()
        trees.make(tree, SOME, 1, lambda done, total: None)
        found.append([trees.load(tree, *task) for task in SOME])
    assert found[0] == found[1]
    assert all("failure" not in dumped for dumped in found[0])


# The comparison -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dumped() -> dict[str, Any]:
    return planned_soon("example/mlp")[0]


def test_a_graph_that_only_the_second_tree_plans_is_new(dumped: dict[str, Any]) -> None:
    failed = {"plans": [], "kernels": {}, "failure": "Traceback\nKeyError: 'x.missing'\n", "missing": ["x.missing"]}
    found = compare(failed, dumped)
    assert list(found.lines()) == ["new: the first tree does not have x.missing"]
    assert "the second tree failed" in compare(dumped, failed).failure
    assert "the first tree failed" in compare({**failed, "missing": []}, dumped).failure


def test_a_worker_names_the_operators_that_its_package_lacks() -> None:
    graphs: list[dict[str, Any]] = [
        {"method": "x.missing", "arguments": {}},
        {"method": "x.acos", "arguments": {}},
        {"method": "relu", "arguments": {}},
        {"values": [], "nodes": [{"op": "x.absent"}, {"op": "x.top_k"}]},
    ]
    assert missing_operators(graphs) == ["x.absent", "x.missing"]


def test_equal_plans_do_not_differ(dumped: dict[str, Any]) -> None:
    found = compare(dumped, copy.deepcopy(dumped))
    assert not found
    assert not list(found.lines())


def test_a_changed_kernel_is_shown_with_its_text(dumped: dict[str, Any]) -> None:
    after = copy.deepcopy(dumped)
    dispatch = after["plans"][0]["dispatches"][0]
    text = after["kernels"][dispatch["wgsl"]]
    users = [d for plan in after["plans"] for d in plan["dispatches"] if d["wgsl"] == dispatch["wgsl"]]
    del after["kernels"][dispatch["wgsl"]]
    for each in users:
        each["wgsl"] = "other"
    after["kernels"]["other"] = text.replace("fn main", "fn mein")
    found = compare(dumped, after)
    assert len(found.changed) == 1
    assert (found.added, found.gone, found.totals, found.fields) == ([], [], {}, {})
    assert f"~ {dispatch['kernel']} ({dispatch['label']})" in list(found.lines())
    assert any(line.startswith("+") and "fn mein" in line for line in found.lines(diff=True))
    assert digest_of(after) != digest_of(dumped)


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (("dispatches", 0, "grid"), "dispatches.grid"),
        (("dispatches", 0, "reason"), "dispatches.reason"),
        (("dispatches", 0, "bindings", "a", "size_bytes"), "dispatches.bindings.size_bytes"),
        (("dispatches", 0, "bindings", "a", "offset_bytes"), "dispatches.bindings.offset_bytes"),
        (("slots", 0), "slots"),
        (("inputs", "x"), "inputs"),
    ],
)
def test_a_changed_field_is_named(dumped: dict[str, Any], path: tuple[Any, ...], field: str) -> None:
    after = copy.deepcopy(dumped)
    holder = after["plans"][-1]  # of many rows: one kernel computes a single row, without slots
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = "other"
    found = compare(dumped, after)
    assert found.fields == {field: 1}
    assert "'other'" in found.example
    assert not compare(dumped, after, ignored=[field.rpartition(".")[2]])
    assert digest_of(after) != digest_of(dumped)


def test_a_dispatch_that_is_gone_is_counted(dumped: dict[str, Any]) -> None:
    after = copy.deepcopy(dumped)
    count = sum(len(plan["dispatches"]) for plan in after["plans"])
    del after["plans"][0]["dispatches"][0]
    assert compare(dumped, after).totals["dispatches"] == (count, count - 1)


def test_the_contents_of_constants_count_on_one_machine_alone(dumped: dict[str, Any]) -> None:
    after = copy.deepcopy(dumped)
    after["plans"][0]["constants"][0]["bytes"] = "other"
    assert compare(dumped, after).fields == {"constants.bytes": 1}
    assert digest_of(after) == digest_of(dumped)


# The command ----------------------------------------------------------------------------------------------------------

_ONE = ["--models", "example/mlp", "--records", "nvidia", "--jobs", "1"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package, to be changed, that the tool takes for the working tree."""
    monkeypatch.setenv("WEBNN_WGPU_GOLDEN", str(tmp_path / "results"))
    with trees.revision("HEAD") as tree:
        folder = tree.folder.rename(tmp_path / "tree")
    monkeypatch.setattr(trees, "working_tree", lambda: trees.tree_at(folder, "the copy"))
    return folder


@GIT
def test_an_unchanged_package_changes_nothing(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--against", "HEAD", *_ONE]) == 0
    assert capsys.readouterr().out == "nothing changed: package and shaders are those of HEAD\n"


@GIT
@pytest.mark.slow
def test_a_comment_in_the_package_changes_nothing(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (package / "webnn_wgpu" / "__init__.py").open("a") as file:
        file.write("# no plan depends on this\n")
    assert main(["--against", "HEAD", *_ONE]) == 0
    assert capsys.readouterr().out == "nothing changed against HEAD: 1 golden plans are the same\n"


@GIT
@pytest.mark.slow
def test_a_change_of_a_template_is_found(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for template in (package / "shaders" / "ops").glob("matmul*.wgsl.j2"):
        template.write_text(template.read_text() + "// changed\n")
    assert main(["--against", "HEAD", "--diff", *_ONE]) == 1
    out = capsys.readouterr().out
    assert "+// changed" in out
    assert out.endswith("1 of 1 golden plans differ from HEAD\n")


@GIT
def test_an_unknown_revision_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--against", "no-such-revision", *_ONE]) == 2
    assert "no-such-revision" in capsys.readouterr().err


def test_show_prints_plan_and_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--show", "example/mlp", "nvidia"]) == 0
    out = capsys.readouterr().out
    assert '"dispatches"' in out
    assert "fn main" in out
