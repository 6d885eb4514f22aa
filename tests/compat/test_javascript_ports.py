"""JavaScript of the specification's kind, ported line by line: camelCase names, descriptors and mappings of options."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn

MLGraphBuilder = wn.MLGraphBuilder
X = np.array([[-2, -1, 0], [1, 2, 3]], np.float32)


def float32(*values: float) -> np.ndarray:
    """`new Float32Array([...])`."""
    return np.array(values, np.float32)


# programs ---------------------------------------------------------------------------------------------------------------


def test_tensors_and_promises() -> None:
    """Everything that is awaited in JavaScript is awaited here, beginning with the context."""

    async def main() -> Any:
        context = await wn.ml.createContextAsync({"powerPreference": "low-power", "accelerated": False})
        with context:
            builder = MLGraphBuilder(context)
            descriptor = {"dataType": "float32", "shape": [2, 2]}
            slope = builder.constant(descriptor, np.full(4, 3, np.float32))
            A = builder.input("A", descriptor)  # noqa: N806 - as in the formula 3 * A + B
            B = builder.input("B", descriptor)  # noqa: N806
            C = builder.add(builder.mul(A, slope), B)  # noqa: N806
            graph = await builder.buildAsync({"C": C})

            a, b, c = await asyncio.gather(
                settled(context.createTensorAsync({"dataType": A.dataType, "shape": A.shape, "writable": True})),
                settled(context.createTensorAsync({"dataType": B.dataType, "shape": B.shape, "writable": True})),
                settled(context.createTensorAsync({"dataType": C.dataType, "shape": C.shape, "readable": True})),
            )
            context.writeTensor(a, float32(1, 2, 3, 4))
            context.writeTensor(b, np.full(4, 0.5, np.float32))
            context.dispatch(graph, {"A": a, "B": b}, {"C": c})
            result = await context.readTensorAsync(c)
            into = np.zeros(4, np.float32)
            assert await context.readTensorAsync(c, into) is None
            assert into.tolist() == result.reshape(-1).tolist()
        info = await context.lost
        assert "destroy" in info.message
        return result

    assert asyncio.run(main()).tolist() == [[3.5, 6.5], [9.5, 12.5]]


async def settled(promise: Any) -> Any:
    return await promise


def test_arrays_in_and_out(context: wn.MLContext) -> None:
    """The way of 2024: `dimensions`, `compute` with arrays of the caller's, the outputs beside the inputs."""
    builder = MLGraphBuilder(context)
    desc = {"dataType": "float32", "dimensions": [1, 2, 2, 2]}
    constant1 = builder.constant(desc, np.full(8, 0.5, np.float32))
    constant2 = builder.constant(desc, np.full(8, 0.5, np.float32))
    input1, input2 = builder.input("input1", desc), builder.input("input2", desc)
    product = builder.mul(builder.add(constant1, input1), builder.add(constant2, input2))
    assert (product.shape(), product.dataType()) == ([1, 2, 2, 2], "float32")
    graph = builder.build({"output": product})

    inputs = {"input1": np.ones(8, np.float32), "input2": np.full(8, 2, np.float32)}
    outputs = {"output": np.zeros(8, np.float32)}
    results = context.compute(graph, inputs, outputs)
    assert results.outputs["output"] is outputs["output"]
    assert results.inputs["input1"] is inputs["input1"]
    assert outputs["output"].tolist() == [3.75] * 8


def test_one_of_two_outputs(context: wn.MLContext) -> None:
    builder = MLGraphBuilder(context)
    a = builder.input("a", {"dataType": "float32", "dimensions": [3, 4]})
    b = builder.constant({"dataType": "float32", "dimensions": [4, 3]}, np.full(12, 0.5, np.float32))
    d = builder.matmul(a, b)
    e = builder.add(d, builder.constant({"dataType": "float32", "dimensions": [3, 3]}, np.ones(9, np.float32)))
    graph = builder.build({"d": d, "e": e})
    data = {"a": np.full(12, 0.5, np.float32)}
    assert set(context.compute(graph, data)) == {"d", "e"}
    for name, value in (("d", 1), ("e", 2)):
        results = context.compute(graph, data, {name: np.zeros((3, 3), np.float32)})
        assert list(results.outputs) == [name]
        assert results.outputs[name].tolist() == [[value] * 3] * 3


