"""Eager tensors: operations that run as compiled graphs when a value is needed.

Example:
    >>> from webnn_wgpu import eager
    >>> x = eager.tensor([1.0, 2.0, 3.0], context=context)
    >>> y = eager.ops.softmax(x * 2, 0)
    >>> y.numpy().round(3)
    array([0.016, 0.117, 0.867], dtype=float32)
"""

from __future__ import annotations

from webnn_wgpu import MLContext

from .compiled import CompiledFunction, graph, placeholder
from .engine import Engine, Statistics
from .gradients import connected_gradients, custom_gradient, gradients, tape, value_and_gradients, with_gradient
from .operators import Operator, Operators, apply, cast, ops
from .tensor import Tensor, Variable, tensor
from .values import UnknownValueError

__all__ = [
    "CompiledFunction",
    "Operator",
    "Operators",
    "Statistics",
    "Tensor",
    "UnknownValueError",
    "Variable",
    "apply",
    "cast",
    "connected_gradients",
    "custom_gradient",
    "default_context",
    "evaluate",
    "gradients",
    "graph",
    "ops",
    "placeholder",
    "set_default_context",
    "statistics",
    "tape",
    "tensor",
    "value_and_gradients",
    "with_gradient",
]


def default_context() -> MLContext:
    """Return the context of tensors that name none. It is made at its first use, unless `set_default_context` gave one.

    Example:
        >>> from webnn_wgpu import eager
        >>> eager.set_default_context(context)
        >>> eager.default_context() is context
        True
        >>> eager.set_default_context(None)
    """
    return Engine.of().context


def set_default_context(context: MLContext | None) -> None:
    """Use a context for tensors that name none.

    Args:
        context: the context. None makes a new one at its next use.

    Example:
        >>> from webnn_wgpu import eager
        >>> eager.set_default_context(context)
        >>> eager.tensor([1.0]).context is context
        True
        >>> eager.set_default_context(None)
    """
    Engine.set_default(None if context is None else Engine.of(context))


def evaluate(context: MLContext | None = None) -> None:
    """Queue all recorded operations whose results the program can still reach, as one graph. The call does not wait.

    A training loop calls it once a step. Otherwise operations run when a value is read, or when many have been recorded.

    Args:
        context: the context. None is the default one.

    Example:
        >>> from webnn_wgpu import eager
        >>> y = eager.tensor([1.0], context=context) + 1
        >>> eager.evaluate(context)
        >>> y.pending
        False
    """
    Engine.of(context).evaluate()


def statistics(context: MLContext | None = None) -> Statistics:
    """Return the numbers of compilations and runs, and the memory of tensors.

    Args:
        context: the context. None is the default one.

    Example:
        >>> from webnn_wgpu import eager
        >>> eager.statistics(context).pending
        0
    """
    return Engine.of(context).statistics()
