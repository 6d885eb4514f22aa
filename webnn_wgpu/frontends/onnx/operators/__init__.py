"""One module per family of ONNX operators. Each registers the functions that lower its operators."""

from importlib import import_module

from ._registry import MICROSOFT, Handler, OnnxInline, Result, handler, lowers

__all__ = ["MICROSOFT", "Handler", "OnnxInline", "Result", "handler", "lowers"]

for _module in (
    "activations",
    "attention",
    "control_flow",
    "convolution",
    "einsum",
    "elementwise",
    "indexing",
    "linear",
    "losses",
    "movement",
    "normalization",
    "pooling",
    "quantization",
    "recurrent",
    "reductions",
    "regions",
    "sampling",
    "shapes",
    "signal",
    "transformers",
):
    import_module(f"{__name__}.{_module}")
