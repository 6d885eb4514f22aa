"""`Tensor`, a value that is computed when it is asked for, and `Variable`, whose value changes."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Iterator
from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from webnn_wgpu import InvalidStateError, MLContext, MLPromise, MLTensor, MLTypeError

from .engine import Engine
from .values import BOOL, Array, Kind, Shape, Value

Index: TypeAlias = "int | slice | EllipsisType | None"
TensorLike: TypeAlias = "Tensor | npt.ArrayLike"

_NARROWED = {"float64": "float32"}
"""Data types of the host that the device does not have."""


class Tensor:
    """A tensor whose value is computed when it is asked for. Its shape and data type are known at once.

    Operations on tensors are recorded. `numpy`, `item`, `data` and conversions to arrays and numbers compute all recorded
    values that the program can still reach, as one graph. A program that records the same operations again runs the same
    compiled graph.

    Operators of Python compute element by element and broadcast as in numpy. A number takes the data type of the tensor.

    Example:
        >>> from webnn_wgpu import eager
        >>> x = eager.tensor([[1.0, 2.0], [3.0, 4.0]], context=context)
        >>> y = x @ x + 1
        >>> y
        Tensor(float32[2, 2], pending)
        >>> print(y.numpy())
        [[ 8. 11.]
         [16. 23.]]
    """

    __slots__ = ("__weakref__", "_value")

    _value: Value | None

    def __init__(self, value: Value) -> None:
        self._value = value
        engine = value.engine
        engine.values += not value.handles
        value.handles += 1
        engine.tensors += 1
        engine.tensor_bytes += value.kind.nbytes
        if value.node is not None and value.held is None and not value.unknown:
            engine.pending[value] = None
        if engine.scope is not None:
            engine.scope.append(weakref.ref(self))

    def __del__(self) -> None:
        # A failed constructor of a subclass leaves no value.
        if getattr(self, "_value", None) is not None:
            self.dispose()

    def dispose(self) -> None:
        """Free the tensor. Later uses raise InvalidStateError, and further calls have no effect."""
        value = self._value
        if value is None:
            return
        self._value = None
        engine = value.engine
        value.handles -= 1
        engine.tensors -= 1
        engine.tensor_bytes -= value.kind.nbytes
        if not value.handles:
            engine.values -= 1
            engine.pending.pop(value, None)

    @property
    def value(self) -> Value:
        """The recorded value.

        Raises:
            InvalidStateError: the tensor was disposed.
        """
        if self._value is None:
            raise InvalidStateError(
                "the tensor was disposed", operator=type(self).__name__, hint="Dispose a tensor after its last use"
            )
        return self._value

    @property
    def disposed(self) -> bool:
        """Whether the tensor was disposed."""
        return self._value is None

    @property
    def shape(self) -> Shape:
        """The dimensions, outermost first."""
        return self.value.kind.shape

    @property
    def dtype(self) -> str:
        """The data type: one of WebNN's, or "bool"."""
        return self.value.kind.data_type

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.value.kind.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        kind = self.value.kind
        return kind.nbytes // kind.numpy.itemsize

    @property
    def context(self) -> MLContext:
        """The context that computes the value."""
        return self.value.engine.context

    @property
    def pending(self) -> bool:
        """Whether the value has yet to be computed."""
        return self.value.pending

    @property
    def known(self) -> bool:
        """Whether the value exists or can be computed. Placeholders and their results have none."""
        return not self.value.unknown

    # values -------------------------------------------------------------------------------------------------------

    def numpy(self) -> Array:
        """Compute the value, and return a new array of it."""
        value = self.value
        return value.engine.read(value)

    def data(self) -> MLPromise[Array]:
        """Start to compute the value, and return a promise of an array of it."""
        value = self.value
        return value.engine.read_async(value)

    def item(self) -> Any:
        """Compute the value of a tensor of one element, and return it as a number of Python."""
        return self.numpy().item()

    def tolist(self) -> Any:
        """Compute the value, and return it as nested lists of numbers."""
        return self.numpy().tolist()

    def ml_tensor(self) -> MLTensor:
        """Compute the value, and return the tensor of the context that holds it.

        Only read it, and only as long as this tensor lives: other tensors may share its memory, or take it later.
        """
        value = self.value
        return value.engine.ready(value).tensor

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("the elements of a tensor are copied from the device: copy=False cannot be kept")
        found = self.numpy()
        return found if dtype is None else found.astype(dtype)

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __index__(self) -> int:
        return operator.index(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without dimensions has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        if self._value is None:
            return f"{type(self).__name__}(disposed)"
        return f"{type(self).__name__}({self._value.kind}{', pending' if self._value.pending else ''})"

    # arithmetic ---------------------------------------------------------------------------------------------------

    def __getitem__(self, index: Index | tuple[Index, ...]) -> Tensor:
        from .indexing import item

        return item(self, index)

    def __neg__(self) -> Tensor:
        return operators.ops.neg(self)

    def __abs__(self) -> Tensor:
        return operators.ops.abs(self)

    def __add__(self, other: TensorLike) -> Tensor:
        return operators.ops.add(self, other)

    def __sub__(self, other: TensorLike) -> Tensor:
        return operators.ops.sub(self, other)

    def __mul__(self, other: TensorLike) -> Tensor:
        return operators.ops.mul(self, other)

    def __truediv__(self, other: TensorLike) -> Tensor:
        return operators.ops.div(self, other)

    def __pow__(self, other: TensorLike) -> Tensor:
        return operators.ops.pow(self, other)

    def __matmul__(self, other: TensorLike) -> Tensor:
        return operators.ops.matmul(self, other)

    def __radd__(self, other: TensorLike) -> Tensor:
        return operators.ops.add(other, self)

    def __rsub__(self, other: TensorLike) -> Tensor:
        return operators.ops.sub(other, self)

    def __rmul__(self, other: TensorLike) -> Tensor:
        return operators.ops.mul(other, self)

    def __rtruediv__(self, other: TensorLike) -> Tensor:
        return operators.ops.div(other, self)

    def __rpow__(self, other: TensorLike) -> Tensor:
        return operators.ops.pow(other, self)

    def __rmatmul__(self, other: TensorLike) -> Tensor:
        return operators.ops.matmul(other, self)

    def __lt__(self, other: TensorLike) -> Tensor:
        return operators.ops.lesser(self, other)

    def __le__(self, other: TensorLike) -> Tensor:
        return operators.ops.lesser_or_equal(self, other)

    def __gt__(self, other: TensorLike) -> Tensor:
        return operators.ops.greater(self, other)

    def __ge__(self, other: TensorLike) -> Tensor:
        return operators.ops.greater_or_equal(self, other)


class Variable(Tensor):
    """A tensor whose value changes by `assign`. Operations use the value at the time of the call.

    An assigned value takes the memory of the value before where nothing else can read that any more.

    Args:
        initial: the first value.
        dtype: the data type. None is that of the initial value.
        name: a name for messages and checkpoints.
        trainable: whether gradients of all trainable variables include it.
        context: the context. None is that of the initial value, or the default one.

    Attributes:
        name: the name.
        trainable: whether gradients of all trainable variables include it.

    Example:
        >>> from webnn_wgpu import eager
        >>> count = eager.Variable([1.0, 2.0], context=context)
        >>> for _ in range(3):
        ...     _ = count.assign(count + 1)
        >>> count.numpy()
        array([4., 5.], dtype=float32)
    """

    __slots__ = ("name", "trainable")

    def __init__(
        self,
        initial: TensorLike,
        dtype: npt.DTypeLike | None = None,
        *,
        name: str = "",
        trainable: bool = True,
        context: MLContext | None = None,
    ) -> None:
        first = as_value(initial, dtype, Engine.of(context) if context is not None else None)
        if first.number is not None:
            # The elements of a variable change, so they are never constants of a graph.
            first = first.engine.value_of(np.array(first.number, first.kind.numpy))
        super().__init__(first)
        self.name, self.trainable = name, trainable

    def assign(self, value: TensorLike) -> Variable:
        """Give the variable another value of the same shape and data type, and return it.

        Args:
            value: the value.

        Raises:
            MLTypeError: a value of another shape or data type.
        """
        old = self.value
        new = as_value(value, old.kind.data_type if not isinstance(value, Tensor) else None, old.engine)
        if new.kind is not old.kind:
            raise MLTypeError(
                "a variable keeps its shape and data type",
                operator="assign",
                label=self.name,
                got=str(new.kind),
                allowed=str(old.kind),
            )
        if new is old:
            return self
        if new.number is not None:
            new = new.engine.value_of(np.array(new.number, new.kind.numpy))
        if new.pending and new.replaces is None:
            new.replaces = old
        self.dispose()
        Tensor.__init__(self, new)
        return self

    def read(self) -> Tensor:
        """Return a tensor of the present value, which later assignments do not change."""
        return Tensor(self.value)


def as_value(given: TensorLike, dtype: npt.DTypeLike | None, engine: Engine | None) -> Value:
    """Return the value of a tensor, an array or a number."""
    if isinstance(given, Tensor):
        value = given.value
        if engine is not None and value.engine is not engine:
            raise MLTypeError("tensors must belong to one context", operator="tensor", got=repr(given))
        return (
            value
            if dtype is None or Kind.of(data_type_of(dtype), value.kind.shape) is value.kind
            else operators.cast(given, dtype).value
        )
    array = _numbers(given)
    if dtype is None:
        data_type = data_type_of(array.dtype)
        if not isinstance(given, np.ndarray | np.generic) and data_type == "int64":
            data_type = "int32"
    else:
        data_type = data_type_of(dtype)
    engine = engine or Engine.of()
    if not array.shape:
        return engine.number(array.astype(data_type).item(), data_type)
    return engine.value_of(np.array(array, dtype=data_type, order="C"))


def _numbers(given: npt.ArrayLike) -> Array:
    """Return numbers as an array."""
    try:
        array: Array = np.asarray(given)
    except ValueError as error:
        raise _no_numbers(given) from error
    if array.dtype.kind in "OUSMm":
        raise _no_numbers(given)
    return array


def _no_numbers(given: object) -> MLTypeError:
    return MLTypeError(
        "the elements of a tensor must be numbers, in lists of equal lengths", operator="tensor", got=repr(given)[:100]
    )


def tensor(data: TensorLike, dtype: npt.DTypeLike | None = None, *, context: MLContext | None = None) -> Tensor:
    """Return a tensor of given elements, which are copied.

    Args:
        data: numbers, nested lists, an array, or a tensor.
        dtype: the data type. By default, that of the elements: float32 for numbers with a point, int32 for integers of Python,
            "bool" for truth values. float64 becomes float32.
        context: the context. None is the default one.

    Raises:
        MLTypeError: a data type that WebNN does not have, or elements that are not numbers.

    Example:
        >>> from webnn_wgpu import eager
        >>> eager.tensor([1, 2, 3], context=context)
        Tensor(int32[3])
    """
    return Tensor(as_value(data, dtype, Engine.of(context) if context is not None else None))


def data_type_of(dtype: npt.DTypeLike) -> str:
    """Return the data type of tensors for one of numpy."""
    try:
        name = str(np.dtype(dtype))
    except TypeError:  # numpy has no such data type
        name = str(dtype)
    name = _NARROWED.get(name, name)
    if name not in _DATA_TYPES:
        raise MLTypeError(
            "the data type must be one that tensors have", operator="tensor", got=name, allowed=", ".join(_DATA_TYPES)
        )
    return name


_DATA_TYPES = ("float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8", BOOL)

from . import operators  # noqa: E402 - operators take and return tensors
