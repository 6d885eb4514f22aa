"""`debug.trace`: what `dbg` shows is what numpy computes for the same invocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.api.graphs import X, negation
from tests.shaders import changed_shaders
from webnn_wgpu import debug
from webnn_wgpu.runtime.pipelines import PipelineCache

if TYPE_CHECKING:
    from pathlib import Path

    from webnn_wgpu.debug import TracedValue

BUFFERS = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
"""

A = np.float32([1.5, -2, 0.25, 7, 1e30, -0.0, 3, 100])


def traced(body: str, where: Any = None, head: str = "", parameters: str = "", limit: int = 4096, **rest: Any) -> debug.Trace:
    """Trace a kernel of two workgroups of four invocations over `A`."""
    parameters = parameters or "@builtin(global_invocation_id) id: vec3<u32>"
    source = f"{head}{BUFFERS}@compute @workgroup_size(4) fn main({parameters}) {{\n{body}\n}}\n"
    return debug.trace_wgsl(source, A, np.zeros(8, np.float32), workgroups=2, where=where, limit=limit, **rest)


VALUES = {
    "f32": ("x[i] * 0.5", np.float32, A * np.float32(0.5)),
    "i32": ("i32(i) - 3", np.int32, np.arange(8) - 3),
    "u32": ("i * 4000000000u", np.uint32, (np.arange(8) * 4000000000).astype(np.uint32)),
    "bool": ("x[i] > 1.0", np.bool_, A > 1),
    "vec2<f32>": ("vec2<f32>(x[i], -x[i])", np.float32, np.stack([A, -A], 1)),
    "vec3<u32>": ("id + 7u", np.uint32, np.stack([np.arange(8) + 7, np.full(8, 7), np.full(8, 7)], 1)),
    "vec4<i32>": ("vec4<i32>(i32(i)) * vec4<i32>(1, -1, 2, -2)", np.int32, np.arange(8)[:, None] * [1, -1, 2, -2]),
    "vec3<bool>": ("vec3<bool>(x[i] > 0.0, true, false)", np.bool_, [[a > 0, True, False] for a in A]),
    "a literal": ("3", np.int32, np.full(8, 3)),
    "a literal with a point": ("1.5", np.float32, np.full(8, 1.5)),
    "NaN": ("bitcast<f32>(0x7fc00001u + i)", np.float32, (0x7FC00001 + np.arange(8)).astype(np.uint32).view(np.float32)),
}


