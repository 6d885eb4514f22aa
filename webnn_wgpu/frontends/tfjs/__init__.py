"""TensorFlow.js models on WebNN: `load_model`, `analyze` and their results."""

from .analysis import analyze
from .model import TfjsModel, load_model

__all__ = ["TfjsModel", "analyze", "load_model"]
