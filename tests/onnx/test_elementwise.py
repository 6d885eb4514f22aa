"""Arithmetic, comparisons, logic and bits, in all element types, against onnxruntime or onnx's reference implementation."""

from __future__ import annotations

import numpy as np
import pytest

import webnn_wgpu as wn

from .agreement import agree, dtype, values

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.5, 0.5, -0.5, 1e-3, 3e4, -7.25], np.float32)
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float32", "float16", "bfloat16", "float64")


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize(
    "op",
    [
        "Abs",
        "Neg",
        "Ceil",
        "Floor",
        "Round",
        "Sqrt",
        "Exp",
        "Reciprocal",
        "Sign",
        "Erf",
        "Sin",
        "Tanh",
        "Atan",
        "Asinh",
        "Sinh",
    ],
)
def test_functions_of_floats(context: wn.MLContext, op: str, name: str) -> None:
    x = SPECIAL.astype(dtype(name)).reshape(3, 4)
    # The sign of not-a-number is 0, as onnxruntime has it; its sine is as unknown as that of infinity.
    if op == "Sign":
        x = np.where(np.isnan(x.astype(np.float32)), dtype(name).type(4), x)
    if op == "Sin":
        x = np.where(np.abs(x.astype(np.float32)) < 100, x, dtype(name).type(4))
    agree(context, op, {"x": x}, oracle="reference" if op == "Asinh" else "onnxruntime", atol=1e-6)


@pytest.mark.parametrize("op", ["Acos", "Asin", "Atanh", "Acosh", "Cosh", "Tan", "Cos", "Log"])
def test_functions_within_their_domains(context: wn.MLContext, op: str) -> None:
    x = np.linspace(-1.25, 2.5, 31, dtype=np.float32)
    for name in ("float32", "float16"):
        agree(
            context,
            op,
            {"x": x.astype(name)},
            opset=7 if op not in ("Atanh", "Acosh", "Cosh") else 9,
            atol=1e-3,
            oracle="reference",
        )


@pytest.mark.parametrize("name", INTEGERS)
def test_functions_of_integers(context: wn.MLContext, name: str) -> None:
    x = values(name, (5, 3))
    x.reshape(-1)[:2] = np.iinfo(name).min, 0
    for op in ("Abs", "Sign", "BitwiseNot", *(("Neg",) if name[0] == "i" else ())):
        agree(context, op, {"x": x}, opset=18, oracle="reference")


@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
def test_arithmetic(context: wn.MLContext, name: str) -> None:
    a, b = values(name, (2, 3, 5), 1), values(name, (3, 1), 2)
    b[b == 0] = 3
    for op in ("Add", "Sub", "Mul", "Div"):
        # Quotients of the least integer and -1 are no integers of the type.
        agree(context, op, {"a": a, "b": b}, opset=14, oracle="reference", rtol=2e-2 if name == "bfloat16" else None)


@pytest.mark.parametrize("name", [*INTEGERS, "float32", "float16", "bfloat16", "bool"])
def test_comparisons(context: wn.MLContext, name: str) -> None:
    a, b = values(name, (4, 5), 1), values(name, (4, 5), 2)
    b[::2] = a[::2]
    ops = ("Equal",) if name == "bool" else ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")
    for op in ops:
        agree(context, op, {"a": a, "b": b}, opset=19, oracle="reference")


def test_logic_and_old_versions(context: wn.MLContext) -> None:
    a, b = values("bool", (4, 1, 3), 1), values("bool", (2, 1), 2)
    for op in ("And", "Or", "Xor"):
        agree(context, op, {"a": a, "b": b}, opset=7)
    agree(context, "Not", {"a": a}, opset=7)
    x, y = values("float32", (4, 1, 3), 1), values("float32", (2, 1), 2)
    for op in ("Add", "Sub", "Mul", "Div", "Less", "Greater", "Pow"):
        agree(context, op, {"a": np.abs(x), "b": y}, opset=7)


@pytest.mark.parametrize("name", INTEGERS)
def test_bits(context: wn.MLContext, name: str) -> None:
    a, b = values(name, (4, 3), 1), values(name, (3,), 2)
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        agree(context, op, {"a": a, "b": b}, opset=18, oracle="reference")
    if name[0] == "u":
        count = np.array([0, 1, np.iinfo(name).bits - 1], name)
        for direction in ("LEFT", "RIGHT"):
            agree(context, "BitShift", {"a": a, "b": count}, {"direction": direction}, 11, oracle="reference")


@pytest.mark.parametrize("name", [*INTEGERS, "float32", "float16"])
def test_remainders(context: wn.MLContext, name: str) -> None:
    a, b = values(name, (4, 5), 1), values(name, (5,), 2)
    b[b == 0] = 5
    for fmod in (0, 1) if "int" in name else (1,):
        agree(context, "Mod", {"a": a, "b": b}, {"fmod": fmod}, 13, oracle="reference")


@pytest.mark.parametrize(
    ("op", "name"),
    [
        *((op, name) for op in ("Max", "Min") for name in ("float32", "float16", "int64", "uint8", "int16")),
        *((op, name) for op in ("Sum", "Mean") for name in ("float32", "float16")),
    ],
)
def test_any_number_of_inputs(context: wn.MLContext, op: str, name: str) -> None:
    given = {"a": values(name, (2, 3), 1), "b": values(name, (3,), 2), "c": values(name, (2, 1), 3)}
    oracle = "reference" if name == "int16" else "onnxruntime"
    agree(context, op, given, opset=13, oracle=oracle, atol=1e-2 if name == "float16" else None)
    agree(context, op, {"a": given["a"]}, opset=13, oracle=oracle)
    if name == "float32" and op in ("Max", "Min"):
        agree(context, op, {"a": SPECIAL, "b": SPECIAL[::-1].copy()}, opset=13)


def test_powers_of_mixed_types(context: wn.MLContext) -> None:
    base, exponent = np.array([[1, -2, 3], [0, 5, -1]]), np.array([2, 3, 0])
    for first in ("int32", "int64", "float32", "float16"):
        for second in ("int32", "int64", "float32", "float16", "uint8"):
            agree(context, "Pow", {"a": base.astype(first), "b": exponent.astype(second)}, opset=15, oracle="reference")
    agree(context, "Pow", {"a": np.array([4, 9], np.int32), "b": np.array([0.5], np.float32)}, opset=15, device_only=False)


def test_is_inf(context: wn.MLContext) -> None:
    for positive in (0, 1):
        for negative in (0, 1):
            agree(context, "IsInf", {"x": SPECIAL}, {"detect_positive": positive, "detect_negative": negative}, 20)
    agree(context, "IsInf", {"x": SPECIAL.astype(np.float16)}, {"detect_negative": 0}, 20, oracle="reference")
    agree(context, "IsNaN", {"x": SPECIAL.astype(np.float16)}, opset=13)


@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS, "bool"])
def test_where(context: wn.MLContext, name: str) -> None:
    a = (
        np.arange(-2, 6).reshape(2, 4).astype(dtype(name))
        if name[:3] != "uin"
        else np.arange(8).reshape(2, 4).astype(dtype(name))
    )
    condition = values("bool", (3, 1, 4), 3)
    model = {"condition": condition, "a": a, "b": a[:1, ::-1].copy()}
    agree(context, "Where", model, opset=16, oracle="reference")
