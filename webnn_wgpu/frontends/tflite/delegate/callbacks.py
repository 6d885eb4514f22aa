"""The functions that TFLite's runtime calls, and the objects that these calls mean.

A runtime can outlive the Python objects of its interpreter and its delegate, for example as the owner of a numpy view. The
functions and the structures are therefore kept for the life of the process, and calls name their objects by numbers. A call
that names an object without a Python owner has no effect. No exception crosses the C boundary.
"""

from __future__ import annotations

import ctypes
import itertools
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from .kernel import PartitionKernel
from .layouts import (
    ALLOW_DYNAMIC_TENSORS,
    CODE_DELEGATE,
    ERROR,
    OK,
    Free,
    Init,
    Prepare,
    RuntimeContext,
    TfliteDelegateParamsStruct,
    TfliteDelegateStruct,
    TfliteNodeStruct,
    TfliteRegistrationStruct,
    ints_at,
)

log = logging.getLogger(__name__)


class DelegateCallbacks(ABC):
    """The answers of a delegate to the runtime's calls."""

    @abstractmethod
    def take_nodes(self, runtime: RuntimeContext) -> list[int]:
        """Return the nodes of a subgraph that the delegate runs.

        Args:
            runtime: the context of the subgraph.
        """

    @abstractmethod
    def take_partition(
        self, runtime: RuntimeContext, nodes: tuple[int, ...], inputs: tuple[int, ...], outputs: tuple[int, ...]
    ) -> PartitionKernel:
        """Return the kernel of a partition.

        Args:
            runtime: the context of the subgraph.
            nodes: the numbers of the nodes.
            inputs: the numbers of the partition's inputs.
            outputs: the numbers of its outputs.
        """


_numbers = itertools.count(1)
_delegates: WeakValueDictionary[int, DelegateCallbacks] = WeakValueDictionary()
_structures: list[TfliteDelegateStruct] = []
_kernels: dict[int, PartitionKernel] = {}


def registered(delegate: DelegateCallbacks) -> int:
    """Give a delegate a TfLiteDelegate structure, and return its address."""
    number = next(_numbers)
    _delegates[number] = delegate
    structure = TfliteDelegateStruct(data=number, prepare=_address(_on_delegate), flags=ALLOW_DYNAMIC_TENSORS)
    _structures.append(structure)
    return ctypes.addressof(structure)


def num_kernels() -> int:
    """Return the number of partitions that runtimes hold."""
    return len(_kernels)


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def _guarded(context: int, activity: str, action: Callable[[RuntimeContext], None]) -> int:
    """Run an action for the runtime. Its exception becomes an error of the runtime."""
    try:
        runtime = RuntimeContext(context)
        try:
            action(runtime)
        except BaseException as error:
            log.debug("%s failed", activity, exc_info=True)
            runtime.report(f"WebnnDelegate: {activity} failed: {error or type(error).__name__}")
            return ERROR
    except BaseException:
        return ERROR
    return OK


@Prepare
def _on_delegate(context: int, delegate: int) -> int:
    """Take nodes of a subgraph: the Prepare of a delegate."""

    def take(runtime: RuntimeContext) -> None:
        number = TfliteDelegateStruct.from_address(delegate).data
        found = _delegates.get(number)
        if found is None:
            return
        nodes = found.take_nodes(runtime)
        if nodes:
            runtime.replace(nodes, _registration, delegate)

    return _guarded(context, "delegation", take)


@Init
def _on_init(context: int, buffer: int, _length: int) -> int:
    """Return the number of a new partition's kernel, 0 after a failure."""
    number = 0

    def take(runtime: RuntimeContext) -> None:
        nonlocal number
        params: Any = TfliteDelegateParamsStruct.from_address(buffer)
        delegate = _delegates[TfliteDelegateStruct.from_address(params.delegate).data]
        names = (params.nodes_to_replace, params.input_tensors, params.output_tensors)
        nodes, inputs, outputs = (ints_at(address) for address in names)
        kernel = delegate.take_partition(runtime, nodes, inputs, outputs)
        number = next(_numbers)
        _kernels[number] = kernel

    _guarded(context, "initialization", take)
    return number


@Free
def _on_free(_context: int, number: int) -> None:
    """Free a partition's kernel."""
    try:
        kernel = _kernels.pop(number or 0, None)
        if kernel is not None:
            kernel.destroy()
    except BaseException:
        log.debug("a partition was not freed", exc_info=True)


@Prepare
def _on_prepare(context: int, node: int) -> int:
    """Compile a partition for the shapes of its inputs."""
    return _guarded(context, "preparation", lambda runtime: _kernel_of(node).prepare(runtime))


@Prepare
def _on_invoke(context: int, node: int) -> int:
    """Run a partition."""
    return _guarded(context, "a run", lambda runtime: _kernel_of(node).invoke(runtime))


def _kernel_of(node: int) -> PartitionKernel:
    number: int | None = TfliteNodeStruct.from_address(node).user_data
    return _kernels[number or 0]


_NAME = ctypes.create_string_buffer(b"WebnnDelegate")
_registration = TfliteRegistrationStruct(
    init=_address(_on_init),
    free=_address(_on_free),
    prepare=_address(_on_prepare),
    invoke=_address(_on_invoke),
    builtin_code=CODE_DELEGATE,
    custom_name=ctypes.addressof(_NAME),
    version=1,
)
