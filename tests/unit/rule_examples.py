"""What the examples of rules are made of, and what breaks their conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from tests.unit.rewrites import normal
from webnn_wgpu.passes import quantized, rotary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.unit.rules import Example
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.passes.patterns import Apply


def turned_or_not(array: Array) -> Callable[[Example], Array]:
    """Return what transposes a matrix where the pattern transposes it back."""
    return lambda example: array.T if example.takes(quantized.turned) else array


def cut(start: int, size: int, stride: int = 1) -> Callable[[Example], int]:
    """Return what takes elements of each row of x."""

    def make(example: Example) -> int:
        x = example.named("x")
        *outer, _ = example.sketch.type(x).shape
        starts, strides = [*(0 for _ in outer), start], [*(1 for _ in outer), stride]
        return example.sketch.apply("slice", x, starts=starts, sizes=[*outer, size], strides=strides)

    return make


def tables(array: Array) -> dict[str, Any]:
    """Return cos and sin of angles, as constants."""
    return {name: lambda e, f=f: e.sketch.constant(f(array)) for name, f in (("cos", np.cos), ("sin", np.sin))}


def every_second(start: int, apart: Apply) -> Callable[[Example], int]:
    """Return what takes every second element of each row of x, which a pattern may give a last dimension of 1."""

    def make(example: Example) -> int:
        s, x = example.sketch, example.named("x")
        *outer, size = s.type(x).shape
        if example.takes(apart) or (start and example.takes(rotary.negated_apart)):
            return cut(start, size - 1, 2)(example)
        pairs = s.apply("reshape", x, new_shape=[*outer, size // 2, 2])
        return s.apply_all("split", [pairs], splits=2, axis=len(outer) + 1)[start]

    return make


def to_pairs(example: Example, operands: Sequence[int]) -> dict[str, Any]:
    """Return the options of a reshape around pairs: into rows if they are joined, or else with a last dimension of 1."""
    *outer, size = example.sketch.type(example.named("x")).shape
    joined = example.sketch.type(operands[0]).shape == (*outer, size // 2, 2)
    return {"new_shape": [*outer, size] if joined else [*outer, size // 2, 1]}


def to_rows(example: Example, operands: Sequence[int]) -> dict[str, Any]:
    """Return the options of a reshape between [batch, length, heads, size] and rows."""
    return {"new_shape": [2, 5, 24] if example.sketch.type(operands[0]).rank == 4 else [2, 5, 3, 8]}


HAS_HEADS = "x is [batch, heads, length, size] or [batch, length, heads, size], and size even"
CONVOLUTION = {
    "x": normal(2, 4, 6, 6),
    "w": lambda e: e.sketch.constant(normal(4, 4, 3, 3)),
    "bias": normal(4),
    "c": np.abs(normal(4, 1, 1)) + 1,
}
STATISTICS = {"mean": normal(4), "variance": np.abs(normal(4)) + 1, "scale": normal(4, seed=1), "shift": normal(4, seed=2)}
PAD = {"x": normal(1, 2, 5, 6), "pad": {"beginning_padding": [0, 0, 1, 1], "ending_padding": [0, 0, 1, 0]}}
HEADS = {"x": normal(2, 3, 5, 8)}
PART = {
    "x": normal(2, 3, 5, 16),
    "first": cut(0, 8),
    "rest": cut(8, 8),
    "x.rotary_embedding": {"heads": 3},
    "concat": {"axis": 3},
    **tables(normal(1, 5, 4)),
}

GIVEN: dict[str, dict[str, Any]] = {
    "product with weights of few bits": {
        "x": normal(4, 32),
        "b": turned_or_not(np.random.default_rng(0).integers(-8, 8, (32, 8)).astype(ml_dtypes.int4)),
        "scales": turned_or_not(np.abs(normal(2, 8)) + 0.1),
        "zero_points": turned_or_not(np.random.default_rng(1).integers(-8, 8, (2, 8)).astype(ml_dtypes.int4)),
        "bias": normal(8),
    },
    "cast of cast": {"x": normal(3, dtype=np.float16), "cast": {"data_type": "float32"}, "data_type": "float16"},
    "quantized and dequantized": {"scale": np.full((1, 1, 1), 0.1, np.float32), "zero_point": np.full((1, 1, 1), 3, np.int8)},
    "padding of a convolution": {**PAD, "more": [normal(3, 2, 3, 3)]},
    "padding of an L2 pool": {**PAD, "l2Pool2d": {"window_dimensions": [2, 3]}},
    "padding of a maximum pool": {**PAD, "maxPool2d": {"window_dimensions": [2, 3]}},
    **{f"{what} of channels": CONVOLUTION for what in ("factor", "divisor", "addend", "subtrahend")},
    "batch normalization of a convolution": {**CONVOLUTION, **STATISTICS},
    "batch normalization": {**STATISTICS, "x": lambda e: e.sketch.apply("relu", e.sketch.input(e.typed(normal(2, 4, 5, 6))))},
    "layer normalization": {"axes": (2,), "epsilon": 1e-5},
    "rms normalization": {"axes": (1, 2), "epsilon": 1e-5},
    "scale of a normalization": {"scale": normal(4, seed=1), "normalization": {"axes": [2]}},
    "bias of a normalization": {"bias": normal(4, seed=2), "scale": normal(4, seed=1), "layerNormalization": {"axes": [2]}},
    "normalization of heads": {"x": normal(2, 5, 3, 8)},
    "rotary embedding of halves": {
        **HEADS,
        "first": cut(0, 4),
        "second": cut(4, 4),
        "concat": {"axis": 3},
        **tables(np.tile(normal(5, 4), 2)),
    },
    "rotary embedding of neighbors": {
        **HEADS,
        "even": every_second(0, rotary.even_apart),
        "odd": every_second(1, rotary.odd_apart),
        "concat": {"axis": 4},
        "reshape": to_pairs,
        **tables(np.repeat(normal(5, 4), 2, 1)),
    },
    "rotary embedding of a part of heads": PART,
    "rotary embedding of a part of heads in rows": {**PART, "x": normal(2, 5, 3, 16), "reshape": to_rows},
    **{name: {"number": 0.7} for name in ("product with a number", "sum with a number")},
    **{name: {"number": 0.7} for name in ("number subtracted", "subtraction from a number")},
}
"""What examples of a rule are made of where the defaults do not fit.

