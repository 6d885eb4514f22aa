"""One module per family of ONNX operators; each registers what lowers its operators."""

from . import (
    activations,
    attention,
    control_flow,
    convolution,
    einsum,
    elementwise,
    indexing,
    linear,
    losses,
    movement,
    normalization,
    pooling,
    quantization,
    recurrent,
    reductions,
    regions,
    sampling,
    shapes,
    signal,
    transformers,
)
from ._registry import MICROSOFT, Handler, Inline, Result, handled, handler, lowers

__all__ = ["MICROSOFT", "Handler", "Inline", "Result", "handled", "handler", "lowers"]

_ = (
    activations,
    attention,
    control_flow,
    convolution,
    einsum,
    elementwise,
    indexing,
    linear,
    losses,
    movement,
    normalization,
    pooling,
    quantization,
    recurrent,
    reductions,
    regions,
    sampling,
    shapes,
    signal,
    transformers,
)
