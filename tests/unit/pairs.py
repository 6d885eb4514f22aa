"""Two products of few rows, the second one of the first one's result, such as squeeze and excitation has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.support import Sketch
from tests.unit.plans import caps_of
from tests.unit.rewrites import normal
from webnn_wgpu.costs import Target
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.passes import run_passes
from webnn_wgpu.passes.product_pairs import pair_products

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array, Graph

GPU = Target.of(caps_of("amd"))


def multiplied(s: Sketch, x: int, columns: int, *, op: str = "gemm", bias: bool = True, seed: int = 0, **options: Any) -> int:
    """Return the product of the rows of a value with a constant: by a gemm, a matmul, or a convolution of one pixel."""
    shape, dtype = s.type(x).shape, s.type(x).numpy
    depth = shape[1] if options.get("input_layout", "") == "nchw" else shape[-1]
    order = options.get("filter_layout", "io") if op == "conv2d" else "oi" if options.get("b_transpose") else "io"
    sizes = {"i": depth, "o": columns, "h": 1, "w": 1}
    weights = s.constant(normal(*(sizes[letter] for letter in order), seed=seed, dtype=dtype) / np.sqrt(depth).astype(dtype))
    vector = s.constant(normal(columns, seed=seed + 1, dtype=dtype))
    if op == "matmul":
        product = s.apply(op, x, weights, **options)
        return s.apply("add", product, vector) if bias else product
    return s.apply(op, x, weights, vector if bias else None, **options)


NHWC = {"op": "conv2d", "input_layout": "nhwc", "filter_layout": "ohwi"}
NCHW = {"op": "conv2d", "input_layout": "nchw", "filter_layout": "oihw"}


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two products, with operators between them and behind them.

    Attributes:
        rows, steps, hidden, columns: the sizes.
        product: the options of both products.
        bias: whether each of them has a bias.
        between: the operators between them: "silu", one without options, or "scaled" for a number, a vector and a tensor.
        behind: those behind the second one, in the same words.
        data_type: the data type.
    """

    rows: int = 1
    steps: int = 64
    hidden: int = 8
    columns: int = 64
    product: Any = None
    bias: tuple[bool, bool] = (True, True)
    between: str = "silu"
    behind: str = "sigmoid"
    data_type: str = "float32"

    def sketch(self) -> tuple[Sketch, int]:
        """Return the graph while it is drawn, and its result."""
        s, product = Sketch(), self.product or {}
        ones = {"nhwc": ((1, 1), ()), "nchw": ((), (1, 1))}
        before, behind = ones.get(product.get("input_layout", ""), ((), ()))
        x = s.input(normal(self.rows, *before, self.steps, *behind, dtype=np.dtype(self.data_type)))
        h = _applied(s, multiplied(s, x, self.hidden, bias=self.bias[0], **product), self.between)
        y = multiplied(s, h, self.columns, bias=self.bias[1], seed=3, **product)
        return s, _applied(s, y, self.behind)

    def graph(self) -> tuple[Graph, dict[str, Array]]:
        """Return the graph, and its inputs."""
        s, result = self.sketch()
        return s.graph(result), s.feeds


def _applied(s: Sketch, x: int, name: str) -> int:
    if name == "silu":
        return s.apply("mul", x, s.apply("sigmoid", x))
    if name != "scaled":
        return s.apply(name, x) if name else x
    shape, dtype = s.type(x).shape, s.type(x).numpy
    vector = [n if n == max(shape[1:]) else 1 for n in shape[1:]]
    y = s.apply("mul", x, s.constant(np.asarray(0.75, dtype)))
    y = s.apply("max", y, s.constant(normal(*vector, seed=11, dtype=dtype)))
    return s.apply("add", y, s.input(normal(*shape, seed=12, dtype=dtype)))


PAIRS = {
    "squeeze and excitation": Pair(steps=96, hidden=4, columns=96, product=NHWC),
    "channels first": Pair(steps=144, hidden=6, columns=144, product=NCHW),
    "wide": Pair(steps=480, hidden=20, columns=480, product=NHWC),
    "long sums": Pair(steps=672, hidden=28, columns=672, product=NHWC),
    "images": Pair(rows=3, steps=48, hidden=12, columns=40, product=NCHW, between="relu", behind="hardSigmoid"),
    "most hidden numbers": Pair(steps=16, hidden=64, columns=20, between="tanh", behind=""),
    "hidden numbers of several rounds": Pair(steps=132, hidden=33, columns=68, product={"b_transpose": True}),
    "columns that are no quads": Pair(rows=2, steps=20, hidden=5, columns=7),
    "one column": Pair(steps=32, hidden=16, columns=1, between="relu"),
    "one hidden number": Pair(rows=2, steps=8, hidden=1, columns=12),
    "no bias": Pair(rows=4, steps=64, hidden=24, columns=36, bias=(False, False), product={"op": "matmul"}),
    "nothing between": Pair(steps=64, hidden=8, columns=64, between="", behind=""),
    "operands between": Pair(rows=3, steps=64, hidden=24, columns=36, between="scaled", behind="relu", bias=(False, False)),
    "operands behind": Pair(rows=3, steps=64, hidden=24, columns=36, between="clamp", behind="scaled", bias=(True, False)),
}
"""Pairs that kernels must compute, by what is particular about them."""


def paired(graph: Graph, target: Target = GPU) -> Graph:
    """Return the graph behind the pass."""
    return verify(pair_products(graph, target))


def optimized(graph: Graph) -> Graph:
    """Return the graph behind all passes for a GPU."""
    return run_passes(graph, GPU)[0]
