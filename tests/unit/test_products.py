"""Products of the same rows are one, whose results lie one behind the other: where that gains something, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import PROFILES, Sketch, open_profile, run_graph
from tests.targets import DEFAULT_TARGET
from tests.unit.rewrites import check, normal, unchanged
from webnn_wgpu.passes import run_passes
from webnn_wgpu.passes.products import merge_products
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Graph

ROWS, K, N = 8, 12, 16
"""What is computed from these begins where a binding may: 512 bytes after what is before it."""


def merged(graph: Graph) -> Graph:
    return merge_products(graph, DEFAULT_TARGET)


def project(s: Sketch, a: int, *, K: int = K, N: int = N, bias: str = "", seed: int = 0, dtype: Any = np.float32) -> int:
    """Return a product with weights of its own, and a bias: a vector "behind" it or "before" it in the sum."""
    product = s.apply("matmul", a, s.constant(normal(K, N, seed=seed, dtype=dtype)))
    vector = s.constant(normal(N, seed=-seed - 1 & 255, dtype=dtype)) if bias else None
    return s.apply("add", *((product, vector) if bias == "behind" else (vector, product))) if bias else product


def turned(s: Sketch, value: int) -> int:
    """Return what reads a value and cannot be fused behind it."""
    return s.apply("softmax", value, axis=s.type(value).rank - 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("shape", [(ROWS, K), (1, ROWS, K), (2, ROWS // 2, K), (2, 2, ROWS // 4, K)])
def test_products_of_the_same_rows_are_one(shape: tuple[int, ...], dtype: Any) -> None:
    s = Sketch()
    a = s.apply("tanh", s.input(normal(*shape, dtype=dtype)))
    results = [project(s, a, bias=bias, seed=seed, dtype=dtype) for seed, bias in enumerate(("behind", "", "before"))]
    ends = [turned(s, value) for value in results]
    view = [] if shape == (1, ROWS, K) else ["reshape"]
    tolerance = 1e-6 if dtype == np.float32 else 2e-3
    parts = ["reshape"] * 3
    after = check(
        merged,
        s.graph(*ends),
        s.feeds,
        ["tanh", *view, "matmul", "add", "split", *parts, *["softmax"] * 3],
        tolerance=tolerance,
    )
    assert after.type(after.nodes[-3].operands[0]).shape == (*shape[:-1], N)


def test_products_without_a_bias_get_none() -> None:
    s = Sketch()
    a = s.input(normal(1, ROWS, K))
    ends = [turned(s, project(s, a, seed=seed)) for seed in range(2)]
    check(merged, s.graph(*ends), s.feeds, ["matmul", "split", "reshape", "reshape", "softmax", "softmax"])


def test_others_among_them_stay() -> None:
    """One is read by what is fused behind it, and one has another shape: the rest, wherever they stand, are one product."""
    s = Sketch()
    a = s.input(normal(1, ROWS, K))
    fused = s.apply("tanh", project(s, a, bias="behind", seed=1))
    first = turned(s, project(s, a, bias="behind", seed=2))
    wide = turned(s, project(s, a, N=2 * N, seed=3))
    last = turned(s, project(s, a, bias="behind", seed=4))
    ops = ["matmul", "add", "tanh", "matmul", "add", "split", "reshape", "reshape", "softmax", "matmul", "softmax", "softmax"]
    check(merged, s.graph(fused, first, wide, last), s.feeds, ops)


@pytest.mark.parametrize(
    "what",
    [
        "an output",
        "a view that is one",
        "joined",
        "a view that is joined",
        "element-wise",
        "unaligned",
        "large",
        "no constant",
        "several matrices",
        "other rows",
    ],
)
def test_products_that_stay_apart(what: str) -> None:
    s = Sketch()
    rows, columns = (
        (7 if what == "unaligned" else ROWS),
        (DEFAULT_TARGET.costs.passes.most_joined_bytes // 48 if what == "large" else N),
    )
    a = [s.input(normal(1, rows, K, seed=seed)) for seed in range(2)]
    if what in ("no constant", "several matrices"):
        weights = normal(*((1, 3) if what == "several matrices" else ()), K, columns)
        factors = [s.constant(weights) if what == "several matrices" else s.input(weights) for _ in range(2)]
        results = [s.apply("matmul", a[0], weights) for weights in factors]
    else:
        results = [project(s, a[i * (what == "other rows")], N=columns, seed=i) for i in range(2)]
    ends = [turned(s, value) for value in results]
    if what == "an output":
        ends.append(results[1])
    elif what == "a view that is one":
        ends.append(s.apply("reshape", results[1], new_shape=[rows * columns]))
    elif what == "joined":
        ends.append(s.apply("concat", *results, axis=2))
    elif what == "a view that is joined":
        ends.append(s.apply("concat", *(s.apply("reshape", value, new_shape=[rows, columns]) for value in results), axis=0))
    elif what == "element-wise":
        ends.append(s.apply("neg", results[1]))
    unchanged(merged, s.graph(*ends))


def columns(s: Sketch, shape: Sequence[int] = (1, ROWS, K), bias: str = "behind", count: int = 3) -> tuple[int, ...]:
    product = project(s, s.input(normal(*shape)), K=shape[-1], N=count * N, bias=bias)
    return s.apply_all("split", (product,), splits=[N] * count, axis=len(shape) - 1)


@pytest.mark.parametrize("bias", ["behind", "before", ""])
@pytest.mark.parametrize("shape", [(1, ROWS, K), (2, ROWS, K), (ROWS, K)])
def test_columns_that_are_split_are_products(shape: Sequence[int], bias: str) -> None:
    s = Sketch()
    parts = columns(s, shape, bias)
    view = [] if shape == (1, ROWS, K) else ["reshape"]
    sum_ = ["add"] if bias else []
    ops = [*view, "matmul", *sum_, "split", *["reshape"] * 3, *["softmax"] * 3]
    check(merged, s.graph(*(turned(s, part) for part in parts)), s.feeds, ops)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("what", ["sizes", "an output", "element-wise"])
def test_columns_that_are_products_of_their_own(what: str, bias: bool) -> None:
    s = Sketch()
    product = project(s, s.input(normal(2, ROWS, K)), N=4 * N, bias="behind" if bias else "")
    splits = [N, 3 * N] if what == "sizes" else [2 * N] * 2
    first, second = s.apply_all("split", (product,), splits=splits, axis=2)
    ends = [turned(s, first), s.apply("neg", second) if what == "element-wise" else turned(s, second)]
    if what == "an output":
        ends.append(first)
    ops = ["matmul", "add", "reshape"] if bias else ["matmul", "reshape"]
    check(merged, s.graph(*ends), s.feeds, [*ops, *ops, *(s.nodes[-2 + i].op for i in range(2))])


@pytest.mark.parametrize("form", ["slice", "heads", "reshaped split"])
def test_columns_that_are_cut_are_products(form: str) -> None:
    s = Sketch()
    product = project(s, s.input(normal(2, ROWS, K)), N=3 * N, bias="behind")
    if form == "slice":
        parts = [s.apply("slice", product, starts=(0, 0, i * N), sizes=(2, ROWS, N)) for i in (2, 0, 1)]
    elif form == "heads":
        apart = s.apply("reshape", product, new_shape=[2, ROWS, 4, 3 * N // 4])
        parts = [s.apply("slice", apart, starts=(0, 0, 0, i * N // 4), sizes=(2, ROWS, 4, N // 4)) for i in range(3)]
    else:
        apart = s.apply("reshape", product, new_shape=[2 * ROWS, 3, N])
        parts = s.apply_all("split", (apart,), splits=[1, 1, 1], axis=1)
    graph = s.graph(*(turned(s, part) for part in parts))
    check(merged, graph, s.feeds, ["reshape", "matmul", "add", "split", *["reshape"] * 3, *["softmax"] * 3])


@pytest.mark.parametrize("what", ["a single row", "rows", "read whole", "twice", "many", "large"])
def test_columns_that_stay(what: str) -> None:
    s = Sketch()
    columns = DEFAULT_TARGET.costs.passes.most_joined_bytes // 4 if what == "large" else 4 * N
    a = s.input(normal(1, 1 if what == "a single row" else ROWS, K))
    product = project(s, a, N=columns, bias="behind")
    if what == "large":
        apart = s.apply("reshape", product, new_shape=[1, ROWS, columns // 4, 4])
        parts = [s.apply("slice", apart, starts=(0, 0, 0, i), sizes=(1, ROWS, columns // 4, 2)) for i in (0, 2)]
    elif what == "twice":
        parts = [s.apply("slice", product, starts=(0, 0, i), sizes=(1, ROWS, 3 * N)) for i in (0, N)]
    elif what == "rows":
        parts = s.apply_all("split", (product,), splits=[ROWS // 2] * 2, axis=1)
    else:
        parts = s.apply_all("split", (product,), splits=8 if what == "many" else 2, axis=2)
    ends = [s.apply("neg", part) if what == "many" else turned(s, part) for part in parts]
    if what == "read whole":
        ends.append(turned(s, product))
    unchanged(merged, s.graph(*ends))


@pytest.mark.parametrize("bias", [(), (N,), (1, N)])
@pytest.mark.parametrize("transposed", [True, False])
def test_rows_that_are_joined_for_a_product_stay_apart(bias: tuple[int, ...], transposed: bool) -> None:
    s = Sketch()
    joined = s.apply("reshape", s.input(normal(2, ROWS, K)), new_shape=[2 * ROWS, K])
    operands = [joined, s.constant(normal(N, K) if transposed else normal(K, N))]
    operands += [s.constant(normal(*bias))] if bias else []
    product = s.apply("gemm", *operands, b_transpose=transposed)
    graph = s.graph(s.apply("reshape", product, new_shape=[2, ROWS, N]))
    check(merged, graph, s.feeds, ["matmul", "add"] if bias else ["matmul"])


@pytest.mark.parametrize("what", ["alpha", "transposed", "rows of a bias", "no constant", "other columns", "an output"])
def test_products_of_joined_rows_that_stay(what: str) -> None:
    s = Sketch()
    joined = s.apply("reshape", s.input(normal(2, ROWS, K)), new_shape=[2 * ROWS, K])
    if what == "transposed":
        joined = s.apply("reshape", joined, new_shape=[K, 2 * ROWS])
    weights = s.input(normal(K, N)) if what == "no constant" else s.constant(normal(K, N))
    operands = [joined, weights, *([s.constant(normal(2 * ROWS, N))] if what == "rows of a bias" else [])]
    options = {"alpha": {"alpha": 2.0}, "transposed": {"a_transpose": True}}.get(what, {})
    product = s.apply("gemm", *operands, **options)
    shape = [2, ROWS // 2, 2 * N] if what == "other columns" else [2, ROWS, N]
    end = s.apply("reshape", product, new_shape=shape)
    unchanged(merged, s.graph(end, product) if what == "an output" else s.graph(end))


def heads(s: Sketch, value: int, permutation: Sequence[int]) -> int:
    batch, length, width = s.type(value).shape
    return s.apply("transpose", s.apply("reshape", value, new_shape=[batch, length, 4, width // 4]), permutation=permutation)


def attention(*, split: bool) -> tuple[Graph, dict[str, Any]]:
    """Return self-attention of two sequences of 16, the queries, keys and values of which are products of the same rows."""
    s = Sketch()
    a = s.apply("tanh", s.input(normal(2, 16, 32) / 8))
    if split:
        whole = project(s, a, K=32, N=96, bias="behind")
        q, k, v = s.apply_all("split", (whole,), splits=[32] * 3, axis=2)
    else:
        q, k, v = (project(s, a, K=32, N=32, bias="behind", seed=seed) for seed in range(3))
    scores = s.apply("matmul", heads(s, q, (0, 2, 1, 3)), heads(s, k, (0, 2, 3, 1)))
    scaled = s.apply("mul", scores, s.constant(np.float32(8**-0.5)))
    mixed = s.apply("matmul", s.apply("softmax", scaled, axis=3), heads(s, v, (0, 2, 1, 3)))
    return s.graph(s.apply("transpose", mixed, permutation=[0, 2, 1, 3])), s.feeds


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("profile", PROFILES)
def test_attention_takes_one_product_and_no_copy(profile: str, split: bool) -> None:
    graph, feeds = attention(split=split)
    device = open_profile(profile)
    kernels = [
        dispatch.spec.template.split(".")[0]
        for dispatch in make_plan(run_passes(graph, device.target)[0], device.target).dispatches
    ]
    assert kernels[:3] == ["elementwise", "matmul", "attention"]
    actual, expected = run_graph(device, graph, feeds), interpret(graph, feeds)
    np.testing.assert_allclose(actual["0"], expected["0"], rtol=0, atol=1e-5)
