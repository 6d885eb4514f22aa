"""`Tensor`: a Keras tensor, which is a recorded value or, if no device holds its type, an array of the host."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from webnn_wgpu import eager

from .dtypes import HOST, STORAGE, canonical, is_float, numpy_dtype

Array: TypeAlias = NDArray[Any]


class Tensor:
    """A tensor of the backend. It is lazy: operators are recorded, and run when numbers are asked for.

    Attributes:
        dtype: Keras's name of the data type.
        shape: the dimensions.
        value: the recorded tensor. None if the elements are on the host alone.
        array: the elements on the host, for complex numbers, strings and empty arrays.
        trainable: a note of Keras on weights that it has unpacked, such as embeddings of 4 bits.
    """

    __slots__ = ("__weakref__", "_keras_mask", "array", "dtype", "shape", "trainable", "value")
    __array_priority__ = 1000

    def __init__(self, value: eager.Tensor | Array, dtype: str) -> None:
        self.dtype, self.shape = dtype, tuple(value.shape)
        self.value, self.array = (value, None) if isinstance(value, eager.Tensor) else (None, value)

    if TYPE_CHECKING:  # the loops below define them

        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __rand__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __ror__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))

    @property
    def unknown(self) -> bool:
        """Whether the numbers do not exist: a function is traced, or only shapes are computed."""
        return self.value is not None and not self.value.known

    def numpy(self) -> Array:
        """Return the elements as an array of the host. The caller may change it."""
        if self.array is not None:
            return self.array.copy()
        assert self.value is not None
        return self.value.numpy().astype(numpy_dtype(self.dtype), copy=False)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        found = self.numpy()
        return found if dtype is None else found.astype(dtype)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar has no len()")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __complex__(self) -> complex:
        return complex(self.numpy())

    def __index__(self) -> int:
        return self.numpy().__index__()

    def __format__(self, spec: str) -> str:
        return format(self.numpy()[()], spec) if not self.shape else repr(self)

    def __repr__(self) -> str:
        if self.unknown:
            return f"Tensor({self.dtype}{list(self.shape)})"
        return f"Tensor({self.numpy()!r})"

    def __hash__(self) -> int:
        return id(self)

    def item(self) -> Any:
        """Return the only element as a number of Python."""
        return self.numpy().item()

    def tolist(self) -> Any:
        """Return the elements as lists."""
        return self.numpy().tolist()

    def astype(self, dtype: str) -> Tensor:
        """Return the elements in another data type."""
        return cast(self, dtype)

    def reshape(self, *shape: Any) -> Any:
        """Return the elements in another shape."""
        return _numpy().reshape(self, shape[0] if len(shape) == 1 else shape)

    def __getitem__(self, key: Any) -> Any:
        return _numpy().getitem(self, key)

    @property
    def T(self) -> Any:  # noqa: N802 - numpy's name
        """The transposed tensor."""
        return _numpy().transpose(self)


def _numpy() -> Any:
    """Return the backend's numpy module, which needs this one."""
    from . import numpy

    return numpy


def _operator(name: str, swapped: bool) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        if type(other).__name__ in ("KerasTensor", "Variable") or isinstance(other, str):
            return NotImplemented
        function = getattr(_numpy(), name)
        return function(other, self) if swapped else function(self, other)

    return method


_BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "mod": "mod",
    "pow": "power",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
_COMPARED = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
for _name, _function in _BINARY.items():
    setattr(Tensor, f"__{_name}__", _operator(_function, swapped=False))
    setattr(Tensor, f"__r{_name}__", _operator(_function, swapped=True))
for _name, _function in _COMPARED.items():
    setattr(Tensor, f"__{_name}__", _operator(_function, swapped=False))
for _name, _function in {"neg": "negative", "abs": "absolute", "invert": "bitwise_not"}.items():
    setattr(Tensor, f"__{_name}__", lambda self, function=_function: getattr(_numpy(), function)(self))


# Making ------------------------------------------------------------------------------------------------------------


def of_array(array: Any, dtype: str) -> Tensor:
    """Return an array as a tensor of a canonical data type."""
    if dtype in HOST or 0 in np.shape(array):
        return Tensor(np.asarray(array).astype(numpy_dtype(dtype)), dtype)
    with np.errstate(all="ignore"):
        exact = np.asarray(array).astype(numpy_dtype(dtype))
    return Tensor(eager.tensor(exact.astype(STORAGE[dtype])), dtype)


def unknown(shape: Sequence[int], dtype: str) -> Tensor:
    """Return a tensor without numbers, for tracing."""
    if dtype in HOST or 0 in shape:
        return Tensor(np.zeros(tuple(shape), numpy_dtype(dtype)), dtype)
    return Tensor(eager.placeholder(shape, STORAGE[dtype]), dtype)


