"""`debug.diff`, and the programs that it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.api.graphs import X, negation
from tests.debug.faults import FEEDS, graph_of, wrong_index
from tests.ops.test_cache_update import decoder
from tests.runtime.graphs import ROWS, network
from webnn_wgpu import debug
from webnn_wgpu.accuracy import judging
from webnn_wgpu.ops import OPS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.programs import Programs


@pytest.mark.parametrize("name", FEEDS)
def test_a_model_that_is_right_agrees(context: wn.MLContext, name: str) -> None:
    model, graph, feeds = graph_of(name, context)
    with model:
        found = debug.diff(graph, feeds)
    assert (found.first, found.worst, found.wrong) == (None, None, ()), str(found)
    assert not found.uncompared
    compared = {kernel for each in found.operators for kernel in each.kernels}
    assert compared == set(graph.kernels)
    assert set(found.outputs) == set(graph.outputs)
    assert all(output.max_abs_error < 1e-4 for output in found.outputs.values())


@pytest.mark.parametrize(
    ("name", "label"),
    [("mobilenet_v2", "batchnormalization_24"), ("bert", "matmul_35"), ("bert", "matmul_28"), ("quantized_8bit", "matmul_3")],
)
def test_a_planted_fault_is_named_and_shown_by_a_program(
    context: wn.MLContext, tmp_path: Path, name: str, label: str, programs: Programs
) -> None:
    model, graph, feeds = graph_of(name, context)
    with model:
        right = graph.kernels[label].wgsl
        kernel = graph.override(label, wrong_index(right))
        found = debug.diff(graph, feeds, folder=tmp_path)
    first = found.first
    assert first is not None
    assert found.wrong == (first,)
    assert found.worst is first
    assert (first.label, first.kernels, first.labels, first.overridden) == (label, (label,), kernel.labels, True)
    assert first.max_abs_error > 1e-3
    assert first.max_ulp > 1000
    shown = programs.run([first.repro_path])
    assert shown.returncode == 1, shown.stderr
    assert f"{label}: {first.wrong} of {first.elements} elements of {first.type} are wrong" in shown.stdout
    (tmp_path / f"{label}.wgsl").write_text(right, encoding="utf-8")
    mended = programs.run([first.repro_path])
    assert mended.returncode == 0, mended.stdout + mended.stderr


def chain(context: wn.MLContext) -> wn.MLGraph:
    """Four operators in one kernel, and a softmax behind it."""
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [4, 16]})
    y = builder.tanh(builder.mul(builder.exp(builder.neg(x, label="minus"), label="grow"), x, label="times"), label="squash")
    return builder.build({"y": builder.softmax(y, 1, label="share")})


def test_a_fault_in_a_fused_chain(context: wn.MLContext, tmp_path: Path, programs: Programs) -> None:
    graph = chain(context)
    name, *_ = graph.kernels
    graph.override(name, wrong_index(graph.kernels[name].wgsl))
    first = debug.diff(graph, {"x": ROWS}, folder=tmp_path).first
    assert first is not None
    assert (first.label, first.op, first.labels) == (name, "neg + exp + mul + tanh", ("minus", "grow", "times", "squash"))
    assert programs.run([first.repro_path]).returncode == 1
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".npz", ".py", ".wgsl"]


def test_a_chain_is_split_to_the_operator_that_is_wrong(
    context: wn.MLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: Programs
) -> None:
    """Where an operator is wrong by itself, here for another reference of it, it is named, and what follows it is not."""
    graph = chain(context)
    wrong = {**OPS, "exp": _twice("exp")}
    monkeypatch.setattr("webnn_wgpu.reference.interpreter.OPS", wrong)
    found = debug.diff(graph, {"x": ROWS}, folder=tmp_path)
    assert [(each.label, each.op) for each in found.wrong] == [("grow", "exp")]
    assert found.first is not None
    program = (tmp_path / "grow.py").read_text(encoding="utf-8")
    assert "builder.exp(v" in program
    monkeypatch.undo()
    shown = programs.run([found.first.repro_path])
    assert (shown.returncode, shown.stderr) == (1, "")


def test_the_program_has_the_settings_that_decide_about_kernels(
    context: wn.MLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: Programs
) -> None:
    settings = {"WEBNN_WGPU_FORCE": "softmax=plain", "WEBNN_WGPU_TARGET": "hardware"}
    for setting, value in settings.items():
        monkeypatch.setenv(setting, value)
    graph = chain(context)
    name, *_ = graph.kernels
    graph.override(name, wrong_index(graph.kernels[name].wgsl))
    first = debug.diff(graph, {"x": ROWS}, folder=tmp_path).first
    assert first is not None
    for setting in settings:
        monkeypatch.delenv(setting)
    program = (tmp_path / f"{first.label}.py").read_text(encoding="utf-8")
    assert all(f'os.environ["{setting}"] = {value!r}\n' in program for setting, value in settings.items())
    assert programs.run([first.repro_path]).returncode == 1


def _twice(name: str) -> Any:
    from dataclasses import replace

    reference = OPS[name].reference
    assert reference is not None
    return replace(OPS[name], reference=lambda arrays, attrs, types: [2 * a for a in reference(arrays, attrs, types)])


def test_earlier_errors_do_not_count_for_later_operators(context: wn.MLContext) -> None:
    graph = network(context)
    for name in ("layer_normalization_3", "transpose_6"):
        graph.override(name, wrong_index(graph.kernels[name].wgsl))
    found = debug.diff(graph, {"x": ROWS})
    assert [each.label for each in found.wrong] == ["layer_normalization_3", "transpose_6"]
    assert found.worst is not None
    assert found.worst.repro_path
    assert found.outputs["probability"].max_abs_error > 0.01
    assert found.of("add_1")[0].labels == ("matmul_0", "add_1", "gelu_2")
    graph.restore()
    assert debug.diff(graph, {"x": ROWS}).first is None


def test_a_copy_to_an_output(context: wn.MLContext, tmp_path: Path, programs: Programs) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [64]})
    y = builder.neg(x)
    graph = builder.build({"y": y, "again": y})
    graph.override("output again", wrong_index(graph.kernels["output again"].wgsl))
    first = debug.diff(graph, {"x": np.arange(64, dtype=np.float32)}, folder=tmp_path).first
    assert first is not None
    assert (first.label, first.op, first.wrong) == ("output again", "copy", 64)
    assert programs.run([first.repro_path]).returncode == 1


def test_a_cache_that_is_updated_in_place(context: wn.MLContext, tmp_path: Path, programs: Programs) -> None:
    graph = decoder(context)
    rng = np.random.default_rng(0)
    given = {"past": rng.random((1, 1, 4, 4)), "new": rng.random((1, 1, 1, 4)), "at": np.int32([2])}
    feeds = {name: np.asarray(array, graph.inputs[name].numpy) for name, array in given.items()}
    found = debug.diff(graph, feeds)
    assert found.first is None
    assert [each.op for each in found.operators] == ["x.cache_update", "reduceSum"]
    name = next(iter(graph.kernels))
    wgsl = graph.kernels[name].wgsl
    graph.override(name, wgsl.replace("fn main(", "fn unused(") + "@compute @workgroup_size(1) fn main() {}")
    first = debug.diff(graph, feeds, folder=tmp_path).first
    assert first is not None
    assert first.op == "x.cache_update"
    assert programs.run([first.repro_path]).returncode == 1


def test_operators_of_several_kernels_and_results_that_nobody_reads(
    context: wn.MLContext, tmp_path: Path, programs: Programs
) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [3, 40]})
    best, _ = builder.ext.top_k(x, 4, label="best")
    graph = builder.build({"y": builder.neg(best)})
    feeds = {"x": np.random.default_rng(1).random((3, 40), np.float32)}
    kernel = graph.kernels.find("best")[-1]
    graph.override(kernel.name, kernel.wgsl.replace("fn main(", "fn unused(") + "@compute @workgroup_size(1) fn main() {}")
    first = debug.diff(graph, feeds, folder=tmp_path).first
    assert first is not None
    assert (first.label, first.op) == ("best", "x.top_k")
    assert programs.run([first.repro_path]).returncode == 1
    graph.restore()
    assert debug.diff(graph, feeds).first is None


def test_values_that_are_written_into_their_part_of_a_joint_one(
    context: wn.MLContext, tmp_path: Path, programs: Programs
) -> None:
    rng = np.random.default_rng(2)
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [8, 16]})
    weights = [builder.constant(rng.standard_normal((16, 8 * n), np.float32)) for n in (1, 2)]
    products = [builder.relu(builder.matmul(x, w, label=f"product{i}")) for i, w in enumerate(weights)]
    part = builder.slice(products[1], [0, 4], [8, 8], label="part")
    outputs = {"y": builder.neg(builder.concat(products, 1, label="joint")), "z": builder.neg(part)}
    graph = builder.build(outputs)
    assert graph.plan is not None
    assert len(graph.plan.parts) == 2
    feeds = {"x": rng.standard_normal((8, 16), np.float32)}
    found = debug.diff(graph, feeds)
    assert found.first is None, str(found)
    assert {each.label for each in found.operators} >= {"product0", "product1", "part"}
    assert debug.diff(graph, feeds, against=context).first is None
    graph.override("product1", wrong_index(graph.kernels["product1"].wgsl))
    found = debug.diff(graph, feeds, folder=tmp_path)
    assert [each.label for each in found.wrong] == ["product1"]
    assert found.first is not None
    assert programs.run([found.first.repro_path]).returncode == 1
    graph.restore()
    graph.override("part", wrong_index(graph.kernels["part"].wgsl))
    found = debug.diff(graph, feeds, folder=tmp_path)
    assert [each.label for each in found.wrong] == ["part"]
    assert found.first is not None
    assert programs.run([found.first.repro_path]).returncode == 1


def test_values_that_are_read_where_they_were_cut(context: wn.MLContext, tmp_path: Path, programs: Programs) -> None:
    rng = np.random.default_rng(3)
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [2, 128]})
    rows = builder.split(builder.softmax(x, 1, label="whole"), 2, label="rows")
    graph = builder.build({"y": builder.softmax(rows[1], 1, label="second"), "z": builder.neg(rows[0], label="first")})
    assert graph.plan is not None
    assert not [d.label for d in graph.plan.dispatches if d.label.startswith("rows")]
    feeds = {"x": rng.standard_normal((2, 128), np.float32)}
    others: tuple[Any, ...] = ("reference", context)
    for other in others:
        found = debug.diff(graph, feeds, against=other)
        assert found.first is None, str(found)
        assert {each.label for each in found.operators} >= {"whole", "second", "first"}
    second = context.compute(graph, feeds)["z"]
    (value,) = debug.values(graph, feeds).of("first")
    assert [value.min, value.max] == [second.min(), second.max()]
    right = graph.kernels["second"].wgsl
    graph.override("second", wrong_index(right))
    found = debug.diff(graph, feeds, folder=tmp_path)
    assert [each.label for each in found.wrong] == ["second"]
    assert found.first is not None
    assert programs.run([found.first.repro_path]).returncode == 1
    (tmp_path / found.first.repro_path.replace(".py", ".wgsl")).write_text(right, encoding="utf-8")
    assert programs.run([found.first.repro_path]).returncode == 0


OWN = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&x)) { y[id.x] = x[id.x] * x[id.x]; }
}"""