def test_a_graph_of_several_builds(context: wn.MLContext) -> None:
    """In the text of 2024 a builder builds as often as it likes."""
    builder = MLGraphBuilder(context, "2024")
    x = builder.input("x", {"dataType": "float32", "dimensions": [2, 3]})
    first = builder.relu(x)
    second = builder.reduceSum(first, {"axes": [1]})
    assert context.compute(builder.build({"y": first}), {"x": X})["y"].tolist() == np.maximum(X, 0).tolist()
    assert context.compute(builder.build({"y": second}), {"x": X})["y"].tolist() == [0, 6]


def test_constant_tensors_and_scalars(context: wn.MLContext) -> None:
    weights = context.createConstantTensor({"dataType": "float32", "shape": [3]}, float32(1, 2, 3))
    assert (weights.constant, weights.dataType, weights.shape) == (True, "float32", [3])
    builder = MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [2, 3]})
    half = builder.constant("float32", 0.5)
    same = builder.constant(0.5, "float32")
    steps = builder.constant(0, 3, 1, "float32")
    y = builder.add(builder.mul(builder.mul(x, builder.constant(weights)), builder.add(half, same)), steps)
    graph = builder.build({"y": y})
    weights.destroy()
    assert context.compute(graph, {"x": X})["y"].tolist() == (X * [1, 2, 3] + [0, 1, 2]).tolist()


def test_support_limits(context: wn.MLContext) -> None:
    limits = context.opSupportLimits()
    assert "float32" in limits["input"]["dataTypes"]
    assert limits["gather"]["indices"]["rankRange"]["min"] == 0
    assert limits["where"]["trueValue"]["dataTypes"] == limits["where"]["output"]["dataTypes"]
    assert limits["maxTensorByteLength"] == limits["max_tensor_byte_length"] > 0


# operators written out in terms of others: each must do what the operator does ---------------------------------------------


def helper_squeeze(builder: Any, operand: Any, axes: list[int]) -> Any:
    shape = list(operand.shape)
    for axis in sorted(axes, reverse=True):
        del shape[axis]
    return builder.reshape(operand, shape)


def written_softmax(builder: Any, operand: Any, axis: int) -> Any:
    greatest = builder.reduceMax(operand, {"axes": [axis], "keepDimensions": True})
    exponentials = builder.exp(builder.sub(operand, greatest))
    return builder.div(exponentials, builder.reduceSum(exponentials, {"axes": [axis], "keepDimensions": True}))


def written_clamp(builder: Any, operand: Any, options: dict[str, float]) -> Any:
    if "minValue" in options:
        operand = builder.max(operand, builder.constant(operand.dataType, options["minValue"]))
    if "maxValue" in options:
        operand = builder.min(operand, builder.constant(operand.dataType, options["maxValue"]))
    return operand


def written_sign(builder: Any, operand: Any) -> Any:
    zero, one, minus = (builder.constant(operand.dataType, n) for n in (0, 1, -1))
    return builder.where(builder.greater(operand, zero), one, builder.where(builder.lesser(operand, zero), minus, zero))


def written_gemm(builder: Any, a: Any, b: Any, options: dict[str, Any]) -> Any:
    if options.get("aTranspose"):
        a = builder.transpose(a)
    if options.get("bTranspose"):
        b = builder.transpose(b)
    product = builder.matmul(builder.mul(builder.constant(a.dataType, options["alpha"]), a), b)
    return builder.add(product, builder.mul(builder.constant(a.dataType, options["beta"]), options["c"]))


def written_gelu(builder: Any, operand: Any) -> Any:
    half, one, two = (builder.constant(operand.dataType, n) for n in (0.5, 1, 2))
    return builder.mul(builder.mul(operand, half), builder.add(one, builder.erf(builder.div(operand, builder.sqrt(two)))))


def written_elu(builder: Any, operand: Any, options: dict[str, float]) -> Any:
    zero, one, alpha = (builder.constant(operand.dataType, n) for n in (0, 1, options["alpha"]))
    below = builder.sub(builder.exp(builder.min(zero, operand)), one)
    return builder.add(builder.max(zero, operand), builder.mul(alpha, below))


