"""What every part of `MLContext` stands on: its backend and lock, its end, and the checks that its methods begin with."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from ..core.errors import (
    DeviceLostError,
    DOMException,
    InvalidStateError,
    MLTensorStateError,
    MLTypeError,
    OperationError,
    WebNNError,
)
from ..ir.graph import Array, Graph
from ..kernels.tuning import Sources
from .arrays import check_names, failing, to_array
from .backend import Backend, Storage
from .graph import MLGraph
from .progress import Progress
from .promise import MLPromise
from .results import Loss, MLContextLostInfo
from .tensor import MLTensor

if TYPE_CHECKING:
    from .context import MLContext


class ContextState:
    """The state of a context, and the checks on what is given to it."""

    def __init__(self, backend: Backend, *, power_preference: str = "default") -> None:
        self._backend = backend
        self._lock = backend.lock
        self._power_preference = power_preference
        self._options: Mapping[str, Any] = {}
        """What `create_context` was called with, but for a device of the caller's."""
        self._needs_device = False
        """Whether it was called with one."""
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

    @contextmanager
    def _guarded(self, operator: str, failure: type[DOMException] = OperationError, label: str = "") -> Generator[None]:
        """Let errors from below name the operation, be of its kind, and lose the context if the device is gone."""
        try:
            yield
        except WebNNError as error:
            if isinstance(error, DeviceLostError):
                self._lose(error.rule)
            kind = failure if type(error) is OperationError else type(error)
            if error.operator and kind is type(error):
                raise
            # What is below names nothing that the caller knows: of it only the cause is shown.
            raise error.named(operator, label, kind) from error.__cause__ or error

    def _check_alive(self, operator: str, label: str = "") -> None:
        if self._loss.event.is_set():
            raise InvalidStateError("the context is lost", operator=operator, label=label, got=self._loss.info.message)

    def _check_graph(self, graph: Any, operator: str) -> None:
        fail = failing(operator)
        if not isinstance(graph, MLGraph):
            raise fail("graph must be an MLGraph", got=type(graph).__name__)
        if graph._context is not self:
            raise fail("the graph belongs to another context", got=repr(graph))
        if graph.destroyed:
            self._check_alive(operator)
            raise InvalidStateError("the graph was destroyed", operator=operator, got=repr(graph))

    def _checked_inputs(self, graph: Any, inputs: Any, operator: str) -> dict[str, Array]:
        fail = failing(operator)
        self._check_graph(graph, operator)
        check_names(graph.inputs, inputs, "input", fail)
        return {n: to_array(inputs[n], t, fail, f"input '{n}'") for n, t in graph.inputs.items()}

    def _check_owned(self, tensor: Any, operator: str) -> None:
        if not isinstance(tensor, MLTensor):
            raise MLTypeError("a tensor must be an MLTensor", operator=operator, got=type(tensor).__name__, allowed="MLTensor")
        if tensor._context is not self:
            raise MLTypeError("the tensor belongs to another context", operator=operator, got=repr(tensor))
        if tensor.destroyed:
            raise MLTensorStateError("the tensor was destroyed", operator=operator, got=repr(tensor))

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
        """Compile a source graph; raises like `MLGraphBuilder.build`."""
        with self._guarded(operator):
            executable, plan, reports = self._backend.compile(source, disabled_passes, progress, tuning)
        with self._lock:
            built = MLGraph(cast("MLContext", self), source, executable, plan, reports, disabled_passes, tuning)
            self._graphs.add(built)
            if self._loss.event.is_set():
                built.destroy()
                raise InvalidStateError("the context was lost while the graph was compiled", operator=operator)
            return built

    def _check_ends(
        self, graph: MLGraph, inputs: Mapping[str, MLTensor], outputs: Mapping[str, MLTensor], operator: str
    ) -> None:
        """Raise unless a graph can be run over tensors, by the rules of `dispatch`."""
        fail = failing(operator)
        self._check_graph(graph, operator)
        both: list[tuple[str, Any]] = []
        for what, given in (("input", inputs), ("output", outputs)):
            if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
                raise fail(f"{what}s must be a mapping of name to tensor", got=type(given).__name__)
            both += given.items()
        seen: dict[int, str] = {}
        for name, tensor in both:
            if id(tensor) in seen and graph.aliases.get(name) != seen[id(tensor)]:
                raise fail("a tensor stands twice among inputs and outputs", got=f"'{seen[id(tensor)]}' and '{name}'")
            seen[id(tensor)] = name
        for _, tensor in both:
            self._check_owned(tensor, operator)
        for what, wanted, given in (("input", graph.inputs, inputs), ("output", graph.outputs, outputs)):
            check_names(wanted, given, what, fail)
            for name, type_ in wanted.items():
                given[name]._check_usable(operator)
                if given[name]._type != type_:
                    raise fail(
                        f"the tensor of '{name}' must have its data type and shape", got=repr(given[name]), allowed=str(type_)
                    )
        for name, source in graph.aliases.items():
            if outputs[name] is not inputs[source]:
                raise fail(f"output '{name}' and input '{source}' must be one tensor", got=repr(outputs[name]))

    def _storages(
        self, inputs: Mapping[str, MLTensor], outputs: Mapping[str, MLTensor], operator: str
    ) -> tuple[dict[str, Storage], dict[str, Storage]]:
        """Return the memory of tensors that `_check_ends` has passed; called under the lock, where they cannot go away.

        Raises:
            MLTypeError: an output lies in the same buffer as an input or another output.
        """
        for tensor in (*inputs.values(), *outputs.values()):
            tensor._check_usable(operator)
        read = {n: t._storage for n, t in inputs.items()}
        written = {n: t._storage for n, t in outputs.items()}
        if any(storage.borrowed for storage in written.values()):  # others have a buffer each
            places = {id(storage.memory): f"input '{name}'" for name, storage in read.items()}
            in_place = {id(storage) for storage in read.values()}  # outputs that are an input's memory, as `aliases` has it
            for name, storage in written.items():
                if id(storage) in in_place:
                    continue
                this = f"output '{name}'"
                other = places.setdefault(id(storage.memory), this)
                if other != this:
                    raise failing(operator)(
                        "an output must not lie in the buffer of an input or of another output",
                        got=f"{other} and {this} in one GPUBuffer",
                        hint="WebGPU forbids to read and write one buffer in one dispatch, whichever parts of it",
                    )
        return read, written
