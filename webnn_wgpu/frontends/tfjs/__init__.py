"""TensorFlow.js models on WebNN: `load_model`, `analyze` and their results."""

from .analysis import analyze
from .model import TfjsModel, load_model
from .reading import is_tfjs

__all__ = ["TfjsModel", "analyze", "is_tfjs", "load_model"]
