"""Lists of tensors: TensorArray and TensorList.

A list is a tensor whose first dimension counts its elements. While all its elements are known by number, it is a list of
tensors, and no operator joins them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from webnn_wgpu import MLOperand

from ..common.held import HELD, DType, Shape
from .tensors import TfjsTensor

if TYPE_CHECKING:
    from .lowering import TfjsLowering

MOST_ITEMS = 1 << 16
"""The maximum number of tensors of a list."""


def list_of(items: Sequence[TfjsTensor | None], shape: Shape, dtype: DType) -> TfjsTensor:
    """Return the list of some tensors of a shape."""
    found = TfjsTensor(shape=(len(items), *shape), dtype=dtype, items=list(items))
    if not found.size:
        found.array = np.zeros(found.shape, dtype)
    return found


def item_shape(items: Sequence[TfjsTensor | None], otherwise: Shape) -> Shape:
    """Return the shape of the elements of a list."""
    return next((t.shape for t in items if t is not None), otherwise)


def joined(lowering: TfjsLowering, tensor: TfjsTensor) -> None:
    """Make one tensor of the elements of a list. Those not yet set are zeros."""
    items = tensor.items or []
    if not tensor.size:
        tensor.array = np.zeros(tensor.shape, tensor.dtype)
        return
    shape = tensor.shape[1:]
    if all(t is None or t.array is not None for t in items):
        zeros = np.zeros(shape, tensor.dtype)
        tensor.array = np.stack([zeros if t is None or t.array is None else t.array for t in items]).astype(tensor.dtype)
        return
    zero: MLOperand | None = None
    parts: list[MLOperand] = []
    for item in items:
        if item is None:
            zero = zero or lowering.constant(np.zeros((1, *shape), HELD[tensor.dtype]))
            parts.append(zero)
        else:
            parts.append(lowering.builder.reshape(lowering.hold(item), [1, *shape]))
    tensor.operand = lowering.builder.concat(parts, 0) if len(parts) > 1 else lowering.builder.identity(parts[0])
    tensor.items = None
