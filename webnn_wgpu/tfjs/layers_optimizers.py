"""TensorFlow.js's optimizers that differ from `webnn_wgpu.train`'s, and those that `compile` knows by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from webnn_wgpu import MLTypeError
from webnn_wgpu.train import SGD, Adadelta, Adagrad, Adam, Adamax, Optimizer, Quantity, RMSProp

EPSILON = 1e-7
"""The small number that TensorFlow.js's layers add where a division by 0 could be."""


@dataclass(frozen=True, kw_only=True)
class TfjsAdagrad(Adagrad):
    """Adagrad that begins with a number as the sum of squares, and adds epsilon below the root.

    Attributes:
        initial: the sum of squares before the first step.
    """

    initial: float = 0.1
    epsilon: float = EPSILON

    def update(
        self, parameter: Quantity, gradient: Quantity, state: Mapping[str, Quantity], scalars: Mapping[str, Quantity]
    ) -> tuple[Quantity, Mapping[str, Quantity]]:
        """Add the update of a parameter to the graph."""
        total = state["sum"] + gradient * gradient
        return parameter - gradient / (total + (self.initial + self.epsilon)).sqrt() * scalars["rate"], {"sum": total}


@dataclass(frozen=True, kw_only=True)
class TfjsAdadelta(Adadelta):
    """Adadelta that divides by the mean of squares of the step before."""

    def update(
        self, parameter: Quantity, gradient: Quantity, state: Mapping[str, Quantity], scalars: Mapping[str, Quantity]
    ) -> tuple[Quantity, Mapping[str, Quantity]]:
        """Add the update of a parameter to the graph."""
        change = (state["change"] + self.epsilon).sqrt() / (state["square"] + self.epsilon).sqrt() * gradient
        square = state["square"].toward(gradient * gradient, 1 - self.rho)
        after = state["change"].toward(change * change, 1 - self.rho)
        return parameter - scalars["rate"] * change, {"square": square, "change": after}


@dataclass(frozen=True, kw_only=True)
class TfjsAdamax(Adamax):
    """Adamax that adds epsilon to the divisor, and whose learning rate decays.

    Attributes:
        decay: the share by which each step divides the learning rate more.
    """

    decay: float = 0.0

    def scalars(self, step: int) -> Mapping[str, float]:
        """Return the corrected learning rate."""
        return {name: rate / (1 + self.decay * (step - 1)) for name, rate in super().scalars(step).items()}

    def update(
        self, parameter: Quantity, gradient: Quantity, state: Mapping[str, Quantity], scalars: Mapping[str, Quantity]
    ) -> tuple[Quantity, Mapping[str, Quantity]]:
        """Add the update of a parameter to the graph."""
        mean = state["mean"].toward(gradient, 1 - self.beta1)
        largest = (self.beta2 * state["largest"]).maximum(gradient.abs())
        change = mean / (largest + self.epsilon) * scalars["rate"]
        return parameter - change, {"mean": mean, "largest": largest}


@dataclass(frozen=True, kw_only=True)
class TfjsRMSProp(RMSProp):
    """RMSProp that adds epsilon below the root, and whose velocity has the learning rate in it.

    TensorFlow.js takes epsilon from a centered variance, so that small gradients become NaN. Here it is added as well.
    """

    def update(
        self, parameter: Quantity, gradient: Quantity, state: Mapping[str, Quantity], scalars: Mapping[str, Quantity]
    ) -> tuple[Quantity, Mapping[str, Quantity]]:
        """Add the update of a parameter to the graph."""
        square = state["square"].toward(gradient * gradient, 1 - self.alpha)
        after, variance = {"square": square}, square + self.epsilon
        if self.centered:
            mean = after["mean"] = state["mean"].toward(gradient, 1 - self.alpha)
            # The difference of two roundings may be below 0.
            variance = (square - mean * mean).maximum(0.0) + self.epsilon
        change = gradient / variance.sqrt() * scalars["rate"]
        if self.momentum:
            change = after["velocity"] = self.momentum * state["velocity"] + change
        return parameter - change, after


_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "sgd": {"learningRate": 0.01},
    "momentum": {"learningRate": 0.01, "momentum": 0.9, "useNesterov": False},
    "adagrad": {"learningRate": 0.01, "initialAccumulatorValue": 0.1},
    "adadelta": {"learningRate": 1.0, "rho": 0.95, "epsilon": EPSILON},
    "adam": {"learningRate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": EPSILON},
    "adamax": {"learningRate": 0.002, "beta1": 0.9, "beta2": 0.999, "epsilon": EPSILON, "decay": 0.0},
    "rmsprop": {"learningRate": 0.001, "decay": 0.9, "momentum": 0.0, "epsilon": EPSILON, "centered": False},
}
"""The optimizers by name, with TensorFlow.js's options and their defaults."""

OPTIMIZERS = tuple(_DEFAULTS)
"""The names of the optimizers."""


def optimizer_of(given: Any) -> Optimizer:
    """Return an optimizer for `compile`.

    Args:
        given: an optimizer, its name, or class and configuration as TensorFlow.js's `getConfig` gives them.

    Raises:
        MLTypeError: an unknown name or option.

    Example:
        >>> optimizer_of({"class_name": "Adam", "config": {"learningRate": 0.01}}).learning_rate
        0.01
    """
    if isinstance(given, Optimizer):
        return given
    content: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {"class_name": given}
    name, own = str(content.get("class_name")).lower(), dict(content.get("config") or {})
    if name not in _DEFAULTS:
        raise MLTypeError("unknown optimizer", operator="compile", got=repr(dict(content)), allowed=", ".join(OPTIMIZERS))
    options = {**_DEFAULTS[name], **own}
    if unknown := [o for o in options if o not in _DEFAULTS[name]]:
        allowed = ", ".join(_DEFAULTS[name])
        raise MLTypeError("unknown option of the optimizer", operator="compile", got=", ".join(unknown), allowed=allowed)
    rate = options["learningRate"]
    if name == "sgd":
        return SGD(learning_rate=rate)
    if name == "momentum":
        momentum = options["momentum"]
        return SGD(learning_rate=rate, momentum=momentum, nesterov=options["useNesterov"] and momentum > 0)
    if name == "adagrad":
        return TfjsAdagrad(learning_rate=rate, initial=options["initialAccumulatorValue"])
    named = {"learningRate": "learning_rate", **({"decay": "alpha"} if name == "rmsprop" else {})}
    kinds: Mapping[str, Any] = {"adadelta": TfjsAdadelta, "adam": Adam, "adamax": TfjsAdamax, "rmsprop": TfjsRMSProp}
    return kinds[name](**{named.get(key, key): value for key, value in options.items()})