Variables and numbers are given by name, as arrays, or as functions that make arrays or values. Options are given by name where
the pattern names them, or else by operator. `more` are operands that the pattern leaves open. A variable is
float32[4, 4, 4] by default, a shape that broadcasts also where an option is wrong.
"""

BROKEN: dict[str, dict[str, dict[str, Any]]] = {
    "product with weights of few bits": {
        "the weights are a matrix": {
            "x": normal(3, 4, 32),
            "b": np.random.default_rng(0).integers(-8, 8, (3, 32, 8)).astype(ml_dtypes.int4),
            "scales": np.abs(normal(3, 2, 8)) + 0.1,
            "zero_points": np.zeros((3, 2, 8), ml_dtypes.int4),
        }
    },
    "cast of cast": {
        "the first cast loses nothing": {"x": normal(3), "cast": {"data_type": "float16"}},
        "the second does not saturate what one alone wraps": {
            "x": np.arange(3, dtype=np.uint8),
            "cast": {"data_type": "float32"},
            "data_type": "int8",
        },
    },
    "quantized and dequantized": {
        "the result has the type of x": {
            "scale": np.full((1, 1, 1), 0.5, np.float32),
            "operands of dequantizeLinear": {1: np.full((1, 1, 1), 0.5, np.float16)},
        },
        "scale is finite": {"scale": np.full((1, 1, 1), np.inf, np.float32)},
    },
    **{
        f"padding of {what}": {
            "x is padded by rows and columns alone": {
                "pad": {"beginning_padding": [0, 0, 1, 1], "ending_padding": [0, 1, 1, 0]},
                "more": [normal(3, 3, 3, 3)] if what == "a convolution" else [],
            }
        }
        for what in ("a convolution", "an L2 pool")
    },
    "padding of a maximum pool": {
        "x is padded by rows and columns alone": {
            "pad": {"beginning_padding": [0, 0, 1, 1], "ending_padding": [0, 1, 1, 0]},
        },
        "every window sees some of x": {"pad": {"beginning_padding": [0, 0, 2, 0], "ending_padding": [0, 0, 0, 0]}},
    },
    **{
        f"{what} of channels": {"c varies along the channels alone": {"c": normal(4, 4, 1)}}
        for what in ("factor", "divisor", "addend", "subtrahend")
    },
    "batch normalization of a convolution": {"it normalizes the channels": {"batchNormalization": {"axis": 2}}},
    "batch normalization": {"it is fused with what is next to it": {"x": normal(2, 4, 5, 6)}},
    "layer normalization": {"epsilon >= 0": {"epsilon": -1e-5}},
    "rms normalization": {"epsilon >= 0": {"epsilon": -1e-5}},
    "scale of a normalization": {"scale has all normalized dimensions and no other": {"scale": normal(4, 1)}},
    "bias of a normalization": {"bias has all normalized dimensions and no other": {"bias": normal(1)}},
    "rotary embedding of halves": {
        HAS_HEADS: {"x": normal(3, 5, 8), "concat": {"axis": 2}},
        "first and second are the halves of x": {"second": cut(3, 4)},
        "cos and sin are the same for all heads": tables(np.tile(normal(3, 5, 4), 2)),
        "their rows have each number twice, once for either of a pair": tables(np.repeat(normal(5, 4), 2, 1)),
    },
    "rotary embedding of neighbors": {
        HAS_HEADS: {"x": normal(3, 5, 8), "concat": {"axis": 3}},
        "even and odd are every second element of x": {"even": every_second(1, rotary.even_apart)},
        "cos and sin are the same for all heads": tables(np.repeat(normal(3, 5, 4), 2, 2)),
        "their rows have each number twice, once for either of a pair": tables(np.tile(normal(5, 4), 2)),
    },
    **{
        f"rotary embedding of a part of heads{where}": {
            "first and rest are all elements of each head of x": {"rest": cut(7, 8)}
        }
        for where in ("", " in rows")
    },
    **{
        name: {"the number is finite": {"number": np.inf}}
        for name in ("product with a number", "sum with a number", "number subtracted", "subtraction from a number")
    },
}
"""Rule -> condition -> what breaks that alone."""
