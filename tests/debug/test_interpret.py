"""`debug.interpret`: what it runs, what it finds, where it stops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.ops.products import in_tiles
from tests.support import op_graph
from webnn_wgpu import debug
from webnn_wgpu.accuracy.bounds import bounds
from webnn_wgpu.kernels.templates import shader_root
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from pathlib import Path

    from webnn_wgpu.debug import Interpretation, Stop

HEADER = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> shared_x: array<f32, 8>;
@compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
"""
X = np.arange(16, dtype=np.float32)


def interpreted(body: str, x: Any = X, y: Any = 64, grid: int = 2, **options: Any) -> Interpretation:
    return debug.interpret(HEADER + body + "\n}", [x, y], grid=grid, **options)


def line_of(source: str, text: str) -> int:
    (line,) = [i for i, found in enumerate(source.splitlines(), 1) if text in found]
    return line


# what is found --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def product(context: wn.MLContext) -> Any:
    """A graph whose one kernel is the tiled matmul, over workgroup memory, in the same tile on all devices."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEBNN_WGPU_FORCE", "matmul=tiled")
        in_tiles(patch, (32, 32))
        b = wn.MLGraphBuilder(context)
        x, w = (b.input(n, {"dataType": "float32", "shape": s}) for n, s in (("x", [17, 40]), ("w", [40, 24])))
        with b.build({"y": b.matmul(x, w, label="product")}) as graph:
            yield graph


def feeds() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"x": rng.standard_normal((17, 40), np.float32), "w": rng.standard_normal((40, 24), np.float32)}


def assert_interpreted_right(found: Any, product: wn.MLGraph, context: wn.MLContext) -> None:
    """Compare an interpreted product with the device's. Drivers of GPUs contract its multiplications and additions."""
    computed = context.compute(product, feeds())["y"]
    if context.caps.is_software:
        np.testing.assert_array_equal(found, computed)
        return
    graph = op_graph("matmul", list(feeds().values()))
    (expected,) = interpret(graph, dict(zip("01", feeds().values(), strict=True))).values()
    (bound,) = bounds(graph, graph.nodes[0], list(feeds().values()), [expected]) or ()
    for result in (found, computed):
        assert (np.abs(result - expected) <= bound).all()


def faulty(graph: wn.MLGraph, text: str, replacement: str, at: int = 0) -> tuple[Interpretation, list[int]]:
    """Interpret the product with one of the lines that hold a text changed; return what is found, and those lines."""
    source = graph.kernels["product"].wgsl.splitlines()
    lines = [i for i, line in enumerate(source, 1) if text in line]
    source[lines[at] - 1] = source[lines[at] - 1].replace(text, replacement)
    graph.override("product", "\n".join(source))
    try:
        return debug.interpret(graph, feeds()), lines
    finally:
        graph.restore()


def test_nothing_is_wrong_with_the_tiled_product(product: wn.MLGraph, context: wn.MLContext) -> None:
    found = debug.interpret(product, feeds())
    assert (found.findings, found.kernels, found.complete) == ((), ("product",), True)
    assert found.invocations == 64
    assert_interpreted_right(found.outputs["y"], product, context)


def test_a_planted_read_out_of_bounds(product: wn.MLGraph) -> None:
    found, lines = faulty(product, "slices_b[0][0u][3][0][column]", "slices_b[0][0u][3][0][column + 3u]")
    (finding,) = found.findings
    assert (finding.kind, finding.line, finding.variable, finding.kernel) == (
        "out of bounds",
        lines[0],
        "slices_b[...][...][...][...]",
        "product",
    )
    assert finding.message.endswith("reads slices_b[...][...][...][...][8]; it has 8 elements (array<vec4<f32>, 8>)")
    assert finding.invocations[:4] == ((5, 0, 0), (6, 0, 0), (7, 0, 0), (13, 0, 0))
    assert finding.text == "let b1_0 = vec4<f32>(slices_b[0][0u][3][0][column + 3u]);"
    # A load past the end of a buffer: the line is that of the access, the calls lead there.
    found, lines = faulty(product, "fetch_b(b_from0, 0u", "fetch_b(Column(b_from0.first, b_from0.own + 940u), 0u")
    (finding,) = found.findings
    assert (finding.kind, finding.variable, finding.calls[0]) == ("out of bounds", "b", lines[0])
    assert "b[" in finding.text


