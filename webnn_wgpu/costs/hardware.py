"""Costs of GPUs. An adapter of unknown type counts as a GPU.

No GPU has been measured yet. Figures marked as assumed are those of the software adapter.
"""

from __future__ import annotations

from ..core.caps import Caps
from .model import Costs, PassCosts

# Assumed.
_PASSES = PassCosts(
    channels_last_product_ns=0.01,
    channels_last_result_ns=2.0,
    transpose_element_ns=1.5,
    transpose_ns=20_000.0,
    most_joined_bytes=2 << 20,
    most_products=4,
    most_folded_growth_bytes=64 << 20,
    most_fused_steps=32,
)


def costs_of(caps: Caps) -> Costs:
    """Return the costs of a GPU. All GPUs share them so far: figures for a vendor or architecture are to be chosen here."""
    return Costs(passes=_PASSES)
