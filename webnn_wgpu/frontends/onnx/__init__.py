"""ONNX models on WebNN: `load_model`, `analyze` and their results."""

from . import quick_import as quick_import  # isort: skip  # first: whatever imports onnx_ir then finds it imported
from ..description import Analysis, Memory, Placed, Placement, ValueInfo
from ..dims import Dimension, default_size, settle, sidecar
from ..timing import Profile, Span
from .analysis import analyze
from .decoding import State
from .model import Fallback, Model, Simplifier, load_model

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
