"""The base of every part of `MLContext`: its backend and lock, its loss, and the checks at the start of its methods."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from ..core.errors import (
    DeviceLostError,
    DOMException,
    InvalidStateError,
    MLTypeError,
    OperationError,
    WebNNError,
)
from ..ir.graph import Array, Graph
from ..ir.types import TensorType
from ..kernels.tuning import Sources
from ..plan import ExecutionPlan
from .arrays import check_names, failing, to_array
from .backend import Backend, Storage
from .graph import MLGraph
from .progress import Progress
from .promise import MLPromise
from .results import Loss, MLContextLostInfo
from .tensor import MLTensor

if TYPE_CHECKING:
    from .context import MLContext
    from .types import MLContextOptions, MLPowerPreference


class ContextState:
    """The state of a context, and the checks of its arguments."""

    def __init__(self, backend: Backend, *, power_preference: MLPowerPreference = "default") -> None:
        self._backend = backend
        self._lock = backend.lock
        self._power_preference: MLPowerPreference = power_preference
        self._options: MLContextOptions = {}
        """The options of `create_context`, without a device of the caller."""
        self._needs_device = False
        """Whether the caller passed a device."""
        self._tensors: weakref.WeakSet[MLTensor] = weakref.WeakSet()
        self._graphs: weakref.WeakSet[MLGraph] = weakref.WeakSet()
        self._loss = Loss()
        self._lost = MLPromise(self._loss.wait, self._loss.event.is_set)

    def _lose(self, message: str) -> None:
        with self._lock:
            if self._loss.event.is_set():
                return
            self._loss.info = MLContextLostInfo(message)
            self._loss.event.set()
            for graph in list(self._graphs):
                graph.destroy()
            for tensor in list(self._tensors):
                tensor.destroy()
            self._backend.close()

    def _guarded(
        self, operator: str, failure: type[DOMException] = OperationError, label: str = ""
    ) -> AbstractContextManager[None]:
        """Convert errors in the block to errors of the operation. A device loss also loses the context."""
        return _Guarded(self, operator, failure, label)

    def _failed(self, error: WebNNError, operator: str, failure: type[DOMException] = OperationError, label: str = "") -> None:
        """Raise an error of a lower layer as the operation's error, unless it is one already."""
        if isinstance(error, DeviceLostError):
            self._lose(error.rule)
        wanted = failure if type(error) is OperationError else type(error)
        if not error.operator or wanted is not type(error):
            # The lower layer uses internal names, so the new error shows only the cause.
            raise error.named(operator, label, wanted) from error.__cause__ or error

    def _check_alive(self, operator: str, label: str = "") -> None:
        if self._loss.event.is_set():
            raise InvalidStateError(
                "the context is lost",
                operator=operator,
                label=label,
                got=self._loss.info.message,
                hint=f"context.{'recover(device)' if self._needs_device else 'recover()'} returns a new one",
            )

    def _check_graph(self, graph: Any, operator: str) -> None:
        if not isinstance(graph, MLGraph):
            kind: type[object] = type(graph)  # pyright: ignore[reportUnknownVariableType] - what a caller passes
            hint = "The graph of a model is model.graph" if hasattr(kind, "graph") else ""
            raise failing(operator)("graph must be an MLGraph", got=kind.__name__, hint=hint)
        if graph._context is not self:
            raise failing(operator)(
                "the graph belongs to another context", got=repr(graph), hint="Build it with a builder of this context"
            )
        if graph.destroyed:
            self._check_alive(operator)
            raise InvalidStateError("the graph was destroyed", operator=operator, got=repr(graph), hint="Build it again")

    def _checked_inputs(self, graph: Any, inputs: Any, operator: str) -> dict[str, Array]:
        fail = failing(operator)
        self._check_graph(graph, operator)
        check_names(graph.inputs, inputs, "input", fail)
        return {n: to_array(inputs[n], t, fail, f"input '{n}'") for n, t in graph.inputs.items()}

    def _check_owned(self, tensor: Any, operator: str) -> None:
        if not isinstance(tensor, MLTensor):
            raise MLTypeError(
                "a tensor must be an MLTensor",
                operator=operator,
                got=type(tensor).__name__,
                allowed="MLTensor",
                hint="create_tensor(), wrap_buffer() and tensor_from_texture() return one. compute() takes arrays",
            )
        if tensor._context is not self:
            raise MLTypeError(
                "the tensor belongs to another context",
                operator=operator,
                got=repr(tensor),
                hint="Create it with this context",
            )
        if tensor._destroyed:
            raise tensor._destruction(operator)

    def _check_tensor(self, tensor: Any, operator: str) -> None:
        self._check_owned(tensor, operator)
        tensor._check_usable(operator)

    def _compile(
        self,
        source: Graph,
        progress: Progress | None,
        disabled_passes: Collection[str],
        operator: str,
        tuning: Sources = (),
    ) -> MLGraph:
        """Compile a source graph. Raise the errors of `MLGraphBuilder.build`."""
        with self._guarded(operator):
            executable, plan, reports = self._backend.compile(source, disabled_passes, progress, tuning)
        return self._keep(
            MLGraph(cast("MLContext", self), source, executable, plan, reports, disabled_passes, tuning), operator
        )

    def _install(self, plan: ExecutionPlan, progress: Progress | None) -> MLGraph:
        """Return the graph of a plan whose operators are unknown."""
        self._check_alive("load")
        with self._guarded("load"):
            executable = self._backend.install(plan, progress)
        return self._keep(MLGraph(cast("MLContext", self), plan.graph, executable, plan, ()), "load")

    def _keep(self, graph: MLGraph, operator: str) -> MLGraph:
        """Return a new graph, which ends with the context."""
        with self._lock:
            self._graphs.add(graph)
            if self._loss.event.is_set():
                graph.destroy()
                raise InvalidStateError(
                    "the context was lost while the graph was compiled", operator=operator, hint="Build it on a new context"
                )
            return graph

    def _storages(
        self, graph: MLGraph, inputs: Mapping[str, MLTensor], outputs: Mapping[str, MLTensor], operator: str
    ) -> tuple[dict[str, Storage], dict[str, Storage]]:
        """Return the memory of the tensors of a run. Call it under the lock, so that the memory is not freed.

        Raises:
            MLTypeError, MLTensorStateError, InvalidStateError: by the rules of `dispatch`.
        """
        self._check_graph(graph, operator)
        if not self._fit(((graph.inputs, inputs), (graph.outputs, outputs))):
            self._check_ends(graph, inputs, outputs, operator)
        for name, source in graph.aliases.items():
            if outputs[name] is not inputs[source]:
                rule = f"output '{name}' and input '{source}' must be one tensor"
                raise failing(operator)(rule, got=repr(outputs[name]))
        read: dict[str, Storage] = {n: t._storage for n, t in inputs.items()}
        written: dict[str, Storage] = {n: t._storage for n, t in outputs.items()}
        for storage in written.values():
            if storage.borrowed:  # other tensors have a buffer each
                _check_places(read, written, operator)
                break
        return read, written

    def _fit(self, ends: tuple[tuple[Mapping[str, TensorType], Mapping[str, Any]], ...]) -> bool:
        """Return whether tensors are valid inputs and outputs of a graph by quick checks. Otherwise, `_check_ends` decides.

        A small graph starts in a few microseconds, so this method makes almost no calls.
        """
        seen: set[int] = set()
        count = 0
        for wanted, given in ends:
            if not isinstance(given, dict) or given.keys() != wanted.keys():
                return False
            for name, type_ in wanted.items():
                tensor: Any = given[name]
                if type(tensor) is not MLTensor or tensor._context is not self:
                    return False
                if tensor._destroyed or tensor._exported or tensor._constant:
                    return False
                found = tensor._type
                if found.shape != type_.shape or found.data_type != type_.data_type:
                    return False
                seen.add(id(tensor))
                count += 1
        return len(seen) == count

    def _check_ends(
        self, graph: MLGraph, inputs: Mapping[str, MLTensor], outputs: Mapping[str, MLTensor], operator: str
    ) -> None:
        """Raise MLTypeError, MLTensorStateError or InvalidStateError if tensors cannot be a graph's inputs and outputs."""
        for what, given in (("input", inputs), ("output", outputs)):
            if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
                raise failing(operator)(f"{what}s must be a mapping of name to tensor", got=type(given).__name__)
        _check_once(graph.aliases, (*inputs.items(), *outputs.items()), operator)
        for tensor in (*inputs.values(), *outputs.values()):
            self._check_tensor(tensor, operator)
        for what, wanted, given in (("input", graph.inputs, inputs), ("output", graph.outputs, outputs)):
            check_names(wanted, given, what, failing(operator))
            for name, type_ in wanted.items():
                if given[name]._type != type_:
                    rule = f"the tensor of '{name}' must have its data type and shape"
                    raise failing(operator)(rule, got=repr(given[name]), allowed=str(type_))


