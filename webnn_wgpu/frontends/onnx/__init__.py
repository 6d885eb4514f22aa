"""ONNX models on WebNN: `load_model`, `analyse` and what they return."""

from . import quick_import as quick_import  # isort: skip  # first: whatever imports onnx_ir then finds it imported
from .analysis import Analysis, Memory, analyse
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
    "analyse",
    "default_size",
    "load_model",
    "settle",
    "sidecar",
]
