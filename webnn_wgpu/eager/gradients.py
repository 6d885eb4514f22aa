"""Gradients of recorded operations, and gradients that programs state."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from webnn_wgpu import MLContext, MLGraphBuilder, MLOperand, MLTypeError

from .engine import Engine
from .gradient_structure import GradientStructure, gradient_emitter
from .operators import ops, recorded
from .tensor import Tensor
from .values import Value

Function: TypeAlias = Callable[..., Any]

_FLOATS = ("float32", "float16")


@contextmanager
def tape(context: MLContext | None = None) -> Generator[None]:
    """Return a block that keeps recorded operations for `gradients` until its end, even if values are computed in between.

    Without a tape, `gradients` can follow operations only as long as their results are pending.

    Args:
        context: the context. None is the default one.

    Example:
        >>> from webnn_wgpu import eager
        >>> x = eager.tensor([1.0, 2.0], context=context)
        >>> with eager.tape(context):
        ...     y = eager.ops.exp(x) * x
        ...     total = float(eager.ops.reduce_sum(y))
        ...     (gradient,) = eager.gradients(y, [x])
        >>> gradient.numpy().round(3)
        array([ 5.437, 22.167], dtype=float32)
    """
    engine = Engine.of(context)
    engine.start_tape()
    try:
        yield
    finally:
        engine.end_tape()


def gradients(
    outputs: Tensor | Sequence[Tensor],
    sources: Sequence[Tensor],
    seeds: Tensor | Sequence[Tensor] | None = None,
) -> list[Tensor]:
    """Return the gradients of outputs with respect to tensors from which they were computed.

    They are tensors like any other: their values are computed when they are asked for, and they have gradients themselves.

    Args:
        outputs: float tensors, such as a loss.
        sources: float tensors or variables with their present values. They count as independent of one another.
        seeds: the gradient of each output. None stands for ones.

    Returns:
        A tensor of the data type and shape of each source. Sources without influence have gradients of zeros.

    Raises:
        MLTypeError: a tensor that does not hold floats, or a seed of another type than its output.
        NotSupportedError: an operation between sources and outputs has no gradient.

    Example:
        >>> from webnn_wgpu import eager
        >>> x = eager.tensor([1.0, 2.0, 3.0], context=context)
        >>> (first,) = eager.gradients(x * x * x, [x])
        >>> (second,) = eager.gradients(first, [x])
        >>> first.tolist(), second.tolist()
        ([3.0, 12.0, 27.0], [6.0, 12.0, 18.0])
    """
    return connected_gradients(outputs, sources, seeds)[0]


def connected_gradients(
    outputs: Tensor | Sequence[Tensor],
    sources: Sequence[Tensor],
    seeds: Tensor | Sequence[Tensor] | None = None,
) -> tuple[list[Tensor], list[bool]]:
    """Return gradients, and for each source whether the outputs depend on it.

    Args:
        outputs: as for `gradients`.
        sources: as for `gradients`.
        seeds: as for `gradients`.

    Raises:
        MLTypeError, NotSupportedError: as `gradients` does.

    Example:
        >>> from webnn_wgpu import eager
        >>> x, other = (eager.tensor([3.0], context=context) for _ in range(2))
        >>> eager.connected_gradients(x * x, [x, other])[1]
        [True, False]
    """
    ends = [tensor.value for tensor in ([outputs] if isinstance(outputs, Tensor) else outputs)]
    starts = [tensor.value for tensor in sources]
    given = [tensor.value for tensor in ([seeds] if isinstance(seeds, Tensor) else seeds or ())]
    if not ends or not starts:
        raise MLTypeError("outputs and sources must not be empty", operator="gradients", got=f"{len(starts)} sources")
    engine = ends[0].engine
    if any(value.engine is not engine for value in (*ends, *starts, *given)):
        raise MLTypeError("tensors must belong to one context", operator="gradients", got=repr(outputs))
    structure = GradientStructure(starts)
    structure.visit(ends)
    end_slots = tuple([structure.slot(value) for value in ends])
    start_slots = tuple([structure.slot(value) for value in starts])
    used = structure.used_slots() | set(end_slots)
    connected = [slot in used for slot in start_slots]
    found: list[Tensor] = []
    if any(connected):
        # The operation does not read the others, so that variables may still lose their memory to new values.
        reached = [slot for slot in start_slots if slot in used]
        inputs = (*[leaf for leaf in structure.leaves if structure.slots[leaf] in used], *given)
        key = (gradients, tuple(structure.key), end_slots, start_slots, len(given))
        operation = engine.known(key)
        if operation is None:
            kinds = [value.kind for value in inputs]
            emit = gradient_emitter(structure, used, end_slots, reached)
            operation = engine.operation(key, "gradients", kinds, emit, None)
        found = recorded(engine, operation, inputs)
    rest = iter(found)
    return [next(rest) if each else _zeros(start) for start, each in zip(starts, connected, strict=True)], connected


def _zeros(value: Value) -> Tensor:
    return ops.expand(Tensor(value.engine.number(0, value.kind.data_type)), value.kind.shape)


def value_and_gradients(function: Function, *sources: Tensor) -> tuple[Any, list[Tensor]]:
    """Call a function, and return its result with the gradients with respect to its arguments.

    Args:
        function: computes a float tensor, or a sequence of which the first item is one, from tensors.
        sources: the arguments.

    Returns:
        The result of the function, and the gradient of the sum of its first tensor with respect to each argument.

    Example:
        >>> from webnn_wgpu import eager
        >>> x = eager.tensor([3.0, 4.0], context=context)
        >>> value, (gradient,) = eager.value_and_gradients(lambda x: eager.ops.reduce_sum(x * x), x)
        >>> value.item(), gradient.tolist()
        (25.0, [6.0, 8.0])
    """
    with tape(sources[0].context if sources else None):
        result = function(*sources)
        first = result if isinstance(result, Tensor) else result[0]
        return result, gradients(first, sources)


def custom_gradient(function: Function) -> Function:
    """Return a function with a gradient that the program states.

    Args:
        function: returns a tensor or a sequence of tensors, and a function that returns the gradient of each tensor among
            its arguments, or None for zeros. The arguments of the latter are the gradients of the results.

    Example:
        >>> from webnn_wgpu import eager
        >>> @eager.custom_gradient
        ... def rounded(x):
        ...     return eager.ops.round_even(x), lambda gradient: gradient
        >>> x = eager.tensor([0.2, 1.7], context=context)
        >>> eager.gradients(rounded(x), [x])[0].tolist()
        [1.0, 1.0]
    """

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        result, gradient = function(*args)
        return with_gradient(result, [arg for arg in args if isinstance(arg, Tensor)], gradient)

    return call


def with_gradient(results: Tensor | Sequence[Tensor], sources: Sequence[Tensor], gradient: Function) -> Any:
    """Return results again, with a gradient that the program states.

    Args:
        results: float tensors.
        sources: the tensors that the results depend on.
        gradient: returns the gradient of each of `sources`, or None for zeros. Its arguments are the gradients of the results.

    Raises:
        MLTypeError: results that do not hold floats. `gradients` raises it for a gradient that does not fit.

    Example:
        >>> from webnn_wgpu import eager
        >>> x = eager.tensor([1.0, 2.0], context=context)
        >>> y = eager.with_gradient(x * x, [x], lambda gradient: gradient * 10)
        >>> eager.gradients(y, [x])[0].tolist()
        [10.0, 10.0]
    """
    given = [results] if isinstance(results, Tensor) else list(results)
    values = [tensor.value for tensor in given]
    engine = values[0].engine
    floats = [index for index, tensor in enumerate(sources) if tensor.dtype in _FLOATS]
    wanted = [sources[index].value for index in floats]

    def stated(*seeds: Value) -> list[Value | None]:
        with engine.placeholders():
            found = gradient(*[Tensor(seed) for seed in seeds])
        items: list[Tensor | None] = [found] if isinstance(found, Tensor) or found is None else list(found)
        if len(items) != len(sources):
            raise MLTypeError(
                "a gradient must have one item for each operand",
                operator="with_gradient",
                got=f"{len(items)} items",
                allowed=f"{len(sources)}",
            )
        return [None if (item := items[index]) is None else item.value for index in floats]

    single = isinstance(results, Tensor)
    kinds = tuple([value.kind for value in values])
    key = (with_gradient, single, kinds)
    operation = engine.known(key)
    if operation is None:
        count = len(values)

        def emit(builder: MLGraphBuilder, *operands: MLOperand) -> MLOperand | Sequence[MLOperand]:
            return operands[0] if single else operands[:count]

        operation = engine.operation(key, "with_gradient", kinds, emit, None)
    return recorded(engine, operation, (*values, *wanted), stated)
