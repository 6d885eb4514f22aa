"""ONNX models on WebNN: `load`, `load_onnx` and what they return."""

from .lowering import Placed
from .model import Model, Placement, ValueInfo, load, load_onnx

__all__ = ["Model", "Placed", "Placement", "ValueInfo", "load", "load_onnx"]