def test_the_place_in_the_template(product: wn.MLGraph) -> None:
    # A factor that nobody wrote.
    found = debug.interpret(product.kernels["product"], [np.ones(680, np.float32), 3840])
    (finding,) = [f for f in found.findings if f.kind == "uninitialized"]
    assert finding.template.startswith("lib/") or finding.template.startswith("ops/")
    file, line = finding.template.split(":")
    assert (shader_root() / file).read_text(encoding="utf-8").splitlines()[int(line) - 1].strip() != ""
    assert f"({finding.template})" in str(found)


def test_a_planted_race(product: wn.MLGraph) -> None:
    found, lines = faulty(product, "b_place0 % 8u] = kept_b(0u", "b_place0 % 8u & ~1u] = kept_b(0u")
    race = found.findings[0]
    assert (race.kind, race.line, race.other_line, race.variable) == ("race", lines[0], lines[0], "slices_b")
    assert {tuple(np.subtract(a, b)) for a, b in zip(race.invocations, race.others, strict=True)} == {(-1, 0, 0)}


@pytest.mark.parametrize("barrier", [0, 1, 2])
def test_a_planted_missing_barrier(product: wn.MLGraph, barrier: int) -> None:
    source = product.kernels["product"].wgsl.splitlines()
    reads = {i for i, line in enumerate(source, 1) if "(slices_" in line}
    writes = {i for i, line in enumerate(source, 1) if line.strip().startswith("slices_")}
    found, barriers = faulty(product, "workgroupBarrier();", "", barrier)
    assert {f.kind for f in found.findings} == {"race"}
    pairs = {(f.other_line, f.line) for f in found.findings}
    assert all((a in writes and b in reads) or (a in reads and b in writes) for a, b in pairs)
    assert "no workgroupBarrier between" in found.findings[0].message
    if barrier < 2:
        # Between writing a slice and reading it. Behind the last one the loop begins anew.
        assert any(a in writes and a < barriers[barrier] < b for a, b in pairs)


def test_accesses_out_of_bounds() -> None:
    found = interpreted("y[id.x + 1u] = 1.0;")
    (finding,) = found.findings
    assert finding.message == "invocation (15, 0, 0) writes y[16]; it has 16 elements (array<f32>)"
    assert str(found).splitlines()[1] == f"out of bounds at line 5: {finding.message}"
    # Negative ones, those of an invocation's own arrays, and of vectors.
    found = interpreted("y[id.x] = x[i32(lane) - 1];")
    assert found.findings[0].message == "invocation (0, 0, 0) reads x[-1]; it has 16 elements (array<f32>)"
    found = interpreted(
        "var own = array<f32, 3>(1, 2, 3); own[lane % 4u] = 5.0; y[id.x] = own[lane % 3u] + vec3f(1)[lane % 4u];"
    )
    assert [(f.variable, f.message.split(";")[0]) for f in found.findings] == [
        ("own", "invocation (3, 0, 0) writes own[3]"),
        ("the value", "invocation (3, 0, 0) reads the value[3]"),
    ]
    assert found.outputs["y"][2] == 6


def test_what_idle_invocations_read_is_harmless() -> None:
    found = interpreted("let v = x[id.x]; if (id.x < 10u) { y[id.x] = v; }", np.float32(range(10)), np.zeros(10, np.float32))
    assert found.findings == ()
    assert [(f.kind, f.harmless) for f in found.harmless] == [("out of bounds", True)]
    assert "1 harmless read" in found.summary()
    assert found._repr_html_().startswith("<")
    # Until it is written.
    found = interpreted("let v = x[id.x]; y[id.x] = v;", np.float32(range(10)))
    assert [f.harmless for f in found.findings] == [False]
    # Each read for itself.
    found = interpreted(
        "let v = x[id.x];\n let w = x[id.x + 1u];\n y[id.x % 8u] = select(w, w + v, id.x < 8u);", np.float32(range(10))
    )
    assert [f.line for f in found.findings if f.kind == "out of bounds"] == [6]
    assert [f.line for f in found.harmless] == [5]


