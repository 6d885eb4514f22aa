"""Quantized tensors and exact integer products against onnx's reference implementation and onnxruntime."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import webnn_wgpu as wn

from .agreement import agree, dtype, values
from .models import MICROSOFT, check, node_model

INTEGERS = ("int8", "uint8", "int16", "uint16", "int4", "uint4", "int2", "uint2")
FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
LAYOUTS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((), {}),
    ((1,), {}),
    ((4,), {"axis": 1}),
    ((6,), {"axis": -1}),
    ((3, 2, 6), {"axis": 1, "block_size": 2}),
    ((3, 4, 2), {"axis": -1, "block_size": 4}),
]
"""Shapes of scales of a tensor [3, 4, 6]."""


def scales_of(shape: tuple[int, ...], name: str = "float32") -> np.ndarray:
    return np.random.default_rng(3).uniform(0.1, 0.4, shape).astype(name)


def some(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Elements of any integer type, from its whole range."""
    info = ml_dtypes.iinfo(dtype(name))
    return np.random.default_rng(7).integers(int(info.min), int(info.max), shape, endpoint=True).astype(dtype(name))


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize(("shape", "attributes"), LAYOUTS)
def test_quantize(context: wn.MLContext, name: str, shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    x = values("float32", (3, 4, 6))
    x[0, 0, :3] = 300, -300, 0
    inputs = {"x": x, "scale": scales_of(shape), "zero": some(name, shape) // dtype(name).type(2)}
    agree(context, "QuantizeLinear", inputs, attributes, opset=25, oracle="reference")


@pytest.mark.parametrize("name", FLOAT8)
@pytest.mark.parametrize("saturate", [0, 1])
def test_quantize_to_floats(context: wn.MLContext, name: str, saturate: int) -> None:
    x = np.array([0, 0.3, -1.7, 500, -1e6, 1e-4, 240, 0.0625, np.inf, np.nan], np.float32)
    inputs = {"x": x, "scale": np.float32(0.5)}
    constants = {"zero": np.zeros((), dtype(name))}
    agree(context, "QuantizeLinear", inputs, {"saturate": saturate}, opset=21, oracle="reference", constants=constants)


def test_quantize_to_four_bit_floats(context: wn.MLContext) -> None:
    x = np.concatenate([np.linspace(-8, 8, 65), [0.24, 0.26, 1e9]]).astype(np.float32)
    constants = {"zero": np.zeros((), dtype("float4_e2m1fn"))}
    agree(context, "QuantizeLinear", {"x": x, "scale": np.float32(1)}, opset=23, oracle="reference", constants=constants)


@pytest.mark.parametrize("attributes", [{}, {"output_dtype": 3}, {"output_dtype": 21}])
def test_quantize_without_zero_point(context: wn.MLContext, attributes: dict[str, Any]) -> None:
    inputs = {"x": values("float32", (3, 5)), "scale": np.float32(0.3)}
    agree(context, "QuantizeLinear", inputs, attributes, opset=21, oracle="reference")


def test_quantize_halves_and_integers(context: wn.MLContext) -> None:
    inputs = {"x": values("float16", (3, 5)), "scale": np.float16(0.07), "zero": np.uint8(128)}
    agree(context, "QuantizeLinear", inputs, opset=21, oracle="reference")
    inputs = {"x": some("int16", (3, 5)).astype(np.int32), "scale": np.float32(177.3), "zero": np.int8(3)}
    agree(context, "QuantizeLinear", inputs, opset=13, oracle="reference")


def test_precision_of_a_quotient(context: wn.MLContext) -> None:
    inputs = {"x": values("float32", (4, 9)), "scale": np.float32(0.013), "zero": np.int16(3)}
    agree(context, "QuantizeLinear", inputs, {"precision": 10}, opset=23, oracle="reference")


@pytest.mark.parametrize("name", [*INTEGERS, "int32", *FLOAT8, "float4_e2m1fn"])
@pytest.mark.parametrize(("shape", "attributes"), LAYOUTS[2:5])
def test_dequantize(context: wn.MLContext, name: str, shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    x = values("float32", (3, 4, 6)).astype(dtype(name)) if name.startswith("float") else some(name, (3, 4, 6))
    inputs = {"x": x, "scale": scales_of(shape)}
    if name.startswith(("int", "uint")) and name != "int32":
        inputs["zero"] = some(name, shape)
    agree(context, "DequantizeLinear", inputs, attributes, opset=25, oracle="reference")


@pytest.mark.parametrize("name", ["int4", "uint4", "int8"])
@pytest.mark.parametrize("zero", [False, True])
def test_dequantize_a_constant(context: wn.MLContext, name: str, zero: bool) -> None:
    scale = {"scale": scales_of((5, 2), "float16")}
    constants = {"x": some(name, (5, 8)), "zero": some(name, (5, 2))}
    if not zero:
        del constants["zero"]
    order = ["x", "scale", *(["zero"] if zero else [])]
    attributes = {"axis": 1, "block_size": 4}
    agree(
        context,
        "DequantizeLinear",
        scale,
        attributes,
        opset=21,
        oracle="reference",
        constants=constants,
        order=order,
        rtol=1e-2,
    )


@pytest.mark.parametrize("name", ["int4", "uint4"])
def test_dequantize_a_constant_scalar(context: wn.MLContext, name: str) -> None:
    constants = {"x": some(name, ()), "zero": some(name, ())}
    scale = {"scale": scales_of(())}
    agree(context, "DequantizeLinear", scale, opset=21, oracle="reference", constants=constants, order=["x", "scale", "zero"])


def test_a_last_block_that_is_shorter(context: wn.MLContext) -> None:
    x, scale = some("int8", (2, 5)), scales_of((2, 2))
    expected = [x.astype(np.float32) * np.repeat(scale, 3, 1)[:, :5]]
    attributes = {"axis": 1, "block_size": 3}
    agree(context, "DequantizeLinear", {"x": x, "scale": scale}, attributes, opset=21, expected=expected)


@pytest.mark.parametrize("x", [[-1.0, 3.7, 0.2], [2.0, 5.0, 3.0], [-4.0, -2.0, -0.5], [0.0, 0.0, 0.0]])
def test_quantize_dynamically(context: wn.MLContext, x: list[float]) -> None:
    agree(context, "DynamicQuantizeLinear", {"x": np.array(x, np.float32)}, opset=11, outputs=3)


# products -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")])
@pytest.mark.parametrize("depth", [5, 700])
def test_product_of_integers(context: wn.MLContext, a: str, b: str, depth: int) -> None:
    inputs = {"a": some(a, (2, 3, depth)), "b": some(b, (depth, 4)), "za": some(a, ()), "zb": some(b, (4,))}
    agree(context, "MatMulInteger", inputs, opset=10, oracle="reference")


def test_product_of_the_greatest_integers(context: wn.MLContext) -> None:
    a, b = np.full((2, 5000), 255, np.uint8), np.full((5000, 2), 255, np.uint8)
    agree(context, "MatMulInteger", {"a": a, "b": b}, opset=10)


@pytest.mark.parametrize("largest", [3, 127])
def test_product_with_known_weights(context: wn.MLContext, largest: int) -> None:
    b = np.clip(some("int8", (3000, 3)), -largest, largest)
    constants = {"b": b, "za": np.uint8(3), "zb": np.int8(-2)}
    agree(context, "MatMulInteger", {"a": some("uint8", (2, 3000))}, opset=10, constants=constants)


def test_product_with_a_zero_point_of_each_row(context: wn.MLContext) -> None:
    inputs = {"a": some("int8", (3, 6)), "b": some("int8", (6, 2)), "za": some("int8", (3,))}
    a, b, zero = (i.astype(np.int32) for i in inputs.values())
    agree(context, "MatMulInteger", inputs, opset=10, expected=[(a - zero[:, np.newaxis]) @ b])


@pytest.mark.parametrize("name", ["int8", "uint8"])
@pytest.mark.parametrize("columns", [False, True])
def test_quantized_product(context: wn.MLContext, name: str, columns: bool) -> None:
    inputs = {
        "a": some(name, (3, 7)),
        "sa": np.float32(0.02),
        "za": some(name, ()),
        "b": some(name, (7, 4))[:, ::-1].copy(),
        "sb": scales_of((4,)) if columns else np.float32(0.3),
        "zb": some(name, (4,)) if columns else some(name, ()),
        "sy": np.float32(1.7),
        "zy": np.array(3, name),
    }
    agree(context, "QLinearMatMul", inputs, opset=21, oracle="reference")


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 6, 6), (4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((2, 4, 7, 5), (4, 2, 2, 3), {"group": 2, "strides": [2, 1], "dilations": [2, 1]}),
    ((1, 2, 9), (3, 2, 3), {"pads": [1, 0]}),
    ((1, 2, 4, 5, 4), (3, 2, 2, 3, 3), {"pads": [1] * 6}),
    ((1, 96, 5, 5), (4, 96, 3, 3), {"auto_pad": "SAME_UPPER"}),
]


@pytest.mark.parametrize(("x", "w", "attributes"), CONVOLUTIONS)
@pytest.mark.parametrize("name", ["int8", "uint8"])
def test_convolution_of_integers(
    context: wn.MLContext, x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any], name: str
) -> None:
    inputs = {"x": some("uint8", x), "w": some(name, w), "zx": some("uint8", ()), "zw": some(name, ())}
    agree(context, "ConvInteger", inputs, attributes, opset=10, oracle="reference")


@pytest.mark.parametrize(("x", "w", "attributes"), [c for c in CONVOLUTIONS if len(c[0]) == 4])
@pytest.mark.parametrize("last", [False, True])
def test_quantized_convolution(
    context: wn.MLContext, x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any], last: bool
) -> None:
    inputs = {"x": some("uint8", x)}
    constants = {
        "sx": np.float32(0.02),
        "zx": np.uint8(117),
        "w": some("int8", w),
        "sw": scales_of(w[:1]),
        "zw": np.zeros(w[0], np.int8),
        "sy": np.float32(13.7),
        "zy": np.uint8(128),
        "b": some("int16", w[:1]).astype(np.int32),
    }
    if not last:
        agree(context, "QLinearConv", inputs, attributes, opset=10, constants=constants)
        return
    inputs["x"] = np.ascontiguousarray(np.moveaxis(inputs["x"], 1, -1))
    agree(context, "QLinearConv", inputs, {**attributes, "channels_last": 1}, domain=MICROSOFT, constants=constants)


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_quantized_sums(context: wn.MLContext, op: str) -> None:
    inputs = {"a": some("uint8", (2, 5)), "b": some("uint8", (5,))}
    constants = {
        "sa": np.float32(0.02),
        "za": np.uint8(100),
        "sb": np.float32(0.03),
        "zb": np.uint8(120),
        "sy": np.float32(0.057),
        "zy": np.uint8(128),
    }
    order = ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"]
    agree(context, op, inputs, domain=MICROSOFT, constants=constants, order=order)


