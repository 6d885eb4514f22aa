"""Complete programs as pywebnn's users write them: nothing but the import differs."""

# Only what pywebnn has is used here, spelled as its users spell it.
from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as webnn
from tests.compat.programs import X, doubler, run

pytestmark = pytest.mark.filterwarnings("ignore:no hardware adapter was found:RuntimeWarning")

# contexts ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "options", "preference"),
    [
        ((), {}, "default"),
        ((), {"device_type": "auto"}, "default"),
        ((), {"device_type": "cpu"}, "default"),
        ((), {"device_type": "cpu", "accelerated": False}, "default"),
        ((), {"power_preference": "high-performance", "accelerated": True, "device_type": "gpu"}, "high-performance"),
        ((), {"power_preference": "low-power", "accelerated": False, "device_type": "auto"}, "low-power"),
        (("low-power",), {}, "low-power"),
        (("default", False, "cpu"), {}, "default"),
    ],
)
def test_contexts(args: tuple[Any, ...], options: dict[str, Any], preference: str) -> None:
    with webnn.ML().create_context(*args, **options) as context:
        assert context.power_preference == preference
        assert context.accelerated in (True, False)
        info = context.backend_info()
        assert info["backend_available"] is True
        assert info["accelerated_available"] == context.accelerated
        assert info["compiled_features"] == {info["backend"]: True}


def test_what_pywebnn_exports_is_there() -> None:
    for name in ("ML", "MLContext", "MLGraphBuilder", "MLOperand", "MLGraph", "MLTensor", "AsyncMLContext"):
        assert isinstance(getattr(webnn, name), type)


def test_support_limits(context: webnn.MLContext) -> None:
    limits = context.op_support_limits()
    assert isinstance(limits, dict)
    assert limits["preferredInputLayout"] in ("nchw", "nhwc")
    assert limits["maxTensorByteLength"] > 0
    for key in ("input", "constant", "output"):
        assert "float32" in limits[key]["dataTypes"]
    for operator, operands in {
        "relu": ("input", "output"),
        "add": ("a", "b", "output"),
        "matmul": ("a", "b", "output"),
        "softmax": ("input", "output"),
        "reduceSum": ("input", "output"),
        "concat": ("inputs", "output"),
        "gather": ("input", "indices", "output"),
        "layerNormalization": ("input", "scale", "bias", "output"),
    }.items():
        for operand in operands:
            of_operand = limits[operator][operand]
            assert "float32" in of_operand["dataTypes"] or operand == "indices"
            assert 0 <= of_operand["rankRange"]["min"] <= of_operand["rankRange"]["max"]


# graphs -----------------------------------------------------------------------------------------------------------------


def test_a_classifier(context: webnn.MLContext) -> None:
    rng = np.random.default_rng(0)
    w1, w2 = rng.standard_normal((8, 16)).astype("float32"), rng.standard_normal((16, 4)).astype("float32")
    b1, b2 = np.zeros(16, dtype="float32"), np.ones(4, dtype="float32")
    builder = context.create_graph_builder()
    x = builder.input("x", [2, 8], "float32")
    hidden = builder.relu(builder.add(builder.matmul(x, builder.constant(w1)), builder.constant(b1)))
    logits = builder.gemm(hidden, builder.constant(w2), builder.constant(b2))
    graph = builder.build({"probabilities": builder.softmax(logits, 1), "logits": logits})

    assert graph.get_input_names() == ["x"]
    assert graph.get_output_names() == ["probabilities", "logits"]
    assert graph.operation_count == 5
    assert graph.operand_count == 1 + 4 + 5

    data = rng.standard_normal((2, 8)).astype("float32")
    results = context.compute(graph, {"x": data})
    assert isinstance(results, dict)
    assert sorted(results) == ["logits", "probabilities"]
    expected = np.maximum(data @ w1 + b1, 0) @ w2 + b2
    np.testing.assert_allclose(results["logits"], expected, rtol=1e-4, atol=1e-5)
    weights = np.exp(expected - expected.max(1, keepdims=True))
    np.testing.assert_allclose(results["probabilities"], weights / weights.sum(1, keepdims=True), rtol=1e-4, atol=1e-5)
    # Results go straight into the next run, also as a mapping of their own.
    results["again"] = results.pop("logits")
    assert results["again"].dtype == np.float32


