"""One module per family of ONNX operators; each registers what lowers its operators."""

from . import (
    control_flow,
    convolution,
    einsum,
    elementwise,
    linear,
    losses,
    movement,
    normalization,
    pooling,
    quantization,
    recurrent,
    shapes,
    signal,
)
from ._registry import MICROSOFT, Handler, Inline, Result, handled, handler, lowers

__all__ = ["MICROSOFT", "Handler", "Inline", "Result", "handled", "handler", "lowers"]

_ = (
    control_flow,
    convolution,
    einsum,
    elementwise,
    linear,
    losses,
    movement,
    normalization,
    pooling,
    quantization,
    recurrent,
    shapes,
    signal,
)