def test_reads_of_what_was_never_written() -> None:
    found = interpreted("y[id.x] += 1.0;")
    (finding,) = found.findings
    assert (finding.kind, finding.variable) == ("uninitialized", "y")
    assert finding.message == "invocation (0, 0, 0) reads y[0], which was never written"
    assert interpreted("y[id.x] += 1.0;", y=np.zeros(16, np.float32)).findings == ()
    found = interpreted("shared_x[lane / 2u * 2u] = x[id.x]; workgroupBarrier(); y[id.x] = shared_x[lane];")
    assert [(f.kind, f.variable) for f in found.findings] == [("race", "shared_x"), ("uninitialized", "shared_x")]
    assert "invocation (1, 0, 0) reads shared_x[1], which was never written: 0 in WGSL" in found.findings[1].message


def test_what_lies_behind_the_last_element_of_an_input(context: wn.MLContext) -> None:
    b = wn.MLGraphBuilder(context)
    with b.build({"y": b.neg(b.input("x", [3], "float32"))}) as graph:
        given = {"x": np.ones(3, np.float32)}
        found = debug.interpret(graph, given)
        # Whole quads are read, and what came of the fourth element is nobody's.
        assert (found.findings, [f.variable for f in found.harmless]) == ((), ["input0"])
        wgsl = graph.kernels["neg_0"].wgsl
        graph.override("neg_0", wgsl.replace("(w.x, w.y, w.z, w.w)", "(w.y, w.z, w.w, w.x)", 1))
        (finding,) = debug.interpret(graph, given).findings
        assert (finding.kind, finding.variable) == ("uninitialized", "input0")


def test_races() -> None:
    found = interpreted("shared_x[lane] = x[id.x];\n y[id.x] = shared_x[7u - lane];")
    (finding,) = found.findings
    assert (finding.kind, finding.line, finding.other_line) == ("race", 6, 5)
    assert finding.message == (
        "invocation (0, 0, 0) reads shared_x[7], which invocation (7, 0, 0) wrote at line 5, no workgroupBarrier between"
    )
    assert interpreted("shared_x[lane] = x[id.x]; workgroupBarrier(); y[id.x] = shared_x[7u - lane];").findings == ()
    # A barrier for one kind of memory orders no accesses to the other.
    found = interpreted("shared_x[lane] = x[id.x]; storageBarrier(); y[id.x] = shared_x[7u - lane];")
    assert [f.kind for f in found.findings] == ["race"]
    # No barrier waits for another workgroup, and storage outlives the wave.
    found = interpreted("y[lane] = x[id.x];", y=np.zeros(8, np.float32))
    assert "in another workgroup, which no barrier waits for" in found.findings[0].message
    found = interpreted("y[id.x] = 1.0; storageBarrier(); y[id.x] = y[id.x / 8u * 8u + 7u - lane];")
    assert [f.kind for f in found.findings] == ["race"]
    assert (
        interpreted(
            "y[id.x] = 1.0; storageBarrier(); let v = y[id.x / 8u * 8u + 7u - lane]; storageBarrier(); y[id.x] = v;"
        ).findings
        == ()
    )
    # Two invocations read a word at different lines. The first of them races with the write, at its own line.
    body = "shared_x[lane] = x[id.x]; workgroupBarrier();\n var add = 0.0;\n if (lane > 0u) { add = shared_x[lane - 1u]; }\n"
    (finding,) = interpreted(body + " shared_x[lane] += add;").findings
    assert finding.message == (
        "invocation (0, 0, 0) writes shared_x[0], which invocation (1, 0, 0) read at line 7, no workgroupBarrier between"
    )
    assert "writes shared_x[0], which invocation (1, 0, 0) read at the same line, no workgroupBarrier between" in (
        interpreted("shared_x[lane] = 1.0; workgroupBarrier();\n shared_x[lane] += shared_x[lane ^ 1u];").findings[0].message
    )
    # All write the same: a race nevertheless. One alone does: none.
    assert [f.kind for f in interpreted("shared_x[0] = 1.0;").findings] == ["race"]
    assert interpreted("if (lane == 0u) { shared_x[0] = 1.0; } workgroupBarrier(); y[id.x] = shared_x[0];").findings == ()