@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu", "QLinearGlobalAveragePool"])
def test_quantized_functions(context: wn.MLContext, op: str) -> None:
    constants = {"sx": np.float32(0.03), "zx": np.uint8(110), "sy": np.float32(0.013), "zy": np.uint8(9)}
    agree(context, op, {"x": some("uint8", (2, 3, 4, 4))}, domain=MICROSOFT, constants=constants)


def test_quantized_parts_joined(context: wn.MLContext) -> None:
    constants = {
        "sy": np.float32(0.05),
        "zy": np.uint8(9),
        "sa": np.float32(0.03),
        "za": np.uint8(110),
        "sb": np.float32(0.04),
        "zb": np.uint8(90),
    }
    inputs = {"a": some("uint8", (2, 3)), "b": some("uint8", (2, 4))}
    order = ["sy", "zy", "a", "sa", "za", "b", "sb", "zb"]
    agree(context, "QLinearConcat", inputs, {"axis": 1}, domain=MICROSOFT, constants=constants, order=order)


def test_product_with_a_quantized_matrix(context: wn.MLContext) -> None:
    inputs = {"a": values("float32", (3, 7)), "b": some("uint8", (7, 4))}
    constants = {"s": np.float32(0.02), "z": np.uint8(120), "bias": values("float32", (4,))}
    agree(context, "DynamicQuantizeMatMul", inputs, domain=MICROSOFT, constants=constants, rtol=1e-3)
    inputs = {"a": some("uint8", (3, 7)), "b": some("int8", (7, 4))}
    constants = {"sa": np.float32(0.02), "sb": scales_of((4,)), "za": np.uint8(120)}
    agree(context, "MatMulIntegerToFloat", inputs, domain=MICROSOFT, constants=constants)


