"""Optimizers that scale the update of each element by its past gradients, besides Adam, and Lion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .optimizers import Optimizer
from .quantity import Quantity
from .schedules import Schedule


@dataclass(frozen=True, kw_only=True)
class Adamax(Optimizer):
    """Adam with the largest past gradient of each element, instead of the mean of its square.

    Source: D. Kingma, J. Ba, Adam: A Method for Stochastic Optimization, 2015, section 7.1.

    Attributes:
        beta1: the factor of the last mean of the gradient.
        beta2: the factor of the last maximum.
        epsilon: the number that is added to the absolute value of the gradient.
    """

    learning_rate: float | Schedule = 0.002
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    @property
    def slots(self) -> Sequence[str]:
        """The moving mean of the gradient, and the decaying maximum of its absolute value."""
        return ("mean", "largest")

    def scalars(self, step: int) -> Mapping[str, float]:
        """Return the corrected learning rate."""
        return {"rate": self._rate(step) / (1 - self.beta1**step)}

    def update(
        self, parameter: Quantity, gradient: Quantity, state: Mapping[str, Quantity], scalars: Mapping[str, Quantity]
    ) -> tuple[Quantity, Mapping[str, Quantity]]:
        """Add the update of a parameter to the graph."""
        gradient = self._decayed(parameter, gradient)
        mean = state["mean"].toward(gradient, 1 - self.beta1)
        largest = (self.beta2 * state["largest"]).maximum(gradient.abs() + self.epsilon)
        return parameter - mean / largest * scalars["rate"], {"mean": mean, "largest": largest}


@dataclass(frozen=True, kw_only=True)
class Adagrad(Optimizer):
    """Updates divided by the root of the sum of all past squared gradients.

    Source: J. Duchi, E. Hazan, Y. Singer, Adaptive Subgradient Methods, 2011.

    Attributes:
        epsilon: the number that is added to the divisor.
    """

    epsilon: float = 1e-10

    @property
    def slots(self) -> Sequence[str]:
        """The sum of the squared gradients."""
        return ("sum",)

    def update(
        self, parameter: Quantity, gradient: Quantity, state: Mapping[str, Quantity], scalars: Mapping[str, Quantity]
    ) -> tuple[Quantity, Mapping[str, Quantity]]:
        """Add the update of a parameter to the graph."""
        gradient = self._decayed(parameter, gradient)
        total = state["sum"] + gradient * gradient
        return parameter - gradient / (total.sqrt() + self.epsilon) * scalars["rate"], {"sum": total}


@dataclass(frozen=True, kw_only=True)
class Adadelta(Optimizer):
    """Updates of the size of past updates: the ratio of two moving means of squares.

    Source: M. Zeiler, ADADELTA: An Adaptive Learning Rate Method, 2012.

    Attributes:
        rho: the factor of the last means.
        epsilon: the number that is added to both means.
    """

    learning_rate: float | Schedule = 1.0
    rho: float = 0.9
    epsilon: float = 1e-6

    @property
    def slots(self) -> Sequence[str]:
        """The moving means of the squares of the gradient and of the update."""
        return ("square", "change")

    def update(
        self, parameter: Quantity, gradient: Quantity, state: Mapping[str, Quantity], scalars: Mapping[str, Quantity]
    ) -> tuple[Quantity, Mapping[str, Quantity]]:
        """Add the update of a parameter to the graph."""
        gradient = self._decayed(parameter, gradient)
        square = state["square"].toward(gradient * gradient, 1 - self.rho)
        change = (state["change"] + self.epsilon).sqrt() / (square + self.epsilon).sqrt() * gradient
        after = state["change"].toward(change * change, 1 - self.rho)
        return parameter - scalars["rate"] * change, {"square": square, "change": after}


@dataclass(frozen=True, kw_only=True)
class RMSProp(Optimizer):
    """Updates divided by the root of a moving mean of the squared gradient.

    Source: G. Hinton, Neural Networks for Machine Learning, lecture 6e, 2012. The centered form: A. Graves, 2013.

    Attributes:
        alpha: the factor of the last means.
        epsilon: the number that is added to the divisor.
        momentum: the share of the last update that the next one keeps. 0 needs no state.
        centered: whether the divisor is the standard deviation of the gradient, from a moving mean of the gradient.
    """

    alpha: float = 0.99
    epsilon: float = 1e-8
    momentum: float = 0.0
    centered: bool = False

    @property
    def slots(self) -> Sequence[str]:
        """The moving mean of the squared gradient. The velocity and the mean of the gradient, if the options need them."""
        return ("square", *(["velocity"] if self.momentum else []), *(["mean"] if self.centered else []))

    def update(
        self, parameter: Quantity, gradient: Quantity, state: Mapping[str, Quantity], scalars: Mapping[str, Quantity]
    ) -> tuple[Quantity, Mapping[str, Quantity]]:
        """Add the update of a parameter to the graph."""
        gradient = self._decayed(parameter, gradient)
        square = state["square"].toward(gradient * gradient, 1 - self.alpha)
        after, variance = {"square": square}, square
        if self.centered:
            mean = after["mean"] = state["mean"].toward(gradient, 1 - self.alpha)
            # The difference of two roundings may be below 0.
            variance = (square - mean * mean).maximum(0.0)
        change = gradient / (variance.sqrt() + self.epsilon)
        if self.momentum:
            change = after["velocity"] = self.momentum * state["velocity"] + change
        return parameter - scalars["rate"] * change, after


@dataclass(frozen=True, kw_only=True)
class Lion(Optimizer):
    """Updates of equal size for all elements: the sign of a moving mean of the gradient.

    Source: X. Chen et al., Symbolic Discovery of Optimization Algorithms, 2023.

    Attributes:
        weight_decay: the share of the parameter that a step takes away, times the learning rate.
        beta1: the factor of the last mean in the update.
        beta2: the factor of the last mean in the next one.
    """

    learning_rate: float | Schedule = 0.0001
    beta1: float = 0.9
    beta2: float = 0.99

    @property
    def slots(self) -> Sequence[str]:
        """The moving mean of the gradient."""
        return ("mean",)

    def update(
        self, parameter: Quantity, gradient: Quantity, state: Mapping[str, Quantity], scalars: Mapping[str, Quantity]
    ) -> tuple[Quantity, Mapping[str, Quantity]]:
        """Add the update of a parameter to the graph."""
        change = state["mean"].toward(gradient, 1 - self.beta1).sign()
        mean = state["mean"].toward(gradient, 1 - self.beta2)
        return parameter - scalars["rate"] * self._decayed(parameter, change), {"mean": mean}
