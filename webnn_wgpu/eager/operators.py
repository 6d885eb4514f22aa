"""Operations on tensors: every operator of the builder, and compositions of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from typing import cast as typed

import numpy as np
import numpy.typing as npt

from webnn_wgpu import MLGraphBuilder, MLOperand, MLTypeError
from webnn_wgpu.api.operators.ext import Extensions

from .engine import Engine
from .operator_names import OperatorNames
from .tensor import Tensor, as_value, data_type_of
from .values import BOOL, Kind, Operation, StatedRule, Value

Compose: TypeAlias = Callable[..., "MLOperand | Sequence[MLOperand]"]

_TRUTHS = frozenset(
    "equal not_equal greater greater_or_equal lesser lesser_or_equal logical_and logical_or logical_xor logical_not not_"
    " is_nan is_infinite".split()
)
"""Operators whose results are truth values."""

_MOVEMENTS = frozenset(
    "concat expand gather gather_elements gather_nd identity pad reduce_max reduce_min reshape reverse scatter_elements"
    " scatter_nd slice split squeeze tile transpose triangular unsqueeze where".split()
)
"""Operators whose results are elements of their operands, so that truth values stay truth values."""


class _Slot:
    """The place of an operand in the arguments of a call."""

    def __repr__(self) -> str:
        return "operand"


_SLOT = _Slot()


@dataclass(frozen=True)
class _Dictionary:
    """A dictionary among the arguments of a call, as a value that can be a key: names, types and entries."""

    items: tuple[tuple[str, str, Any], ...]


_NUMBERS = frozenset((int, float, bool))
_PLAIN = frozenset((int, float, bool, str, type(None)))


class Operator:
    """An operator of the builder, as a function of tensors.

    Args:
        name: the name of the builder's method. Those of extension operators begin with "ext.".

    Attributes:
        name: the name of the builder's method.

    Example:
        >>> from webnn_wgpu import eager
        >>> double = eager.Operator("linear")
        >>> double(eager.tensor([1.0, 2.0], context=context), alpha=2).tolist()
        [2.0, 4.0]
    """

    def __init__(self, name: str) -> None:
        self.name = name
        extension, _, self._method = name.rpartition(".")
        method = getattr(Extensions if extension else MLGraphBuilder, self._method)
        signature = inspect.signature(method)
        parameters = list(signature.parameters.values())[1:]
        self._operands = {p.name for p in parameters if "MLOperand" in str(p.annotation)}
        self._positions = [p.name in self._operands for p in parameters]
        # The condition of a choice has a data type of its own.
        self._typed = 1 if self._method == "where" else 0
        self.__doc__ = method.__doc__

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Record the operator.

        Args:
            args: the arguments of the builder's method, with tensors, arrays or numbers as operands.
            options: its options.

        Returns:
            A tensor, or a list of tensors where the builder's method returns a list.
        """
        if not options:
            inputs: list[Value] = []
            positions = self._positions
            first: Value | None = None
            for number, arg in enumerate(args):
                if isinstance(arg, Tensor):
                    value = arg.value
                    first = first or value
                elif type(arg) in _NUMBERS and number < len(positions) and positions[number]:
                    reference = _first_value(args[self._typed :])
                    if reference is None:
                        break
                    kind = Kind.of(reference.kind.data_type, ())
                    value = Value(reference.engine, kind)
                    value.number = kind.converted(arg)
                else:
                    break
                inputs.append(value)
            else:
                if first is not None:
                    engine = first.engine
                    operation = engine.known((self.name, *[value.kind for value in inputs]))
                    if operation is not None and all([value.engine is engine for value in inputs]):
                        return recorded(engine, operation, tuple(inputs))
        return self._general(args, options)

    def _general(self, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """Record a call with options, arrays or lists of tensors, or one that is not known yet."""
        given = (*args, *options.values())
        first = _first_value(given)
        if first is None:
            raise MLTypeError("an operand must be a tensor", operator=self._method, got=", ".join(map(repr, args)))
        typed_by = _first_value(given[self._typed :])
        call = _Call(self._method, first.engine, None if typed_by is None else typed_by.kind.data_type)
        positions = self._positions
        pattern = tuple([call.place(arg, number < len(positions) and positions[number]) for number, arg in enumerate(args)])
        named = {name: call.place(arg, name in self._operands) for name, arg in sorted(options.items())}
        engine, kinds = first.engine, [value.kind for value in call.inputs]
        bare = not named and all(each is _SLOT for each in pattern)
        key: Hashable = (self.name, *kinds) if bare else (self.name, pattern, tuple(named.items()), tuple(kinds))
        operation = engine.known(key)
        if operation is None:
            method = self._method
            extension = "." in self.name

            def emit(builder: MLGraphBuilder, *operands: MLOperand) -> MLOperand | Sequence[MLOperand]:
                given = iter(operands)
                positional = [_filled(each, given) for each in pattern]
                keywords = {name: _filled(each, given) for name, each in named.items()}
                return getattr(builder.ext if extension else builder, method)(*positional, **keywords)

            operation = engine.operation(key, self.name, kinds, emit, self._data_type(kinds))
        return recorded(engine, operation, tuple(call.inputs))

    def _data_type(self, kinds: Sequence[Kind]) -> str | None:
        """Return whether results are truth values."""
        if self._method in _TRUTHS:
            return BOOL
        stored = [kind for kind in kinds if kind.stored == "uint8"]
        if self._method == "where":
            stored = [kind for kind in kinds[1:] if kind.stored == "uint8"]
        moves = self._method in _MOVEMENTS and stored and all(kind.data_type == BOOL for kind in stored)
        return BOOL if moves else None


class _Call:
    """The operands of a call, and the rest of its arguments.

    Args:
        method: the builder's method.
        engine: the engine of all operands.
        data_type: the data type of numbers. None is that which they have as tensors.
    """

    def __init__(self, method: str, engine: Engine, data_type: str | None) -> None:
        self._method, self._engine, self._data_type = method, engine, data_type
        self.inputs: list[Value] = []

    def place(self, arg: Any, operand: bool) -> Any:
        """Return an argument with places for its operands."""
        if not operand and type(arg) in _PLAIN:
            return arg
        if isinstance(arg, list | tuple):
            items = typed("list[Any]", arg)
            if any([isinstance(each, Tensor) for each in items]):
                return tuple([self.place(each, True) for each in items])
        if isinstance(arg, Mapping):
            entries = typed("Mapping[str, Any]", arg)
            items = [(name, type(entry).__name__, self._entry(entry)) for name, entry in entries.items()]
            return _Dictionary(tuple(items))
        if isinstance(arg, Tensor):
            value = arg.value
            if value.engine is not self._engine:
                raise MLTypeError("tensors must belong to one context", operator=self._method, got=repr(arg))
        elif not operand or arg is None:
            return _frozen(arg)
        elif isinstance(arg, int | float | np.ndarray | np.generic | list | tuple):
            value = as_value(typed("Any", arg), self._data_type, self._engine)
        else:
            raise MLTypeError("an operand must be a tensor", operator=self._method, got=repr(arg))
        self.inputs.append(value)
        return _SLOT

    def _entry(self, entry: Any) -> Any:
        """Return an entry of a dictionary with places for its operands. Constants of a kernel keep the types of numpy."""
        if isinstance(entry, np.generic):
            return typed("Any", entry)
        return self.place(entry, isinstance(entry, Tensor | np.ndarray))


class Operators(OperatorNames):
    """The operators of the builder as functions of tensors, by the names of its methods. `ext` has the extension operators.

    Tensors, arrays and numbers take the place of operands. A number takes the data type of the first tensor. Options are those
    of the builder's methods.

    Example:
        >>> from webnn_wgpu import eager
        >>> x = eager.tensor([[1.0, 3.0], [5.0, 7.0]], context=context)
        >>> eager.ops.reduce_mean(x, axes=[1]).tolist(), eager.ops.greater(x, 4).tolist()
        ([2.0, 6.0], [[False, False], [True, True]])
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    if not TYPE_CHECKING:  # which would take any name for an operator

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            if name == "ext" and not self._prefix:
                found: Any = Operators("ext.")
            else:
                try:
                    found = Operator(self._prefix + name)
                except AttributeError:
                    raise AttributeError(f"there is no operator '{self._prefix}{name}'") from None
            setattr(self, name, found)
            return found


ops = Operators()
"""The operators of the builder as functions of tensors."""


def apply(
    function: Compose,
    *tensors: Tensor,
    key: Hashable,
    dtype: str | None = None,
    context: Any = None,
) -> Any:
    """Record a composition of operators.

    Args:
        function: adds the operators to a builder. Its arguments are the builder and an operand for each tensor. It returns an
            operand, or a sequence of operands. It must add the same operators at every call.
        tensors: the operands.
        key: names the function with everything that it depends on besides the types of the operands.
        dtype: "bool" if results that are stored as uint8 are truth values.
        context: the context if there are no tensors. None is the default one.

    Returns:
        A tensor, or a list of tensors if the function returns a sequence.

    Raises:
        MLTypeError: a builder's method refused its arguments, or tensors belong to several contexts.

    Example:
        >>> from webnn_wgpu import eager
        >>> x = eager.tensor([3.0, 4.0], context=context)
        >>> eager.apply(lambda b, x: b.sqrt(b.reduce_sum(b.mul(x, x))), x, key="norm").item()
        5.0
    """
    values = tuple([tensor.value for tensor in tensors])
    engine = values[0].engine if values else Engine.of(context)
    if any(value.engine is not engine for value in values):
        raise MLTypeError("tensors must belong to one context", operator="apply", got=", ".join(map(repr, tensors)))
    kinds = tuple([value.kind for value in values])
    known = (apply, key, dtype, kinds)
    operation = engine.known(known)
    if operation is None:
        name = str(key[0]) if isinstance(key, tuple) and key else str(key)  # pyright: ignore[reportUnknownArgumentType] - any tuple
        operation = engine.operation(known, name, kinds, function, dtype)
    return recorded(engine, operation, values)


def recorded(engine: Engine, operation: Operation, inputs: tuple[Value, ...], gradient: StatedRule | None = None) -> Any:
    """Record an operation, and return a tensor or a list of tensors."""
    results = engine.record(operation, inputs, gradient)
    tensors = [Tensor(result) for result in results]
    if engine.watchers and not engine.recording_gradient:
        for watch in list(engine.watchers):
            watch(operation.name, tensors)
    return tensors[0] if operation.single else tensors


def cast(tensor: Tensor, dtype: npt.DTypeLike) -> Tensor:
    """Return the elements in another data type.

    Args:
        tensor: the tensor.
        dtype: the data type. Elements other than 0 become True for "bool".

    Example:
        >>> from webnn_wgpu import eager
        >>> eager.cast(eager.tensor([0.5, 2.5], context=context), "int32").tolist()
        [0, 2]
    """
    name = data_type_of(dtype)
    if name == tensor.dtype:
        return tensor
    return ops.not_equal(tensor, 0) if name == BOOL else ops.cast(tensor, name)


def _first_value(args: Iterable[Any]) -> Value | None:
    """Return the value of the first tensor among arguments and lists of arguments."""
    for arg in args:
        if isinstance(arg, Tensor):
            return arg.value
        if isinstance(arg, list | tuple):
            found = _first_value(typed("Iterable[Any]", arg))
            if found is not None:
                return found
    return None


def _frozen(option: Any) -> Any:
    """Return an option as a value that can be a key."""
    if isinstance(option, list | tuple):
        return tuple([_frozen(each) for each in typed("Iterable[Any]", option)])
    return typed("Any", option).item() if isinstance(option, np.generic) else option


def _filled(pattern: Any, operands: Iterator[MLOperand]) -> Any:
    """Return an argument with operands in their places."""
    if pattern is _SLOT:
        return next(operands)
    if isinstance(pattern, _Dictionary):
        return {name: _filled(entry, operands) for name, _, entry in pattern.items}
    if isinstance(pattern, tuple):
        return [_filled(each, operands) for each in typed("Iterable[Any]", pattern)]
    return pattern
