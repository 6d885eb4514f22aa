"""`MLGraph.override` and `restore`."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.api.graphs import X, negation, pair
from tests.runtime.graphs import ROWS, network, outputs, source

if TYPE_CHECKING:
    from pathlib import Path

BROKEN = {
    "unknown name": (
        "fn main() {\n    let x = foo(3);\n}",
        ":2:13: no definition in scope for identifier: `foo` in 'let x = foo(3);'",
    ),
    "syntax": ("fn main( {", ":1:10: expected identifier, found \"{\" in 'fn main( {'"),
    "function": (
        "@group(0) @binding(0) var<storage, read> x: array<f32>;\n@compute @workgroup_size(8)\nfn main() { x[0] = 2.0; }",
        ":3:13: Shader validation error: Entry point main at Compute is invalid; writing to this location is not permitted; "
        "The pointer [1] doesn't relate to a valid destination for a store in 'fn main() { x[0] = 2.0; }'",
    ),
    "binding": (
        "@group(0) @binding(9) var<storage> a: array<f32>;\n@compute @workgroup_size(8)\nfn main() { _ = a[0]; }",
        ": Error matching shader requirements against the pipeline; Shader global ResourceBinding { group: 0, binding: 9 } is "
        "not available in the pipeline layout; Binding is missing from the pipeline layout",
    ),
    "entry point": (
        "@compute @workgroup_size(8)\nfn other() { }",
        ": Error matching shader requirements against the pipeline; Unable to find entry point 'main'",
    ),
}


def doubling(graph: wn.MLGraph) -> str:
    """The source of a graph's negation, made to double instead."""
    wgsl = graph.kernels["neg_0"].wgsl
    assert wgsl.count("-(x0)") == 1
    return wgsl.replace("-(x0)", "2.0 * x0")


def test_later_runs_use_the_source(context: wn.MLContext) -> None:
    graph = negation(context)
    x, y = pair(context)

    def results() -> list[np.ndarray]:
        context.dispatch(graph, {"x": x}, {"y": y})
        return [context.compute(graph, {"x": X})["y"], context.read_tensor(y)]

    assert all((r == -X).all() for r in results())
    wgsl = doubling(graph)
    kernel = graph.override("neg_0", wgsl)
    assert (kernel.overridden, kernel.reason, kernel.wgsl) == (True, "overridden by <wgsl>", wgsl)
    assert graph.kernels["neg_0"] is kernel
    assert all((r == 2 * X).all() for r in results())
    graph.restore("neg_0")
    assert not graph.kernels["neg_0"].overridden
    assert all((r == -X).all() for r in results())


def test_other_graphs_with_the_same_kernel_keep_theirs(context: wn.MLContext) -> None:
    graph, other = negation(context), negation(context)
    graph.override("neg_0", doubling(graph))
    np.testing.assert_array_equal(context.compute(other, {"x": X})["y"], -X)
    np.testing.assert_array_equal(context.compute(negation(context), {"x": X})["y"], -X)


@pytest.mark.parametrize("recorder", ["plain", "raw"])
def test_a_kernel_in_the_middle_of_a_network(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, recorder: str) -> None:
    monkeypatch.setenv("WEBNN_WGPU_RECORDER", recorder)
    graph = network(context)
    expected = context.compute(graph, {"x": ROWS})
    for name, kernel in graph.kernels.items():
        graph.override(name, kernel.wgsl)
    assert all(kernel.overridden for kernel in graph.kernels.values())
    for name, array in context.compute(graph, {"x": ROWS}).items():
        np.testing.assert_array_equal(array, expected[name])
    broken = graph.kernels["softmax_4"].wgsl.replace("fn main(", "fn unused(") + "@compute @workgroup_size(1) fn main() {}"
    graph.override("softmax_4", broken)
    made = outputs(context)
    context.dispatch(graph, {"x": source(context)}, made)
    assert not context.read_tensor(made["probability"]).any()
    np.testing.assert_array_equal(context.read_tensor(made["columns"]), expected["columns"])
    graph.restore()
    assert not any(kernel.overridden for kernel in graph.kernels.values())
    np.testing.assert_array_equal(context.compute(graph, {"x": ROWS})["probability"], expected["probability"])


def test_runs_of_other_threads_use_one_source_or_the_other(context: wn.MLContext) -> None:
    graph = negation(context)
    wgsl = doubling(graph)
    done = threading.Event()

    def run() -> set[float]:
        seen: set[float] = set()
        while not done.is_set():
            (factor,) = set((context.compute(graph, {"x": X})["y"] / X).tolist())
            seen.add(factor)
        return seen

    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(run) for _ in range(2)]
        try:
            for _ in range(20):
                graph.override("neg_0", wgsl)
                graph.restore()
        finally:
            done.set()
    assert all(r.result() <= {-1.0, 2.0} for r in runs)


def test_profiles_tell(context: wn.MLContext) -> None:
    if "timestamp-query" not in context.caps.features:
        pytest.skip(f"{context.description} takes no timestamps")
    graph = negation(context)
    graph.profile({"x": X})
    graph.override("neg_0", doubling(graph))
    (kernel,) = graph.profile({"x": X}).kernels
    assert kernel.reason == "overridden by <wgsl>"
    graph.restore()
    (kernel,) = graph.profile({"x": X}).kernels
    assert "overridden" not in kernel.reason


