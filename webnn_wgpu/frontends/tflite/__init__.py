"""TFLite models on WebNN: `load_model` and the model that it returns."""

from .model import TfliteModel, load_model

__all__ = ["TfliteModel", "load_model"]
