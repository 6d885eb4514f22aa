"""Cast, CastLike and BitCast between all element types, against numpy with ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import helper

import webnn_wgpu as wn

from .agreement import agree, dtype

NARROW = (
    "int4",
    "uint4",
    "int2",
    "uint2",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float4_e2m1fn",
)
WIDE = (
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "bool",
)


def onnx_type(name: str) -> int:
    return helper.np_dtype_to_tensor_dtype(dtype(name))


@pytest.mark.parametrize("target", [*WIDE, *NARROW])
def test_floats_become(context: wn.MLContext, target: str) -> None:
    x = np.array([0, -0.0, 0.5, -0.5, 1, -1, 1.5, -1.99, 2.5, 3.5, 5, -7, 0.3, 0.1, 6.5], np.float32)
    if target.startswith("u"):
        x = np.abs(x)
    agree(context, "Cast", {"x": x}, {"to": onnx_type(target)}, 25, oracle="reference", rtol=0)
    agree(context, "Cast", {"x": x.astype(np.float16)}, {"to": onnx_type(target)}, 25, oracle="reference", rtol=0)


@pytest.mark.parametrize("target", WIDE)
def test_integers_become(context: wn.MLContext, target: str) -> None:
    for source in ("int8", "uint8", "int16", "uint16", "int64", "uint32", "bool"):
        x = np.array([0, 1, 2, 100, -1, -128, 77], np.int64).astype(source)
        # float64 is held in float32.
        near = 1e-7 if target == "float64" else 0
        agree(context, "Cast", {"x": x}, {"to": onnx_type(target)}, 21, oracle="reference", rtol=near)


@pytest.mark.parametrize("source", NARROW)
def test_narrow_types_become(context: wn.MLContext, source: str) -> None:
    bits = ml_dtypes.iinfo(dtype(source)).bits if "int" in source else 4 if "float4" in source else 8
    if "int" in source:
        x = np.arange(2**bits).astype(np.int8).astype(dtype(source))
    else:
        x = np.arange(0, 2**bits, 5).astype(np.uint8).view(dtype(source))
        x = x[np.isfinite(x.astype(np.float32))]
    for target in ("float32", "float16", "bool", *(("int8",) if "int" in source else ())):
        agree(context, "Cast", {"x": x}, {"to": onnx_type(target)}, 25, oracle="reference", rtol=0)


def test_what_is_out_of_range(context: wn.MLContext) -> None:
    x = np.array([300, -300, 70000, -1, 1e6], np.float32)
    for target in ("int8", "uint8", "int16", "uint16", "int32", "int64"):
        agree(context, "Cast", {"x": x}, {"to": onnx_type(target)}, 21, oracle="reference")
    large = np.array([1e6, -1e6, np.inf, -np.inf, np.nan, 448, 500, 60000], np.float32)
    for target in NARROW[4:8]:
        for saturate in (0, 1):
            agree(
                context, "Cast", {"x": large}, {"to": onnx_type(target), "saturate": saturate}, 21, oracle="reference", rtol=0
            )
    agree(context, "Cast", {"x": np.array([65519, 65520, -1e9], np.float32)}, {"to": onnx_type("float16")}, 21, rtol=0)


def test_cast_like(context: wn.MLContext) -> None:
    x = np.array([[1.5, -2.5, 1000]], np.float32)
    for name in ("int16", "float16", "bfloat16", "bool"):
        agree(context, "CastLike", {"x": x, "like": np.zeros(2, dtype(name))}, opset=19, oracle="reference", rtol=0)
    like = np.zeros(2, ml_dtypes.float8_e4m3fn)
    agree(context, "CastLike", {"x": x, "like": like}, {"saturate": 0}, 19, oracle="reference", rtol=0)


def test_bit_cast(context: wn.MLContext) -> None:
    x = np.array([0, 1, -1, -128, 127])
    pairs = [("int8", "uint8"), ("int16", "uint16"), ("int32", "uint32"), ("int64", "uint64"), ("uint64", "int64")]
    for source, target in pairs:
        agree(context, "BitCast", {"x": x.astype(source)}, {"to": onnx_type(target)}, 26, oracle="reference")
    bits = np.array([1.5, -2, np.inf, -0.0], np.float32)
    for target in ("int32", "uint32"):
        agree(context, "BitCast", {"x": bits}, {"to": onnx_type(target)}, 26, oracle="reference")
        agree(context, "BitCast", {"x": bits.view(target)}, {"to": onnx_type("float32")}, 26, oracle="reference")
    halves = {"x": bits.astype(np.float16)}
    agree(context, "BitCast", halves, {"to": onnx_type("int16")}, 26, oracle="reference", device_only=False)


def test_results_are_rounded_to_narrow_types(context: wn.MLContext) -> None:
    a, b = np.array([1.01, 3.3, -7.7, 250]), np.array([2.1, 0.77, 1.5, 3])
    x, y = a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)
    for op in ("Add", "Mul", "Sub"):
        agree(context, op, {"a": x, "b": y}, opset=14, oracle="reference", rtol=0)