def test_a_file_and_the_label_of_an_operator(context: wn.MLContext, tmp_path: Path) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [3]})
    graph = builder.build({"y": builder.relu(builder.neg(x), label="front")})
    (name,) = graph.kernels
    assert (name, graph.kernels[name].labels) == ("front", ("neg_0", "front"))
    file = tmp_path / "own.wgsl"
    file.write_text(graph.kernels[name].wgsl.replace("-(x0)", "3.0 * x0"), encoding="utf-8")
    for given in (file, str(file)):
        assert graph.override("neg_0", given).reason == f"overridden by {file}"
        np.testing.assert_array_equal(context.compute(graph, {"x": X})["y"], np.maximum(3 * X, 0))
        graph.restore("neg_0")
        np.testing.assert_array_equal(context.compute(graph, {"x": X})["y"], np.maximum(-X, 0))


@pytest.mark.parametrize("what", BROKEN)
def test_what_does_not_compile_is_placed_and_changes_nothing(context: wn.MLContext, tmp_path: Path, what: str) -> None:
    wgsl, message = BROKEN[what]
    graph = negation(context)
    graph.override("neg_0", doubling(graph))
    file = tmp_path / "own.wgsl"
    file.write_text(wgsl, encoding="utf-8")
    for given, name in ((file, str(file)), (wgsl, "<wgsl>")):
        with pytest.raises(wn.OperationError) as raised:
            graph.override("neg_0", given)
        assert str(raised.value) == (
            f"override('neg_0'): the source does not compile: {name}{message}; "
            f"allowed: bindings and uniforms of {graph.kernels['neg_0'].spec}, entry point main. "
            f"The operator was made at {negation.__code__.co_filename}:{negation.__code__.co_firstlineno + 3}"
        )
    assert graph.kernels["neg_0"].reason == "overridden by <wgsl>"
    np.testing.assert_array_equal(context.compute(graph, {"x": X})["y"], 2 * X)


def test_what_is_refused(context: wn.MLContext, tmp_path: Path) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [2, 3]})
    first = builder.transpose(x, label="same")
    graph = builder.build({"y": builder.softmax(first, 1)})
    with pytest.raises(wn.MLTypeError, match=r"override: no kernel has this name .*; got 'nobody'; allowed: 'same'"):
        graph.override("nobody", "{}")
    with pytest.raises(wn.MLTypeError, match=r"restore: no kernel has this name .*; got 'nobody'"):
        graph.restore("nobody")
    with pytest.raises(FileNotFoundError):
        graph.override("same", tmp_path / "missing.wgsl")
    graph.destroy()
    for call in (lambda: graph.override("same", "{}"), graph.restore):
        with pytest.raises(wn.InvalidStateError, match="the graph was destroyed"):
            call()


def test_a_source_that_wants_larger_buffers_is_refused(context: wn.MLContext) -> None:
    graph = negation(context)
    large = "@group(0) @binding(0) var<storage, read> x: array<f32, 4000>;\n"
    with pytest.raises(wn.OperationError, match=r"^override\('neg_0'\): the kernel does not fit its buffers; got .*16000"):
        graph.override("neg_0", large + "@compute @workgroup_size(1)\nfn main() { _ = x[0]; }")
    np.testing.assert_array_equal(context.compute(graph, {"x": X})["y"], -X)


def test_a_kernel_of_the_programs_own(context: wn.MLContext) -> None:
    builder = context.create_graph_builder()
    x = builder.input("x", [3], "float32")
    wgsl = (
        "@group(0) @binding(0) var<storage, read> x: array<f32>;\n"
        "@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n"
        "@compute @workgroup_size(3) fn main(@builtin(local_invocation_index) i: u32) { y[i] = x[i] + 1.0; }\n"
    )
    added = builder.wgsl_op(wgsl, [x], output_shapes=[3], output_types="float32", workgroups=1, label="mine")
    graph = builder.build({"y": builder.neg(added)})
    mine = graph.kernels["mine"]
    assert (mine.wgsl, mine.template, mine.workgroup_size) == (wgsl, "", (3, 1, 1))
    graph.override("mine", wgsl.replace("1.0", "5.0"))
    np.testing.assert_array_equal(context.compute(graph, {"x": X})["y"], -(X + 5))


def test_runs_in_steps_are_finished_first(context: wn.MLContext) -> None:
    graph = network(context)
    wgsl = graph.kernels["softmax_4"].wgsl
    steps = context.dispatch_steps(graph, {"x": source(context)}, outputs(context), max_ms_per_submit=1e-6)
    next(steps)
    for call in (lambda: graph.override("softmax_4", wgsl), graph.restore):
        with pytest.raises(wn.InvalidStateError, match="a run in steps has not finished"):
            call()
    steps.close()
    assert graph.override("softmax_4", wgsl).overridden


def test_a_label_of_several_kernels_is_refused(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [3, 4]})
    graph = builder.build({"y": builder.ext.top_k(x, 2, label="best")[0]})
    names = list(graph.kernels)
    assert len(names) > 1
    with pytest.raises(wn.MLTypeError) as raised:
        graph.override("best", "{}")
    assert str(raised.value) == (
        "override: several kernels compute the operator of this label; got 'best'; allowed: " + ", ".join(map(repr, names))
    )
