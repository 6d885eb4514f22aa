"""Matrix products, determinants and Einstein's summation against onnxruntime, onnx's reference implementation, or numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn

from .agreement import agree, values
from .models import MICROSOFT

INTEGERS = ("int32", "uint32", "int64", "uint64")


@pytest.mark.parametrize("name", ["float32", "float16", "float64", *INTEGERS])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 5), (5, 2)),
        ((5,), (5, 2)),
        ((3, 5), (5,)),
        ((5,), (5,)),
        ((2, 1, 3, 5), (4, 5, 2)),
        ((5,), (2, 5, 3)),
        ((2, 3, 5), (5,)),
    ],
)
def test_product(context: wn.MLContext, name: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    agree(context, "MatMul", {"a": values(name, a), "b": values(name, b, 1)}, opset=13, oracle="reference", atol=2e-2)


def test_product_of_integers_in_parts(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webnn_wgpu.frontends.onnx.operators.linear.MOST_PRODUCTS", 60)
    agree(context, "MatMul", {"a": values("int32", (2, 7, 5)), "b": values("int32", (5, 3), 1)}, opset=13)


@pytest.mark.parametrize("name", ["float32", "int32", "uint64"])
@pytest.mark.parametrize(
    "attributes", [{}, {"transA": 1, "alpha": 2.0}, {"transB": 1, "beta": 3.0}, {"transA": 1, "transB": 1, "beta": 0.0}]
)
@pytest.mark.parametrize("c", [None, (), (4,), (3, 1), (3, 4)])
def test_general_product(context: wn.MLContext, name: str, attributes: dict[str, Any], c: tuple[int, ...] | None) -> None:
    a = values(name, (5, 3) if attributes.get("transA") else (3, 5))
    b = values(name, (4, 5) if attributes.get("transB") else (5, 4), 1)
    inputs = {"a": a, "b": b} if c is None else {"a": a, "b": b, "c": values(name, c, 2)}
    if name == "float32":
        agree(context, "Gemm", inputs, attributes, opset=11)
        return
    # Integers wrap around; numpy computes them in their own type.
    left, right = (a.T if attributes.get("transA") else a), (b.T if attributes.get("transB") else b)
    scale, share = (a.dtype.type(int(attributes.get(n, 1))) for n in ("alpha", "beta"))
    with np.errstate(over="ignore"):
        expected = scale * (left @ right) + (share * inputs["c"] if c is not None else a.dtype.type(0))
    agree(context, "Gemm", inputs, attributes, opset=11, expected=[expected])


@pytest.mark.parametrize("attributes", [{}, {"transA": 1}, {"transB": 1, "alpha": 0.5}, {"transBatchA": 1, "transA": 1}])
def test_fused_product(context: wn.MLContext, attributes: dict[str, Any]) -> None:
    shapes = {(0, 0): (2, 3, 5), (1, 0): (2, 5, 3), (1, 1): (5, 2, 3), (0, 1): (3, 2, 5)}
    a = values("float32", shapes[attributes.get("transA", 0), attributes.get("transBatchA", 0)])
    b = values("float32", (2, 4, 5) if attributes.get("transB") else (2, 5, 4), 1)
    agree(context, "FusedMatMul", {"a": a, "b": b}, attributes, domain=MICROSOFT)


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 5, 5), (2, 2, 4, 4)])
def test_determinant(context: wn.MLContext, shape: tuple[int, ...]) -> None:
    x = values("float32", shape)
    x[..., 0, 0] = 0
    agree(context, "Det", {"x": x}, opset=11, rtol=1e-3)


def test_determinant_of_singular_matrices(context: wn.MLContext) -> None:
    x = np.stack([np.zeros((3, 3)), np.diag([1.0, 0, 2]), np.eye(3)[[1, 2, 0]], np.eye(3)[[1, 0, 2]]]).astype(np.float32)
    agree(context, "Det", {"x": x}, opset=11, expected=[np.array([0, 0, 1, -1], np.float32)])


EQUATIONS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk->ik", [(3, 4), (4, 5)]),
    ("bij,bjk->bki", [(2, 3, 4), (2, 4, 5)]),
    ("ij->ji", [(3, 4)]),
    ("ij->", [(3, 4)]),
    ("ii->i", [(4, 4)]),
    ("ii", [(4, 4)]),
    ("bii->b", [(2, 3, 3)]),
    ("iij,jk->ik", [(3, 3, 2), (2, 4)]),
    ("i,j->ij", [(3,), (4,)]),
    ("i,i->", [(3,), (3,)]),
    ("i,i", [(3,), (3,)]),
    ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]),
    ("...ij,jk->...ik", [(2, 2, 3, 4), (4, 5)]),
    ("b...ij,b...jk->b...ik", [(2, 3, 3, 4), (2, 3, 4, 5)]),
    ("...i->...", [(2, 3, 4)]),
    ("...->...", [(2, 3)]),
    ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("ij,ij,ij->ij", [(2, 3), (2, 3), (2, 3)]),
    ("ba,cb", [(2, 3), (4, 2)]),
    ("ijk,ij->k", [(2, 3, 4), (2, 3)]),
    ("aB,Bc->ca", [(2, 3), (3, 4)]),
    ("ij,k->i", [(2, 3), (4,)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_summation(context: wn.MLContext, equation: str, shapes: list[tuple[int, ...]]) -> None:
    inputs = {f"x{i}": values("float32", s, i) for i, s in enumerate(shapes)}
    expected = np.asarray(np.einsum(equation, *inputs.values()))
    agree(context, "Einsum", inputs, {"equation": equation.replace(",", " , ")}, opset=12, expected=[expected])


def test_summation_over_sizes_of_one(context: wn.MLContext) -> None:
    inputs = {"x": values("float32", (1, 3, 4)), "y": values("float32", (2, 4, 1), 1)}
    expected = np.einsum("bij,bjk->bik", np.broadcast_to(inputs["x"], (2, 3, 4)), inputs["y"])
    agree(context, "Einsum", inputs, {"equation": "...ij,...jk->...ik"}, opset=12, expected=[expected])


@pytest.mark.parametrize("name", ["int8", "uint8", *INTEGERS, "float16"])
def test_summation_of_other_types(context: wn.MLContext, name: str) -> None:
    inputs = {"x": values(name, (3, 4)), "y": values(name, (4, 2), 1)}
    expected = np.einsum("ij,jk->ki", *inputs.values()).astype(name)
    agree(context, "Einsum", inputs, {"equation": "ij,jk->ki"}, opset=28, expected=[expected], atol=2e-2)


@pytest.mark.parametrize(("equation", "reason"), [("ij,jk->ik", "1 inputs"), ("ijk->i", "does not fit"), ("ij->k", "no term")])
def test_equations_that_do_not_fit(context: wn.MLContext, equation: str, reason: str) -> None:
    x = values("float32", (2, 3))
    with pytest.raises(wn.NotSupportedError, match=reason):
        agree(context, "Einsum", {"x": x}, {"equation": equation}, opset=12, expected=[x])
