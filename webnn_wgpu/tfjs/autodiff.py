"""Gradients of functions, and functions that state their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias
from typing import cast as typed

from webnn_wgpu import MLTypeError
from webnn_wgpu.eager import Tensor, Variable, connected_gradients, ops, tape, with_gradient

from ._convert import TensorLike, as_tensor
from .variables import trainable_variables

Function: TypeAlias = Callable[..., Tensor]


class ValueAndGrad(NamedTuple):
    """The result of a function of one tensor.

    Attributes:
        value: the result.
        grad: the gradient.
    """

    value: Tensor
    grad: Tensor


class ValueAndGrads(NamedTuple):
    """The result of a function of several tensors.

    Attributes:
        value: the result.
        grads: the gradient of each tensor.
    """

    value: Tensor
    grads: list[Tensor]


class VariableGrads(NamedTuple):
    """The result of a function of variables.

    Attributes:
        value: the result.
        grads: the gradients by the names of the variables.
    """

    value: Tensor
    grads: dict[str, Tensor]


def value_and_grads(f: Function) -> Callable[..., ValueAndGrads]:
    """Return a function that returns the value of another one, and its gradients.

    Args:
        f: the function of tensors.

    Returns:
        A function of a sequence of tensors, and of the gradient of the result, which is ones by default. It raises MLTypeError
        if the result does not depend on the tensors.

    Example:
        >>> import webnn_wgpu.tfjs as tf
        >>> result = tf.value_and_grads(lambda a, b: tf.mul(a, b))([2, 3])
        >>> result.value.item(), [each.item() for each in result.grads]
        (6.0, [3.0, 2.0])
    """

    def call(args: Sequence[TensorLike], dy: TensorLike | None = None) -> ValueAndGrads:
        sources = [as_tensor(each) for each in args]
        with tape(sources[0].context if sources else None):
            value = _checked(f(*sources), "grad")
            seeds = None if dy is None else [as_tensor(dy, value.dtype)]
            if seeds and seeds[0].shape != value.shape:
                raise MLTypeError(
                    "dy must have the shape of the result", operator="grad", got=repr(seeds[0]), allowed=repr(value)
                )
            found, connected = connected_gradients(value, sources, seeds)
        _check_connected(connected)
        return ValueAndGrads(value, found)

    return call


def _checked(value: Tensor, operator: str) -> Tensor:
    """Return the result of a function, which the program has written."""
    if not isinstance(value, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
        raise MLTypeError("the function must return a tensor", operator=operator, got=repr(value))
    return value


def _check_connected(connected: Sequence[bool]) -> None:
    if not any(connected):
        raise MLTypeError(
            "the result of the function must depend on its arguments",
            operator="grad",
            got="a result without a gradient",
            hint="The function must contain all operations that lead from the arguments to the result",
        )


def value_and_grad(f: Function) -> Callable[..., ValueAndGrad]:
    """Return a function that returns the value of another one of one tensor, and its gradient.

    Args:
        f: the function.

    Returns:
        A function of a tensor, and of the gradient of the result, which is ones by default.
    """
    inner = value_and_grads(f)

    def call(x: TensorLike, dy: TensorLike | None = None) -> ValueAndGrad:
        value, (gradient,) = inner([x], dy)
        return ValueAndGrad(value, gradient)

    return call


def grads(f: Function) -> Callable[..., list[Tensor]]:
    """Return a function that returns the gradients of another one.

    Args:
        f: the function of tensors.

    Returns:
        A function of a sequence of tensors, and of the gradient of the result, which is ones by default.
    """
    inner = value_and_grads(f)

    def call(args: Sequence[TensorLike], dy: TensorLike | None = None) -> list[Tensor]:
        return inner(args, dy).grads

    return call


def grad(f: Function) -> Callable[..., Tensor]:
    """Return a function that returns the gradient of another one of one tensor.

    Args:
        f: the function.

    Returns:
        A function of a tensor, and of the gradient of the result, which is ones by default.

    Example:
        >>> import webnn_wgpu.tfjs as tf
        >>> second = tf.grad(tf.grad(lambda x: tf.pow(x, 3)))
        >>> second(2).item()
        12.0
    """
    inner = value_and_grads(f)

    def call(x: TensorLike, dy: TensorLike | None = None) -> Tensor:
        return inner([x], dy).grads[0]

    return call


def variable_grads(f: Callable[[], Tensor], var_list: Sequence[Variable] | None = None) -> VariableGrads:
    """Call a function, and return its result with the gradients of the variables that it used.

    Args:
        f: computes a scalar.
        var_list: the variables. None takes all trainable ones.

    Raises:
        MLTypeError: there are no trainable variables, the result is not a scalar, or depends on none of them.
    """
    variables = [each for each in (trainable_variables() if var_list is None else var_list) if each.trainable]
    if not variables:
        raise MLTypeError("a variable must be trainable", operator="variable_grads", got="no trainable variables")
    with tape(variables[0].context):
        value = _checked(f(), "variable_grads")
        if value.shape:
            raise MLTypeError("the function must return a scalar", operator="variable_grads", got=repr(value))
        found, connected = connected_gradients(value, variables)
    _check_connected(connected)
    pairs = zip(variables, found, connected, strict=True)
    return VariableGrads(value, {each.name: gradient for each, gradient, used in pairs if used})


def custom_grad(f: Callable[..., Any]) -> Function:
    """Return a function with a gradient that the program states.

    Args:
        f: gets the tensors and a function `save`, which keeps a list of tensors for the gradient. It returns the value and the
            function of the gradient, or a mapping with the keys "value" and "grad_func". That function gets the gradient of
            the value and the saved tensors. It returns the gradient of each argument.

    Example:
        >>> import webnn_wgpu.tfjs as tf
        >>> def clipped(x, save):
        ...     save([x])
        ...     return tf.square(x), lambda dy, saved: tf.mul(dy, tf.abs(saved[0]))
        >>> tf.grad(tf.custom_grad(clipped))([-2, 3]).tolist()
        [2.0, 3.0]
    """

    def call(*args: TensorLike) -> Tensor:
        given = [as_tensor(each) for each in args]
        saved: list[Tensor] = []
        found: Any = f(*given, saved.extend)
        value, function = typed("Sequence[Any]", [found["value"], found["grad_func"]] if hasattr(found, "keys") else found)

        def gradient(dy: Tensor) -> Any:
            return function(dy, saved)

        return with_gradient(value, given, gradient)

    return call


def stop_gradient(x: TensorLike) -> Tensor:
    """Return the same elements, which count as constants for gradients.

    Args:
        x: a tensor.
    """
    return ops.stop_gradient(as_tensor(x))
