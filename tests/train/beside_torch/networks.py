"""The transformer of `tests.train.networks` in PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from tests.train.networks import HEADS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Array = NDArray[Any]


def torch_weights(weights: Mapping[str, Array]) -> dict[str, torch.Tensor]:
    """Return parameters of PyTorch."""
    return {name: torch.tensor(array, dtype=torch.float32, requires_grad=True) for name, array in weights.items()}


def torch_transformer(p: Mapping[str, torch.Tensor], batch: Mapping[str, Array]) -> torch.Tensor:
    """Return the loss of `networks.transformer`."""
    tokens, targets = (torch.tensor(batch[name]).long() for name in ("tokens", "targets"))
    count, length = tokens.shape
    width = p["embedding"].shape[1]

    def dense(x: torch.Tensor, name: str) -> torch.Tensor:
        return x @ p[f"{name}/weight"] + p[f"{name}/bias"]

    def normal(x: torch.Tensor, name: str) -> torch.Tensor:
        return functional.layer_norm(x, [width], p[f"{name}/scale"], p[f"{name}/bias"])

    def by_head(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(count, length, HEADS, width // HEADS).transpose(1, 2)

    x = p["embedding"][tokens] + p["positions"]
    for layer in range(sum(name.endswith("/q/weight") for name in p)):
        rows = normal(x, f"{layer}/first")
        query, key, value = (by_head(dense(rows, f"{layer}/{name}")) for name in "qkv")
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + dense(mixed.transpose(1, 2).reshape(count, length, width), f"{layer}/o")
        x = x + dense(functional.gelu(dense(normal(x, f"{layer}/second"), f"{layer}/up")), f"{layer}/down")
    return functional.cross_entropy(dense(normal(x, "last"), "head").flatten(0, 1), targets.flatten())
