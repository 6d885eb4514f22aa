"""Graphs as Core ML models, built by coremltools."""

from .model import to_coreml, write_coreml

__all__ = ["to_coreml", "write_coreml"]
