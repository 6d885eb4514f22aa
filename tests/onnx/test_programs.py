"""Stages, caches of compiled graphs, placement, control flow."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

import webnn_wgpu as wn
from examples.models import bert
from tests.onnx.models import check, node_model, parsed
from webnn_wgpu.api.progress import READING, UPLOADING
from webnn_wgpu.frontends.onnx import module

SYMBOLIC = "g (float[N, 3] x) => (float[N, 2] y) <float[3, 2] w = {1, 2, 3, 4, 5, 6}> { h = MatMul (x, w) y = Relu (h) }"


def test_a_model_compiles_once_for_each_set_of_shapes(context):
    model = wn.load_onnx(parsed(SYMBOLIC), context)
    assert model.compiled == 0
    w = np.float32([[1, 2], [3, 4], [5, 6]])
    for n in (1, 2, 5, 2, 1, 5):
        x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
        np.testing.assert_allclose(model.run({"x": x})["y"], np.maximum(x @ w, 0), rtol=1e-5, atol=1e-6)
    assert model.compiled == 3


def test_the_graphs_used_least_recently_go_first(context):
    model = wn.load_onnx(parsed(SYMBOLIC), context, cache_size=2)
    for n, compiled in ((1, 1), (2, 2), (1, 2), (3, 3), (1, 3), (2, 4)):
        model.run({"x": np.ones((n, 3), np.float32)})
        assert model.compiled == compiled, n


def test_pinned_dimensions_compile_when_loading(context, tmp_path):
    assert wn.load_onnx(parsed(SYMBOLIC), context, override_dims={"N": 4}).compiled == 1
    path = tmp_path / "m.onnx"
    path.write_bytes(parsed(SYMBOLIC).SerializeToString())
    (tmp_path / "m.dims.json").write_text('{"N": 2}')
    model = wn.load(path, context)
    assert model.compiled == 1
    with pytest.raises(wn.MLTypeError, match=r"x: \[3, 3\]; allowed: x: float32\[N, 3\] with N = 2"):
        model.run({"x": np.ones((3, 3), np.float32)})
    assert wn.load(path, context, override_dims={"N": 3}).run({"x": np.ones((3, 3), np.float32)})["y"].shape == (3, 2)


def test_nodes_of_plain_types_need_no_schemas(context, monkeypatch):
    def unknown(*node: object) -> None:
        raise AssertionError(f"the schema of {node} was asked for")

    monkeypatch.setattr(module, "find_schema", unknown)
    model = wn.load_onnx(
        parsed("""g (float[2, 3] x, int64[1] i) => (float[2] y) <int64[1] axes = {1}>
                  { g = Gather <axis = 1> (x, i) s = Squeeze (g, axes) y = Relu (s) }"""),
        context,
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(model.run({"x": x, "i": np.int64([2])})["y"], x[:, 2])


@pytest.mark.parametrize("options", [{"override_dims": {"N": -4}}, {"override_dims": {"N": 2.5}}, {"cache_size": 0}])
def test_what_is_no_size_is_refused(context, options):
    with pytest.raises(wn.MLTypeError, match=r"must be a whole number; got .*; allowed: \d and more"):
        wn.load_onnx(parsed(SYMBOLIC), context, **options)


@pytest.mark.parametrize("value", ["text", [["a"]], [[10**400] * 3], {}, [[1, 2, 3], [4]]])
def test_what_is_no_array_is_refused_by_name(context, value):
    model = wn.load_onnx(parsed(SYMBOLIC), context)
    with pytest.raises(wn.MLTypeError, match=r"run: wrong input; got x: .*; allowed: x: float32\[N, 3\]"):
        model.run({"x": value})
    with pytest.raises(wn.MLTypeError, match="no 'x'"):
        model.run({"x": None})


@pytest.mark.parametrize("path", ["cat.jpg", Path("x.npy")])
def test_a_path_is_refused_with_the_functions_that_read_it(context: wn.MLContext, path: str | Path) -> None:
    model = wn.load_onnx(parsed(SYMBOLIC), context)
    with pytest.raises(
        wn.MLTypeError, match=r"wrong input; got x: .*numpy\.load reads arrays, and .*image_tensor reads pictures"
    ):
        model.run({"x": path})


def test_a_tensor_that_cannot_be_read_is_refused_with_the_calls_that_use_it(context: wn.MLContext) -> None:
    model = wn.load_onnx(parsed(SYMBOLIC), context)
    tensor = context.create_tensor([1, 3], "float32")
    with pytest.raises(wn.MLTypeError, match=r"wrong input; got x: .*not readable.*context\.dispatch\(model\.graph, "):
        model.run({"x": tensor})


def test_a_model_is_no_graph(context: wn.MLContext) -> None:
    model = wn.load_onnx(parsed(SYMBOLIC), context)
    with pytest.raises(wn.MLTypeError, match=r"graph must be an MLGraph; got Model\. The graph of a model is model.graph"):
        context.compute(model, {})  # pyright: ignore[reportArgumentType] - the point


def test_a_dimension_has_one_size_in_a_run(context):
    model = wn.load_onnx(parsed("g (float[N] a, float[N] b) => (float[N] y) { y = Add (a, b) }"), context)
    with pytest.raises(wn.MLTypeError, match="wrong shape of input"):
        model.run({"a": np.ones(2, np.float32), "b": np.ones(3, np.float32)})


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, "missing input; got no 'x'"),
        ({"x": np.ones((1, 3), np.float32), "z": 1}, "unknown input; got 'z'; allowed: x"),
        ({"x": np.ones((1, 3))}, r"wrong type of input; got x: float64; allowed: .*array.astype\('float32'\) converts it"),
        (np.ones((1, 3)), r"the inputs must be a mapping of name to array; got ndarray; .*run\(feeds, outputs\)"),
        (["x"], "the inputs must be a mapping of name to array; got list"),
        ({"x": np.ones((1, 4), np.float32)}, r"wrong shape of input; got x: \[1, 4\]"),
        ({"x": np.ones(3, np.float32)}, r"wrong shape of input; got x: \[3\]"),
    ],
)
def test_bad_inputs_are_named(context, feeds, message):
    with pytest.raises(wn.MLTypeError, match=message):
        wn.load_onnx(parsed(SYMBOLIC), context).run(feeds)


def test_lists_of_other_numbers_are_refused(context: wn.MLContext) -> None:
    model = wn.load_onnx(parsed("g (int64[N] x) => (int64[N] y) { y = Neg (x) }"), context)
    assert model.run({"x": [1.0, 2]})["y"].tolist() == [-1, -2]
    with pytest.raises(wn.MLTypeError, match="wrong input; got x: the list has numbers that are not int64"):
        model.run({"x": [0.5, 2]})


def test_arguments_of_load_are_checked(context: wn.MLContext) -> None:
    with pytest.raises(wn.MLTypeError, match="override_dims must name symbolic dimensions of the inputs; got 'M'; allowed: N"):
        wn.load_onnx(parsed(SYMBOLIC), context, override_dims={"M": 3})
    with pytest.raises(wn.MLTypeError, match=r"load: the context must be an MLContext; got 'gpu'. wn.ml.create_context\(\)"):
        wn.load_onnx(parsed(SYMBOLIC), "gpu")  # pyright: ignore[reportArgumentType] - on purpose
    message = "load: path must be a string or an os.PathLike; got ModelProto. load_onnx also takes the bytes"
    with pytest.raises(wn.MLTypeError, match=message):
        wn.load(parsed(SYMBOLIC), context)  # pyright: ignore[reportArgumentType] - on purpose


def test_a_model_without_a_graph_says_how_to_get_one(context: wn.MLContext) -> None:
    with pytest.raises(wn.NotSupportedError, match=r"no graph yet\. Run it, or load it with the sizes .* `override_dims`"):
        _ = wn.load_onnx(parsed(SYMBOLIC), context).graph
    assert wn.load_onnx(parsed(SYMBOLIC), context, override_dims={"N": 1}).graph


def test_outputs_are_asked_for_by_a_list_of_names(context):
    model = wn.load_onnx(parsed(SYMBOLIC), context)
    feeds = {"x": np.ones((1, 3), np.float32)}
    name = model.outputs[0].name
    assert list(model.run(feeds, outputs=(name,))) == [name]
    with pytest.raises(wn.MLTypeError, match=rf"run: outputs must be a list of names; got '{name}'; allowed: some of "):
        model.run(feeds, outputs=name)


def test_shape_arithmetic_is_folded(context):
    text = """g (float[N, 4] x) => (float[M, K] y)
    <int64[1] minus = {-1}, int64[1] zero = {0}, int64 one = {1}, int64[1] two = {2}>
    { s = Shape (x) c = Gather (s, one) u = Unsqueeze (c, zero) h = Mul (u, two)
      t = Concat <axis = 0> (minus, h) y = Reshape (x, t) }"""
    model = wn.load_onnx(parsed(text), context, fallback="error")
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    np.testing.assert_array_equal(model.run({"x": x})["y"], x.reshape(2, 8))
    assert [p.op for p in model.placement.on("device")] == ["Reshape"]
    assert model.placement.on("host") == []


def test_a_graph_holds_for_the_elements_that_decided_its_shapes(context):
    model = wn.load_onnx(parsed("g (float[4] x, int64[R] shape) => (float[A, B] y) { y = Reshape (x, shape) }"), context)
    x = np.arange(4, dtype=np.float32)
    for shape, compiled in (([2, 2], 1), ([1, 4], 2), ([2, 2], 2), ([4, -1], 3)):
        given = np.array(shape)
        np.testing.assert_array_equal(model.run({"x": x, "shape": given})["y"], x.reshape(shape))
        given[:] = 7  # what the caller does with his array later changes nothing
        assert model.compiled == compiled


def test_elements_computed_on_the_device_split_the_program(context):
    text = """g (float[N] x) => (float[K] y) <float scale = {2.0}, int64[1] zero = {0}>
    { d = Mul (x, scale) n = NonZero (d) p = Squeeze (n, zero) q = Gather (d, p) y = Mul (q, scale) }"""
    model = wn.load_onnx(parsed(text), context)
    for x in (np.float32([0, 1, 0, 3]), np.float32([5, 0, 6, 7]), np.float32([0, 2, 0, 3])):
        np.testing.assert_array_equal(model.run({"x": x})["y"], 4 * x[x != 0])
    assert model.compiled == 3  # one first stage, two second ones: for two and for three elements
    assert [p.op for p in model.placement.on("host")] == ["NonZero"]


@pytest.mark.parametrize("fallback", ["warn", "host", "error"])
def test_an_operator_that_no_place_has_is_refused_when_the_model_is_loaded(context, caplog, fallback):
    model = parsed("g (float[2] x) => (float[2] y) { h = Relu (x) y = Relux (h) }")
    with pytest.raises(
        wn.NotSupportedError, match=r"no lowering .*; on the host: onnx has no operator ai\.onnx\.Relux\. A func"
    ):
        wn.load_onnx(model, context, fallback=fallback)
    assert not caplog.records


def test_no_silent_fallback(context, caplog):
    model = parsed("g (float[3] x) => (int64[1, K] y) { y = NonZero (x) }")
    with pytest.raises(wn.NotSupportedError, match=r"node 'y' \(NonZero, ai.onnx opset 21\): the device cannot run it"):
        wn.load_onnx(model, context, fallback="error")
    with caplog.at_level(logging.INFO, "webnn_wgpu"):
        wn.load_onnx(model, context)
    assert [(r.levelname, "1 on the host" in r.message, "NonZero 'y'" in r.message) for r in caplog.records] == [
        ("WARNING", True, True)
    ]
    caplog.clear()
    with caplog.at_level(logging.INFO, "webnn_wgpu"):
        wn.load_onnx(model, context, fallback="host")
    assert [r.levelname for r in caplog.records] == ["INFO"]


IF = """g (bool flag, float[2] x) => (float[2] y)
{ y = If (flag) <then_branch = a () => (float[2] t) { t = Relu (x) }, else_branch = b () => (float[2] e) { e = Neg (x) }> }"""


def test_both_branches_of_a_condition_that_is_fed(context):
    model = wn.load_onnx(parsed(IF), context)
    x = np.float32([-1, 2])
    for flag, expected in ((True, [0, 2]), (False, [1, -2]), (True, [0, 2])):
        np.testing.assert_array_equal(model.run({"flag": np.array(flag), "x": x})["y"], expected)
    assert model.compiled == 2


def test_a_condition_computed_on_the_device(context):
    text = (
        IF.replace("bool flag, ", "").replace("(flag)", "(c)").replace("(float[2] y)\n", "(float[2] y) <float zero = {0.0}>\n")
    )
    text = text.replace("{ y =", "{ p = ReduceSum <keepdims = 0> (x) c = Greater (p, zero) y =")
    model = wn.load_onnx(parsed(text), context)
    np.testing.assert_array_equal(model.run({"x": np.float32([-1, 2])})["y"], [0, 2])
    np.testing.assert_array_equal(model.run({"x": np.float32([-3, 2])})["y"], [3, -2])


LOOP = """g (float[2] x) => (float[2] y, float[K, 2] all) <int64 count = {3}, bool yes = {1}, float two = {2.0}>
{ y, all = Loop (count, yes, x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t, float[2] u)
{ d = Identity (c) t = Mul (s, two) u = Add (s, two) }> }"""


def test_a_loop_of_known_length_is_unrolled(context):
    model = wn.load_onnx(parsed(LOOP), context, fallback="error")
    results = model.run({"x": np.float32([1, 5])})
    np.testing.assert_array_equal(results["y"], [8, 40])
    np.testing.assert_array_equal(results["all"], [[3, 7], [4, 12], [6, 22]])


def test_a_loop_of_no_iterations(context):
    results = wn.load_onnx(parsed(LOOP.replace("{3}", "{0}")), context).run({"x": np.float32([1, 5])})
    np.testing.assert_array_equal(results["y"], [1, 5])
    assert results["all"].shape == (0, 2)


def test_a_loop_that_ends_by_a_condition_is_run_by_the_host(context):
    text = """g (float x) => (float y) <bool yes = {1}, float two = {2.0}, float limit = {100.0}>
    { y = Loop (, yes, x) <body = b (int64 i, bool c, float s) => (bool d, float t)
    { t = Mul (s, two) d = Less (t, limit) }> }"""
    model = wn.load_onnx(parsed(text), context)
    for x, expected in ((1, 128), (3, 192), (200, 400)):
        assert model.run({"x": np.float32(x)})["y"] == expected
    with pytest.raises(wn.NotSupportedError, match="number of iterations"):
        wn.load_onnx(parsed(text), context, fallback="error")


def test_a_scan_runs_on_the_device(context):
    text = """g (float[2] start, float[N, 2] xs) => (float[2] last, float[N, 2] sums)
    { last, sums = Scan <num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1],
      body = b (float[2] s, float[2] x) => (float[2] t, float[2] u) { t = Add (s, x) u = Identity (t) }> (start, xs) }"""
    model = wn.load_onnx(parsed(text), context, fallback="error")
    xs = np.arange(6, dtype=np.float32).reshape(3, 2)
    results = model.run({"start": np.float32([10, 20]), "xs": xs})
    np.testing.assert_array_equal(results["last"], [16, 29])
    np.testing.assert_array_equal(results["sums"], (np.cumsum(xs[::-1], 0) + np.array([10, 20]))[::-1])


def test_values_without_elements_are_left_out(context):
    text = """g (float[P, 2] past, float[1, 2] x) => (float[Q, 2] y, int64[2] shape)
    { c = Concat <axis = 0> (past, x) y = Relu (c) shape = Shape (c) }"""
    model = wn.load_onnx(parsed(text), context, fallback="error")
    x = np.float32([[-1, 1]])
    for past in (np.zeros((0, 2), np.float32), np.ones((2, 2), np.float32)):
        results = model.run({"past": past, "x": x})
        np.testing.assert_array_equal(results["y"], np.concatenate([past, [[0, 1]]]))
        np.testing.assert_array_equal(results["shape"], [len(past) + 1, 2])


def test_outputs_that_are_inputs_or_constants(context):
    text = """g (float[2] x) => (float[2] same, float[2] k, float[2] y) <float[2] c = {1, 2}>
    { same = Identity (x) k = Identity (c) y = Add (x, c) }"""
    results = wn.load_onnx(parsed(text), context).run({"x": np.float32([3, 4])})
    assert {n: r.tolist() for n, r in results.items()} == {"same": [3, 4], "k": [1, 2], "y": [4, 6]}


def test_destroying_a_model_frees_its_graphs(context):
    with wn.load_onnx(parsed(SYMBOLIC), context) as model:
        model.run({"x": np.ones((1, 3), np.float32)})
        graph = model.graph
    assert graph.destroyed
    assert model.run({"x": np.ones((1, 3), np.float32)})["y"].shape == (1, 2)


def test_run_async(context):
    model = wn.load_onnx(parsed(SYMBOLIC), context)
    assert model.run_async({"x": np.ones((1, 3), np.float32)}).sync_wait()["y"].tolist() == [[9, 12]]


def test_where_nodes_run_is_looked_up_after_compiling_alone(context, monkeypatch):
    model = wn.load_onnx(parsed(LOOP), context)
    first = model.placement

    def fail():
        raise AssertionError("nothing was compiled")

    monkeypatch.setattr(model._program, "placements", fail)
    model.run({"x": np.float32([1, 5])})
    assert model.placement == first


def test_progress_tells_of_nodes_kernels_and_bytes(context):
    seen = []
    model = wn.load_onnx(bert(), context, override_dims={"batch": 1, "sequence": 5}, progress=lambda *step: seen.append(step))
    doing = ["nodes" if what == READING else "bytes" if what == UPLOADING else "kernels" for _, _, what in seen]
    assert list(dict.fromkeys(doing)) == ["nodes", "kernels", "bytes"]
    assert doing == sorted(doing, key=["nodes", "kernels", "bytes"].index)
    for each in ("kernels", "bytes"):
        steps = [(done, total) for (done, total, _), what in zip(seen, doing, strict=True) if what == each]
        assert steps == sorted(steps)
        assert steps[-1][0] == steps[-1][1]
    assert max(done for done, _, what in seen if what == READING) >= len(model.placement) - 1


FOLDED = [
    ("Softmax", (2, 3, 4), {"axis": 1}, 11),
    ("LogSoftmax", (2, 3, 4), {"axis": 1}, 11),
    ("LogSoftmax", (2, 3), {"axis": 1}, 13),
    ("Hardmax", (2, 3, 4), {"axis": 1}, 11),
    ("LpNormalization", (2, 3, 4), {"axis": 1, "p": 1}, 1),
    ("MaxPool", (1, 2, 9, 8), {"kernel_shape": [2, 2], "strides": [2, 3], "auto_pad": "SAME_LOWER"}, 12),
    (
        "AveragePool",
        (1, 2, 9, 8),
        {"kernel_shape": [3, 3], "strides": [2, 3], "dilations": [2, 2], "ceil_mode": 1, "pads": [1, 0, 0, 1]},
        19,
    ),
]


@pytest.mark.parametrize(("op", "shape", "attributes", "opset"), FOLDED)
def test_what_the_reference_computes_wrongly_is_not_folded_by_it(context, op, shape, attributes, opset):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32) * 300
    check(node_model(op, {}, attributes, opset, constants={"x": x}), {}, context)


def test_recurrences_and_transposed_convolutions_of_constants(context):
    rng = np.random.default_rng(0)

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        constants = {"x": normal(5, 2, 3), "w": normal(1, gates * 3, 3), "r": normal(1, gates * 3, 3)}
        constants |= {"b": normal(1, gates * 6), "lengths": np.int32([2, 5])}
        check(node_model(op, {}, {"hidden_size": 3}, 14, constants=constants, outputs=2), {}, context)
    constants = {"x": normal(1, 4, 5), "w": normal(4, 1, 3)}
    check(node_model("ConvTranspose", {}, {"group": 4}, 11, constants=constants), {}, context)


def test_maxima_of_regions_that_are_not_moved_by_half_an_element(context):
    constants = {"rois": np.float32([[0, 0, 3, 4]]), "batch": np.int64([0])}
    x = {"x": np.random.default_rng(0).standard_normal((1, 2, 7, 6)).astype(np.float32)}
    attributes = {"output_height": 3, "output_width": 2, "mode": "max"}
    check(node_model("RoiAlign", x, attributes, 10, constants=constants), x, context, device_only=False)
