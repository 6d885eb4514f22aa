"""TFLite models on WebNN: `load_model`, `analyze` and their results."""

from .analysis import analyze
from .call import TfliteCall
from .model import TfliteModel, load_model

__all__ = ["TfliteCall", "TfliteModel", "analyze", "load_model"]