def test_operands(context: webnn.MLContext) -> None:
    builder = context.create_graph_builder()
    x = builder.input("x", [2, 3], "float32")
    y = builder.input(name="y", shape=[3], data_type="int32")
    assert (x.name, x.data_type, y.name, y.data_type) == ("x", "float32", "y", "int32")
    assert builder.relu(x).name is None
    assert x.shape == [2, 3]
    assert x.shape != [3, 2]
    assert len(x.shape) == 2
    assert x.shape[-1] == 3
    assert x.shape[1:] == [3]
    assert x.shape[:1] + [4] == [2, 4]  # noqa: RUF005 - what is tested
    assert [1] + x.shape == [1, 2, 3]  # noqa: RUF005 - likewise
    assert x.shape.copy() == [2, 3]
    assert list(x.shape) == [2, 3]
    assert builder.reshape(x, x.shape[::-1]).shape == [3, 2]
    assert all(part in repr(x) for part in ("MLOperand", "x", "float32", "2, 3"))


CONSTANTS: dict[str, tuple[Callable[[Any], Any], str, Any]] = {
    "array": (lambda b: b.constant(np.float32([1, 2])), "float32", [1, 2]),
    "array with shape": (lambda b: b.constant(np.float32([1, 2]), [1, 2]), "float32", [[1, 2]]),
    "array with shape and type": (lambda b: b.constant(np.int32([1, 2]), [2, 1], "int32"), "int32", [[1], [2]]),
    "keywords": (lambda b: b.constant(value=np.uint8([7]), shape=[1, 1], data_type="uint8"), "uint8", [[7]]),
    "scalar of numpy": (lambda b: b.constant(np.float32(2.5)), "float32", 2.5),
    "array without dimensions": (lambda b: b.constant(np.array(3, np.int8), [], "int8"), "int8", 3),
    "list of integers": (lambda b: b.constant([0, 2, 1]), "int64", [0, 2, 1]),
    "list of integers with type": (lambda b: b.constant([0, 2], [2], "int64"), "int64", [0, 2]),
    "list of lists": (lambda b: b.constant([[1.5, 2], [3, 4]], [2, 2], "float32"), "float32", [[1.5, 2], [3, 4]]),
    "half": (lambda b: b.constant(np.float16([0.5])), "float16", [0.5]),
}


@pytest.mark.parametrize("case", CONSTANTS)
def test_constants(context: webnn.MLContext, case: str) -> None:
    make, data_type, expected = CONSTANTS[case]
    builder = context.create_graph_builder()
    made = make(builder)
    assert (made.data_type, made.shape, made.name) == (data_type, list(np.shape(expected)), None)
    result = context.compute(builder.build({"y": builder.identity(made)}), {})["y"]
    assert result.tolist() == expected
    assert result.dtype == data_type


def test_a_list_of_integers_gathers(context: webnn.MLContext) -> None:
    rows = run(context, lambda b, x: b.gather(x, b.constant([1, 0, 1])), x=X)
    assert rows.tolist() == X[[1, 0, 1]].tolist()