def test_races_of_more_workgroups_than_run_side_by_side() -> None:
    found = interpreted("y[id.x % 8000u] = 1.0;", y=32000, grid=1001)
    assert [f.invocations[0] for f in found.findings] == [(8000, 0, 0)]
    assert found.findings[0].others[0] == (0, 0, 0)


def test_atomics_are_no_races() -> None:
    source = """
    @group(0) @binding(0) var<storage, read_write> total: atomic<u32>;
    var<workgroup> count: atomic<u32>;
    @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
        atomicAdd(&count, i);
        workgroupBarrier();
        if (i == 0u) { atomicAdd(&total, atomicLoad(&count)); }
    }"""
    found = debug.interpret(source, [np.zeros(1, np.uint32)], grid=300)
    assert found.outputs["total"].tolist() == [300 * 2016]
    assert [f.variable for f in found.findings] == ["count"]
    assert found.findings[0].kind == "uninitialized"


def test_barriers_that_some_invocations_do_not_reach() -> None:
    found = interpreted("if (lane < 5u) {\n workgroupBarrier();\n }\n y[id.x] = 1.0;")
    (finding,) = found.findings
    assert (finding.kind, finding.line, finding.count) == ("barrier", 6, 2)
    # The numbers are those of one workgroup. The count is that of the workgroups with the fault.
    assert finding.message == (
        "3 of 8 invocations of a workgroup do not reach this workgroupBarrier, invocation (5, 0, 0) among them"
    )
    assert [f.kind for f in interpreted("if (id.x == 3u) { return; } workgroupBarrier();").findings] == ["barrier"]
    assert [f.kind for f in interpreted("for (var i = 0u; i < lane; i++) { workgroupBarrier(); }").findings] == ["barrier"]
    # All invocations of one workgroup, and none of the other.
    assert interpreted("if (id.x < 8u) { workgroupBarrier(); }").findings == ()
    # Of a subgroup all are needed too, but no more.
    assert interpreted("if (lane < 4u) { subgroupBarrier(); }", subgroup_size=4).findings == ()
    assert [f.kind for f in interpreted("if (lane < 3u) { subgroupBarrier(); }", subgroup_size=4).findings] == ["barrier"]


# what runs ------------------------------------------------------------------------------------------------------------


def test_graphs(context: wn.MLContext) -> None:
    b = wn.MLGraphBuilder(context)
    x = b.input("x", {"dataType": "float32", "shape": [4, 12]})
    weights = b.constant(np.random.default_rng(1).standard_normal((12, 12)).astype(np.float32))
    y = b.softmax(b.matmul(b.relu(x), weights, label="product"), axis=1, label="scores")
    given = {"x": np.random.default_rng(2).standard_normal((4, 12)).astype(np.float32)}
    with b.build({"y": b.add(y, y), "z": b.transpose(x)}) as graph:
        wanted = context.compute(graph, given)
        found = debug.interpret(graph, given)
        assert found.findings == ()
        assert found.kernels == tuple(graph.kernels)
        np.testing.assert_array_equal(found.outputs["z"], wanted["z"])
        np.testing.assert_allclose(found.outputs["y"], wanted["y"], rtol=1e-6)
        # One kernel alone finds what those before it left on the device.
        kernel = graph.kernels.one("scores", "interpret")
        alone = debug.interpret(graph, given, kernel="scores")
        assert alone.kernels == (kernel.name,)
        assert alone.findings == ()
        (written,) = [b.name for b in kernel.bindings if b.access == "write"]
        np.testing.assert_allclose(
            alone.outputs[written][:48].reshape(4, 12).sum(axis=1), wanted["y"].sum(axis=1) / 2, rtol=1e-6
        )
        with pytest.raises(wn.MLTypeError, match="no kernel has this name"):
            debug.interpret(graph, given, kernel="nobody")
        with pytest.raises(wn.MLTypeError, match="'x'"):
            debug.interpret(graph, {})


