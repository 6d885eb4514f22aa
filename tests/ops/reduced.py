"""Reductions and pools with element-wise operators behind them, as graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.ops.rows import positive
from tests.support import Sketch

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array, Graph


@dataclass(frozen=True)
class Reduced:
    """A reduction or pool, whose result is multiplied by a vector and added to a tensor.

    Attributes:
        op: the operator.
        shape: the shape of its operand.
        attrs: its options.
        axis: the dimension of the vector, counted from the end.
        data_type: the data type.
    """

    op: str
    shape: tuple[int, ...]
    attrs: dict[str, Any]
    axis: int = -1
    data_type: str = "float32"

    def sketch(self) -> tuple[Sketch, int]:
        """Return the graph while it is drawn, and its result."""
        rng, s = np.random.default_rng(3), Sketch()
        y = s.apply(self.op, s.input(positive(rng, self.data_type, self.shape)), **self.attrs)
        shape = s.type(y).shape
        vector = s.input(positive(rng, self.data_type, (*shape[self.axis :][:1], *(1,) * (-1 - self.axis))))
        return s, s.apply("add", s.apply("mul", y, vector), s.input(positive(rng, self.data_type, shape)))

    def graph(self) -> tuple[Graph, dict[str, Array]]:
        """Return the graph, and its inputs."""
        s, result = self.sketch()
        return s.graph(result), s.feeds

    def __str__(self) -> str:
        return f"{self.op}{list(self.shape)}"


_WINDOW = {"window_dimensions": [3, 2], "padding": [1, 0, 0, 1], "strides": [2, 1]}
_NHWC = {"layout": "nhwc"}

REDUCED = (
    Reduced("averagePool2d", (2, 3, 7, 5), _WINDOW, -3),
    Reduced("maxPool2d", (2, 7, 5, 3), _WINDOW | _NHWC),
    Reduced("l2Pool2d", (2, 7, 5, 8), _WINDOW | _NHWC),
    Reduced("averagePool2d", (1, 30, 9, 4), _NHWC | {"window_dimensions": [8, 8]}, data_type="float16"),
    Reduced("maxPool2d", (2, 5, 12, 12), {}, -3),
    Reduced("averagePool2d", (1, 12, 12, 8), _NHWC),
    Reduced("reduceMean", (3, 90), {"axes": [1], "keep_dimensions": True}),
    Reduced("reduceLogSumExp", (3, 9, 5), {"axes": [1]}),
    Reduced("reduceL2", (60, 16), {"axes": [0], "keep_dimensions": True}, data_type="float16"),
)
