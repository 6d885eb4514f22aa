"""Convolutions of 1 x 1 taps whose images are reduced to means, as networks that classify images end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.support import Sketch
from tests.unit.projections import convolved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Array, Graph


def quantized(s: Sketch, x: int, scale: float = 0.05) -> int:
    """Return values that are rounded to 8 bits."""
    ones = (1,) * len(s.type(x).shape)
    parameters = s.constant(np.full(ones, scale, s.type(x).numpy)), s.constant(np.full(ones, 100, np.uint8))
    return s.apply("dequantizeLinear", s.apply("quantizeLinear", x, *parameters), *parameters)


class Pooled:
    """A graph of a convolution and the mean over all pixels of its result.

    Attributes:
        sketch: the graph.
        image: the image that is reduced.
        mean: the mean, with the operators behind it.
    """

    def __init__(
        self,
        shape: Sequence[int] = (1, 7, 7, 320),
        columns: int = 1280,
        *,
        data_type: str = "float32",
        bias: bool = True,
        chain: Sequence[str] = ("relu",),
        op: str = "averagePool2d",
        behind: Sequence[str] = (),
        whole: bool = False,
        options: dict[str, Any] | None = None,
        **attrs: Any,
    ) -> None:
        rng = np.random.default_rng(4)
        self.sketch = s = Sketch()

        def array(*dims: int) -> Array:
            numbers = rng.integers(-4, 5, dims) if whole else rng.standard_normal(dims)
            return numbers.astype(data_type)

        taps = (options or {}).get("taps", 1)
        weights = array(columns, taps, taps, shape[-1] // (options or {}).get("groups", 1))
        y = convolved(s, s.input(array(*shape)), columns, bias=bias, weights=weights, **(options or {}))
        for each in chain:
            if each == "residual":
                y = s.apply("add", y, s.input(array(*s.type(y).shape)))
            elif each == "channels":
                y = s.apply("mul", s.constant(array(columns)), y)
            else:
                y = quantized(s, y) if each == "quantized" else s.apply(each, y)
        self.image = y
        if op == "reduceMean":
            y = s.apply(op, y, **({"axes": (1, 2)} | attrs))
        else:
            y = s.apply(op, y, **({"layout": "nhwc"} | attrs))
        for each in behind:
            if each == "channels":
                y = s.apply("mul", s.constant(array(columns)), y)
            elif each == "cast":
                y = s.apply("cast", y, data_type="float16" if data_type == "float32" else "float32")
            else:
                y = quantized(s, y, 0.002) if each == "quantized" else s.apply(each, y)
        self.mean = y

    @property
    def alone(self) -> Graph:
        """The graph whose output is the mean."""
        return self.sketch.graph(self.mean)

    @property
    def both(self) -> Graph:
        """The graph that also has the image as output."""
        return self.sketch.graph(self.mean, self.image)
