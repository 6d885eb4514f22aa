from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.support import PROFILES, open_profile, profile_context
from webnn_wgpu import debug
from webnn_wgpu.testing import check_kernel

SCALE = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(SIZE) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&x)) { y[id.x] = x[id.x] * FACTOR + f32(arrayLength(&y)); }
}
"""

TYPED = """
@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
@compute @workgroup_size(SIZE) fn main(@builtin(local_invocation_index) i: u32) {
    for (var c = i; c < COUNT; c += SIZE) { y[c] = x[c] * T(FACTOR); }
}
"""

SPLIT = """// binding numbers in any order, comments with @group(0) @binding(9) var<storage> in them
@binding(2) @group(0) var<storage, read_write> high: array<u32>;
@group(0) @binding(0)
var<storage> a: array<u32>; /* read is the default */
@group(0) @binding(1) var<storage, read_write> low: array<u32>;
var<workgroup> shared_count: atomic<u32>;
@compute @workgroup_size(8, 2) fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>) {
    let i = id.z * 16u + id.y * 8u + id.x;
    if (i < 24u) { low[i] = a[i] & 0xffffu; high[i] = a[i] >> 16u; }
}
"""

X = np.linspace(-3, 3, 10, dtype=np.float32)


def scaled(builder: wn.MLGraphBuilder, x: wn.MLOperand, **options: Any) -> Any:
    given: dict[str, Any] = {
        "output_shapes": [10],
        "output_types": "float32",
        "workgroups": 1,
        "constants": {"SIZE": 64, "FACTOR": 0.5},
        **options,
    }
    return builder.wgsl_op(SCALE, [x], **given)


@pytest.fixture(params=PROFILES)
def anywhere(request: pytest.FixtureRequest) -> wn.MLContext:
    return profile_context(request.param)


def test_in_the_middle_of_a_graph(anywhere: wn.MLContext) -> None:
    builder = anywhere.create_graph_builder()
    x = builder.relu(builder.input("x", [10], "float32"))
    graph = builder.build({"y": builder.neg(scaled(builder, x, label="mine"))})
    np.testing.assert_allclose(anywhere.compute(graph, {"x": X})["y"], -(np.maximum(X, 0) * 0.5 + 10))
    (mine,) = [d for d in graph.plan.dispatches if d.label == "mine"]
    # The buffers are those of the tensors, without what pads them.
    assert [r.size_bytes for r in mine.bindings] == [40, 40]
    assert "mine: wgsl_op (1, 1, 1) [input0=slot 0, output0=slot 1] - a kernel of the program's own" in str(graph.plan)


def test_several_outputs_and_three_dimensions(anywhere: wn.MLContext) -> None:
    builder = anywhere.create_graph_builder()
    a = builder.input("a", [2, 12], "uint32")
    outputs = builder.wgsl_op(
        SPLIT, [a], output_shapes=[[2, 12], [24]], output_types=["uint32", "uint32"], workgroups=(1, 1, 2)
    )
    assert [o.shape for o in outputs] == [[2, 12], [24]]
    graph = builder.build({"low": outputs[0], "high": outputs[1]})
    given = np.arange(24, dtype=np.uint32) * 123457
    results = anywhere.compute(graph, {"a": given})
    assert np.array_equal(results["low"].reshape(-1), given & 0xFFFF)
    assert np.array_equal(results["high"], given >> 16)


def test_between_the_ends_of_a_graph(context: wn.MLContext) -> None:
    builder = context.create_graph_builder()
    graph = builder.build({"y": scaled(builder, builder.input("x", [10], "float32"))})
    x, y = (context.create_host_tensor([10], "float32") for _ in range(2))
    context.write_tensor(x, X)
    context.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_allclose(context.read_tensor(y), X * 0.5 + 10)


def test_of_constants_it_is_run_all_the_same(context: wn.MLContext) -> None:
    builder = context.create_graph_builder()
    graph = builder.build({"y": scaled(builder, builder.constant(X), reference=lambda x: x)})
    np.testing.assert_allclose(context.compute(graph, {})["y"], X * 0.5 + 10)


def test_constants_are_the_values_of_overrides(context: wn.MLContext) -> None:
    source = """
    @id(3) override SIZE: u32; // not override FACTOR = 1;
    override FACTOR: f32
        = 1.0;
    override OFFSET = 0.5;
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(SIZE) fn main(@builtin(local_invocation_index) i: u32) { y[i] = x[i] * FACTOR + OFFSET; }"""
    constants = {"SIZE": 10, "FACTOR": 3}
    wanted = 3 * X + 0.5
    builder = context.create_graph_builder()
    given: dict[str, Any] = {"output_shapes": [10], "output_types": "float32", "workgroups": 1, "label": "mine"}
    y = builder.wgsl_op(source, [builder.input("x", [10], "float32")], constants=constants, **given)
    graph = builder.build({"y": y})
    np.testing.assert_allclose(context.compute(graph, {"x": X})["y"], wanted)
    np.testing.assert_allclose(
        wn.run_wgsl(source, X, np.zeros_like(X), workgroups=1, constants=constants, context=context), wanted
    )
    np.testing.assert_allclose(debug.interpret(source, [X, 40], grid=1, constants=constants).outputs["y"], wanted)
    graph.override("mine", source.replace("* FACTOR", "* -FACTOR"))
    np.testing.assert_allclose(context.compute(graph, {"x": X})["y"], -3 * X + 0.5)
    misspelled, other = {**constants, "OFSET": 2}, context.create_graph_builder()
    for call in (
        lambda: other.wgsl_op(source, [other.input("x", [10], "float32")], constants=misspelled, **given),
        lambda: wn.run_wgsl(source, X, np.zeros_like(X), workgroups=1, constants=misspelled, context=context),
        lambda: debug.interpret(source, [X, 40], grid=1, constants=misspelled),
    ):
        with pytest.raises(wn.MLTypeError, match=r"got OFSET; allowed: its overrides SIZE, FACTOR, OFFSET, and"):
            call()
    wrong = source.replace("* FACTOR", "* wrong")
    with pytest.raises(wn.OperationError, match=r"line 8, column .* identifier: `wrong`"):  # lines keep their numbers
        wn.run_wgsl(wrong, X, np.zeros_like(X), workgroups=1, constants=constants, context=context)


@pytest.mark.parametrize("directive", ["enable subgroups;", "enable f16, subgroups;", "enable\nsubgroups ;"])
def test_subgroups_may_be_enabled(context: wn.MLContext, directive: str) -> None:
    needed = {"subgroup", "shader-f16"} if "f16" in directive else {"subgroup"}
    if missing := needed - context.caps.features:
        pytest.skip(f"the device lacks {', '.join(sorted(missing))}, which the source enables")
    source = f"""{directive}
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(10) fn main(@builtin(local_invocation_index) i: u32) {{ y[i] = subgroupBroadcast(x[i], 0u); }}"""
    builder = context.create_graph_builder()
    x = builder.input("x", [10], "float32")
    y = builder.wgsl_op(source, [x], output_shapes=[10], output_types="float32", workgroups=1, label="mine")
    graph = builder.build({"y": y})
    assert context.compute(graph, {"x": X})["y"][0] == X[0]
    graph.override("mine", source.replace("= subgroup", "= -subgroup"))
    assert context.compute(graph, {"x": X})["y"][0] == -X[0]
    wrong = source.replace("x[i]", "wrong")
    line = 4 + directive.count("\n")
    with pytest.raises(wn.OperationError, match=f"line {line}, column .* identifier: `wrong`"):
        wn.run_wgsl(wrong, X, np.zeros_like(X), workgroups=1, context=context)


def test_a_number_of_a_run_is_an_input(anywhere: wn.MLContext) -> None:
    source = """
    struct Params { factor: f32, count: u32 }
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read> offset: f32;
    @group(0) @binding(2) var<storage, read> params: Params;
    @group(0) @binding(3) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if (id.x < params.count) { y[id.x] = x[id.x] * params.factor + offset; }
    }"""
    builder = anywhere.create_graph_builder()
    x, offset, params = (
        builder.input("x", [10], "float32"),
        builder.input("b", [], "float32"),
        builder.input("p", [2], "uint32"),
    )
    y = builder.wgsl_op(source, [x, offset, params], output_shapes=[10], output_types="float32", workgroups=1)
    words = np.array([np.float32(3).view(np.uint32), 10], np.uint32)
    found = anywhere.compute(builder.build({"y": y}), {"x": X, "b": 2, "p": words})["y"]
    np.testing.assert_allclose(found, 3 * X + 2, rtol=1e-6)


def test_without_inputs(context: wn.MLContext) -> None:
    source = """@group(0) @binding(0) var<storage, read_write> y: array<u32, 100>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if (id.x < 100u) { y[id.x] = id.x * id.x; }
    }"""
    builder = context.create_graph_builder()
    y = builder.wgslOp(source, [], output_shapes=[100], output_types="uint32", workgroups=[2])
    assert np.array_equal(context.compute(builder.build({"y": y}), {})["y"], np.arange(100) ** 2)


def test_constants_of_every_kind(context: wn.MLContext) -> None:
    source = """@group(0) @binding(0) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(1) fn main() {
        y[0] = f32(A); y[1] = B; y[2] = select(0.0, 1.0, C); y[3] = f32(D) * E; y[4] = f32(F - 1i);
        let exact: u32 = D;
    }"""
    builder = context.create_graph_builder()
    constants = {"A": -3, "B": 1e30, "C": True, "D": np.uint32(7), "E": np.float32(0.5), "F": np.int32(-1)}
    y = builder.wgsl_op(source, [], output_shapes=[5], output_types="float32", workgroups=1, constants=constants)
    wanted = np.float32([-3, 1e30, 1, 3.5, -2])
    assert np.array_equal(context.compute(builder.build({"y": y}), {})["y"], wanted)


def test_the_reference_stands_in_where_there_is_no_device() -> None:
    with wn.ml.create_context(backend="reference") as context:
        builder = context.create_graph_builder()
        x = builder.input("x", [10], "float32")
        graph = builder.build({"y": scaled(builder, x, reference=lambda x: x * np.float32(0.5) + np.float32(10))})
        np.testing.assert_allclose(context.compute(graph, {"x": X})["y"], X * 0.5 + 10)
        for reference, kind, message in (
            (None, wn.NotSupportedError, "the kernel has no reference to compute it without a device"),
            (
                lambda x: (x.astype(np.float64), x),
                wn.OperationError,
                r"the reference must return an array for every output; got float64\[10\], float32\[10\]; allowed: float32",
            ),
            (
                lambda x: x.astype(np.float64)[:, None],
                wn.OperationError,
                r"the reference must return arrays of the outputs' shapes; got float64\[10, 1\]; allowed: float32\[10\]",
            ),
        ):
            builder = context.create_graph_builder()
            y = scaled(builder, builder.input("x", [10], "float32"), reference=reference, label="mine")
            graph = builder.build({"y": y})
            with pytest.raises(kind, match=rf"wgsl_op\('mine'\): {message}"):
                context.compute(graph, {"x": X})


@pytest.mark.parametrize("wide", ["int64", "uint64"])
@pytest.mark.parametrize("output_type", ["int32", "uint32", "uint8"])
def test_a_reference_may_count_in_64_bits(output_type: str, wide: str) -> None:
    with wn.ml.create_context(backend="reference") as context:
        builder = context.create_graph_builder()
        x = builder.input("x", [4], "float32")
        own = "@group(0) @binding(0) var<storage, read> x: array<f32>;\n"
        own += "@group(0) @binding(1) var<storage, read_write> y: array<u32>;\n@compute @workgroup_size(1) fn main() { }"
        given = {"output_shapes": [4], "output_types": output_type, "workgroups": 1}
        y = builder.wgsl_op(own, [x], **given, reference=lambda x: np.argsort(x).astype(wide))
        found = context.compute(builder.build({"y": y}), {"x": [3, 1, 2, 0]})["y"]
    assert found.dtype == output_type
    assert found.tolist() == [3, 1, 2, 0]


def test_merged_with_its_like_alone(context: wn.MLContext) -> None:
    builder = context.create_graph_builder()
    x = builder.input("x", [10], "float32")
    a, b = scaled(builder, x), scaled(builder, x)
    c = scaled(builder, x, constants={"SIZE": 64, "FACTOR": 2})
    graph = builder.build({"y": builder.sub(builder.add(a, b), c)})
    assert sum(d.spec.source != "" for d in graph.plan.dispatches) == 2
    np.testing.assert_allclose(context.compute(graph, {"x": X})["y"], -X + 10, rtol=1e-5)


BROKEN = SCALE.replace("FACTOR", "FACTOR + wrong")
WRITES_INPUT = SCALE.replace("<storage, read>", "<storage, read_write>")
GAP = SCALE.replace("binding(1)", "binding(2)")
UNIFORM = SCALE.replace("@group(0) @binding(1)", "@group(0) @binding(1) var<uniform> p: vec4<f32>; @group(0) @binding(2)")
TEXTURE = UNIFORM.replace("var<uniform> p: vec4<f32>", "var p: texture_2d<f32>")
MANY = {"output_shapes": [[1]] * 9, "output_types": ["float32"] * 9}


@pytest.mark.parametrize(
    ("source", "options", "kind", "message"),
    [
        (7, {}, TypeError, "source must be WGSL text; got int"),
        ("fn other() {}", {}, TypeError, "the shader must have an entry point main; got 'fn other() {} const SIZE"),
        (GAP, {}, TypeError, "bindings must be numbered 0, 1, 2, ...; got x: 0, y: 2"),
        (
            UNIFORM,
            {},
            TypeError,
            "every variable with a binding must be a storage buffer; got var<uniform> p. A buffer"
            " `var<storage, read> p: vec4<f32>` takes its place",
        ),
        (TEXTURE, {}, TypeError, "every variable with a binding must be a storage buffer; got var p"),
        (
            SCALE.replace("@group(0)", "@group(1)", 1),
            {},
            TypeError,
            "every buffer must be declared with @group(0) and a number as @binding; got var x",
        ),
        (
            SPLIT,
            {},
            TypeError,
            "the shader must declare a storage buffer for every input, then for every output; got 0: a, 1: low, 2: high;"
            " allowed: 0: input 0, 1: output 0",
        ),
        (
            WRITES_INPUT,
            {},
            TypeError,
            "binding 0, input 0, must be declared var<storage, read>; got var<storage, read_write> x",
        ),
        (SCALE, {"workgroups": 0}, TypeError, "workgroups must be one to three positive integers; got 0; allowed: 1..65535"),
        (SCALE, {"workgroups": (1, 70000)}, TypeError, "workgroups must be one to three positive integers; got (1, 70000)"),
        (SCALE, {"workgroups": "1"}, TypeError, "workgroups must be one to three positive integers; got '1'"),
        (SCALE, {"constants": [1]}, TypeError, "constants must be a mapping of name to number; got list"),
        (SCALE, {"constants": {"1x": 1}}, TypeError, "a constant's name must be an identifier; got '1x'"),
        (SCALE, {"constants": {"A; const B": 1}}, TypeError, "a constant's name must be an identifier"),
        (SCALE, {"constants": {"A": float("inf")}}, TypeError, "constant A must be a finite number or a bool; got inf"),
        (SCALE, {"constants": {"A": "1"}}, TypeError, "constant A must be a finite number or a bool; got '1'"),
        (SCALE, {"output_types": "float8"}, TypeError, "unknown data type; got 'float8'"),
        (SCALE, {"output_shapes": [[4]]}, TypeError, "output_shapes must be one shape where output_types is one data type"),
        (SCALE, {"output_types": []}, TypeError, "every output must have a shape and a data type; got 1 shapes, 0 types"),
        (
            SCALE,
            MANY,
            TypeError,
            "inputs and outputs must not be more than a kernel can bind; got 1 inputs, 9 outputs; allowed:"
            " max-storage-buffers-per-shader-stage 8",
        ),
        (
            BROKEN,
            {},
            wn.OperationError,
            "the shader does not compile: line 5, column 64: no definition in scope for identifier: `wrong` in"
            " 'if (id.x < arrayLength(&x)) { y[id.x] = x[id.x] * FACTOR + wrong",
        ),
    ],
)
def test_wrong_calls(source: Any, options: dict[str, Any], kind: type[Exception], message: str) -> None:
    context = wn.ml.create_context(open_profile("default-limits").gpu)
    builder = context.create_graph_builder()
    x = builder.input("x", [10], "float32")
    given: dict[str, Any] = {
        "output_shapes": [10],
        "output_types": "float32",
        "workgroups": 1,
        "constants": {"SIZE": 64, "FACTOR": 0.5},
        **options,
    }
    with pytest.raises(kind) as caught:
        builder.wgsl_op(source, [x], **given, label="mine")
    assert str(caught.value).startswith(f"wgsl_op('mine'): {message}")
    # Nothing was added, and the builder is as good as new.
    assert len(builder.build({"y": builder.neg(x)}).source.nodes) == 1


@pytest.mark.parametrize(
    ("line", "features"),
    [
        ("var<private> half: f16;", "shader-f16"),
        ("var<private> long: u64;", "shader-int64"),
        ("fn all() -> f32 { return subgroupAdd(1.0); }", "subgroup"),
        ("fn wait() { subgroupBarrier(); }", "subgroup and subgroup-barrier"),
    ],
)
def test_a_feature_that_the_device_lacks(line: str, features: str) -> None:
    context = wn.ml.create_context(open_profile("default-limits").gpu)
    builder = context.create_graph_builder()
    with pytest.raises(
        wn.OperationError, match=rf"The device lacks {features}: .*`required_features` did not name it\. Its source"
    ):
        builder.wgsl_op(
            SCALE + line,
            [builder.input("x", [10], "float32")],
            output_shapes=[10],
            output_types="float32",
            workgroups=1,
            constants={"SIZE": 64, "FACTOR": 1},
        )


def test_wrong_inputs(context: wn.MLContext) -> None:
    builder, other = context.create_graph_builder(), context.create_graph_builder()
    foreign = other.input("x", [10], "float32")
    for inputs, message in (
        (foreign, "inputs must be a list of operands; got MLOperand"),
        ([foreign], "every operand must belong to this builder"),
        ([X], r"inputs\[0\] must be an operand"),
    ):
        with pytest.raises(wn.MLTypeError, match=f"wgsl_op: {message}"):
            builder.wgsl_op(SCALE, inputs, output_shapes=[10], output_types="float32", workgroups=1)


def test_operands_of_another_data_type(context: wn.MLContext) -> None:
    builder = context.create_graph_builder()
    given: dict[str, Any] = {"output_shapes": [10], "workgroups": 1, "constants": {"SIZE": 64, "FACTOR": 1}}
    x, whole = builder.input("x", [10], "float32"), builder.input("whole", [10], "int32")
    for operand, output, message in (
        (whole, "float32", "x: int32; allowed: float32, for array<f32>. array<T0> fits any"),
        (x, "int32", "y: int32; allowed: float32, for array<f32>. Change the declaration, or output_types"),
    ):
        with pytest.raises(wn.MLTypeError, match=f"the data type must be that of the buffer; got {message}"):
            builder.wgsl_op(SCALE, [operand], output_types=output, **given)


def test_a_buffer_that_is_too_small_is_found_when_the_graph_is_built(context: wn.MLContext) -> None:
    source = SCALE.replace("y: array<f32>", "y: array<f32, 20>").replace("&y", "&x")
    builder = context.create_graph_builder()
    options: dict[str, Any] = {"workgroups": 1, "constants": {"SIZE": 64, "FACTOR": 1}, "label": "mine"}
    y = builder.wgsl_op(source, [builder.input("x", [10], "float32")], output_shapes=[10], output_types="float32", **options)
    with pytest.raises(wn.OperationError, match=r"build\('mine'\): the kernel does not fit its buffers; got .* size 40 .* 80"):
        builder.build({"y": y})


@pytest.mark.parametrize("data_type", ["float32", "float16", "int32"])
def test_one_source_is_tested_run_and_put_in_a_graph(context: wn.MLContext, data_type: str) -> None:
    if data_type == "float16" and "shader-f16" not in context.caps.features:
        pytest.skip("the device has no float16 in shaders")
    x, constants = np.arange(10).astype(data_type), {"SIZE": 4, "COUNT": 10, "FACTOR": 3}

    def reference(x: Any) -> Any:
        return x * 3 if data_type == "int32" else x.astype(np.float64) * 3

    check_kernel(TYPED, reference, shapes=[10], dtypes=[data_type], workgroups=1, constants=constants, on=[context])
    ran = wn.run_wgsl(TYPED, x, np.zeros_like(x), workgroups=1, constants=constants, context=context)
    found = debug.interpret(TYPED, {"y": 10 * x.itemsize, "x": x}, grid=1, constants=constants)
    builder = wn.MLGraphBuilder(context)
    given: dict[str, Any] = {"output_shapes": [10], "output_types": data_type, "workgroups": 1}
    y = builder.wgsl_op(
        TYPED, [builder.input("x", [10], data_type)], constants=constants, reference=reference, label="mine", **given
    )
    graph = builder.build({"y": y})
    for result in (ran, found.outputs["y"], context.compute(graph, {"x": x})["y"]):
        assert result.dtype == x.dtype
        np.testing.assert_array_equal(result, x * 3)
    assert debug.diff(graph, {"x": x}).first is None
    # What was given with it is there for what is put in its place, unless that says otherwise.
    changed = TYPED.replace("x[c] * ", "x[c] + ")
    assert debug.try_kernel(graph, {"x": x}, "mine", changed).results[0].different == 10
    graph.override("mine", changed + "const FACTOR = 5;")
    np.testing.assert_array_equal(context.compute(graph, {"x": x})["y"], x + 5)
    assert debug.trace(graph, {"x": x}, "mine", wgsl=changed.replace("{ y", "{ dbg(x[c] * T(FACTOR)); y"))[-1].value == 21
    allowed = r"allowed: bindings and uniforms of wgsl_op, constants SIZE, COUNT, FACTOR, entry point main"
    hint = r"`const OFFSET = ...;` defines a constant"
    with pytest.raises(wn.OperationError, match=rf"{allowed}. {hint}. The operator was made at "):
        debug.try_kernel(graph, {"x": x}, "mine", changed.replace("x[c] +", "OFFSET +"))


@pytest.mark.parametrize(("data_type", "right"), [("float32", True), ("float16", True), ("int32", False)])
def test_a_reference_in_float64_is_rounded_to_floats_alone(data_type: str, right: bool) -> None:
    with wn.ml.create_context(backend="reference") as context:
        builder = context.create_graph_builder()
        x = builder.input("x", [2], data_type)
        y = builder.wgsl_op(
            TYPED,
            [x],
            output_shapes=[2],
            output_types=data_type,
            workgroups=1,
            constants={"SIZE": 1, "COUNT": 2, "FACTOR": 1},
            reference=lambda x: x / np.float64(3),
        )
        graph = builder.build({"y": y})
        given = {"x": np.ones(2, data_type)}
        if right:
            found = context.compute(graph, given)["y"]
            np.testing.assert_array_equal(found, np.full(2, 1 / 3).astype(data_type))
        else:
            with pytest.raises(wn.OperationError, match=r"the outputs' data types; got float64\[2\]; allowed: int32\[2\]"):
                context.compute(graph, given)
