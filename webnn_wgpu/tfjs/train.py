"""Optimizers: TensorFlow.js's namespace `train`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from webnn_wgpu.eager import Tensor, Variable, ops
from webnn_wgpu.eager.engine import Engine

from .autodiff import VariableGrads, variable_grads
from .variables import variables_of

_EPSILON = 1e-7


class Optimizer(ABC):
    """A rule by which variables follow their gradients.

    Args:
        learning_rate: the learning rate, which may change between steps.

    Attributes:
        learning_rate: the learning rate.
    """

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate
        self._states: dict[tuple[str, str], Variable] = {}

    def minimize(
        self, f: Callable[[], Tensor], return_cost: bool = False, var_list: Sequence[Variable] | None = None
    ) -> Tensor | None:
        """Change variables so that a function becomes smaller. The call does not wait for the device.

        Args:
            f: computes a scalar.
            return_cost: whether the scalar is returned.
            var_list: the variables. None takes all trainable ones.

        Returns:
            The result of the function, or None.
        """
        value, gradients = self.compute_gradients(f, var_list)
        self.apply_gradients(gradients)
        del gradients
        if not return_cost:
            value.dispose()
        Engine.of().evaluate()
        return value if return_cost else None

    def compute_gradients(self, f: Callable[[], Tensor], var_list: Sequence[Variable] | None = None) -> VariableGrads:
        """Return the value of a function, and its gradients by the names of the variables.

        Args:
            f: computes a scalar.
            var_list: the variables. None takes all trainable ones.
        """
        return variable_grads(f, var_list)

    def apply_gradients(self, variable_gradients: Mapping[str, Tensor]) -> None:
        """Change variables by their gradients.

        Args:
            variable_gradients: the gradients by the names of the variables.
        """
        for variable, gradient in zip(variables_of(variable_gradients), variable_gradients.values(), strict=True):
            variable.assign(self._updated(variable, gradient))
        self._advance()

    def dispose(self) -> None:
        """Free the states of the variables."""
        for state in self._states.values():
            state.dispose()
        self._states.clear()

    def _state(self, slot: str, variable: Variable, initial: float = 0.0) -> Variable:
        """Return a state of a variable."""
        found = self._states.get((slot, variable.name))
        if found is None:
            first = np.full(variable.shape, initial, np.float32)
            found = self._states[slot, variable.name] = Variable(first, trainable=False, context=variable.context)
        return found

    def _advance(self) -> None:  # noqa: B027 - most rules count no steps
        """Count a step."""

    @abstractmethod
    def _updated(self, variable: Variable, gradient: Tensor) -> Tensor:
        """Return the next value of a variable."""


class SGDOptimizer(Optimizer):
    """Gradient descent."""

    def _updated(self, variable: Variable, gradient: Tensor) -> Tensor:
        return gradient * -self.learning_rate + variable


class MomentumOptimizer(Optimizer):
    """Gradient descent with momentum.

    Args:
        learning_rate: the learning rate.
        momentum: the share of the step before.
        use_nesterov: whether gradients count as if the step had been made.
    """

    def __init__(self, learning_rate: float, momentum: float, use_nesterov: bool = False) -> None:
        super().__init__(learning_rate)
        self._momentum, self._nesterov = momentum, use_nesterov

    def _updated(self, variable: Variable, gradient: Tensor) -> Tensor:
        state = self._state("momentum", variable)
        moved = state.assign(state * self._momentum + gradient)
        step = gradient + moved * self._momentum if self._nesterov else moved
        return step * -self.learning_rate + variable


class AdagradOptimizer(Optimizer):
    """Gradients divided by the root of the sum of all their squares.

    Args:
        learning_rate: the learning rate.
        initial_accumulator_value: the first value of the sums.
    """

    def __init__(self, learning_rate: float, initial_accumulator_value: float = 0.1) -> None:
        super().__init__(learning_rate)
        self._initial = initial_accumulator_value

    def _updated(self, variable: Variable, gradient: Tensor) -> Tensor:
        state = self._state("accumulator", variable, self._initial)
        total = state.assign(gradient * gradient + state)
        return gradient / ops.sqrt(total + _EPSILON) * -self.learning_rate + variable


class AdadeltaOptimizer(Optimizer):
    """Gradients scaled by the means of the squares of steps and gradients, those of the step before as in TensorFlow.js.

    Args:
        learning_rate: the learning rate.
        rho: the share of the means before.
        epsilon: a small number, added to the means.
    """

    def __init__(self, learning_rate: float, rho: float, epsilon: float | None = None) -> None:
        super().__init__(learning_rate)
        self._rho, self._epsilon = rho, _EPSILON if epsilon is None else epsilon

    def _updated(self, variable: Variable, gradient: Tensor) -> Tensor:
        squares, steps = self._state("gradients", variable), self._state("updates", variable)
        step = ops.sqrt(steps + self._epsilon) / ops.sqrt(squares + self._epsilon) * gradient
        squares.assign(squares * self._rho + gradient * gradient * (1 - self._rho))
        steps.assign(steps * self._rho + step * step * (1 - self._rho))
        return step * -self.learning_rate + variable


class AdamOptimizer(Optimizer):
    """Means of gradients, divided by the roots of the means of their squares.

    Args:
        learning_rate: the learning rate.
        beta1: the share of the means before.
        beta2: the share of the means of squares before.
        epsilon: a small number, added to the roots.
    """

    def __init__(self, learning_rate: float, beta1: float, beta2: float, epsilon: float | None = None) -> None:
        super().__init__(learning_rate)
        self._beta1, self._beta2, self._epsilon = beta1, beta2, _EPSILON if epsilon is None else epsilon
        # In float32, as the tensors that hold them in TensorFlow.js.
        self._power1, self._power2 = np.float32(beta1), np.float32(beta2)

    def _updated(self, variable: Variable, gradient: Tensor) -> Tensor:
        first, second = self._state("m", variable), self._state("v", variable)
        mean = first.assign(first * self._beta1 + gradient * (1 - self._beta1))
        squares = second.assign(second * self._beta2 + gradient * gradient * (1 - self._beta2))
        unbiased = mean / float(1 - self._power1)
        root = ops.sqrt(squares / float(1 - self._power2))
        return unbiased / (root + self._epsilon) * -self.learning_rate + variable

    def _advance(self) -> None:
        self._power1 = np.float32(self._power1 * np.float32(self._beta1))
        self._power2 = np.float32(self._power2 * np.float32(self._beta2))


class AdamaxOptimizer(Optimizer):
    """Means of gradients, divided by the largest of them.

    Args:
        learning_rate: the learning rate.
        beta1: the share of the means before.
        beta2: the share of the largest ones before.
        epsilon: a small number, added to the largest ones.
        decay: how fast the learning rate shrinks.
    """

    def __init__(
        self, learning_rate: float, beta1: float, beta2: float, epsilon: float | None = None, decay: float = 0.0
    ) -> None:
        super().__init__(learning_rate)
        self._beta1, self._beta2, self._epsilon = beta1, beta2, _EPSILON if epsilon is None else epsilon
        self._decay, self._steps, self._power = decay, 0, np.float32(beta1)

    def _updated(self, variable: Variable, gradient: Tensor) -> Tensor:
        first, norm = self._state("m", variable), self._state("norm", variable)
        mean = first.assign(first * self._beta1 + gradient * (1 - self._beta1))
        largest = norm.assign(ops.max(norm * self._beta2, ops.abs(gradient)))
        rate = -self.learning_rate / (self._steps * self._decay + 1) / float(1 - self._power)
        return mean / (largest + self._epsilon) * rate + variable

    def _advance(self) -> None:
        self._steps += 1
        self._power = np.float32(self._power * np.float32(self._beta1))


class RMSPropOptimizer(Optimizer):
    """Gradients divided by the root of the mean of their squares.

    Args:
        learning_rate: the learning rate.
        decay: the share of the means before.
        momentum: the share of the step before.
        epsilon: a small number, added to the means.
        centered: whether the square of the mean is taken from the mean of squares.
    """

    def __init__(
        self,
        learning_rate: float,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float | None = None,
        centered: bool = False,
    ) -> None:
        super().__init__(learning_rate)
        self._decay, self._momentum, self._centered = decay, momentum, centered
        self._epsilon = _EPSILON if epsilon is None else epsilon

    def _updated(self, variable: Variable, gradient: Tensor) -> Tensor:
        means, moments = self._state("mean_square", variable), self._state("momentum", variable)
        squares = means.assign(means * self._decay + gradient * gradient * (1 - self._decay))
        if self._centered:
            gradients = self._state("mean_gradient", variable)
            mean = gradients.assign(gradients * self._decay + gradient * (1 - self._decay))
            root = ops.sqrt(squares - (mean * mean + self._epsilon))
        else:
            root = ops.sqrt(squares + self._epsilon)
        return variable - moments.assign(moments * self._momentum + gradient * self.learning_rate / root)


def sgd(learning_rate: float) -> SGDOptimizer:
    """Return gradient descent.

    Args:
        learning_rate: the learning rate.
    """
    return SGDOptimizer(learning_rate)


def momentum(learning_rate: float, momentum: float, use_nesterov: bool = False) -> MomentumOptimizer:
    """Return gradient descent with momentum.

    Args:
        learning_rate: the learning rate.
        momentum: the share of the step before.
        use_nesterov: whether gradients count as if the step had been made.
    """
    return MomentumOptimizer(learning_rate, momentum, use_nesterov)


def adagrad(learning_rate: float, initial_accumulator_value: float = 0.1) -> AdagradOptimizer:
    """Return Adagrad.

    Args:
        learning_rate: the learning rate.
        initial_accumulator_value: the first value of the sums of squares.
    """
    return AdagradOptimizer(learning_rate, initial_accumulator_value)


def adadelta(learning_rate: float = 0.001, rho: float = 0.95, epsilon: float | None = None) -> AdadeltaOptimizer:
    """Return Adadelta. As in TensorFlow.js, a step takes the mean of the gradients before.

    Args:
        learning_rate: the learning rate.
        rho: the share of the means before.
        epsilon: a small number, added to the means. None is 1e-7.
    """
    return AdadeltaOptimizer(learning_rate, rho, epsilon)


def adam(learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float | None = None) -> AdamOptimizer:
    """Return Adam.

    Args:
        learning_rate: the learning rate.
        beta1: the share of the means before.
        beta2: the share of the means of squares before.
        epsilon: a small number, added to the roots. None is 1e-7.
    """
    return AdamOptimizer(learning_rate, beta1, beta2, epsilon)


def adamax(
    learning_rate: float = 0.002,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float | None = None,
    decay: float = 0.0,
) -> AdamaxOptimizer:
    """Return Adamax.

    Args:
        learning_rate: the learning rate.
        beta1: the share of the means before.
        beta2: the share of the largest gradients before.
        epsilon: a small number, added to the largest gradients. None is 1e-7.
        decay: how fast the learning rate shrinks.
    """
    return AdamaxOptimizer(learning_rate, beta1, beta2, epsilon, decay)


def rmsprop(
    learning_rate: float,
    decay: float = 0.9,
    momentum: float = 0.0,
    epsilon: float | None = None,
    centered: bool = False,
) -> RMSPropOptimizer:
    """Return RMSProp.

    Args:
        learning_rate: the learning rate.
        decay: the share of the means before.
        momentum: the share of the step before.
        epsilon: a small number, added to the means. None is 1e-7.
        centered: whether the square of the mean is taken from the mean of squares.
    """
    return RMSPropOptimizer(learning_rate, decay, momentum, epsilon, centered)
