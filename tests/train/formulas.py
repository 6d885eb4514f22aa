"""The formulas of the optimizers in numpy and float64, as their papers and torch have them, written without the package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Array = np.ndarray[Any, Any]
    Updates = Callable[[Array, Callable[[Array], Array], int], Sequence[Array]]


def run(kind: str, start: Array, gradient: Callable[[Array], Array], steps: int, **options: Any) -> list[Array]:
    """Return a parameter after each step."""
    p, memory, found = np.array(start, np.float64), {}, []
    for t in range(1, steps + 1):
        p = p + globals()[f"_{kind}"](p, gradient(p), memory, t, **options)
        found.append(p)
    return found


def _sgd(p, g, memory, t, lr, momentum=0.0, nesterov=False, decay=0.0):
    g = g + decay * p
    v = memory["v"] = momentum * memory.get("v", 0) + g
    return -lr * (g + momentum * v if nesterov else v)


def _moments(g, memory, t, beta1, beta2):
    memory["m"] = beta1 * memory.get("m", 0) + (1 - beta1) * g
    memory["s"] = beta2 * memory.get("s", 0) + (1 - beta2) * g**2
    return memory["m"] / (1 - beta1**t), memory["s"] / (1 - beta2**t)


def _adam(p, g, memory, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.0):
    m, s = _moments(g + decay * p, memory, t, beta1, beta2)
    return -lr * m / (np.sqrt(s) + eps)


def _adamw(p, g, memory, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.01):
    m, s = _moments(g, memory, t, beta1, beta2)
    return -lr * (m / (np.sqrt(s) + eps) + decay * p)


def _adamax(p, g, memory, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.0):
    g = g + decay * p
    m = memory["m"] = beta1 * memory.get("m", 0) + (1 - beta1) * g
    u = memory["u"] = np.maximum(beta2 * memory.get("u", 0), np.abs(g) + eps)
    return -lr * m / (1 - beta1**t) / u


def _adagrad(p, g, memory, t, lr, eps=1e-10, decay=0.0):
    g = g + decay * p
    s = memory["s"] = memory.get("s", 0) + g**2
    return -lr * g / (np.sqrt(s) + eps)


def _adadelta(p, g, memory, t, lr=1.0, rho=0.9, eps=1e-6, decay=0.0):
    g = g + decay * p
    s = memory["s"] = rho * memory.get("s", 0) + (1 - rho) * g**2
    change = g * np.sqrt((memory.get("d", 0) + eps) / (s + eps))
    memory["d"] = rho * memory.get("d", 0) + (1 - rho) * change**2
    return -lr * change


def _rmsprop(p, g, memory, t, lr, alpha=0.99, eps=1e-8, momentum=0.0, centered=False, decay=0.0):
    g = g + decay * p
    s = memory["s"] = alpha * memory.get("s", 0) + (1 - alpha) * g**2
    m = memory["m"] = alpha * memory.get("m", 0) + (1 - alpha) * g
    v = memory["v"] = momentum * memory.get("v", 0) + g / (np.sqrt(s - m**2 if centered else s) + eps)
    return -lr * v


def _lion(p, g, memory, t, lr, beta1=0.9, beta2=0.99, decay=0.0):
    m = memory.get("m", 0)
    memory["m"] = beta2 * m + (1 - beta2) * g
    return -lr * (np.sign(beta1 * m + (1 - beta1) * g) + decay * p)