def graph_of_own(context: wn.MLContext) -> wn.MLGraph:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [64]})
    return builder.build(
        {"y": builder.wgsl_op(OWN, [x], output_shapes=[64], output_types="float32", workgroups=1, label="mine")}
    )


@pytest.mark.parametrize("reference", [None, np.square, np.negative])
def test_a_kernel_of_the_programs_own(context: wn.MLContext, tmp_path: Path, reference: Any, programs: Programs) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [64]})
    kind: Any = {"output_shapes": [64], "output_types": "float32", "workgroups": 1}
    own = builder.wgsl_op(OWN, [x], **kind, reference=reference, label="mine")
    graph = builder.build({"y": builder.neg(own, label="minus")})
    found = debug.diff(graph, {"x": np.arange(64, dtype=np.float32)}, folder=tmp_path)
    if reference is None:
        assert (found.first, found.uncompared, dict(found.outputs)) == (None, ("mine",), {})
        assert "not compared: mine" in found.summary()
        assert debug.diff(graph_of_own(context), {"x": np.ones(64, np.float32)}, folder=tmp_path).summary() == (
            "0 operators against the numpy reference: nothing to compare; not compared: mine"
        )
    elif reference is np.square:
        assert found.first is None
        assert [each.label for each in found.operators] == ["mine", "minus"]
    else:
        assert found.first is not None
        assert (found.first.label, found.first.wrong) == ("mine", 63)
        assert programs.run([found.first.repro_path]).returncode == 1


