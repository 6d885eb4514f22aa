"""ONNX models on WebNN: `load_model`, `analyze` and what they return."""

from . import quick_import as quick_import  # isort: skip  # first: whatever imports onnx_ir then finds it imported
from .analysis import Analysis, Memory, analyze
from .decoding import State
from .description import Placement, ValueInfo
from .dims import Dimension, default_size, settle, sidecar
from .lowering import Placed
from .model import Fallback, Model, Simplifier, load_model
from .timing import Profile, Span

__all__ = [
    "Analysis",
    "Dimension",
    "Fallback",
    "Memory",
    "Model",
    "Placed",
    "Placement",
    "Profile",
    "Simplifier",
    "Span",
    "State",
    "ValueInfo",
    "analyze",
    "default_size",
    "load_model",
    "settle",
    "sidecar",
]
