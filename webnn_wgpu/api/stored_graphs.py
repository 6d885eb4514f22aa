"""Graphs as folders for browsers: their plans as plain data, and compiled graphs from such data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..core.caps import Caps
from ..core.data_types import Array
from ..core.errors import NotSupportedError
from ..formats.web.model import WebModel
from ..formats.web.reading import kernel_source, mapped, read_web_model
from ..ir.types import TensorType
from ..plan.execution_plan import ExecutionPlan
from ..plan.labels import node_label
from ..plan.stored import StoredPlan, restore_plan, store_plan, web_caps
from .graph import MLGraph
from .progress import Progress

if TYPE_CHECKING:
    from .context import MLContext
    from .types import TensorData


def stored_graph(graph: MLGraph, caps: Caps | None, name: str) -> StoredPlan:
    """Return the plan of a graph for browsers as plain data.

    Args:
        graph: the graph.
        caps: the capabilities of the devices that the plan is for. None is those of the graph's own device. Features that no
            browser has are left out.
        name: the name of the model.
    """
    shown = web_caps(graph._context.caps if caps is None else caps)
    labels = {node.id: node_label(node) for node in graph.source.nodes}
    return store_plan(graph.plan_for(shown), shown, name, labels)


def load_stored_graph(
    folder: str | os.PathLike[str], context: MLContext, progress: Progress | None = None
) -> tuple[MLGraph, WebModel]:
    """Return the compiled graph of a folder for browsers, and the content of its `model.json`.

    Raises:
        FileNotFoundError: the folder has no `model.json`.
        FileError: the folder is wrong.
        NotSupportedError: the device lacks something that the model requires.
        OperationError: a kernel does not compile, or does not fit its buffers.
        OutOfMemoryError: the device cannot hold the graph.
    """
    model = read_web_model(folder)
    sources = [kernel_source(folder, kernel) for kernel in model.kernels]
    plan = restore_plan(model, sources, mapped(folder, model), context.caps)
    return context._install(plan, progress), model


def plan_stored_graph(folder: str | os.PathLike[str], context: MLContext) -> tuple[WebModel, ExecutionPlan | None, str]:
    """Return the content of a folder, and its plan for a context's device or the reason why it cannot run there.

    Raises:
        FileNotFoundError: the folder has no `model.json`.
        FileError: the folder is wrong.
    """
    model = read_web_model(folder)
    sources = [kernel_source(folder, kernel) for kernel in model.kernels]
    if context.device is None:
        return model, None, "a compiled graph needs a WebGPU device"
    try:
        return model, restore_plan(model, sources, mapped(folder, model), context.caps), ""
    except NotSupportedError as error:
        return model, None, error.rule


@dataclass(frozen=True)
class GraphSample:
    """Inputs of a graph, the outputs of a run, and the device that ran it."""

    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    device: str


@dataclass(frozen=True, kw_only=True)
class TokenSteps:
    """A decoder that runs one token at a time and keeps its caches in aliases.

    Attributes:
        graph: the graph of one token.
        tokens: the input that takes the token.
        tables: an array [rows, *shape] for each input that depends on the number of cached tokens, such as masks and positions.
            Row i has the elements for i cached tokens.
        rows: the number of tokens that the caches hold.
    """

    graph: MLGraph
    tokens: str
    tables: Mapping[str, Array]
    rows: int

    @property
    def device(self) -> str:
        """The name of the device here."""
        return self.graph._context.description

    def run(self, tokens: Sequence[int], output: str) -> list[Array]:
        """Return an output of the run of each token, from empty caches on."""
        graph, found = self.graph, list[Array]()
        state = {name: np.zeros(graph.inputs[name].shape, graph.inputs[name].numpy) for name in graph.aliases.values()}
        for row, token in enumerate(tokens):
            fed = np.full(graph.inputs[self.tokens].shape, token, graph.inputs[self.tokens].numpy)
            given = {name: table[row] for name, table in self.tables.items()}
            results = graph._context.compute(graph, {**state, **given, self.tokens: fed})
            state = {source: results[name] for name, source in graph.aliases.items()}
            found.append(results[output])
        return found


def sample_of(graph: MLGraph, inputs: Mapping[str, TensorData] | None = None) -> GraphSample:
    """Run a graph on its context.

    Args:
        graph: the graph.
        inputs: every input by name. None: seeded random numbers, which are 0 and 1 for integers, as many inputs are indices or
            masks.
    """
    random = np.random.default_rng(0)
    context = graph._context
    made_up = {name: _made_up(type_, random) for name, type_ in graph.inputs.items()}
    arrays = context._checked_inputs(graph, made_up if inputs is None else inputs, "export")
    return GraphSample(arrays, context.compute(graph, arrays), context.description)


def _made_up(type_: TensorType, random: np.random.Generator) -> Array:
    if type_.numpy.kind in "iu":
        return random.integers(0, 2, type_.shape).astype(type_.numpy)
    return random.standard_normal(type_.shape).astype(type_.numpy)