def test_a_kernel_of_a_graph(product: wn.MLGraph, context: wn.MLContext) -> None:
    with pytest.raises(KeyError, match="no kernel is called 'prodct'; there are product"):
        product.kernels["prodct"]
    kernel, given = product.kernels["product"], feeds()
    a, b, *_ = [binding.name for binding in kernel.bindings]
    found = debug.interpret(kernel, {a: given["x"], b: given["w"]})
    assert found.findings == ()
    (result,) = found.outputs.values()
    assert_interpreted_right(result[: 17 * 24].reshape(17, 24), product, context)
    with pytest.raises(wn.MLTypeError, match=r"a buffer that the kernel reads is missing; got b"):
        debug.interpret(kernel, {a: given["x"]})
    generic = (
        "@group(0) @binding(0) var<storage, read_write> y: array<T>;\n@compute @workgroup_size(1) fn main() { y[0] = T(1); }"
    )
    with pytest.raises(wn.MLTypeError, match=r"must name variables of the kernel; got out; allowed: y"):
        debug.interpret(generic, {"out": np.zeros(1, np.float32)}, grid=1)
    with pytest.raises(wn.MLTypeError, match=r"must name bindings of the kernel; got c; allowed: a, b"):
        debug.interpret(kernel, {"c": 4})
    with pytest.raises(
        wn.MLTypeError, match=rf"interpret\('product'\): .* got {a}: int32; allowed: float32. np.float32\({a}\)"
    ):
        debug.interpret(kernel, {a: given["x"].astype(np.int32), b: given["w"]})


def test_chosen_workgroups() -> None:
    found = interpreted("y[id.x] = x[id.x];", workgroups=[(1, 0, 0)])
    assert found.outputs["y"].tolist() == [0] * 8 + [*range(8, 16)]
    assert found.invocations == 8


def test_files_and_constants(tmp_path: Path) -> None:
    file = tmp_path / "scaled.wgsl"
    file.write_text("override FACTOR = 2.0;\n" + HEADER + "y[id.x] = FACTOR * x[id.x] + BIAS; }", encoding="utf-8")
    found = debug.interpret(file, {"x": X, "y": 64}, grid=(2, 1, 1), constants={"FACTOR": 3.0, "BIAS": 1})
    np.testing.assert_array_equal(found.outputs["y"], 3 * X + 1)
    assert found.kernels == ("scaled.wgsl",)


def test_arguments() -> None:
    for words, call in (
        ("must be given for WGSL", lambda: debug.interpret(HEADER + "}", [X, X])),
        ("every variable of the kernel; got none for y", lambda: debug.interpret(HEADER + "}", [X], grid=1)),
        (
            r"must not exceed the number of bindings; got 3 values; allowed: at most 2, for x, y",
            lambda: debug.interpret(HEADER + "}", [X, X, X], grid=1),
        ),
        (
            r"feeds must have data types of WGSL; got x: float64. np.float32\(x\) converts it",
            lambda: interpreted("", X.astype(np.float64)),
        ),
        ("got y: float64", lambda: debug.interpret(HEADER + "}", {"y": [1.5], "x": X}, grid=1)),
        (
            r"the data type must be that of the buffer; got x: int32; allowed: float32, for array<f32>. "
            r"np.float32\(x\) converts the numbers. x.view\(np.float32\) keeps the bits",
            lambda: interpreted("", X.astype(np.int32)),
        ),
        ("must get an array of numbers; got y: object", lambda: debug.interpret(HEADER + "}", {"y": None, "x": X}, grid=1)),
        ("got y: int64; allowed: float32", lambda: debug.interpret(HEADER + "}", {"y": [1, 2], "x": X}, grid=1)),
        ("is called SIZE, at line 5, .*`constants=` defines constants of a source", lambda: interpreted("y[0] = SIZE;")),
        ("breakpoints and invocation need on_stop; got on_stop=None", lambda: interpreted("", breakpoints=[5])),
        ("more invocations than are to be interpreted", lambda: interpreted("", grid=1000, max_invocations=7999)),
        ("a breakpoint must be a line of the kernel", lambda: interpreted("", breakpoints=[99], on_stop=print)),
    ):
        with pytest.raises(wn.MLTypeError, match=words):
            call()