# Operators ---------------------------------------------------------------------------------------------------------


def _frozen(option: Any) -> Hashable:
    return tuple(_frozen(each) for each in option) if isinstance(option, list | tuple) else option


def recorded(tensor: Tensor) -> eager.Tensor:
    """Return the recorded tensor, which moves to the context that is in use."""
    value = tensor.value
    assert value is not None, "a tensor of the host has no recorded value"
    if value.context is not eager.default_context():
        again = eager.Variable if isinstance(value, eager.Variable) else eager.tensor
        value = tensor.value = again(value.numpy())
    return value


def several(name: str, *tensors: Tensor, **options: Any) -> Sequence[eager.Tensor]:
    """Record a method of the builder by name. `ext.` is the prefix of the extension's."""
    place, _, method = name.rpartition(".")

    def call(builder: Any, *operands: Any) -> Any:
        return getattr(builder.ext if place else builder, method)(*operands, **options)

    key = (name, tuple(sorted((option, _frozen(chosen)) for option, chosen in options.items())))
    found = eager.apply(call, *map(recorded, tensors), key=key)
    return [found] if isinstance(found, eager.Tensor) else found


def call(name: str, *tensors: Tensor, dtype: str | None = None, **options: Any) -> Tensor:
    """Record a method of the builder with one result.

    Args:
        name: the method.
        tensors: the operands. Their storage types must be those that the operator takes.
        dtype: the data type of the result. That of the first operand by default.
        options: the options of the method.
    """
    (value,) = several(name, *tensors, **options)
    return settle(value, dtype or tensors[0].dtype)


def settle(value: eager.Tensor, dtype: str) -> Tensor:
    """Return a value of the storage type as a tensor, with its elements rounded or wrapped to the data type."""
    found = Tensor(value, dtype)
    if dtype == "bfloat16":
        return Tensor(several("ext.round_bfloat16", found)[0], dtype)
    if dtype.startswith("float8"):
        return Tensor(several("ext.round_float8", found, format=dtype.removeprefix("float8_"), saturate=False)[0], dtype)
    if dtype in ("int16", "uint16"):
        return Tensor(several("ext.wrap_integer", found, bits=16, signed=dtype == "int16")[0], dtype)
    return found


def moved(name: str, *tensors: Tensor, **options: Any) -> Tensor:
    """Record an operator that moves elements without changing them."""
    (value,) = several(name, *tensors, **options)
    return Tensor(value, tensors[0].dtype)


def listed(name: str, builder_inputs: Sequence[Tensor], **options: Any) -> Tensor:
    """Record an operator that takes a list of operands, such as concat."""

    def add(builder: Any, *operands: Any) -> Any:
        return getattr(builder, name)(list(operands), **options)

    key = (name, "list", tuple(sorted((option, _frozen(chosen)) for option, chosen in options.items())))
    return Tensor(eager.apply(add, *map(recorded, builder_inputs), key=key), builder_inputs[0].dtype)


def cast(tensor: Tensor, dtype: str) -> Tensor:
    """Return the elements in another data type."""
    dtype = canonical(dtype)
    if tensor.dtype == dtype:
        return tensor
    if tensor.value is None or dtype in HOST:
        with np.errstate(all="ignore"):
            found = tensor.numpy()
            return of_array(found.real if found.dtype.kind == "c" and dtype not in HOST else found, dtype)
    if dtype == "bool":
        return call("not_equal", tensor, zero_of(tensor), dtype="bool")
    wanted, given = STORAGE[dtype], STORAGE[tensor.dtype]
    value = tensor.value
    if wanted != given:
        # A float that is out of range saturates; integers wrap around, as they have fewer bits.
        if wanted in ("int8", "uint8") and given in ("int32", "uint32"):
            value = several("ext.wrap_integer", _as(tensor, "int32"), bits=8, signed=wanted == "int8")[0]
        (value,) = several("cast", Tensor(value, dtype), type=wanted)
    rounds = dtype in ("int16", "uint16", "bfloat16") or dtype.startswith("float8")
    return settle(value, dtype) if rounds else Tensor(value, dtype)


def _as(tensor: Tensor, storage: str) -> Tensor:
    (value,) = several("cast", tensor, type=storage)
    return Tensor(value, storage)


def zero_of(tensor: Tensor) -> Tensor:
    """Return a zero of the storage type of a tensor."""
    return of_array(0, tensor.dtype)


def stored_float(tensor: Tensor) -> bool:
    """Return whether the device holds the elements as floats."""
    return is_float(STORAGE.get(tensor.dtype, ""))
