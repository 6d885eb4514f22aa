"""Optimizers of variables: TensorFlow.js's namespace `train`. Their rules are those of layers models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from webnn_wgpu import MLGraphBuilder, MLOperand
from webnn_wgpu.eager import Tensor, Variable, apply, tensor
from webnn_wgpu.eager.engine import Engine
from webnn_wgpu.train import SGD, Adam, Quantity
from webnn_wgpu.train import Optimizer as Rule

from .autodiff import VariableGrads, variable_grads
from .layers_optimizers import EPSILON, TfjsAdadelta, TfjsAdagrad, TfjsAdamax, TfjsRMSProp
from .variables import variables_of


class Optimizer:
    """Changes variables by their gradients, as a rule of `webnn_wgpu.train` says.

    Args:
        rule: the rule.
    """

    def __init__(self, rule: Rule) -> None:
        self._rule, self._steps = rule, 0
        self._states: dict[tuple[str, str], Variable] = {}

    @property
    def learning_rate(self) -> float:
        """The learning rate, which may change between steps."""
        rate = self._rule.learning_rate
        return rate(self._steps + 1) if callable(rate) else rate

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self._rule = replace(self._rule, learning_rate=rate)

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
        self._steps += 1
        factors = self._rule.scalars(self._steps)
        for variable, gradient in zip(variables_of(variable_gradients), variable_gradients.values(), strict=True):
            self._change(variable, gradient, factors)

    def dispose(self) -> None:
        """Free the states of the variables."""
        for state in self._states.values():
            state.dispose()
        self._states.clear()

    def _state(self, slot: str, variable: Variable) -> Variable:
        """Return a state of a variable."""
        found = self._states.get((slot, variable.name))
        if found is None:
            first = np.zeros(variable.shape, np.float32)
            found = self._states[slot, variable.name] = Variable(first, trainable=False, context=variable.context)
        return found

    def _change(self, variable: Variable, gradient: Tensor, factors: Mapping[str, float]) -> None:
        """Give a variable and its states their next values."""
        rule, slots = replace(self._rule, learning_rate=0.0), self._rule.slots

        def update(b: MLGraphBuilder, *operands: MLOperand) -> list[MLOperand]:
            parameter, slope, *others = (Quantity(b, operand) for operand in operands)
            states = dict(zip(slots, others, strict=False))
            scalars = dict(zip(factors, others[len(slots) :], strict=True))
            after, changed = rule.update(parameter, slope, states, scalars)
            return [after.operand, *(changed[slot].operand for slot in slots)]

        states = [self._state(slot, variable) for slot in slots]
        scalars = [tensor(factor, "float32", context=variable.context) for factor in factors.values()]
        # The learning rate is among the factors, so that another one changes no graph.
        found = apply(update, variable, gradient, *states, *scalars, key=("optimizer", rule))
        for each, value in zip((variable, *states), found, strict=True):
            each.assign(value)


def _epsilon(given: float | None) -> float:
    return EPSILON if given is None else given


def sgd(learning_rate: float) -> Optimizer:
    """Return gradient descent.

    Args:
        learning_rate: the learning rate.
    """
    return Optimizer(SGD(learning_rate=learning_rate))


def momentum(learning_rate: float, momentum: float, use_nesterov: bool = False) -> Optimizer:
    """Return gradient descent with momentum.

    Args:
        learning_rate: the learning rate.
        momentum: the share of the step before.
        use_nesterov: whether gradients count as if the step had been made.
    """
    return Optimizer(SGD(learning_rate=learning_rate, momentum=momentum, nesterov=use_nesterov and momentum > 0))


def adagrad(learning_rate: float, initial_accumulator_value: float = 0.1) -> Optimizer:
    """Return Adagrad.

    Args:
        learning_rate: the learning rate.
        initial_accumulator_value: the first value of the sums of squares.
    """
    return Optimizer(TfjsAdagrad(learning_rate=learning_rate, initial=initial_accumulator_value))


def adadelta(learning_rate: float = 0.001, rho: float = 0.95, epsilon: float | None = None) -> Optimizer:
    """Return Adadelta. As in TensorFlow.js, a step takes the mean of the gradients before.

    Args:
        learning_rate: the learning rate.
        rho: the share of the means before.
        epsilon: a small number, added to the means. None is 1e-7.
    """
    return Optimizer(TfjsAdadelta(learning_rate=learning_rate, rho=rho, epsilon=_epsilon(epsilon)))


def adam(learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float | None = None) -> Optimizer:
    """Return Adam.

    Args:
        learning_rate: the learning rate.
        beta1: the share of the means before.
        beta2: the share of the means of squares before.
        epsilon: a small number, added to the roots. None is 1e-7.
    """
    return Optimizer(Adam(learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=_epsilon(epsilon)))


def adamax(
    learning_rate: float = 0.002,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float | None = None,
    decay: float = 0.0,
) -> Optimizer:
    """Return Adamax.

    Args:
        learning_rate: the learning rate.
        beta1: the share of the means before.
        beta2: the share of the largest gradients before.
        epsilon: a small number, added to the largest gradients. None is 1e-7.
        decay: how fast the learning rate shrinks.
    """
    return Optimizer(TfjsAdamax(learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=_epsilon(epsilon), decay=decay))


def rmsprop(
    learning_rate: float,
    decay: float = 0.9,
    momentum: float = 0.0,
    epsilon: float | None = None,
    centered: bool = False,
) -> Optimizer:
    """Return RMSProp.

    Args:
        learning_rate: the learning rate.
        decay: the share of the means before.
        momentum: the share of the step before.
        epsilon: a small number, added to the means. None is 1e-7.
        centered: whether the square of the mean is taken from the mean of squares.
    """
    rule = TfjsRMSProp(
        learning_rate=learning_rate, alpha=decay, momentum=momentum, epsilon=_epsilon(epsilon), centered=centered
    )
    return Optimizer(rule)