def quantized_inputs(name, *shape):
    info = np.iinfo(name)
    return np.random.default_rng(4).integers(info.min, info.max, shape, np.dtype(name), endpoint=True)


def steps(scale, zero, name):
    """A scale and a zero point, as constants."""
    return [np.float32(scale), np.array(zero, name)]


def agrees(context, op, inputs, order, attributes=None):
    """Check an operator of com.microsoft; what is in `order` is the name of an input, or a constant."""
    constants = {f"c{i}": a for i, a in enumerate(order) if not isinstance(a, str)}
    names = [a if isinstance(a, str) else f"c{i}" for i, a in enumerate(order)]
    check(node_model(op, inputs, attributes, 17, constants=constants, domain=MICROSOFT, order=names), inputs, context)


@pytest.mark.parametrize("bias", [None, (7,), (3, 7)], ids=["plain", "row", "matrix"])
@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("name", ["uint8", "int8"])
def test_quantized_gemm(context, name, turned, bias):
    rng = np.random.default_rng(5)
    inputs = {"x": quantized_inputs(name, *((8, 3) if turned else (3, 8)))}
    weights = quantized_inputs("int8", *((7, 8) if turned else (8, 7)))
    columns = [rng.uniform(1e-3, 1e-2, 7).astype(np.float32), np.full(7, 2, np.int8)]
    c = "" if bias is None else rng.integers(-3000, 3000, bias).astype(np.int32)
    order = ["x", *steps(0.03, 5, name), weights, *columns, c]
    attributes = {"transA": turned, "transB": turned, "alpha": 0.7}
    agrees(context, "QGemm", inputs, [*order, *steps(0.053, 9, name)], attributes)
    agrees(context, "QGemm", inputs, order if bias else order[:-1], attributes)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("name", ["uint8", "int8"])
