"""Optimizers: the formulas that compute the next weights from the gradients of a loss."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Real

from webnn_wgpu import MLTypeError

from .quantity import Quantity
from .schedules import Schedule

_UNIT = ("momentum", "beta1", "beta2", "rho", "alpha")
"""Options that must be at least 0 and below 1."""

_RANGES: Mapping[str, tuple[Callable[[float], bool], str]] = {
    "clip": (lambda value: value > 0, "above 0"),
    "unit": (lambda value: 0 <= value < 1, "0 or above, and below 1"),
    "": (lambda value: value >= 0, "0 or above"),
}
"""Whether a number is in the range of an option, and the range."""


@dataclass(frozen=True, kw_only=True)
class Optimizer(ABC):
    """A rule that updates parameters by the gradients of a loss. All its numbers and states are float32.

    A step clips the gradients first by value, then by their norm.

    Attributes:
        learning_rate: the factor of each update. A schedule computes it from the number of the step.
        weight_decay: the factor of the parameter that is added to its gradient.
        clip_value: the largest absolute value of an element of a gradient. None does not limit it.
        clip_norm: the largest Euclidean norm of all gradients together. Larger gradients are scaled down. None does not limit
            it.
    """

    learning_rate: float | Schedule = 0.01
    weight_decay: float = 0.0
    clip_value: float | None = None
    clip_norm: float | None = None

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            MLTypeError: an option is out of its range.
        """
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None or callable(value) or isinstance(value, bool):
                continue
            fits, allowed = _RANGES["clip" if field.name.startswith("clip_") else "unit" if field.name in _UNIT else ""]
            if not (isinstance(value, Real) and math.isfinite(value) and fits(float(value))):
                raise MLTypeError(
                    f"{field.name} must be in its range", operator=type(self).__name__, got=f"{value!r}", allowed=allowed
                )

    @property
    def slots(self) -> Sequence[str]:
        """The names of the states of each parameter: float32 tensors of its shape, which begin with zeros."""
        return ()

    def scalars(self, step: int) -> Mapping[str, float]:
        """Return the numbers that change from step to step. The host computes them in float64.

        Args:
            step: the number of the step, 1 for the first one.
        """
        return {"rate": self._rate(step)}

    @abstractmethod
    def update(
        self,
        parameter: Quantity,
        gradient: Quantity,
        state: Mapping[str, Quantity],
        scalars: Mapping[str, Quantity],
    ) -> tuple[Quantity, Mapping[str, Quantity]]:
        """Add the update of a parameter to the graph.

        Args:
            parameter: the parameter.
            gradient: its gradient, clipped.
            state: its states by the names in `slots`.
            scalars: the numbers of `scalars`.

        Returns:
            The next parameter, and its next states.
        """

    def _rate(self, step: int) -> float:
        return self.learning_rate(step) if callable(self.learning_rate) else self.learning_rate

    def _decayed(self, parameter: Quantity, gradient: Quantity) -> Quantity:
        """Return the gradient with the weight decay."""
        return gradient + self.weight_decay * parameter if self.weight_decay else gradient


@dataclass(frozen=True, kw_only=True)
class SGD(Optimizer):
    """Stochastic gradient descent, plain or with momentum.

    Source: I. Sutskever et al., On the importance of initialization and momentum in deep learning, 2013.

    Attributes:
        momentum: the share of the last update that the next one keeps. 0 needs no state.
        nesterov: whether the gradient is added to the update once more, as in Nesterov's method.
    """

    momentum: float = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            MLTypeError: an option is out of its range, or Nesterov's method has no momentum.
        """
        super().__post_init__()
        if self.nesterov and not self.momentum:
            raise MLTypeError("nesterov must have a momentum", operator="SGD", got="momentum 0", allowed="above 0, and below 1")

    @property
    def slots(self) -> Sequence[str]:
        """The velocity, if there is a momentum."""
        return ("velocity",) if self.momentum else ()

    def update(
        self, parameter: Quantity, gradient: Quantity, state: Mapping[str, Quantity], scalars: Mapping[str, Quantity]
    ) -> tuple[Quantity, Mapping[str, Quantity]]:
        """Add the update of a parameter to the graph."""
        change = gradient = self._decayed(parameter, gradient)
        after: dict[str, Quantity] = {}
        if self.momentum:
            velocity = after["velocity"] = self.momentum * state["velocity"] + gradient
            change = gradient + self.momentum * velocity if self.nesterov else velocity
        return parameter - scalars["rate"] * change, after


@dataclass(frozen=True, kw_only=True)
class Adam(Optimizer):
    """Adam: moving means of the gradient and of its square, corrected for their beginning with zeros.

    Source: D. Kingma, J. Ba, Adam: A Method for Stochastic Optimization, 2015.

    Attributes:
        beta1: the factor of the last mean of the gradient.
        beta2: the factor of the last mean of its square.
        epsilon: the number that is added to the divisor.
    """

    learning_rate: float | Schedule = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    @property
    def slots(self) -> Sequence[str]:
        """The moving means of the gradient and of its square."""
        return ("mean", "square")

    def scalars(self, step: int) -> Mapping[str, float]:
        """Return the corrected learning rate, and the correction of the square root."""
        return {"rate": self._rate(step) / (1 - self.beta1**step), "correction": 1 / math.sqrt(1 - self.beta2**step)}

    def update(
        self, parameter: Quantity, gradient: Quantity, state: Mapping[str, Quantity], scalars: Mapping[str, Quantity]
    ) -> tuple[Quantity, Mapping[str, Quantity]]:
        """Add the update of a parameter to the graph."""
        gradient = self._decayed(parameter, gradient)
        mean = state["mean"].toward(gradient, 1 - self.beta1)
        square = state["square"].toward(gradient * gradient, 1 - self.beta2)
        change = mean / (square.sqrt() * scalars["correction"] + self.epsilon) * scalars["rate"]
        return self._shrunk(parameter, scalars) - change, {"mean": mean, "square": square}

    def _shrunk(self, parameter: Quantity, scalars: Mapping[str, Quantity]) -> Quantity:
        return parameter


@dataclass(frozen=True, kw_only=True)
class AdamW(Adam):
    """Adam with a weight decay of its own: it shrinks the parameter and leaves the moving means alone.

    Source: I. Loshchilov, F. Hutter, Decoupled Weight Decay Regularization, 2019.

    Attributes:
        weight_decay: the share of the parameter that a step takes away, times the learning rate.
    """

    weight_decay: float = 0.01

    def scalars(self, step: int) -> Mapping[str, float]:
        """Return those of Adam, and the share of the parameter that stays."""
        return {**super().scalars(step), "kept": 1 - self._rate(step) * self.weight_decay}

    def _decayed(self, parameter: Quantity, gradient: Quantity) -> Quantity:
        return gradient

    def _shrunk(self, parameter: Quantity, scalars: Mapping[str, Quantity]) -> Quantity:
        return parameter * scalars["kept"] if self.weight_decay else parameter
