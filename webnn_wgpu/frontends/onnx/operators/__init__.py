"""One module per family of ONNX operators; each registers what lowers its operators."""

from . import control_flow, elementwise, linear, movement, shapes
from ._registry import MICROSOFT, Handler, Inline, Result, handled, handler, lowers

__all__ = ["MICROSOFT", "Handler", "Inline", "Result", "handled", "handler", "lowers"]

_ = (control_flow, elementwise, linear, movement, shapes)