def test_of_several_outputs_the_worst_is_named(context: wn.MLContext, tmp_path: Path) -> None:
    source = OWN.replace("@compute", "@group(0) @binding(2) var<storage, read_write> z: array<f32>;\n@compute").replace(
        "{ y[id.x]", "{ z[id.x] = -x[id.x]; y[id.x]"
    )
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [64]})
    kind: Any = {"output_shapes": [[64], [64]], "output_types": ["float32", "float32"], "workgroups": 1}
    y, z = builder.wgsl_op(source, [x], **kind, reference=lambda x: (x * x, x), label="mine")
    found = debug.diff(builder.build({"y": y, "z": z}), {"x": np.arange(64, dtype=np.float32)}, folder=tmp_path)
    assert found.first is not None
    assert (found.first.output, found.first.num_outputs, found.first.wrong) == (1, 2, 63)
    assert str(found.first).startswith("mine (wgslOp), kernel mine, output 1, the worst of 2:\n63 of 64 elements")


def test_against_a_context_and_another_graph(
    context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, programs: Programs
) -> None:
    graph = network(context)
    with wn.ml.create_context(backend="reference") as reference:
        assert debug.diff(graph, {"x": ROWS}, against=reference).first is None
        assert debug.diff(network(reference), {"x": ROWS}, against=context).first is None
    monkeypatch.setenv("WEBNN_WGPU_FORCE", "matmul=plain,softmax=plain")
    other = network(context)
    monkeypatch.delenv("WEBNN_WGPU_FORCE")
    assert other.kernels["softmax_4"].spec != graph.kernels["softmax_4"].spec
    found = debug.diff(graph, {"x": ROWS}, against=other)
    assert (found.first, len(found.operators)) == (None, 5)
    other.override("softmax_4", wrong_index(other.kernels["softmax_4"].wgsl))
    found = debug.diff(graph, {"x": ROWS}, against=other, folder=tmp_path)
    assert [each.label for each in found.wrong] == ["softmax_4"]
    assert found.first is not None
    assert programs.run([found.first.repro_path]).returncode == 1
    with pytest.raises(wn.MLTypeError, match="diff: the other graph must be of the same operators"):
        debug.diff(graph, {"x": ROWS}, against=negation(context))