@pytest.mark.parametrize("what", VALUES)
def test_values_are_those_that_numpy_computes(context: wn.MLContext, what: str) -> None:
    code, dtype, expected = VALUES[what]
    found = traced(f'    let i = id.x;\n    dbg({code}, "value");\n    y[i] = x[i];', context=context)
    values = found.values("value")
    assert values.dtype == dtype
    assert values.tobytes() == np.asarray(expected, dtype).tobytes()
    assert [(v.workgroup, v.invocation, v.occurrence) for v in found] == [((i // 4, 0, 0), (i % 4, 0, 0), 0) for i in range(8)]
    assert {(v.name, v.place.file, v.place.line) for v in found} == {("value", "<wgsl>", 6)}
    assert (found.total, found.lost) == (8, 0)
    np.testing.assert_array_equal(found.result, A)


@pytest.mark.parametrize("code", ["f16(x[i])", "vec3<f16>(f16(x[i]), 2.0h, -1.0h)"])
def test_half_precision(context: wn.MLContext, code: str) -> None:
    if "shader-f16" not in context.caps.features:
        pytest.skip(f"{context.description} has no float16")
    found = traced(f'let i = id.x % 4u; dbg({code}, "h");', head="enable f16;\n", context=context).values("h")
    assert found.dtype == np.float16
    halves = A[:4].astype(np.float16)
    expected = halves if code.startswith("f16") else np.stack([halves, np.full(4, 2, "e"), np.full(4, -1, "e")], 1)
    np.testing.assert_array_equal(found, np.concatenate([expected, expected]))


def test_occurrences_in_a_loop_and_in_a_function(context: wn.MLContext) -> None:
    head = 'fn half_of(a: f32) -> f32 {\n    dbg(a, "given");\n    return a * 0.5;\n}\n'
    body = "    for (var k = 0u; k < 3u; k++) {\n        dbg(k);\n        y[id.x] += half_of(x[id.x] + f32(k));\n    }"
    found = traced(body, {"global": 5}, head, context=context)
    assert [(v.name, v.occurrence, float(v.value)) for v in found] == [
        (name, k, value) for k in range(3) for name, value in (("k", k), ("given", float(A[5] + k)))
    ]
    assert {v.name: v.place.line for v in found} == {"given": 2, "k": 10}


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        (None, range(8)),
        ({"workgroup": (1, 0, 0)}, range(4, 8)),
        ({"workgroup": 1, "invocation": (2, 0, 0)}, [6]),
        ({"invocation": (range(1, 3), None, 0)}, [1, 2, 5, 6]),
        ({"global": [range(3, 5)]}, [3, 4]),
        ({"global": (None, None, 1)}, []),
        ({}, range(8)),
        ("workgroup.x == 0u && invocation.x < 2u", [0, 1]),
        ("global.x % 3u == 0u", [0, 3, 6]),
    ],
)
def test_where_is_applied_on_the_device(context: wn.MLContext, where: Any, kept: Any) -> None:
    found = traced("    dbg(id.x);", where, context=context)
    assert found.values("id.x").tolist() == list(kept)
    assert found.total == len(kept)


def test_where_may_be_a_function(context: wn.MLContext) -> None:
    def negative(v: TracedValue) -> bool:
        return bool(v.value < 0)

    found = traced('    dbg(x[id.x], "x");', negative, context=context)
    assert found.values("x").tolist() == [-2]
    assert (found.total, found.lost) == (8, 0)


def test_what_does_not_fit_is_counted(context: wn.MLContext) -> None:
    found = traced("    dbg(1u); dbg(2u);", limit=5, context=context)
    assert (len(found), found.total, found.lost) == (5, 16, 11)
    assert found.summary() == "5 values; 11 more did not fit: give a larger limit, or trace fewer invocations"
    assert traced("    dbg(1u); dbg(2u);", {"global": 6}, limit=2, context=context).lost == 0


def test_a_trace_without_values_says_how_invocations_count(context: wn.MLContext) -> None:
    found = traced('dbg(id.x, "i");', where={"invocation": 5}, context=context)
    assert str(found) == (
        "0 values: no selected invocation ran a dbg statement. `where` counts `invocation` in its workgroup, "
        "and `global` in the grid"
    )
    assert traced('dbg(id.x, "i");', where={"global": 5}, context=context)[0].value == 5


def test_a_printed_trace_has_its_first_values_alone(context: wn.MLContext) -> None:
    lines = str(traced("".join(f"dbg({i}u); " for i in range(6)), context=context)).splitlines()
    assert lines[0] == "48 values; the first 40, `where` selects others"
    assert len(lines) == 42


@pytest.mark.parametrize(
    "parameters",
    [
        "@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>, // the end\n",
        "all: All",
        "@builtin(num_workgroups) n: vec3u, all: All,",
    ],
)
def test_ids_that_the_kernel_has_already(context: wn.MLContext, parameters: str) -> None:
    head = "struct All { @builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_id) local: vec3u }\n"
    found = traced("    dbg(1);", {"workgroup": 1}, head, parameters, context=context)
    assert [(v.workgroup, v.invocation) for v in found] == [((1, 0, 0), (i, 0, 0)) for i in range(4)]


def test_it_prints_as_a_table(context: wn.MLContext) -> None:
    found = traced('    dbg(vec2<f32>(x[id.x], 1.0), "pair");\n    dbg(id.x);', {"global": range(1, 3)}, context=context)
    assert str(found).splitlines() == [
        "4 values",
        "workgroup  invocation  #  name  value      line",
        "0,0,0      1,0,0       0  pair  -2.0  1.0  <wgsl>:5:5",
        "0,0,0      1,0,0       0  id.x  1          <wgsl>:6:5",
        "0,0,0      2,0,0       0  pair  0.25  1.0  <wgsl>:5:5",
        "0,0,0      2,0,0       0  id.x  2          <wgsl>:6:5",
    ]


# graphs ----------------------------------------------------------------------------------------------------------------


def chain(context: wn.MLContext) -> wn.MLGraph:
    """softmax(-x) + 1, where the softmax has a kernel of its own."""
    b = context.create_graph_builder()
    x = b.input("x", [3, 40], "float32")
    return b.build({"y": b.add(b.softmax(b.neg(x), 1, label="middle"), b.constant("float32", 1))})


def test_templates_macros_and_library_functions(context: wn.MLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).standard_normal((3, 40)).astype(np.float32)
    plain = chain(context)
    monkeypatch.setattr(PipelineCache, "of", PipelineCache)
    changes = (
        ("ops/softmax.wgsl.j2", "    // At least 1", '    dbg(m, "largest");\n    // At least 1'),
        ("lib/math/exp.wgsl", "    let n = round(", '    dbg(hi, "exponent");\n    let n = round('),
    )
    with changed_shaders(tmp_path, *changes):
        graph = chain(context)
        assert graph.kernels["middle"].wgsl == plain.kernels["middle"].wgsl
        expected = context.compute(plain, {"x": rows})["y"]
        np.testing.assert_array_equal(context.compute(graph, {"x": rows})["y"], expected)
        found = debug.trace(graph, {"x": rows}, "middle", limit=100_000)
        np.testing.assert_array_equal(context.compute(graph, {"x": rows})["y"], expected)
    assert set(found.values("largest").tolist()) == set((-rows).max(axis=1).tolist())
    exponents = (-rows - (-rows).max(axis=1, keepdims=True)).reshape(-1)
    # Lanes past the end of a row hold -inf.
    assert set(found.values("exponent").tolist()) - {-np.inf} == set(exponents.tolist())
    assert {v.place.file for v in found} == {"ops/softmax.wgsl.j2", "lib/math/exp.wgsl"}


def test_overridden_kernels_and_sources_to_try(context: wn.MLContext) -> None:
    graph = negation(context)
    wgsl = graph.kernels["neg_0"].wgsl.replace("    return y0;", '    dbg(x0, "of");\n    return y0;')
    for found in (debug.trace(graph, {"x": X}, "neg_0", wgsl=wgsl), _overridden(graph, wgsl)):
        # A kernel of quads pads the three elements with a fourth.
        assert found.values("of")[:3].tolist() == X.tolist()
        assert [v.occurrence for v in found] == [0, 1, 2, 3]
    assert "dbg" not in graph.kernels["neg_0"].wgsl
    np.testing.assert_array_equal(context.compute(graph, {"x": X})["y"], -X)


def _overridden(graph: wn.MLGraph, wgsl: str) -> debug.Trace:
    graph.override("neg_0", wgsl)
    return debug.trace(graph, {"x": X}, "neg_0")


def test_operators_of_the_programs_own(context: wn.MLContext) -> None:
    builder = context.create_graph_builder()
    x = builder.input("x", [8], "float32")
    body = "@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) { dbg(x[i] * F); y[i] = x[i]; }"
    y = builder.wgsl_op(
        BUFFERS + body, [x], output_shapes=[8], output_types="float32", workgroups=1, constants={"F": 3.0}, label="own"
    )
    graph = builder.build({"y": builder.neg(y)})
    np.testing.assert_array_equal(debug.trace(graph, {"x": A}, "own").values("x[i] * F"), A * np.float32(3))
    np.testing.assert_array_equal(context.compute(graph, {"x": A})["y"], -A)


# errors ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "where", "kind", "message"),
    [
        ("y[0] = 1.0;", None, wn.MLTypeError, r"^trace: the kernel has no dbg statement; got <wgsl>; allowed: dbg\(value"),
        ("dbg(1);", {"lane": 1}, wn.MLTypeError, "where must name ids of invocations; got 'lane'; allowed: workgroup, inv"),
        ("dbg(1);", {"global": (1, 2, 3, 4)}, wn.MLTypeError, "'global' must have at most three parts"),
        ("dbg(1);", {"global": -1}, wn.MLTypeError, "parts of 'global' must be numbers, ranges or None; got -1"),
        (
            'dbg(foo, "a");',
            None,
            wn.OperationError,
            "^trace_wgsl: the source does not compile: <wgsl>:5:5: no definition in scope for identifier: `foo`",
        ),
        (
            "dbg(1);",
            "lane.x == 0u",
            wn.OperationError,
            "^trace_wgsl: 'where' does not compile: lane.x == 0u; got no definition in scope for identifier: `lane`; allowed: a"
            " WGSL condition on workgroup, invocation and global. A function of a TracedValue selects values$",
        ),
        *(
            (
                body,
                None,
                wn.OperationError,
                r'does not compile: <wgsl>:5:.* A dbg statement has the form dbg\(value, "name"\); and not dbg',
            )
            for body in ("dbg(id.x, 'x');", "dbg(id.x, x);", 'dbg("x", id.x);')
        ),
        ("dbg(id.x); foo bar;", None, wn.OperationError, "the source does not compile: <wgsl>:5:15: expected.*bar;'$"),
        (
            "var a: array<f32, 2>; dbg(a);",
            None,
            wn.OperationError,
            "<wgsl>:5:27: dbg shows scalars and vectors alone; got a; allowed: i32, u32, f32, bool",
        ),
    ],
)
def test_errors(context: wn.MLContext, body: str, where: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        traced(body, where, context=context)


def test_limits_are_positive(context: wn.MLContext) -> None:
    with pytest.raises(wn.MLTypeError, match="limit must be positive; got 0"):
        traced("dbg(1);", limit=0, context=context)


def test_one_more_buffer_than_the_device_allows(context: wn.MLContext) -> None:
    limit = context.caps.limit("max-storage-buffers-per-shader-stage")
    if limit > 64:
        pytest.skip(f"{context.description} allows {limit} buffers")
    names = [f"b{i}" for i in range(limit)]
    head = "".join(f"@group(0) @binding({i}) var<storage, read> {n}: array<f32>;\n" for i, n in enumerate(names))
    source = head + "@compute @workgroup_size(1) fn main() { dbg(b0[0]); }"
    with pytest.raises(wn.OperationError, match=r"one more storage buffer than the device allows; .*allowed: max-storage"):
        debug.trace_wgsl(source, *([A] * limit), workgroups=1, context=context)


def test_the_reference_has_no_kernels() -> None:
    with wn.ml.create_context(backend="reference") as context:
        graph = negation(context)
        with pytest.raises(wn.MLTypeError, match=r"trace: no kernel has this name .* none: the numpy reference has no kernels"):
            debug.trace(graph, {"x": X}, "neg_0")
        with pytest.raises(wn.NotSupportedError, match="no WebGPU device"):
            traced("dbg(1);", context=context)
