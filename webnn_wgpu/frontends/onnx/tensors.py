"""ONNX values during the lowering of their graph."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir

from ..common.stages import LoweredTensor
from .types import Array


@dataclass(slots=True, kw_only=True)
class OnnxTensor(LoweredTensor[onnx_ir.Value]):
    """A value during the lowering of its graph."""

    @classmethod
    def known(cls, array: Array, name: str = "") -> OnnxTensor:
        """Return the tensor of an array."""
        return cls(shape=array.shape, dtype=array.dtype, array=array, name=name)