# Options by position, in pywebnn's order, and the same call with every argument named as pywebnn names it.
SPELLINGS: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[int]]] = {
    "relu": (lambda b, x, m: b.relu(x), lambda b, x, m: b.relu(x=x), [2, 3]),
    "add": (lambda b, x, m: b.add(x, m), lambda b, x, m: b.add(a=x, b=m), [2, 3]),
    "clamp": (lambda b, x, m: b.clamp(x, -1, 2), lambda b, x, m: b.clamp(input=x, min_value=-1, max_value=2), [2, 3]),
    "elu": (lambda b, x, m: b.elu(x, 0.5), lambda b, x, m: b.elu(input=x, alpha=0.5), [2, 3]),
    "leaky_relu": (lambda b, x, m: b.leaky_relu(x, 0.5), lambda b, x, m: b.leaky_relu(input=x, alpha=0.5), [2, 3]),
    "hard_sigmoid": (
        lambda b, x, m: b.hard_sigmoid(x, 0.3, 0.4),
        lambda b, x, m: b.hard_sigmoid(input=x, alpha=0.3, beta=0.4),
        [2, 3],
    ),
    "hard_swish": (
        lambda b, x, m: b.hard_swish(x, 0.2, 0.4),
        lambda b, x, m: b.hard_swish(input=x, alpha=0.2, beta=0.4),
        [2, 3],
    ),
    "reduce_sum": (
        lambda b, x, m: b.reduce_sum(x, [1], True),
        lambda b, x, m: b.reduce_sum(input=x, axes=[1], keep_dimensions=True),
        [2, 1],
    ),
    "reduce_mean": (lambda b, x, m: b.reduce_mean(x, [0]), lambda b, x, m: b.reduce_mean(input=x, axes=[0]), [3]),
    "reshape": (lambda b, x, m: b.reshape(x, [6]), lambda b, x, m: b.reshape(x=x, new_shape=[6]), [6]),
    "softmax": (lambda b, x, m: b.softmax(x, 0), lambda b, x, m: b.softmax(x=x, axis=0), [2, 3]),
    "transpose": (
        lambda b, x, m: b.transpose(x, [1, 0]),
        lambda b, x, m: b.transpose(input=x, permutation=[1, 0]),
        [3, 2],
    ),
    "concat": (lambda b, x, m: b.concat([x, m], 1), lambda b, x, m: b.concat(inputs=[x, m], axis=1), [2, 6]),
    "expand": (
        lambda b, x, m: b.expand(b.slice(x, [0, 0], [1, 3]), [4, 3]),
        lambda b, x, m: b.expand(input=b.slice(input=x, starts=[0, 0], sizes=[1, 3]), new_shape=[4, 3]),
        [4, 3],
    ),
    "slice": (
        lambda b, x, m: b.slice(x, [0, 0], [2, 3], [1, 2]),
        lambda b, x, m: b.slice(input=x, starts=[0, 0], sizes=[2, 3], strides=[1, 2]),
        [2, 2],
    ),
    "split": (lambda b, x, m: b.split(x, [1, 2], 1)[1], lambda b, x, m: b.split(input=x, splits=[1, 2], axis=1)[1], [2, 2]),
    "split into equal parts": (lambda b, x, m: b.split(x, 3, 1)[2], lambda b, x, m: b.split(x, splits=3, axis=1)[2], [2, 1]),
    "pad": (
        lambda b, x, m: b.pad(x, [1, 0, 0, 2], "constant", 7.0),
        lambda b, x, m: b.pad(input=x, padding=[1, 0, 0, 2], mode="constant", value=7.0),
        [3, 5],
    ),
    "pad by reflection": (
        lambda b, x, m: b.pad(x, [1, 1, 1, 1], "reflection"),
        lambda b, x, m: b.pad(x, padding=[1, 1, 1, 1], mode="reflection"),
        [4, 5],
    ),
    "tile": (lambda b, x, m: b.tile(x, [2, 1]), lambda b, x, m: b.tile(input=x, repetitions=[2, 1]), [4, 3]),
    "triangular": (
        lambda b, x, m: b.triangular(x, True, 1),
        lambda b, x, m: b.triangular(input=x, upper=True, diagonal=1),
        [2, 3],
    ),
    "squeeze": (
        lambda b, x, m: b.squeeze(b.unsqueeze(x, [0, 3]), [3]),
        lambda b, x, m: b.squeeze(input=b.unsqueeze(input=x, axes=[0, 3]), axes=[3]),
        [1, 2, 3],
    ),
    "cast": (lambda b, x, m: b.cast(x, "int32"), lambda b, x, m: b.cast(input=x, data_type="int32"), [2, 3]),
    "arg_max": (
        lambda b, x, m: b.arg_max(x, 1, True, "int64"),
        lambda b, x, m: b.arg_max(input=x, axis=1, keep_dimensions=True, output_data_type="int64"),
        [2, 1],
    ),
    "where_": (
        lambda b, x, m: b.where_(b.greater(x, m), x, m),
        lambda b, x, m: b.where_(condition=b.greater(a=x, b=m), true_value=x, false_value=m),
        [2, 3],
    ),
    "gemm": (
        lambda b, x, m: b.gemm(x, m, None, 0.5, 1.0, False, True),
        lambda b, x, m: b.gemm(a=x, b=m, alpha=0.5, b_transpose=True),
        [2, 2],
    ),
    "matmul": (
        lambda b, x, m: b.matmul(x, b.transpose(m)),
        lambda b, x, m: b.matmul(a=x, b=b.transpose(input=m)),
        [2, 2],
    ),
    "layer_normalization": (
        lambda b, x, m: b.layer_normalization(x, None, None, 1e-3, [1]),
        lambda b, x, m: b.layer_normalization(input=x, epsilon=1e-3, axes=[1]),
        [2, 3],
    ),
    "batch_normalization": (
        lambda b, x, m: b.batch_normalization(x, b.constant(np.ones(2, "float32")), b.reduce_max(m, [1]), None, None, 0.1, 0),
        lambda b, x, m: b.batch_normalization(
            input=x, mean=b.constant(np.ones(2, "float32")), variance=b.reduce_max(m, axes=[1]), epsilon=0.1, axis=0
        ),
        [2, 3],
    ),
    "instance_normalization": (
        lambda b, x, m: b.instance_normalization(b.reshape(x, [1, 1, 2, 3]), None, None, 1e-3, "nhwc"),
        lambda b, x, m: b.instance_normalization(input=b.reshape(x, [1, 1, 2, 3]), epsilon=1e-3, layout="nhwc"),
        [1, 1, 2, 3],
    ),
    "prelu": (lambda b, x, m: b.prelu(x, m), lambda b, x, m: b.prelu(input=x, slope=m), [2, 3]),
    "gather": (
        lambda b, x, m: b.gather(x, b.constant([2, 0]), 1),
        lambda b, x, m: b.gather(input=x, indices=b.constant([2, 0]), axis=1),
        [2, 2],
    ),
    "scatter_elements": (
        lambda b, x, m: b.scatter_elements(x, b.constant([[2], [0]]), b.slice(m, [0, 0], [2, 1]), 1),
        lambda b, x, m: b.scatter_elements(input=x, indices=b.constant([[2], [0]]), updates=b.slice(m, [0, 0], [2, 1]), axis=1),
        [2, 3],
    ),
    "scatter_nd": (
        lambda b, x, m: b.scatter_nd(x, b.constant([[1]]), b.slice(m, [0, 0], [1, 3])),
        lambda b, x, m: b.scatter_nd(input=x, indices=b.constant([[1]]), updates=b.slice(m, [0, 0], [1, 3])),
        [2, 3],
    ),
}


