"""TFLite's operators: one function, or one row of a table, for each."""

from . import (
    activations,
    composites,
    control,
    convolution,
    detection,
    elementwise,
    hosted,
    indexing,
    linear,
    mediapipe,
    normalization,
    pooling,
    quantization,
    recurrent,
    reductions,
    resizing,
    shaping,
    signals,
    stablehlo,
    stablehlo_indexing,
)
from ._registry import Result, TfliteHandler, TfliteInline, handler, handlers

MODULES = (
    activations,
    composites,
    control,
    convolution,
    detection,
    elementwise,
    hosted,
    indexing,
    linear,
    mediapipe,
    normalization,
    pooling,
    quantization,
    recurrent,
    reductions,
    resizing,
    shaping,
    signals,
    stablehlo,
    stablehlo_indexing,
)
"""The modules whose functions are registered when they are imported."""

__all__ = ["MODULES", "Result", "TfliteHandler", "TfliteInline", "handler", "handlers"]