class _Guarded:
    """The context manager of `ContextState._guarded`. A generator would take longer than most guarded blocks."""

    __slots__ = ("_failure", "_label", "_operator", "_state")

    def __init__(self, state: ContextState, operator: str, failure: type[DOMException], label: str) -> None:
        self._state, self._operator, self._failure, self._label = state, operator, failure, label

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, WebNNError):
            self._state._failed(error, self._operator, self._failure, self._label)


def _check_once(aliases: Mapping[str, str], tensors: Iterable[tuple[str, MLTensor]], operator: str) -> None:
    """Raise MLTypeError if a tensor occurs twice, except as an input and its alias."""
    seen: dict[int, str] = {}
    for name, tensor in tensors:
        other = seen.get(id(tensor))
        if other is not None and aliases.get(name) != other:
            raise failing(operator)(
                "inputs and outputs must be different tensors",
                got=f"one tensor for '{other}' and '{name}'",
                hint="Create another tensor, or let the output update the input: `build(outputs, aliases=...)`",
            )
        seen[id(tensor)] = name


def _check_places(read: Mapping[str, Storage], written: Mapping[str, Storage], operator: str) -> None:
    """Raise MLTypeError if an output is in the same buffer as an input or another output."""
    places = {id(storage.memory): f"input '{name}'" for name, storage in read.items()}
    in_place = {id(storage) for storage in read.values()}  # outputs with an input's memory, by `aliases`
    for name, storage in written.items():
        if id(storage) in in_place:
            continue
        this = f"output '{name}'"
        other = places.setdefault(id(storage.memory), this)
        if other != this:
            raise failing(operator)(
                "an output must not use the buffer of an input or of another output",
                got=f"{other} and {this} in one GPUBuffer",
                hint="WebGPU forbids to read and write one buffer in one dispatch, whichever parts of it",
            )