def written_prelu(builder: Any, operand: Any, slope: Any) -> Any:
    zero = builder.constant(operand.dataType, 0)
    return builder.add(builder.max(zero, operand), builder.mul(slope, builder.min(zero, operand)))


def written_batch_normalization(builder: Any, operand: Any, mean: Any, variance: Any, options: dict[str, Any]) -> Any:
    shape = [1] * len(operand.shape)
    shape[options["axis"]] = operand.shape[options["axis"]]
    epsilon = builder.constant(operand.dataType, options["epsilon"])
    centered = builder.sub(operand, builder.reshape(mean, shape))
    scaled = builder.div(centered, builder.sqrt(builder.add(builder.reshape(variance, shape), epsilon)))
    return builder.add(builder.mul(builder.reshape(options["scale"], shape), scaled), builder.reshape(options["bias"], shape))


def written_split(builder: Any, operand: Any, splits: list[int], options: dict[str, int]) -> list[Any]:
    outputs: list[Any] = []
    starts, sizes = [0] * len(operand.shape), list(operand.shape)
    for size in splits:
        sizes[options["axis"]] = size
        outputs.append(builder.slice(operand, starts, sizes))
        starts[options["axis"]] += size
    return outputs


def written_reduction(name: str) -> Callable[..., Any]:
    def reduction(builder: Any, operand: Any, options: dict[str, Any] | None = None) -> Any:
        if name == "LogSumExp":
            return builder.log(builder.reduceSum(builder.exp(operand), options))
        if name == "L2":
            return builder.sqrt(builder.reduceSumSquare(operand, options))
        return builder.reduceSum(builder.mul(operand, operand), options)

    return reduction


