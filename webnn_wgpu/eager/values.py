"""Values of recorded programs: the type of a tensor, the operation that computes it, and where its elements are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from webnn_wgpu import InvalidStateError, MLOperand

if TYPE_CHECKING:
    from .engine import Engine
    from .pool import Held

Array: TypeAlias = NDArray[Any]
Number: TypeAlias = bool | int | float
Shape: TypeAlias = tuple[int, ...]
Emit: TypeAlias = Callable[..., "MLOperand | Sequence[MLOperand]"]
"""Adds an operation to a builder: its arguments are the builder and the operands."""
StatedRule: TypeAlias = "Callable[..., Sequence[Value | None]]"
"""Returns the gradients of operands. Its arguments are the gradients of the results."""

BOOL = "bool"


class UnknownValueError(InvalidStateError):
    """A value was asked for that does not exist yet: it depends on a placeholder, or a gradient is being recorded.

    Example:
        >>> from webnn_wgpu import eager
        >>> try:
        ...     (eager.placeholder((2,), context=context) + 1).numpy()
        ... except eager.UnknownValueError as error:
        ...     print(error.operator)
        evaluate
    """


class Kind:
    """Data type and shape of a tensor. There is one object for each, so kinds are compared by identity.

    Attributes:
        data_type: a data type of WebNN, or "bool", which the device stores as uint8.
        shape: the dimensions.
        stored: the data type on the device.
        numpy: the data type on the host.
        nbytes: the size of the elements in bytes.
    """

    __slots__ = ("data_type", "nbytes", "numpy", "shape", "stored")

    _known: ClassVar[dict[tuple[str, Shape], Kind]] = {}

    def __init__(self, data_type: str, shape: Shape) -> None:
        self.data_type, self.shape = data_type, shape
        self.stored: Any = "uint8" if data_type == BOOL else data_type
        self.numpy = np.dtype(data_type)
        self.nbytes = math.prod(shape) * self.numpy.itemsize

    @classmethod
    def of(cls, data_type: str, shape: Shape) -> Kind:
        """Return the kind of a data type and a shape."""
        found = cls._known.get((data_type, shape))
        if found is None:
            found = cls._known[data_type, shape] = cls(data_type, shape)
        return found

    def converted(self, number: Number) -> Number:
        """Return a number as an element of this data type."""
        return self.numpy.type(number).item()

    def __repr__(self) -> str:
        return f"{self.data_type}{list(self.shape)}"


class Operation:
    """A call that was recorded once for given types of operands. There is one object for each, compared by identity.

    Attributes:
        name: its name in messages.
        emit: adds it to a builder.
        results: the kinds of its results.
        single: whether it returns one result instead of a list.
    """

    __slots__ = ("emit", "name", "results", "single")

    def __init__(self, name: str, emit: Emit, results: tuple[Kind, ...], *, single: bool) -> None:
        self.name, self.emit, self.results, self.single = name, emit, results, single


class Node:
    """An operation on values.

    Attributes:
        operation: the operation.
        inputs: the values that it reads.
        gradient: the gradient that the program states: a function of the gradients of the results.
        unknown: whether it depends on a placeholder.
    """

    __slots__ = ("gradient", "inputs", "operation", "unknown")

    def __init__(self, operation: Operation, inputs: tuple[Value, ...], gradient: StatedRule | None = None) -> None:
        self.operation, self.inputs, self.gradient = operation, inputs, gradient
        self.unknown = any([value.unknown for value in inputs])


class Value:
    """A value of a recorded program. It is pending as long as it has neither memory on the device nor elements on the host.

    Attributes:
        engine: the engine that computes it.
        kind: data type and shape.
        node: the operation that computes it. It is None once the value is known, unless a tape is active.
        index: the number of the result of the operation.
        held: the elements on the device.
        array: elements on the host, before they are needed on the device.
        number: the element of a scalar that is known on the host.
        handles: how many tensors of the program stand for the value.
        replaces: the earlier value of a variable.
        error: why the value could not be computed.
        unknown: whether it is a placeholder or depends on one, so that it is never computed.
    """

    __slots__ = ("array", "engine", "error", "handles", "held", "index", "kind", "node", "number", "replaces", "unknown")

    def __init__(self, engine: Engine, kind: Kind, node: Node | None = None, index: int = 0) -> None:
        self.engine, self.kind, self.node, self.index = engine, kind, node, index
        self.held: Held | None = None
        self.array: Array | None = None
        self.number: Number | None = None
        self.handles = 0
        self.replaces: Value | None = None
        self.error: Exception | None = None
        self.unknown = node is not None and node.unknown

    @property
    def pending(self) -> bool:
        """Whether an operation has yet to compute the value."""
        return self.node is not None and self.held is None
