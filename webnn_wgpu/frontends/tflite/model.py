"""`TfliteModel`: a TFLite model that runs on a WebNN context."""

from __future__ import annotations

import logging
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from webnn_wgpu import MLContext, NotSupportedError
from webnn_wgpu.api.progress import Progress
from webnn_wgpu.api.tuning import TuningSource

from ..common.held import Array
from ..common.model import ImportedModel, count_of, is_wide
from ..common.opening import load_file
from ..description import ValueInfo
from ..dims import Dimension
from ..timing import span
from .call import NodeFacts
from .checking import check_graph
from .contents import SignatureRecord, TensorRecord, TfliteFile
from .module import CustomLowering, TfliteModule
from .packed import archive_of
from .program import TfliteProgram
from .reading import read
from .state import Variables
from .tensors import TfliteNode

log = logging.getLogger(__name__)


class TfliteModel(ImportedModel):
    """A TFLite model on a context. Made by `load`.

    A model is compiled for the shapes of its inputs: when it is loaded if they are fixed, else by the first `run` with shapes
    that are new. The graphs of the last few sets of shapes are kept. Variables keep their elements from run to run.

    Attributes:
        context: where it runs.
        name: the name of the file without its suffix.
        file: the parsed file.
        signature: the name of the signature that `run` takes, "" for the main subgraph of a model without signatures.
        inputs: the inputs of the signature.
        outputs: the outputs of the signature.
        loading: the times of the model's loading.

    Example:
        >>> from examples.models import tflite_classifier
        >>> model = wn.load(tflite_classifier())
        >>> [(info.name, info.shape) for info in model.inputs], model.labels()[:2]
        ([('image', (1, 8, 8, 3))], ['red', 'green'])
    """

    def __init__(
        self,
        file: TfliteFile,
        context: MLContext,
        *,
        fallback: str = "warn",
        signature: str | None = None,
        custom_operators: Mapping[str, CustomLowering] | None = None,
        override_dims: Mapping[str, int] | None = None,
        cache_size: int = 8,
        wide_float16: bool | None = None,
        tuning: TuningSource = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(context, file.name, override_dims, fallback)
        self.file = file
        self._progress = progress
        self._module = TfliteModule(file, fallback, custom_operators, is_wide(wide_float16, context), tuning)
        self.variables = Variables(context)
        entry = entry_of(file, signature)
        self.signature = entry.key
        graph = self._module.graph(entry.subgraph)
        check_graph(self._module, graph)
        self._program = TfliteProgram(self._module, context, self.variables, graph, count_of(cache_size, "cache_size", 1))
        self._given = {name: graph.values[number] for name, number in entry.inputs.items()}
        self._results = {name: graph.values[number] for name, number in entry.outputs.items()}
        self._program.outputs = tuple(self._results.values())
        for name, value in self._given.items():
            if value.record.dtype is None or value.record.dtype.name in ("float64", "bfloat16"):
                raise NotSupportedError(f"{file.name}: input '{name}' has the type {value.record.type_name}")
        self.inputs = tuple(info_of(name, v.record, is_input=True) for name, v in self._given.items())
        self.outputs = tuple(info_of(name, v.record) for name, v in self._results.items())
        self._initialized = False
        feeds = self._known_feeds(self._given.values())
        if feeds is not None:
            self._initialize()
            self._program.prepare(feeds, progress)
            self._report()

    # running --------------------------------------------------------------------------------------------------------

    @property
    def _stages(self) -> TfliteProgram:
        return self._program

    def _run(self, arrays: Sequence[Array]) -> list[Array]:
        self._initialize()
        results = self._program.run(dict(zip(self._given.values(), arrays, strict=True)), self._progress)
        self._report()
        return results

    def _initialize(self) -> None:
        """Run the subgraphs that a model runs once, before everything else."""
        if self._initialized:
            return
        self._initialized = True
        run_initializers(self._module, self.context, self.variables, self._program.nodes)

    def reset_variables(self) -> None:
        """Give all variables their elements from before the first run."""
        self.variables.reset()
        self._initialized = False

    # facts ----------------------------------------------------------------------------------------------------------

    @property
    def signatures(self) -> tuple[SignatureRecord, ...]:
        """The named entries of the file. `load(..., signature=KEY)` chooses one."""
        return tuple(self.file.signatures)

    @property
    def packed_files(self) -> tuple[str, ...]:
        """The names of the files that are packed into the model."""
        with archive_of(self.file) as archive:
            return tuple(archive.namelist()) if archive is not None else ()

    def packed_file(self, name: str) -> bytes:
        """Return the bytes of a file that is packed into the model.

        Args:
            name: one of `packed_files`.

        Raises:
            NotSupportedError: the model has no such file, or it is too large.
        """
        with archive_of(self.file) as archive:
            if archive is None or name not in archive.namelist():
                raise NotSupportedError(
                    f"{self.name} has no packed file {name!r}", allowed=", ".join(self.packed_files) or "none"
                )
            if archive.getinfo(name).file_size > MOST_PACKED:
                raise NotSupportedError(f"the packed file {name!r} has more than {MOST_PACKED} bytes")
            try:
                return archive.read(name)
            except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, NotImplementedError) as error:
                raise NotSupportedError(f"the packed file {name!r} of {self.name} cannot be read: {error}") from error

    def labels(self, name: str = "") -> list[str]:
        """Return the lines of a packed label file.

        Args:
            name: one of `packed_files`. By default the first whose name ends in ".txt".

        Raises:
            NotSupportedError: the model has no such file, or it is too large.
        """
        name = name or next((n for n in self.packed_files if n.endswith(".txt")), "labels.txt")
        return self.packed_file(name).decode("utf-8", "replace").splitlines()

    def destroy(self) -> None:
        """Free the graphs, the variables, and the weights that no other graph uses."""
        super().destroy()
        self.variables.reset()