PORTS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "softmax": (lambda b, x: b.softmax(x, 1), lambda b, x: written_softmax(b, x, 1)),
    "softmax of 2024": (lambda b, x: b.softmax(x), lambda b, x: written_softmax(b, x, 1)),
    "clamp": (
        lambda b, x: b.clamp(x, {"minValue": -1, "maxValue": 2}),
        lambda b, x: written_clamp(b, x, {"minValue": -1, "maxValue": 2}),
    ),
    "clamp above": (lambda b, x: b.clamp(x, {"maxValue": 0.5}), lambda b, x: written_clamp(b, x, {"maxValue": 0.5})),
    "clamp without bounds": (lambda b, x: b.clamp(x, {}), lambda b, x: b.identity(x)),
    "sign": (lambda b, x: b.sign(x), written_sign),
    "gelu": (lambda b, x: b.gelu(x), written_gelu),
    "elu": (lambda b, x: b.elu(x, {"alpha": 0.5}), lambda b, x: written_elu(b, x, {"alpha": 0.5})),
    "leakyRelu": (
        lambda b, x: b.leakyRelu(x, {"alpha": 0.25}),
        lambda b, x: written_prelu(b, x, b.constant("float32", 0.25)),
    ),
    "prelu": (
        lambda b, x: b.prelu(x, b.constant({"dataType": "float32", "shape": [3]}, float32(1, 2, 3))),
        lambda b, x: written_prelu(b, x, b.constant({"dataType": "float32", "shape": [3]}, float32(1, 2, 3))),
    ),
    "relu": (lambda b, x: b.relu(x), lambda b, x: b.max(b.constant(x.dataType, 0), x)),
    "sigmoid": (
        lambda b, x: b.sigmoid(x),
        lambda b, x: b.div(b.constant(x.dataType, 1), b.add(b.exp(b.neg(x)), b.constant(x.dataType, 1))),
    ),
    "tanh": (
        lambda b, x: b.tanh(x),
        lambda b, x: b.div(
            b.sub(b.exp(b.mul(b.constant(x.dataType, 2), x)), b.constant(x.dataType, 1)),
            b.add(b.exp(b.mul(b.constant(x.dataType, 2), x)), b.constant(x.dataType, 1)),
        ),
    ),
    "softplus": (lambda b, x: b.softplus(x), lambda b, x: b.log(b.add(b.exp(x), b.constant(x.dataType, 1)))),
    "softsign": (lambda b, x: b.softsign(x), lambda b, x: b.div(x, b.add(b.constant(x.dataType, 1), b.abs(x)))),
    "hardSigmoid": (
        lambda b, x: b.hardSigmoid(x, {"alpha": 0.3, "beta": 0.4}),
        lambda b, x: b.clamp(
            b.linear(x, {"alpha": 0.3, "beta": 0.4}),
            {"minValue": 0, "maxValue": 1},
        ),
    ),
    "hardSwish": (
        lambda b, x: b.hardSwish(x),
        lambda b, x: b.div(
            b.mul(x, b.max(b.constant("float32", 0), b.min(b.constant("float32", 6), b.add(x, b.constant("float32", 3))))),
            b.constant("float32", 6),
        ),
    ),
    "linear": (
        lambda b, x: b.linear(x, {"alpha": 2, "beta": 0.5}),
        lambda b, x: b.add(b.mul(x, b.constant("float32", 2)), b.constant("float32", 0.5)),
    ),
    "gemm": (
        lambda b, x: b.gemm(x, x, {"c": b.constant("float32", 1), "alpha": 0.5, "beta": 2, "bTranspose": True}),
        lambda b, x: written_gemm(b, x, x, {"c": b.constant("float32", 1), "alpha": 0.5, "beta": 2, "bTranspose": True}),
    ),
    "split": (
        lambda b, x: b.concat(b.split(x, [1, 2], {"axis": 1})[::-1], 1),
        lambda b, x: b.concat(written_split(b, x, [1, 2], {"axis": 1})[::-1], 1),
    ),
    "reduceSumSquare": (
        lambda b, x: b.reduceSumSquare(x, {"axes": [0]}),
        lambda b, x: written_reduction("SumSquare")(b, x, {"axes": [0]}),
    ),
    "reduceSumSquare of all": (lambda b, x: b.reduceSumSquare(x), written_reduction("SumSquare")),
    "reduceLogSumExp": (lambda b, x: b.reduceLogSumExp(x), written_reduction("LogSumExp")),
    "reduceL2": (
        lambda b, x: b.reduceL2(x, {"axes": [1], "keepDimensions": True}),
        lambda b, x: written_reduction("L2")(b, x, {"axes": [1], "keepDimensions": True}),
    ),
    "squeeze": (
        lambda b, x: b.squeeze(b.unsqueeze(x, [0, 2]), {"axes": [2]}),
        lambda b, x: helper_squeeze(b, b.reshape(x, [1, 2, 1, 3]), [2]),
    ),
    "flatten": (lambda b, x: b.flatten(x, 0), lambda b, x: b.reshape(x, [1, math.prod(x.shape)])),
    "transpose": (lambda b, x: b.transpose(x), lambda b, x: b.transpose(x, {"permutation": [1, 0]})),
    "cast": (lambda b, x: b.cast(b.cast(x, "int32"), "float32"), lambda b, x: b.identity(x)),
    "not": (
        lambda b, x: b.cast(getattr(b, "not")(b.greater(x, b.constant("float32", 0))), "float32"),
        lambda b, x: b.cast(b.lesserOrEqual(x, b.constant("float32", 0)), "float32"),
    ),
    "where of 2024": (
        lambda b, x: b.where(b.greater(x, b.neg(x)), input=x, other=b.neg(x)),
        lambda b, x: b.abs(x),
    ),
    "pow": (lambda b, x: b.pow(x, b.constant("float32", 2)), lambda b, x: b.mul(x, x)),
    "batchNormalization": (
        lambda b, x: b.batchNormalization(
            b.reshape(x, [1, 3, 2, 1]), channels(b, 0), channels(b, 1), {"scale": channels(b, 2), "bias": channels(b, 3)}
        ),
        lambda b, x: written_batch_normalization(
            b,
            b.reshape(x, [1, 3, 2, 1]),
            channels(b, 0),
            channels(b, 1),
            {"axis": 1, "epsilon": 1e-5, "scale": channels(b, 2), "bias": channels(b, 3)},
        ),
    ),
    "fused activation of 2024": (
        lambda b, x: b.batchNormalization(
            x, channels(b, 0), channels(b, 1), {"axis": 1, "activation": b.clamp({"minValue": 0, "maxValue": 1})}
        ),
        lambda b, x: b.clamp(
            b.batchNormalization(x, channels(b, 0), channels(b, 1), {"axis": 1}), {"minValue": 0, "maxValue": 1}
        ),
    ),
    "label": (lambda b, x: b.relu(x, {"label": "first"}), lambda b, x: b.relu(x, label="second")),
}


