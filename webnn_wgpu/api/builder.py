"""`MLGraphBuilder`: describes a graph, then compiles it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.data_types import DATA_TYPES, cast_number
from ..core.errors import InvalidStateError, MLTensorStateError, MLTypeError
from ..ir.graph import Array, Graph, Node, Origin, Value, frozen_array
from ..ir.types import TensorType
from ..ops import operator
from .arrays import failing, parse_descriptor, tensor_type, to_array, type_of_array
from .graph import MLGraph
from .operand import MLOperand
from .operators import Operators
from .promise import MLPromise
from .tensor import MLTensor

if TYPE_CHECKING:
    from .context import MLContext

PROFILES = ("2026", "2024")


class MLGraphBuilder(Operators):
    """Describes a graph operator by operator; `build` compiles it.

    Shapes and data types are checked, and known, at every call. A builder builds once; with `profile="2024"` it may build any
    number of times with different outputs, and names of inputs are only compared when it builds.

    Args:
        context: where the graph will run.
        profile: "2026", or "2024" for the rules of the April 2024 text.

    Raises:
        InvalidStateError: the context is lost.
        MLTypeError: not a context, or an unknown profile.

    Example:
        >>> builder = wn.MLGraphBuilder(context)
        >>> a = builder.input("a", {"dataType": "float32", "shape": [2]})
        >>> half = builder.constant("float32", 0.5)
        >>> graph = builder.build({"y": builder.mul(a, half)})
        >>> print(context.compute(graph, {"a": [2, 4]})["y"])
        [1. 2.]

    Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder
    """

    def __init__(self, context: MLContext, profile: str = "2026") -> None:
        from .context import MLContext

        fail = failing("MLGraphBuilder")
        if not isinstance(context, MLContext):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
            raise fail("a builder is made for an MLContext", got=type(context).__name__)
        if profile not in PROFILES:
            raise fail("Invalid profile", got=repr(profile), allowed=", ".join(PROFILES))
        context._check_alive("MLGraphBuilder")
        self._context, self._profile = context, profile
        self._built = False
        self._values: dict[int, Value] = {}
        self._inputs: list[tuple[str, int]] = []
        self._constants: dict[int, Array] = {}
        self._constant_tensors: dict[int, MLTensor] = {}
        self._nodes: list[Node] = []

    # operands -----------------------------------------------------------------------------------------------------

    def input(self, name: str, descriptor: Any, data_type: str | None = None) -> MLOperand:
        """Declare an input of the graph.

        Args:
            name: not empty, and unique within the builder.
            descriptor: mapping with `dataType` and `shape`; or the shape, with `data_type` as third argument.
            data_type: data type, where `descriptor` is a shape.

        Raises:
            InvalidStateError: the builder has built, or its context is lost.
            MLTypeError: an empty or repeated name, or a bad descriptor.

        Example:
            >>> b.input("photo", {"dataType": "float32", "shape": [1, 3, 8, 8]}).shape
            (1, 3, 8, 8)

        Spec: https://www.w3.org/TR/webnn/#dom-mlgraphbuilder-input
        """
        self._check_can_build("input")
        fail = failing("input")
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
            raise fail("name must be a string", got=repr(name))
        if not name:
            raise fail("name must not be empty")
        if self._profile == "2026" and any(name == other for other, _ in self._inputs):
            raise fail("name must be unique among the inputs of a builder", got=repr(name))
        wanted = self._parse(descriptor, data_type, fail)
        operand = self._new_operand(wanted, name)
        self._inputs.append((name, operand.value))
        return operand

    def constant(self, *args: Any, **kwargs: Any) -> MLOperand:
        """Make a constant operand, in any of the specification's forms.

        Forms:
            constant(descriptor, data): a tensor; `data` is copied unless it is a read-only array.
            constant(data_type, value): a scalar; the value is rounded, and saturated, to the type.
            constant(value, data_type="float32"): the same, as the 2024 text orders it.
            constant(tensor): an `MLTensor` made by `MLContext.create_constant_tensor`.
            constant(array, shape=None, dtype=None): a numpy array, with its own type unless another is named.
            constant(start, end, step, data_type): the numbers start, start + step, ... below end.

        Raises:
            InvalidStateError: the builder has built, or its context is lost.
            MLTypeError: data of another type or size, or arguments that fit no form.

        Example:
            >>> b.constant("float32", 2).shape
            ()
            >>> b.constant({"dataType": "int32", "shape": [2]}, np.int32([1, 2])).data_type
            'int32'
            >>> b.constant(0, 3, 1, "float32").shape
            (3,)

        Spec: https://www.w3.org/TR/webnn/#dom-mlgraphbuilder-constant
        """
        if len(args) == 1 and isinstance(args[0], MLTensor) and not kwargs:
            return self._constant_tensor(args[0])
        self._check_can_build("constant")
        wanted, array = _constant_of(args, kwargs)
        operand = self._new_operand(wanted)
        self._constants[operand.value] = array
        return operand

    def _constant_tensor(self, tensor: MLTensor) -> MLOperand:
        if tensor._context is not self._context:
            raise MLTypeError("the tensor belongs to another context", operator="constant", got=repr(tensor))
        if tensor.destroyed:
            raise MLTensorStateError("the tensor was destroyed", operator="constant", got=repr(tensor))
        if tensor._constant_data is None:
            raise MLTypeError(
                "only a tensor made by create_constant_tensor can be a constant", operator="constant", got=repr(tensor)
            )
        self._check_can_build("constant")
        operand = self._new_operand(tensor._type)
        self._constants[operand.value] = tensor._constant_data
        self._constant_tensors[operand.value] = tensor
        return operand

    def _parse(self, descriptor: Any, data_type: str | None, fail: Callable[..., Exception]) -> TensorType:
        if isinstance(descriptor, Mapping):
            wanted, _ = parse_descriptor(descriptor, fail, shape_required=self._profile == "2026")
            return wanted
        return tensor_type(data_type or "float32", descriptor, fail)

    def _new_operand(self, wanted: TensorType, name: str | None = None, origins: tuple[Origin, ...] = ()) -> MLOperand:
        value = len(self._values)
        self._values[value] = Value(value, wanted, origins)
        return MLOperand(self, value, wanted, name)

    # operators ----------------------------------------------------------------------------------------------------

    def _operator(
        self, name: str, operands: Sequence[MLOperand | None], attrs: Mapping[str, Any], label: str
    ) -> list[MLOperand]:
        op = operator(name)
        self._check_can_build(op.python_name, label)
        for operand in operands:
            if operand is not None and operand.builder is not self:
                raise MLTypeError(
                    "every operand must belong to this builder", operator=op.python_name, label=label, got=repr(operand)
                )
        types, canonical = op.check([None if o is None else o.type for o in operands], attrs, label)
        number = len(self._nodes)
        origins = (Origin(number, label),)
        outputs = [self._new_operand(t, origins=origins) for t in types]
        self._nodes.append(
            Node(
                number,
                name,
                tuple(None if o is None else o.value for o in operands),
                tuple(o.value for o in outputs),
                MappingProxyType(canonical),
                label,
                origins,
            )
        )
        return outputs

    def _check_can_build(self, operator: str, label: str = "") -> None:
        if self._built:
            raise InvalidStateError("the builder has built its graph", operator=operator, label=label)
        self._context._check_alive(operator)

    # build --------------------------------------------------------------------------------------------------------

    def build(
        self,
        outputs: Mapping[str, MLOperand],
        *,
        progress: Callable[[int, int, str], None] | None = None,
        disabled_passes: Collection[str] = (),
    ) -> MLGraph:
        """Compile the operators that `outputs` depend on.

        Args:
            outputs: name -> operand; an operand may stand under several names.
            progress: called as `progress(done, total, kernel)` while kernels are compiled.
            disabled_passes: names of optimisation passes to leave out (`webnn_wgpu.passes.PASSES` lists them).

        Returns:
            The compiled graph. All its memory is allocated and all its kernels are compiled.

        Raises:
            InvalidStateError: the builder has built, or its context is lost.
            MLTypeError: no outputs, an empty name, an operand of another builder, or an output that is an input or constant
                (put `identity` behind it).
            OperationError: the device lacks a feature that an operator's data types need.
            OutOfMemoryError: a tensor is larger than the device can hold.

        Example:
            >>> graph = b.build({"y": b.sigmoid(x)})
            >>> graph
            MLGraph(x: float32[2, 3] -> y: float32[2, 3])

        Spec: https://www.w3.org/TR/webnn/#dom-mlgraphbuilder-build
        """
        graph = self._take_graph(outputs)
        executable, plan, reports = self._context._backend.compile(graph, disabled_passes, progress)
        built = MLGraph(self._context, graph, executable, plan, reports)
        self._context._graphs.add(built)
        if self._context._lost_event.is_set():
            built.destroy()
            raise InvalidStateError("the context was lost while the graph was compiled", operator="build")
        return built

    def build_async(
        self,
        outputs: Mapping[str, MLOperand],
        *,
        progress: Callable[[int, int, str], None] | None = None,
        disabled_passes: Collection[str] = (),
    ) -> MLPromise[MLGraph]:
        """Compile in the background and return a promise of what `build` returns."""
        return MLPromise[MLGraph].in_background(lambda: self.build(outputs, progress=progress, disabled_passes=disabled_passes))

    def _take_graph(self, outputs: Mapping[str, MLOperand]) -> Graph:
        """Return the graph of what `outputs` depend on; from then on the builder has built."""
        self._check_can_build("build")
        fail = failing("build")
        if not isinstance(outputs, Mapping) or not outputs:  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
            raise fail("outputs must be a mapping with at least one output", got=repr(outputs))
        ends = {value for _, value in self._inputs} | set(self._constants)
        for name, operand in outputs.items():
            if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
                raise fail("an output's name must be a string that is not empty", got=repr(name))
            if not isinstance(operand, MLOperand):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
                raise fail(f"output '{name}' must be an operand", got=type(operand).__name__)
            if operand.builder is not self:
                raise fail(f"output '{name}' must belong to this builder", got=repr(operand))
            if operand.value in ends:
                raise fail(
                    f"output '{name}' must be the result of an operator",
                    got=repr(operand),
                    hint="Put identity() behind an input or constant",
                )
        needed = {operand.value for operand in outputs.values()}
        nodes: list[Node] = []
        for node in reversed(self._nodes):
            if needed.intersection(node.outputs):
                needed.update(node.operands)
                nodes.append(node)
        inputs: dict[str, int] = {}
        for name, value in self._inputs:
            if value in needed:
                if name in inputs:
                    raise fail("two inputs that the outputs depend on share a name", got=repr(name))
                inputs[name] = value
        for value, tensor in self._constant_tensors.items():
            if value in needed and tensor.destroyed:
                raise MLTensorStateError("a constant tensor was destroyed", operator="build", got=repr(tensor))
        self._built = self._profile == "2026"
        needed.update(o for node in nodes for o in node.outputs)
        return Graph(
            {v: self._values[v] for v in sorted(needed)},
            inputs,
            {v: a for v, a in self._constants.items() if v in needed},
            tuple(reversed(nodes)),
            {name: operand.value for name, operand in outputs.items()},
        )

    def __repr__(self) -> str:
        state = "built" if self._built else f"{len(self._nodes)} operators"
        return f"MLGraphBuilder({self._context.description}, {state})"


def _constant_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[TensorType, Array]:
    """Return type and array of the form of `constant` that the arguments have."""
    fail = failing("constant")
    named = {"type": "data_type", "dtype": "data_type", "dataType": "data_type", "buffer": "data"}
    options = {named.get(k, k): v for k, v in kwargs.items()}
    unknown = set(options) - {"shape", "data_type", "data", "value", "descriptor"}
    if unknown:
        raise fail(f"unknown option {sorted(unknown)[0]!r}", allowed="shape, data_type, data, value, descriptor")
    if not args and "descriptor" in options:
        args = (options["descriptor"],)
    if not args and "value" in options:
        args = (options["value"],)
    if not args:
        raise fail("constant needs a descriptor and data, a data type and a value, a tensor or an array")
    first, rest = args[0], args[1:]
    if isinstance(first, Mapping):
        wanted, _ = parse_descriptor(first, fail)
        data = rest[0] if rest else options.get("data")
        if data is None:
            raise fail("a constant with a descriptor needs data")
        return wanted, _owned(to_array(data, wanted, fail, "data"), data)
    if isinstance(first, str):
        value = rest[0] if rest else options.get("value")
        return _scalar(first, value, fail)
    if isinstance(first, int | float | np.integer | np.floating) and not isinstance(first, bool):
        if len(rest) == 3:
            return _sequence(first, rest[0], rest[1], rest[2], fail)
        shape = options.get("shape")
        if not shape:
            return _scalar(rest[0] if rest else options.get("data_type") or "float32", first, fail)
    return _array(
        first, (*rest, None, None)[0] or options.get("shape"), (*rest, None, None)[1] or options.get("data_type"), fail
    )


def _scalar(data_type: Any, value: Any, fail: Callable[..., Exception]) -> tuple[TensorType, Array]:
    wanted = tensor_type(data_type, (), fail)
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise fail("a scalar constant needs a number", got=f"{value!r} ({type(value).__name__})")
    number: Any = value.item() if isinstance(value, np.generic) else value
    return wanted, frozen_array(np.asarray(cast_number(number, wanted.data_type), wanted.numpy))


def _sequence(start: Any, end: Any, step: Any, data_type: Any, fail: Callable[..., Exception]) -> tuple[TensorType, Array]:
    if step == 0:
        raise fail("step must not be 0", got=f"start={start}, end={end}, step={step}")
    count = max(0, int(np.ceil((end - start) / step)))
    if count == 0:
        raise fail("the sequence has no elements", got=f"start={start}, end={end}, step={step}")
    wanted = tensor_type(data_type, (count,), fail)
    numbers = [cast_number(start + i * step, wanted.data_type) for i in range(count)]
    return wanted, frozen_array(np.asarray(numbers, wanted.numpy))


def _array(data: Any, shape: Any, data_type: Any, fail: Callable[..., Exception]) -> tuple[TensorType, Array]:
    if data_type is None and not hasattr(data, "__array__") and not hasattr(data, "__dlpack__"):
        data_type = "float32"  # a list: numpy alone would make it float64, which WebNN does not have
    if data_type is None:
        array = np.asarray(data) if hasattr(data, "__array__") else np.from_dlpack(data)
        wanted = type_of_array(array, fail)
    else:
        name = data_type if isinstance(data_type, str) else np.dtype(data_type).name
        if name not in DATA_TYPES:
            raise fail("unknown data type", got=repr(data_type), allowed=", ".join(DATA_TYPES))
        array = np.asarray(data, DATA_TYPES[name].numpy)
        wanted = tensor_type(name, array.shape, fail)
    if shape is not None:
        wanted = tensor_type(wanted.data_type, shape, fail)
    return wanted, _owned(to_array(array, wanted, fail, "data"), data)


def _owned(array: Array, data: Any) -> Array:
    """Return an array that later changes of the caller's cannot reach. Memory nobody can write to needs no copy."""
    if isinstance(data, list | tuple | int | float):
        return frozen_array(array)  # made just now
    owner: Any = array
    while owner is not None and not getattr(getattr(owner, "flags", None), "writeable", True):
        owner = owner.base
    return frozen_array(array.copy() if owner is not None else array)
