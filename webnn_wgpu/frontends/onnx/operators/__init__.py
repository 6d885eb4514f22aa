"""One module per family of ONNX operators; each registers what lowers its operators."""

from . import attention, control_flow, elementwise, linear, movement, shapes, transformers
from ._registry import MICROSOFT, Handler, Inline, Result, handled, handler, lowers

__all__ = ["MICROSOFT", "Handler", "Inline", "Result", "handled", "handler", "lowers"]

_ = (attention, control_flow, elementwise, linear, movement, shapes, transformers)
