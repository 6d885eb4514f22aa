"""The operators that are measured alone, in sizes of common networks, with the arithmetic they take."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.support import op_graph
from webnn_wgpu.ir.graph import Array, Graph
from webnn_wgpu.ops import OPS

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """An operator.

    Attributes:
        name: for people.
        op: its name.
        inputs: shapes of the operands, or the operands themselves.
        flops: arithmetic operations by its definition; a multiply-add counts as two.
        attrs: its options.
        constants: positions of operands that are constants.
        untouched_bytes: how much of the operands it need not read.
    """

    name: str
    op: str
    inputs: Sequence[Shape | Array]
    flops: float
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    constants: frozenset[int] = frozenset()
    untouched_bytes: int = 0

    def arrays(self) -> list[Array | None]:
        """Return the operands."""
        rng = np.random.default_rng(0)
        given = [rng.standard_normal(x).astype(np.float32) if isinstance(x, tuple) else x for x in self.inputs]
        op = OPS[self.op]
        return [*given, *[None] * (0 if op.variadic else len(op.operands) - len(given))]

    def graph(self) -> Graph:
        """Return the graph of the operator alone."""
        return op_graph(self.op, self.arrays(), self.attrs, self.constants)

    def bytes(self) -> int:
        """Return how much memory it reads and writes if it does so once."""
        graph = self.graph()
        return sum(graph.type(value).size_bytes for value in graph.values) - self.untouched_bytes


def _convolution(size: int, channels: int, columns: int, taps: int, *, groups: int = 1) -> Case:
    steps = channels // groups * taps * taps
    what = "depthwise" if groups > 1 else f"{taps} x {taps}"
    return Case(
        f"convolution {what}, {channels} to {columns} channels, {size} x {size}",
        "conv2d",
        [(1, size, size, channels), (columns, taps, taps, channels // groups), (columns,)],
        2.0 * size * size * columns * steps,
        {
            "input_layout": "nhwc",
            "filter_layout": "ohwi",
            "padding": [taps // 2] * 4,
            "groups": groups,
        },
        frozenset((1, 2)),
    )


def _product(M: int, K: int, N: int, *, constant: bool = True) -> Case:
    return Case(
        f"product {M} x {K} x {N}{'' if constant else ', nothing constant'}",
        "matmul",
        [(M, K), (K, N)],
        2.0 * M * N * K,
        constants=frozenset((1,) * constant),
    )


def _by_element(op: str, shape: Shape, operations: int, **attrs: Any) -> Case:
    along = f" along {attrs['axes']}" if "axes" in attrs else ""
    return Case(f"{op} of {' x '.join(map(str, shape))}{along}", op, [shape], float(operations * math.prod(shape)), attrs)


CASES = (
    _product(512, 512, 512),
    _product(512, 512, 512, constant=False),
    _product(128, 384, 1536),
    _product(128, 1536, 384),
    _product(1, 768, 3072),
    _product(196, 576, 96),
    _convolution(56, 64, 64, 3),
    _convolution(14, 256, 256, 3),
    _convolution(28, 192, 64, 1),
    _convolution(56, 144, 144, 3, groups=144),
    Case(
        "attention, 12 heads of 32, 128 tokens",
        "x.attention",
        [(1, 12, 128, 32)] * 3,
        2.0 * 12 * 128 * 128 * 32 * 2,
    ),
    _by_element("softmax", (1536, 128), 5, axis=1),
    Case(
        "layer normalization of 512 x 768", "layerNormalization", [(512, 768), (768,), (768,)], 8.0 * 512 * 768, {"axes": [1]}
    ),
    _by_element("reduceSum", (1024, 1024), 1, axes=[1]),
    _by_element("reduceSum", (1024, 1024), 1, axes=[0]),
    _by_element("gelu", (512, 3072), 8),
    Case("add of 1024 x 1024", "add", [(1024, 1024), (1024, 1024)], 1024.0 * 1024),
    _by_element("transpose", (1024, 1024), 0, permutation=[1, 0]),
    _by_element("maxPool2d", (1, 64, 112, 112), 9, window_dimensions=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1]),
    Case("concat of two 1024 x 512", "concat", [(1024, 512), (1024, 512)], 0.0, {"axis": 1}),
    Case(
        "gather of 128 of 30000 rows of 384",
        "gather",
        [(30000, 384), np.arange(0, 12800, 100, dtype=np.int32)],
        0.0,
        {"axis": 0},
        frozenset((0,)),
        (30000 - 128) * 384 * 4,
    ),
)
"""What is measured."""