def channels(builder: Any, start: float) -> Any:
    return builder.constant({"dataType": "float32", "shape": [3]}, float32(start + 0.5, start + 1, start + 1.5))


def test_operators_written_out(context: wn.MLContext) -> None:
    builder = MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [2, 3]})
    outputs: dict[str, Any] = {}
    for name, (operator, written) in PORTS.items():
        outputs[name], outputs[f"{name} written out"] = operator(builder, x), written(builder, x)
        assert outputs[name].shape == outputs[f"{name} written out"].shape, name
    results = context.compute(builder.build(outputs), {"x": X})
    for name in PORTS:
        np.testing.assert_allclose(results[name], results[f"{name} written out"], rtol=2e-5, atol=2e-6, err_msg=name)
    np.testing.assert_allclose(results["softmax"], np.exp(X) / np.exp(X).sum(1, keepdims=True), rtol=1e-5)


# operators by example: call and result -----------------------------------------------------------------------------------

TABLE = np.array([[0, 1, 2], [10, 11, 12], [20, 21, 22], [30, 31, 32]], np.float32)
SQUARE = np.array([[7, 1, 2], [9, 4, 8], [2, 6, 3]], np.float32)
ROWS = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


def indices(builder: Any, array: Any) -> Any:
    array = np.array(array, np.uint32)
    return builder.constant({"dataType": "uint32", "shape": list(array.shape)}, array.reshape(-1))


def floats(builder: Any, array: Any) -> Any:
    array = np.array(array, np.float32)
    return builder.constant({"dataType": "float32", "shape": list(array.shape)}, array.reshape(-1))