def load_model(
    source: str | os.PathLike[str] | bytes,
    opened: Callable[[], MLContext],
    *,
    override_dims: Mapping[str, int] | None = None,
    tuning: TuningSource = None,
    **options: Any,
) -> TfliteModel:
    """Load a TFLite model as `webnn_wgpu.load` does, on a context that is only requested once the file is read."""

    def made(file: TfliteFile, dims: Mapping[str, int], tuning: TuningSource) -> TfliteModel:
        return TfliteModel(file, opened(), override_dims=dims, tuning=tuning, **options)

    return load_file(source, override_dims, tuning, lambda: read(source), made)


def run_initializers(module: TfliteModule, context: MLContext, variables: Variables, nodes: Sequence[TfliteNode]) -> None:
    """Run the subgraphs that nodes want to be run once, before everything else."""
    for index in initializers_of(module, nodes):
        program = TfliteProgram(module, context, variables, module.graph(index))
        if program.inputs:
            raise NotSupportedError(f"{module.name}: CALL_ONCE runs subgraph {index}, which must have no inputs")
        with span("lower", "initialization"):
            program.run({})
        program.destroy()


def initializers_of(module: TfliteModule, nodes: Sequence[TfliteNode]) -> list[int]:
    """Return the subgraphs that nodes want to be run once, before everything else."""
    once = [n for n in nodes if n.record.name == "CALL_ONCE" and not n.record.custom]
    return [int(NodeFacts(module, n).option("InitSubgraphIndex")) for n in once]


MOST_PACKED = 1 << 26
"""The maximum size of a packed file, in bytes."""


def entry_of(file: TfliteFile, signature: str | None) -> SignatureRecord:
    """Return the entry of a name. Without a name the main subgraph, with the names of its signature if it has one.

    Raises:
        NotSupportedError: the file has no such signature.
    """
    if signature:
        for entry in file.signatures:
            if entry.key == signature:
                return entry
        known = ", ".join(s.key for s in file.signatures) or "none"
        raise NotSupportedError(f"{file.name} has no signature of this name", got=repr(signature), allowed=known)
    main = file.subgraphs[0]
    for entry in file.signatures:
        if entry.subgraph == 0 and set(entry.inputs.values()) == set(main.inputs):
            return entry
    inputs = named(main.tensors, main.inputs, "input")
    return SignatureRecord(key="", subgraph=0, inputs=inputs, outputs=named(main.tensors, main.outputs, "output"))


def named(tensors: Sequence[TensorRecord], numbers: Sequence[int], kind: str) -> dict[str, int]:
    """Return names for tensors: their own, with a number if a name is empty or taken."""
    found: dict[str, int] = {}
    for i, number in enumerate(numbers):
        name = tensors[number].name or f"{kind}_{i}"
        while name in found:
            name = f"{name}_{i}"
        found[name] = number
    return found


def info_of(name: str, record: TensorRecord, is_input: bool = False) -> ValueInfo:
    """Return a tensor as the description of an input or output.

    Open sizes of inputs get names, since files have none: NAME_batch for the first dimension, NAME_1 for the second. Those of
    outputs are None.
    """
    signature = record.signature
    shape: tuple[Dimension, ...] | None = None
    if signature is not None:
        names = (f"{name}_{axis or 'batch'}" if is_input else None for axis in range(len(signature)))
        shape = tuple(d if d >= 0 else symbol for d, symbol in zip(signature, names, strict=True))
    return ValueInfo(name, shape, record.dtype if record.dtype is not None else np.dtype(np.void))
