"""Graphs to look at: a transformer as exporters write it, of any number of layers."""

from __future__ import annotations

import numpy as np

import webnn_wgpu as wn

WIDTH, HEADS, TOKENS = 32, 2, 8
OPERATORS_OF_A_LAYER = 35
SEED = np.random.default_rng(3)


def transformer(context: wn.MLContext, layers: int, *, disabled_passes: tuple[str, ...] = ()) -> wn.MLGraph:
    """x[8, 32], mask[8] -> y[8, 32] through layers whose normalizations, attention and gelu are in parts."""
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [TOKENS, WIDTH]})
    mask = builder.input("mask", {"dataType": "float32", "shape": [TOKENS]})

    def number(value: float) -> wn.MLOperand:
        return builder.constant("float32", value)

    def weights(*shape: int) -> wn.MLOperand:
        return builder.constant((SEED.standard_normal(shape) * 0.1).astype(np.float32))

    def normal(y: wn.MLOperand, label: str) -> wn.MLOperand:
        apart = builder.sub(y, builder.reduce_mean(y, axes=[1], keep_dimensions=True), label=f"{label}/center")
        variance = builder.reduce_mean(builder.mul(apart, apart), axes=[1], keep_dimensions=True, label=f"{label}/variance")
        scaled = builder.div(apart, builder.sqrt(builder.add(variance, number(1e-5))), label=f"{label}/scale")
        return builder.add(builder.mul(scaled, weights(WIDTH)), weights(WIDTH), label=label)

    def dense(y: wn.MLOperand, rows: int, columns: int, label: str) -> wn.MLOperand:
        return builder.add(builder.matmul(y, weights(rows, columns), label=f"{label}/matmul"), weights(columns), label=label)

    def heads(y: wn.MLOperand, order: list[int]) -> wn.MLOperand:
        return builder.transpose(builder.reshape(y, [TOKENS, HEADS, WIDTH // HEADS]), permutation=order)

    for i in range(layers):
        name = f"layer.{i}"
        before = normal(x, f"{name}/norm")
        q, k, v = (dense(before, WIDTH, WIDTH, f"{name}/{part}") for part in ("query", "key", "value"))
        scores = builder.mul(builder.matmul(heads(q, [1, 0, 2]), heads(k, [1, 2, 0])), number(0.25), label=f"{name}/scores")
        chances = builder.softmax(builder.add(scores, mask), 2, label=f"{name}/softmax")
        mixed = builder.reshape(
            builder.transpose(builder.matmul(chances, heads(v, [1, 0, 2])), permutation=[1, 0, 2]), [TOKENS, WIDTH]
        )
        x = builder.add(x, dense(mixed, WIDTH, WIDTH, f"{name}/out"), label=f"{name}/residual")
        hidden = builder.gelu(dense(normal(x, f"{name}/norm2"), WIDTH, 2 * WIDTH, f"{name}/up"), label=f"{name}/gelu")
        x = builder.add(x, dense(hidden, 2 * WIDTH, WIDTH, f"{name}/down"), label=f"{name}/residual2")
    return builder.build({"y": x}, disabled_passes=disabled_passes)
