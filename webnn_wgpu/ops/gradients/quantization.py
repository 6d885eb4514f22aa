"""The gradient of dequantization. Quantized integers themselves have none."""

from __future__ import annotations

from collections.abc import Sequence

from ..interfaces.gradient import NO_DERIVATIVE, GradientCall, GradientTerm, NoDerivative


def dequantize_linear(call: GradientCall) -> Sequence[GradientTerm | NoDerivative | None]:
    """Return the gradient of the scale, which each block sums up."""
    x, scale, zero_point = (call.given(i) for i in range(3))
    if not call.wants(1):
        return NO_DERIVATIVE, None, NO_DERIVATIVE
    g = call.gradient * x.apply("dequantizeLinear", scale.filled(1.0), zero_point)
    for axis, (size, blocks) in enumerate(zip(x.shape, scale.shape, strict=True)):
        if blocks < size:
            shape = (*g.shape[:axis], blocks, *g.shape[axis + 1 :])
            outer, _, inner = g.around(axis).shape
            g = g.reshaped((outer * blocks, size // blocks, inner)).summed((1,)).reshaped(shape)
    return NO_DERIVATIVE, g, NO_DERIVATIVE
