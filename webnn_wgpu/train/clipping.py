"""Clipping of gradients, in the graph."""

from __future__ import annotations

from collections.abc import Sequence

from .optimizers import Optimizer
from .quantity import Quantity


def clipped(gradients: Sequence[Quantity], optimizer: Optimizer) -> Sequence[Quantity]:
    """Return gradients, limited as an optimizer asks: by value, then by the norm of all of them together."""
    if optimizer.clip_value is not None:
        gradients = [gradient.clamp(-optimizer.clip_value, optimizer.clip_value) for gradient in gradients]
    if optimizer.clip_norm is not None:
        first, *others = (gradient.sum_of_squares() for gradient in gradients)
        norm = sum(others, first).sqrt()
        factor = optimizer.clip_norm / norm.maximum(optimizer.clip_norm)
        gradients = [gradient * factor for gradient in gradients]
    return gradients