@pytest.mark.parametrize(
    ("declared", "data_types"),
    [
        ("array<u32>", "uint32 int32 uint8 int8 float16 uint16"),
        ("array<atomic<i32>, 4>", "uint32 int32 uint8 int8 float16 uint16"),
        ("array<vec2u>", "uint32 int32 uint8 int8 float16 uint16 int64 uint64"),
        ("array<vec4<f32>>", "float32"),
        ("f32", "float32"),
    ],
)
def test_the_data_types_of_a_buffer(context: wn.MLContext, declared: str, data_types: str) -> None:
    source = f"alias Word = u32; @group(0) @binding(0) var<storage, read_write> x: {declared};"
    source = source.replace("<u32>", "<Word>") + "@compute @workgroup_size(1) fn main() { _ = &x; }"
    for name in ("float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8", "uint16", "bool"):
        array = np.zeros(16, name)
        runs = [lambda array=array: debug.interpret(source, [array], grid=1)]
        if name not in ("bool", "uint16"):  # which are no data types of WebNN
            runs.append(lambda array=array: wn.run_wgsl(source, array, workgroups=1, context=context))
        for run in runs:
            if name in data_types.split():
                run()
            else:
                with pytest.raises(wn.MLTypeError, match=f"be that of the buffer; got x: {name}; allowed: "):
                    run()


def test_a_loop_without_end_ends() -> None:
    with pytest.raises(wn.OperationError, match=r"did not end within .*; got line 5 after 2000 statements"):
        interpreted("loop { if (x[0] > 1.0) { break; } }", max_steps=2000)


# stops ----------------------------------------------------------------------------------------------------------------

STEPS = HEADER + "    let twice = double(x[id.x]);\n    y[id.x] = twice;\n}\nfn double(v: f32) -> f32 {\n    return v + v;\n}"


def stops(*modes: str, **options: Any) -> list[tuple[int, str, dict[str, Any]]]:
    seen: list[tuple[int, str, dict[str, Any]]] = []

    def on_stop(stop: Stop) -> None:
        seen.append((stop.line, stop.function, dict(stop.variables)))
        getattr(stop, modes[len(seen) - 1] if len(seen) <= len(modes) else "resume")()

    debug.interpret(STEPS, [X, 64], grid=2, on_stop=on_stop, **options)
    return seen


def test_breakpoints() -> None:
    ((line, function, variables),) = stops(breakpoints=[6], invocation=(3, 0, 0))
    assert (line, function) == (6, "main")
    assert (variables["twice"], variables["lane"], variables["id"].tolist()) == (6, 3, [3, 0, 0])
    # Without an invocation the first that comes there stops, and no other after it.
    ((_, _, variables),) = stops(breakpoints=[6])
    assert variables["id"].tolist() == [0, 0, 0]
    assert stops(breakpoints=[6], invocation=(99, 0, 0)) == []


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ({"breakpoints": [1, 2]}, "no statement was run at line 1, 2"),
        ({"breakpoints": [6], "invocation": (99, 0, 0)}, "invocation (99, 0, 0) ran no statement at line 6"),
        ({"invocation": (99, 0, 0)}, "invocation (99, 0, 0) ran no statement"),
        ({}, "neither breakpoints nor an invocation are given"),
    ],
)
def test_an_interpretation_without_a_stop_says_why(where: dict[str, Any], reason: str) -> None:
    found = debug.interpret(STEPS, [X, 64], grid=2, on_stop=print, **where)
    assert found.no_stop == reason
    assert str(found).endswith(f"\nno stop: {reason}")


def test_a_stop_needs_no_reason() -> None:
    for options in ({"breakpoints": [6], "on_stop": debug.Stop.quit}, {}):
        assert debug.interpret(STEPS, [X, 64], grid=2, **options).no_stop == ""


def test_steps() -> None:
    assert [line for line, *_ in stops("step", "step", breakpoints=[5])] == [5, 9, 6]
    assert [line for line, *_ in stops("next", "next", breakpoints=[5])] == [5, 6]
    assert [line for line, *_ in stops("step", "step", "step", invocation=(9, 0, 0))] == [5, 9, 6]
    seen = stops("step", breakpoints=[5], invocation=(9, 0, 0))
    assert seen[1] == (9, "double", {"v": 9})


