"""Graphs as ONNX models."""

from .model import to_onnx, write_onnx

__all__ = ["to_onnx", "write_onnx"]