def test_quantized_pooling_softmax_and_choice(context, name, last):
    x = {"x": quantized_inputs(name, 2, 6, 7, 5)}
    of_x = steps(0.03, 5, name)
    windows = {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 2], "count_include_pad": 1 - last}
    agrees(context, "QLinearAveragePool", x, ["x", *of_x, *steps(0.0213, 3, name)], {**windows, "channels_last": last})
    for opset in (11, 13):
        lowest = np.iinfo(name).min
        agrees(context, "QLinearSoftmax", x, ["x", *of_x, *steps(1 / 256, lowest, name)], {"axis": 1, "opset": opset})
    inputs = {**x, "y": quantized_inputs(name, 7, 5), "condition": np.random.default_rng(0).random((6, 1, 5)) < 0.5}
    order = ["condition", "x", *of_x, "y", *steps(0.02, 7, name), *steps(0.041, 3, name)]
    agrees(context, "QLinearWhere", inputs, order)


@pytest.mark.parametrize("name", ["uint8", "int8", "uint16", "int16"])
def test_quantizing_before_opset_21(context, name):
    scales, zeros = np.float32([0.01, 0.02, 0.03]), np.full(3, 3, name)
    x = {"x": np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)}
    agrees(context, "QuantizeLinear", x, ["x", scales, zeros], {"axis": 1})
    q = {"x": quantized_inputs(name, 2, 3, 4)}
    agrees(context, "DequantizeLinear", q, ["x", scales, zeros], {"axis": 1})
    agrees(context, "DequantizeLinear", q, ["x", *steps(0.01, 3, name)])
