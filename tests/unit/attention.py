"""Attention and rotary embedding as exporters write them, for tests of passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.unit.rewrites import normal, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support import Sketch
    from webnn_wgpu.ir.graph import Array

B, S, T, H, D = 2, 5, 7, 3, 4


def heads(s: Sketch, x: int, length: int, permutation: Sequence[int] = (0, 2, 1, 3), size: int = D) -> int:
    return s.apply("transpose", s.apply("reshape", x, new_shape=[B, length, H, size]), permutation=permutation)


def swapped(s: Sketch, x: int, shape: Sequence[int]) -> int:
    """Swap the last two dimensions as PyTorch's exporter with `dynamo=True` does."""
    *_, columns, rows = shape
    joined = s.apply("reshape", x, new_shape=[s.type(x).num_elements // (rows * columns), rows, columns])
    return s.apply("reshape", s.apply("transpose", joined, permutation=[0, 2, 1]), new_shape=shape)


def attention(s: Sketch, form: str = "", mask: Array | None = None) -> int:
    q, k, v = (s.input(normal(B, n, H * D, seed=i)) for i, n in enumerate((S, T, T)))
    query, value = heads(s, q, S), heads(s, v, T)
    if "twice" in form:
        key = s.apply("transpose", heads(s, k, T), permutation=[0, 1, 3, 2])
    elif "joined" in form:
        key = swapped(s, heads(s, k, T), [B, H, D, T])
    else:
        key = heads(s, k, T, (0, 2, 3, 1))
    if "both scaled" in form:
        query, key = s.apply("mul", query, number(s, D**-0.25)), s.apply("mul", number(s, D**-0.25), key)
    scores = s.apply("matmul", query, key)
    if "div" in form:
        scores = s.apply("div", scores, number(s, D**0.5))
    if "mul" in form:
        scores = s.apply("mul", number(s, D**-0.5), scores)
    if mask is not None:
        scores = s.apply("add", *((s.input(mask), scores) if "mask first" in form else (scores, s.input(mask))))
    out = s.apply("matmul", s.apply("softmax", scores, axis=3), value)
    if "heads" in form:
        return out
    out = s.apply("transpose", out, permutation=[0, 2, 1, 3])
    return s.apply("reshape", out, new_shape=[B, S, H * D])


def rotary(s: Sketch, x: int, cos: int, sin: int, form: str = "") -> int:
    size = s.type(x).shape[-1]
    if "split" in form:
        first, second = s.apply_all("split", [x], splits=2, axis=3)
    else:
        sizes = (*s.type(x).shape[:-1], size // 2)
        first, second = (s.apply("slice", x, starts=(0, 0, 0, start), sizes=sizes) for start in (0, size // 2))
    if "another order" in form:
        first, second = second, first
    turned = s.apply("concat", s.apply("neg", second) if "no neg" not in form else second, first, axis=3)
    straight, turned = s.apply("mul", cos, x) if "cos first" in form else s.apply("mul", x, cos), s.apply("mul", turned, sin)
    return s.apply("add", turned, straight, label="r") if "sin first" in form else s.apply("add", straight, turned, label="r")


def angles(*shape: int) -> Array:
    """Return angles, each twice in a row."""
    half = np.random.default_rng(5).uniform(0, 6, (*shape[:-1], shape[-1] // 2)).astype(np.float32)
    return np.concatenate([half, half], -1)
