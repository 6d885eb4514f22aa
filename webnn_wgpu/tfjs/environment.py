"""Lifetimes of tensors, measurements, and checks of results."""

from __future__ import annotations

import time as clock
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from webnn_wgpu import OperationError
from webnn_wgpu.eager import Tensor, Variable
from webnn_wgpu.eager.engine import Engine

T = TypeVar("T")

_kept: weakref.WeakSet[Tensor] = weakref.WeakSet()


class MemoryInfo(NamedTuple):
    """The tensors of the program.

    Attributes:
        num_tensors: how many there are.
        num_data_buffers: how many different values they have.
        num_bytes: the size of their elements.
    """

    num_tensors: int
    num_data_buffers: int
    num_bytes: int


class KernelInfo(NamedTuple):
    """An operation that a function recorded.

    Attributes:
        name: its name.
        output_shapes: the shapes of its results.
    """

    name: str
    output_shapes: list[tuple[int, ...]]


class ProfileInfo(NamedTuple):
    """The effects of a function.

    Attributes:
        new_bytes: how many more bytes the tensors of the program have.
        new_tensors: how many more tensors there are.
        peak_bytes: the most bytes that tensors had meanwhile.
        kernels: the operations. Several of them may run as one kernel.
        result: the result of the function.
    """

    new_bytes: int
    new_tensors: int
    peak_bytes: int
    kernels: list[KernelInfo]
    result: Any


class TimeInfo(NamedTuple):
    """The time of a function.

    Attributes:
        wall_ms: milliseconds until the device had computed all values.
    """

    wall_ms: float


def tensors_in(container: Any) -> Iterator[Tensor]:
    """Yield the tensors in nested lists, tuples and mappings.

    Args:
        container: a tensor, a container, or anything else.
    """
    if isinstance(container, Tensor):
        yield container
    elif isinstance(container, Mapping):
        for each in cast("Mapping[Any, Any]", container).values():
            yield from tensors_in(each)
    elif isinstance(container, list | tuple | set):
        for each in cast("Sequence[Any]", container):
            yield from tensors_in(each)


def tidy(name_or_fn: str | Callable[[], T], fn: Callable[[], T] | None = None) -> T:
    """Call a function, and dispose the tensors that it made and did not return. Variables and kept tensors stay.

    Args:
        name_or_fn: the function, or a name that has no effect.
        fn: the function after a name.

    Returns:
        The result of the function.

    Example:
        >>> import webnn_wgpu.tfjs as tf
        >>> made = []
        >>> y = tf.tidy(lambda: (made.append(tf.tensor([1, 2])), tf.square(made[0]))[1])
        >>> y.tolist(), made[0].disposed
        ([1.0, 4.0], True)
    """
    function = cast("Callable[[], T]", name_or_fn if fn is None else fn)
    engine = Engine.of()
    outer, scope = engine.scope, list[weakref.ref[Tensor]]()
    engine.scope = scope
    returned = set[int]()
    try:
        result = function()
        returned = {id(each) for each in tensors_in(result)}
    finally:
        engine.scope = outer
        for reference in scope:
            each = reference()
            if each is None or isinstance(each, Variable) or each in _kept:
                continue
            if id(each) in returned:
                if outer is not None:
                    outer.append(reference)
            else:
                each.dispose()
    return result


def keep(result: Tensor) -> Tensor:
    """Return a tensor, which the `tidy` around does not dispose.

    Args:
        result: the tensor.
    """
    _kept.add(result)
    return result


def dispose(container: Any) -> None:
    """Dispose the tensors in a container. Kept ones stay.

    Args:
        container: a tensor, or nested lists, tuples and mappings.
    """
    for each in tensors_in(container):
        if each not in _kept:
            each.dispose()


def memory() -> MemoryInfo:
    """Return the number and the size of the tensors of the program."""
    engine = Engine.of()
    return MemoryInfo(engine.tensors, engine.values, engine.tensor_bytes)


def profile(f: Callable[[], Any]) -> ProfileInfo:
    """Call a function, and return its operations and the tensors that it made.

    Args:
        f: the function.
    """
    engine = Engine.of()
    tensors, size = engine.tensors, engine.tensor_bytes
    kernels: list[KernelInfo] = []
    peak = size

    def watch(name: str, results: Sequence[Tensor]) -> None:
        nonlocal peak
        peak = max(peak, engine.tensor_bytes)
        kernels.append(KernelInfo(name, [each.shape for each in results]))

    engine.watchers.append(watch)
    try:
        result = f()
    finally:
        engine.watchers.remove(watch)
    return ProfileInfo(engine.tensor_bytes - size, engine.tensors - tensors, peak, kernels, result)


def time(f: Callable[[], Any]) -> TimeInfo:
    """Call a function, and return the time until the device had computed all values.

    Args:
        f: the function.
    """
    engine = Engine.of()
    engine.wait()
    start = clock.perf_counter()
    result = f()
    engine.wait()
    del result
    return TimeInfo((clock.perf_counter() - start) * 1e3)


def _check(name: str, results: Sequence[Tensor]) -> None:
    """Raise an error for results that are not a number."""
    for each in results:
        if each.dtype.startswith("float") and np.isnan(each.numpy()).any():
            raise OperationError("a result must not be NaN", operator=name, got=repr(each))


def enable_debug_mode() -> None:
    """Check the results of each operation from now on: an operation with NaN among its results raises OperationError.

    Each operation then runs at once, which takes long.
    """
    engine = Engine.of()
    if _check not in engine.watchers:
        engine.watchers.append(_check)


def enable_prod_mode() -> None:
    """End the checks of `enable_debug_mode`."""
    engine = Engine.of()
    if _check in engine.watchers:
        engine.watchers.remove(_check)