EXAMPLES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "gather": (lambda b: b.gather(floats(b, TABLE), indices(b, [3, 1])), TABLE[[3, 1]]),
    "gather along an axis": (
        lambda b: b.gather(floats(b, TABLE), indices(b, [[0, 1], [1, 2]]), {"axis": 1}),
        TABLE[:, [[0, 1], [1, 2]]],
    ),
    "gatherElements": (
        lambda b: b.gatherElements(floats(b, TABLE), indices(b, [[3, 1, 1], [2, 0, 3]])),
        [[30, 11, 12], [20, 1, 32]],
    ),
    "gatherElements along an axis": (
        lambda b: b.gatherElements(floats(b, TABLE), indices(b, [[2], [1], [0], [2]]), {"axis": 1}),
        [[2], [11], [20], [32]],
    ),
    "gatherND": (lambda b: b.gatherND(floats(b, TABLE), indices(b, [[0, 0], [3, 2]])), [0, 32]),
    "scatterElements": (
        lambda b: b.scatterElements(
            floats(b, TABLE), indices(b, [[2], [1], [0], [2]]), floats(b, [[-1], [-2], [-3], [-4]]), {"axis": 1}
        ),
        [[0, 1, -1], [10, -2, 12], [-3, 21, 22], [30, 31, -4]],
    ),
    "scatterND": (
        lambda b: b.scatterND(floats(b, range(8)), indices(b, [[4], [3], [1], [7]]), floats(b, [-1, -2, -3, -4])),
        [0, -3, 2, -2, -1, 5, 6, -4],
    ),
    "pad": (lambda b: b.pad(floats(b, ROWS), [1, 2], [1, 2]), np.pad(ROWS, [(1, 1), (2, 2)])),
    "pad with the edge": (
        lambda b: b.pad(floats(b, ROWS), [1, 2], [1, 2], {"mode": "edge"}),
        np.pad(ROWS, [(1, 1), (2, 2)], "edge"),
    ),
    "pad by reflection": (
        lambda b: b.pad(floats(b, ROWS), [1, 2], [1, 2], {"mode": "reflection"}),
        np.pad(ROWS, [(1, 1), (2, 2)], "reflect"),
    ),
    "pad with a value": (lambda b: b.pad(floats(b, ROWS), [0, 0], [0, 1], {"value": 9}), [[1, 2, 3, 9], [4, 5, 6, 9]]),
    "triangular": (lambda b: b.triangular(floats(b, SQUARE)), np.triu(SQUARE)),
    "triangular above": (lambda b: b.triangular(floats(b, SQUARE), {"diagonal": 1}), np.triu(SQUARE, 1)),
    "triangular below": (
        lambda b: b.triangular(floats(b, SQUARE), {"upper": False, "diagonal": -1}),
        np.tril(SQUARE, -1),
    ),
    "concat": (lambda b: b.concat([floats(b, ROWS), floats(b, ROWS)], 0), np.concatenate([ROWS, ROWS])),
    "expand": (lambda b: b.expand(floats(b, [[1], [2]]), [2, 3]), [[1, 1, 1], [2, 2, 2]]),
    "tile": (lambda b: b.tile(floats(b, [1, 2]), [2]), [1, 2, 1, 2]),
    "reverse": (lambda b: b.reverse(floats(b, ROWS), {"axes": [1]}), ROWS[:, ::-1]),
    "slice with strides": (lambda b: b.slice(floats(b, TABLE), [1, 0], [3, 3], {"strides": [2, 2]}), TABLE[1::2, ::2]),
    "argMax": (lambda b: b.argMax(floats(b, SQUARE), 1, {"keepDimensions": True}), [[0], [0], [1]]),
    "argMin of 2024": (lambda b: b.argMin(floats(b, SQUARE), {"axes": [0], "selectLastIndex": True}), [2, 0, 0]),
    "isNaN": (lambda b: b.isNaN(floats(b, [1, np.nan, np.inf])), [0, 1, 0]),
    "isInfinite": (lambda b: b.isInfinite(floats(b, [1, np.nan, -np.inf])), [0, 0, 1]),
    "roundEven": (lambda b: b.roundEven(floats(b, [0.5, 1.5, -2.5])), [0, 2, -2]),
    "logicalXor": (
        lambda b: b.logicalXor(
            b.greater(floats(b, [1, 3]), floats(b, [2, 2])), b.notEqual(floats(b, [1, 2]), floats(b, [1, 3]))
        ),
        [0, 0],
    ),
    "dequantizeLinear": (
        lambda b: b.dequantizeLinear(
            b.constant({"dataType": "uint8", "shape": [4]}, np.uint8([12, 24, 35, 123])),
            floats(b, [9.5, 9.5]),
            b.constant({"dataType": "uint8", "shape": [2]}, np.uint8([16, 32])),
        ),
        [(12 - 16) * 9.5, (24 - 16) * 9.5, (35 - 32) * 9.5, (123 - 32) * 9.5],
    ),
}


@pytest.mark.parametrize("disabled", [(), ("fold_constants",)], ids=["folded", "on the device"])
def test_operators_by_example(context: wn.MLContext, disabled: tuple[str, ...]) -> None:
    builder = MLGraphBuilder(context)
    graph = builder.build({name: make(builder) for name, (make, _) in EXAMPLES.items()}, disabled_passes=disabled)
    results = context.compute(graph, {})
    for name, (_, expected) in EXAMPLES.items():
        assert results[name].tolist() == np.array(expected).tolist(), name


# what JavaScript lets pass and this does not ---------------------------------------------------------------------------------


def test_misspelt_options_are_errors(context: wn.MLContext) -> None:
    builder = MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [2, 3]})
    with pytest.raises(TypeError, match=r"unknown option 'keepDims'.*Did you mean keep_dimensions\?"):
        builder.reduceSum(x, {"keepDims": True})
    with pytest.raises(TypeError, match="unknown descriptor key 'dtype'"):
        builder.input("y", {"dtype": "float32", "shape": [1]})
    with pytest.raises(TypeError, match="unknown option 'deviceTyp'"):
        wn.ml.createContext({"deviceTyp": "gpu"})
    with pytest.raises(AttributeError, match="Did you mean reduce_sum"):
        _ = builder.reduceSums


def test_numbers_are_no_operands_and_dimensions_no_null(context: wn.MLContext) -> None:
    builder = MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [2, 3]})
    with pytest.raises(TypeError, match=r"Make a number an operand with builder.constant\('float32', 2\)"):
        builder.pow(x, 2)
    with pytest.raises(TypeError, match="new_shape"):
        builder.reshape(x, [1, None])