def test_what_is_refused(anywhere: wn.MLContext) -> None:
    graph = negation(anywhere)
    with pytest.raises(wn.MLTypeError, match=r"diff: .*'x'"):
        debug.diff(graph, {})
    with pytest.raises(wn.MLTypeError, match=r"diff: `against` must name an oracle; got 'cuda'; allowed: .ref"):
        debug.diff(graph, {"x": X}, against="cuda")
    with pytest.raises(wn.NotSupportedError, match="diff: a graph is no ONNX model"):
        debug.diff(graph, {"x": X}, against="onnxruntime")
    graph.destroy()
    with pytest.raises(wn.InvalidStateError, match="diff: the graph was destroyed"):
        debug.diff(graph, {"x": X})


def test_what_is_printed(context: wn.MLContext, tmp_path: Path) -> None:
    graph = negation(context)
    feeds = {"x": X}
    assert str(debug.diff(graph, feeds)).splitlines() == [
        "1 operator against the numpy reference: all agree",
        "output y, end to end: off by 0, 0 ULP",
    ]
    graph.override("neg_0", graph.kernels["neg_0"].wgsl.replace("-(x0)", "x0"))
    found = debug.diff(graph, feeds, folder=tmp_path)
    verdict = "1 operator against the numpy reference: 1 wrong, the first is neg_0 (neg)"
    assert found.summary() == f"{verdict}; repro in {tmp_path}"
    assert str(found).splitlines() == [
        verdict,
        "",
        "neg_0 (neg), kernel neg_0, overridden:",
        "3 of 3 elements of float32[3] are wrong: off by 6 at most (4 on average), 2.139095e+09 ULP",
        "  [2]: 3, expected -3 within 0",
        "  [1]: -2, expected 2 within 0",
        "  [0]: 1, expected -1 within 0",
        "  |@@@|",
        f"  repro: {tmp_path / 'neg_0.py'}",
        "",
        "operator  kind  type        wrong  max error           ULP  of allowed",
        "neg_0     neg   float32[3]      3          6  2.139095e+09         inf",
        "output y, end to end: off by 6, 2.139095e+09 ULP",
    ]
    html = found._repr_html_()
    assert "neg_0 (neg), kernel neg_0, overridden:" in html
    assert html.count("<rect") == 3


def test_the_graph_runs_as_before_afterwards(anywhere: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = negation(anywhere)

    def fail(*_args: Any, **_options: Any) -> None:
        raise RuntimeError("on the way")

    monkeypatch.setattr(judging, "bounds", fail)
    with pytest.raises(RuntimeError, match="on the way"):
        debug.diff(graph, {"x": X})
    monkeypatch.undo()
    np.testing.assert_array_equal(anywhere.compute(graph, {"x": X})["y"], -X)
    assert debug.diff(graph, {"x": X}).first is None