def test_options_by_position_and_by_name(context: webnn.MLContext) -> None:
    """One graph of them all: what is written by position and what is written by name give the same."""
    builder = context.create_graph_builder()
    x, m = builder.input("x", [2, 3], "float32"), builder.input("m", [2, 3], "float32")
    outputs: dict[str, Any] = {}
    for name, (by_position, by_name, shape) in SPELLINGS.items():
        outputs[name], outputs[f"{name} by name"] = by_position(builder, x, m), by_name(builder, x, m)
        assert outputs[name].shape == shape, name
    results = context.compute(builder.build(outputs), {"x": X, "m": np.full((2, 3), 0.5, np.float32)})
    for name in SPELLINGS:
        np.testing.assert_array_equal(results[name], results[f"{name} by name"], name)
    # That the options arrived, and in their places.
    assert results["clamp"].tolist() == np.clip(X, -1, 2).tolist()
    assert results["leaky_relu"].tolist() == np.where(X < 0, X / 2, X).tolist()
    assert results["reduce_sum"].tolist() == [[-3], [6]]
    assert results["slice"].tolist() == X[:, ::2].tolist()
    assert results["pad"].tolist() == np.pad(X, [(1, 0), (0, 2)], constant_values=7).tolist()
    assert results["pad by reflection"].tolist() == np.pad(X, 1, "reflect").tolist()
    assert results["triangular"].tolist() == np.triu(X, 1).tolist()
    assert results["gemm"].tolist() == (0.25 * X @ np.ones((3, 2), np.float32)).tolist()
    assert results["gather"].tolist() == X[:, [2, 0]].tolist()
    assert results["where_"].tolist() == np.where(X > 0.5, X, 0.5).tolist()
    np.testing.assert_allclose(results["hard_sigmoid"], np.clip(0.3 * X + 0.4, 0, 1), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(results["batch_normalization"], (X - 1) / np.sqrt(0.6), rtol=1e-6)


@pytest.mark.parametrize(
    "condition",
    [
        np.float32([0, 0.5, -1, 256, np.nan, np.inf]),
        np.float16([0, 0.5, -1, 256, np.nan, -np.inf]),
        np.int32([0, 1, -1, 256, 1 << 16, -(1 << 31)]),
        np.int8([0, 1, -1, -128, 127, 2]),
        np.uint8([0, 1, 255, 128, 127, 2]),
    ],
    ids=lambda c: str(c.dtype),
)
def test_conditions_of_any_data_type(context: webnn.MLContext, condition: np.ndarray) -> None:
    ones, zeros = np.ones(6, np.float32), np.zeros(6, np.float32)
    chosen = run(context, lambda b, c, x, y: b.where_(c, x, y), condition=condition, x=ones, y=zeros)
    assert chosen.tolist() == [0, 1, 1, 1, 1, 1]


# errors -----------------------------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "add": (lambda b, x: b.add(x, b.input("y", [2, 4], "float32")), "Incompatible shapes"),
    "matmul": (lambda b, x: b.matmul(x, b.input("y", [4, 2], "float32")), "Incompatible shapes for matmul"),
    "axis of a reduction": (lambda b, x: b.reduce_sum(x, axes=[2]), "Axis 2 out of bounds for rank 2"),
    "axis of arg_max": (lambda b, x: b.arg_max(x, axis=5), "out of bounds"),
    "axis of unsqueeze": (lambda b, x: b.unsqueeze(x, [5]), "out of bounds"),
    "axis twice": (lambda b, x: b.reduce_sum(x, axes=[0, 0]), "Duplicate axis"),
    "reshape": (lambda b, x: b.reshape(x, [4, 2]), "Reshape requires same number of elements"),
    "layout": (lambda b, x: b.instance_normalization(b.input("i", [1, 1, 2, 2], "float32"), layout="nchv"), "Invalid layout"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_errors_of_the_builder(context: webnn.MLContext, case: str) -> None:
    make, phrase = REFUSED[case]
    builder = context.create_graph_builder()
    x = builder.input("x", [2, 3], "float32")
    with pytest.raises(ValueError, match=phrase):
        make(builder, x)
    assert builder.relu(x).shape == [2, 3]  # the builder goes on


def test_errors_of_compute(context: webnn.MLContext) -> None:
    builder = context.create_graph_builder()
    graph = builder.build({"y": builder.relu(builder.input("x", [2, 3], "float32"))})
    with pytest.raises(ValueError, match="'x' is missing"):
        context.compute(graph, {})
    with pytest.raises(ValueError, match="Shape mismatch"):
        context.compute(graph, {"x": np.zeros((3, 3), np.float32)})


# tensors ----------------------------------------------------------------------------------------------------------------


def test_tensors(context: webnn.MLContext) -> None:
    graph = doubler(context, [2, 3])
    source, target = (context.create_host_tensor([2, 3], "float32") for _ in range(2))
    assert context.read_tensor(source).tolist() == np.zeros((2, 3)).tolist()
    context.write_tensor(source, X)
    context.dispatch(graph, {"x": source}, {"y": target})
    np.testing.assert_array_equal(context.read_tensor(target), 2 * X)
    context.write_tensor(source, [[1, 1, 1], [2, 2, 2]])
    assert context.read_tensor(source).tolist() == [[1, 1, 1], [2, 2, 2]]
    assert (source.shape, source.data_type, source.size) == ([2, 3], "float32", 6)
    assert all(part in repr(source) for part in ("MLTensor", "[2, 3]", "float32"))
    with pytest.raises(ValueError, match="Shape mismatch"):
        context.write_tensor(source, np.zeros((3, 3), np.float32))


def test_flags_of_tensors(context: webnn.MLContext) -> None:
    plain = context.create_tensor([2, 3], "float32")
    assert (plain.readable, plain.writable, plain.exportable_to_gpu) == (False, False, False)
    every = context.create_tensor([2, 3], "float32", readable=True, writable=True, exportable_to_gpu=True)
    assert (every.readable, every.writable, every.exportable_to_gpu) == (True, True, True)
    named = context.create_tensor(shape=[5], data_type="int32", readable=True)
    assert (named.shape, named.size, named.readable, named.writable) == ([5], 5, True, False)
    with pytest.raises(RuntimeError, match="not readable"):
        context.read_tensor(plain)
    with pytest.raises(RuntimeError, match="not writable"):
        context.write_tensor(plain, X)
    every.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        context.read_tensor(every)
    with pytest.raises(RuntimeError, match="destroyed"):
        context.write_tensor(every, X)


def test_device_tensors_change_places(context: webnn.MLContext) -> None:
    graph = doubler(context, [4])
    past = context.create_device_tensor(graph, [4], "float32")
    present = context.create_device_tensor(graph=graph, shape=[4], data_type="float32", device="cpu")
    past.write(np.ones(4, np.float32))
    for _ in range(5):
        context.dispatch(graph, {"x": past}, {"y": present})
        past, present = present, past
    assert past.read().tolist() == [32] * 4
    assert (past.shape, past.data_type, past.size) == ([4], "float32", 4)
    assert past.device in ("cpu", "gpu")
    assert past.backend
    assert all(part in repr(past) for part in ("MLDeviceTensor", "[4]", "float32"))
    with pytest.raises(ValueError, match="Shape mismatch"):
        past.write(np.zeros((2, 4), np.float32))
    past.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        past.read()


def test_device_and_host_tensors_together(context: webnn.MLContext) -> None:
    graph = doubler(context, [3])
    source, target = context.create_host_tensor([3], "float32"), context.create_device_tensor(graph, [3], "float32")
    context.write_tensor(source, np.float32([1, 2, 3]))
    context.dispatch(graph, {"x": source}, {"y": target})
    assert context.read_tensor(target).tolist() == [2, 4, 6]


def test_async_context(context: webnn.MLContext) -> None:
    wrapped = webnn.AsyncMLContext(context)
    assert wrapped.accelerated == context.accelerated
    assert wrapped.power_preference == context.power_preference

    async def main() -> Any:
        graph = doubler(wrapped, [2, 3])
        source = wrapped.create_tensor([2, 3], "float32")
        target = wrapped.create_tensor(shape=[2, 3], data_type="float32", writable=False)
        for other in (wrapped.createTensor([2], "float32"), wrapped.create_tensor({"dataType": "float32", "shape": [2]})):
            assert (other.readable, other.writable) == (True, True)
        assert (source.readable, source.writable, target.readable, target.writable) == (True, True, True, False)
        await wrapped.write_tensor_async(source, X)
        await wrapped.dispatch(graph, {"x": source}, {"y": target})
        assert wrapped.compute(graph, {"x": X})["y"].tolist() == (2 * X).tolist()
        wrapped.write_tensor(source, X)
        np.testing.assert_array_equal(wrapped.read_tensor(source), X)
        return await wrapped.read_tensor_async(target)

    assert asyncio.run(main()).tolist() == (2 * X).tolist()
