"""`TfjsModel`: a TensorFlow.js model that runs on a WebNN context."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from webnn_wgpu import MLContext
from webnn_wgpu.api.progress import Progress
from webnn_wgpu.api.tuning import TuningSource

from ..common.held import Array
from ..common.model import ImportedModel, count_of, is_wide
from ..common.opening import load_file
from ..description import ValueInfo
from .contents import LAYERS, TfjsFile
from .graph import read_graph
from .module import TfjsModule
from .program import TfjsProgram
from .reading import read
from .tensors import TfjsGraph, TfjsValue
from .topology import read_topology


class TfjsModel(ImportedModel):
    """A TensorFlow.js model on a context. Made by `load`.

    A model is compiled for the shapes of its inputs: when it is loaded if they are known then, else by the first `run` with
    shapes that are new. The graphs of the last few sets of shapes are kept.

    Attributes:
        file: the contents of the files.

    Example:
        >>> from examples.models import tfjs_layers
        >>> with wn.load(tfjs_layers()) as model:
        ...     print(model.kind, model.run({"hidden_input": np.zeros((3, 4), np.float32)})["scores"].shape)
        layers-model (3, 2)
    """

    def __init__(
        self,
        file: TfjsFile,
        context: MLContext,
        *,
        fallback: str = "warn",
        override_dims: Mapping[str, int] | None = None,
        cache_size: int = 8,
        wide_float16: bool | None = None,
        tuning: TuningSource = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(context, file.name, override_dims, fallback)
        self.file, self._progress = file, progress
        entry = entry_of(file)
        self.inputs, self.outputs = entry.inputs, entry.outputs
        self._module = TfjsModule(file, entry.constants, fallback, is_wide(wide_float16, context), tuning)
        self._program = TfjsProgram(self._module, context, entry.graph, count_of(cache_size, "cache_size", 1))
        feeds = self._known_feeds(self._program.inputs)
        if feeds is not None:
            self._program.prepare(feeds, progress)
            self._report()

    @property
    def kind(self) -> str:
        """The kind of the model: "layers-model" or "graph-model"."""
        return self.file.kind

    @property
    def _stages(self) -> TfjsProgram:
        return self._program

    def _run(self, arrays: Sequence[Array]) -> list[Array]:
        results = self._program.run(dict(zip(self._program.inputs, arrays, strict=True)), self._progress)
        self._report()
        return results


class Entry:
    """The graph of a file with its inputs and outputs.

    Attributes:
        graph: the graph.
        constants: the names of the weights, by the values that they are.
        inputs, outputs: its interface. Open sizes of inputs have names: NAME_batch for the first, NAME_1 for the second.
        version: the version of the format.
    """

    def __init__(self, file: TfjsFile) -> None:
        self.constants: dict[TfjsValue, str] = {}
        self.version = 0
        if file.kind == LAYERS:
            topology = read_topology(file.name, file.topology)
            self.graph: TfjsGraph = topology.graph
            specs = [(spec.name, spec.shape, spec.dtype) for spec in topology.inputs]
        else:
            model = read_graph(file)
            self.graph, self.constants, self.version = model.graph, model.constants, model.version
            specs = [(i.value.name, i.shape, i.dtype) for i in model.inputs]
        self.inputs = tuple(
            ValueInfo(
                name,
                None if shape is None else tuple(d or f"{name}_{axis or 'batch'}" for axis, d in enumerate(shape)),
                dtype,
            )
            for name, shape, dtype in specs
        )
        given = set(self.graph.inputs)
        layers = file.kind == LAYERS
        # Layers compute floats. What a graph model computes is known once it is lowered.
        self.outputs = tuple(
            ValueInfo(value.name, None, np.dtype(np.float32 if layers and value not in given else np.void))
            for value in self.graph.outputs
        )


def entry_of(file: TfjsFile) -> Entry:
    """Return the graph of a file with its inputs and outputs."""
    return Entry(file)


def load_model(
    source: str | os.PathLike[str],
    opened: Callable[[], MLContext],
    *,
    override_dims: Mapping[str, int] | None = None,
    tuning: TuningSource = None,
    **options: Any,
) -> TfjsModel:
    """Load a TensorFlow.js model as `webnn_wgpu.load` does, on a context that is only requested once the file is read."""

    def made(file: TfjsFile, dims: Mapping[str, int], tuning: TuningSource) -> TfjsModel:
        return TfjsModel(file, opened(), override_dims=dims, tuning=tuning, **options)

    return load_file(source, override_dims, tuning, lambda: read(source), made)
