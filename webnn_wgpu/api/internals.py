"""The door to contexts and graphs for the debugger, the tests of kernels and other tools of this package.

Contexts and graphs show users the interface of the specification. Tools need more: the device, the lock, the compiled program.
They get it here and nowhere else, so this module lists all that a change of `MLContext` or `MLGraph` may break.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from ..core.data_types import Array
from ..ir.graph import Graph
from .backend import Backend, Executable
from .builder import MLGraphBuilder
from .context import MLContext
from .graph import MLGraph
from .operand import MLOperand
from .progress import Progress


@dataclass(frozen=True)
class ContextInternals:
    """The parts of a context that tools of this package use.

    Attributes:
        context: the context.
    """

    context: MLContext

    @property
    def backend(self) -> Backend:
        """The backend that runs the graphs: a device or the numpy reference."""
        return self.context._backend

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """The lock that every use of the device holds."""
        return self.context._lock

    def guarded(self, operator: str, label: str = "") -> AbstractContextManager[None]:
        """Return a context manager in which errors name the operation, and a lost device loses the context."""
        return self.context._guarded(operator, label=label)

    def check_alive(self, operator: str, label: str = "") -> None:
        """Raise InvalidStateError if the context is lost."""
        self.context._check_alive(operator, label)

    def check_graph(self, graph: MLGraph, operator: str) -> None:
        """Raise an error unless the graph belongs to this context and can run."""
        self.context._check_graph(graph, operator)

    def checked_inputs(self, graph: MLGraph, inputs: Mapping[str, Any], operator: str) -> dict[str, Array]:
        """Return the inputs as arrays of the declared types, or raise the error that `compute` raises."""
        return self.context._checked_inputs(graph, inputs, operator)

    def compile(self, source: Graph, progress: Progress | None, disabled_passes: Collection[str], operator: str) -> MLGraph:
        """Compile a graph of the intermediate representation for this context."""
        return self.context._compile(source, progress, disabled_passes, operator)


def internals(context: MLContext) -> ContextInternals:
    """Return a context's internals."""
    return ContextInternals(context)


def context_of(graph: MLGraph) -> ContextInternals:
    """Return the internals of a graph's context."""
    return ContextInternals(graph._context)


def check_operators(graph: MLGraph, operator: str) -> None:
    """Raise NotSupportedError for a graph whose operators are unknown: a folder for browsers has kernels alone."""
    graph._check_operators(operator)


def set_place(builder: MLGraphBuilder, place: str) -> None:
    """Set the place of the operators that a builder makes from now on, such as a line of a file."""
    builder._place = place


def name_constant(operand: MLOperand, name: str) -> None:
    """Set the name of a constant, which exporters write."""
    values = operand.builder._values
    values[operand.value] = replace(values[operand.value], name=name)


def executable_of(graph: MLGraph) -> Executable:
    """Return a graph's compiled program.

    Raises:
        InvalidStateError: the graph is destroyed.
    """
    return graph._executable


def graph_of(builder: MLGraphBuilder, outputs: Mapping[str, MLOperand]) -> Graph:
    """Return the graph that outputs depend on, in the intermediate representation. The builder has built then."""
    return builder._take_graph(outputs, None, (), False)