def test_quitting() -> None:
    def leave(stop: Stop) -> None:
        stop.quit()

    found = debug.interpret(STEPS, [X, 64], grid=2, breakpoints=[6], on_stop=leave)
    assert not found.complete
    assert found.outputs["y"].tolist() == [0] * 16
    assert "stopped before the end" in found.summary()


def test_expressions_at_a_stop() -> None:
    values: list[Any] = []

    def look(stop: Stop) -> None:
        values.extend(
            map(stop.evaluate, ("x[id.x] + 0.5", "double(twice)", "id.xy", "shared_x[lane + 100u]", "arrayLength(&y)"))
        )
        with pytest.raises(wn.MLTypeError, match="no variable, constant or parameter is called z"):
            stop.evaluate("z + 1.0")
        values.append(stop.around(1))

    found = debug.interpret(STEPS, [X, 64], grid=2, breakpoints=[6], invocation=(3, 0, 0), on_stop=look)
    assert found.findings == ()
    assert [v if isinstance(v, str) else np.asarray(v).tolist() for v in values] == [
        3.5,
        12,
        [3, 0],
        0,
        16,
        "     5     let twice = double(x[id.x]);\n>    6     y[id.x] = twice;\n     7 }",
    ]


def test_a_wrong_expression_at_a_stop_names_the_expression_the_line_and_the_variables() -> None:
    messages: list[str] = []

    def look(stop: Stop) -> None:
        for expression in ("half", "x[", "unknown(1)"):
            with pytest.raises(wn.MLTypeError) as raised:
                stop.evaluate(expression)
            messages.append(str(raised.value))

    debug.interpret(STEPS, [X, 64], grid=2, breakpoints=[6], invocation=(3, 0, 0), on_stop=look)
    unknown, cut_off, function = messages
    assert unknown.startswith(
        "evaluate: the expression must be valid where the invocation stopped, at line 6; "
        "got half: no variable, constant or parameter is called half; allowed: "
    )
    assert unknown.endswith("twice, workgroup variables and buffers")
    assert "got x[: the interpreter cannot read this WGSL, the end of the source" in cut_off
    assert "got unknown(1): the interpreter does not know this function" in function


def test_the_prompt_goes_on_after_a_wrong_expression() -> None:
    commands = iter(["p half", "p unknown(1)", "p id.x", "c"])
    shown: list[str] = []
    prompt = debug.Prompt(lambda: next(commands), shown.append)
    debug.interpret(STEPS, [X, 64], grid=2, breakpoints=[6], invocation=(3, 0, 0), on_stop=prompt)
    assert shown[1] == "half: no variable, constant or parameter is called half"
    assert shown[2].startswith("unknown(1): the interpreter does not know this function")
    assert shown[3] == "3"


def test_the_prompt_shows_structures() -> None:
    source = (
        "struct Pair { a: u32, b: vec2<f32> }\n" + HEADER + "let pair = Pair(lane, vec2(x[0], 2.5));\ny[id.x] = pair.b.y;\n}"
    )
    commands = iter(["p pair", "v", "c"])
    shown: list[str] = []
    prompt = debug.Prompt(lambda: next(commands), shown.append)
    debug.interpret(source, [X, 64], grid=2, breakpoints=[7], invocation=(3, 0, 0), on_stop=prompt)
    assert shown[1] == "{a: 3, b: [0.  2.5]}"
    assert "pair = {a: 3, b: [0.  2.5]}" in shown[2].splitlines()


def test_the_prompt() -> None:
    commands = iter(["v", "p twice * 10.0", "p nobody", "l", "w", "what", "s", "", "w", "c"])
    shown: list[str] = []
    prompt = debug.Prompt(lambda: next(commands), shown.append)
    debug.interpret(STEPS, [X, 64], grid=2, breakpoints=[5], invocation=(3, 0, 0), on_stop=prompt)
    assert next(commands, None) is None
    text = "\n".join(shown)
    assert "kernel line 5 in main, invocation (3, 0, 0): let twice = double(x[id.x]);" in shown[0]
    assert "lane = 3" in text
    assert "no variable, constant or parameter is called twice" in text
    assert "c  continue: to the next breakpoint" in text
    assert any(line.startswith("kernel line 9 in double") for line in shown)
