"""`write`: a graph as a folder that any browser with WebGPU runs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import numpy as np

from webnn_wgpu.api.graph import MLGraph
from webnn_wgpu.api.stored_graphs import GraphSample, TokenSteps, sample_of, stored_graph
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.data_types import Array
from webnn_wgpu.core.errors import MLTypeError, NotSupportedError
from webnn_wgpu.formats.web.model import FORMAT, MODEL_FILE, FileRange, Sample, WebSteps

from ..files import replace_files
from .pages import PicturePage, SentencesPage, TokensPage
from .records import HERE, record_of

__all__ = ["PicturePage", "SentencesPage", "TokensPage", "folder_files", "write"]

PLAYER, PAGE, INDEX = "webnn-wgpu-player.js", "webnn-wgpu-page.js", "index.html"
DECODER = "webnn-wgpu-decoder.js"
SAMPLE, STEPS = "sample.bin", "steps.bin"

Content = bytes | Sequence[bytes | Array]
Key = TypeVar("Key")


@runtime_checkable
class GraphModel(Protocol):
    """A model of a file: `Model` or `WebNNModel`."""

    @property
    def graphs(self) -> list[MLGraph] | tuple[MLGraph, ...]:
        """The graphs that a run starts."""
        ...

    @property
    def placement(self) -> Any:
        """Where each node runs."""
        ...

    @property
    def inputs(self) -> Any:
        """The inputs."""
        ...

    @property
    def outputs(self) -> Any:
        """The outputs."""
        ...

    @property
    def name(self) -> str:
        """The name."""
        ...


@runtime_checkable
class StepModel(Protocol):
    """A model that may be a decoder with caches on the device."""

    def token_steps(self) -> TokenSteps | None:
        """Return the decoder as steps of one token."""
        ...


def write(
    model: MLGraph | GraphModel,
    folder: str | os.PathLike[str],
    *,
    record: str | os.PathLike[str] | Caps = "webgpu",
    name: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    page: PicturePage | SentencesPage | TokensPage | None = None,
) -> list[Path]:
    """Write a graph as a folder: the plan, kernels, packed weights, a player in JavaScript, and a page that runs it.

    The plan is made for other devices than this one. `wn.load` opens the folder too, on any device that meets its requirements.
    The same graph, record and sample give the same bytes.

    Args:
        model: a graph, or a model that is one graph.
        folder: the folder, which is made.
        record: the capabilities of the devices, or a file of them that `Caps.to_json` wrote. "webgpu" has WebGPU's default
            limits, and "webgpu-f16" the feature shader-f16 too. "software" is adapters on the CPU. "here" is devices such as
            the graph's own.
        name: the name of the model. None is the name of its file, or of the folder.
        inputs: the inputs of the page's check. None is seeded random numbers. Their outputs are computed here.
        page: a form for pictures, sentences or tokens. A decoder has that for tokens.

    A decoder that `load(..., kv_cache=ROWS)` returned is written as the graph of one token, which it must have run. Its caches
    stay in the page from run to run, and its masks and positions come from a table with a row for each number of cached tokens.

    Returns:
        The files that were written.

    Raises:
        MLTypeError: `model` is no graph and no model.
        NotSupportedError: the model needs the host, or is several graphs. A decoder has not run with one token, or its masks
            depend on the tokens.
        OperationError: a kernel needs a feature that the record lacks.
        OutOfMemoryError: a tensor is larger than such a device can hold or bind.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     paths = wn.exporters.web.write(b.build({"y": b.relu(x)}), folder)
        >>> [path.name for path in paths][:4]
        ['0-elementwise.wgsl', 'uniforms.bin', 'sample.bin', 'index.html']
    """
    steps = model.token_steps() if isinstance(model, StepModel) else None
    graph = steps.graph if steps is not None else _one_graph(model)
    if inputs is not None and not isinstance(model, MLGraph):
        # Models have types that WebNN does not have, for example bool, which the graph's types hold.
        inputs = {n: np.asarray(inputs[n]).astype(t.numpy) for n, t in graph.inputs.items() if n in inputs}
    target = Path(folder)
    called = name or (target.resolve().name if isinstance(model, MLGraph) else Path(model.name).stem)
    if steps is not None:
        found = folder_files(graph, record=record, name=called, page=page or TokensPage(), steps=steps)
    else:
        found = folder_files(graph, record=record, name=called, sample=sample_of(graph, inputs), page=page)
    (target / "kernels").mkdir(parents=True, exist_ok=True)
    _remove_stale(target, found)
    return replace_files({target / file: cast("Sequence[bytes]", content) for file, content in found.items()})


def folder_files(
    graph: MLGraph,
    *,
    record: str | os.PathLike[str] | Caps = "webgpu",
    name: str = "model",
    sample: GraphSample | None = None,
    page: PicturePage | SentencesPage | TokensPage | None = None,
    steps: TokenSteps | None = None,
) -> dict[str, Content]:
    """Return the files of a folder by their names. The contents are bytes or parts of them. `model.json` is the last file.

    Without a sample and a form there is no page that runs the model, but its player.

    Args:
        graph: the graph.
        record: the capabilities of the devices, as for `write`.
        name: the name of the model.
        sample: inputs with their outputs, for the page's check.
        page: a form for pictures, sentences or tokens.
        steps: the decoder that the graph belongs to.

    Returns:
        The content of each file.

    Raises:
        OperationError: a kernel needs a feature that the record lacks.
        OutOfMemoryError: a tensor is larger than such a device can hold or bind.

    Example:
        >>> list(wn.exporters.web.folder_files(b.build({"y": b.relu(x)})))[-1]
        'model.json'
    """
    stored = stored_graph(graph, None if record == HERE else record_of(record), name)
    model = stored.model
    found: dict[str, Content] = {
        kernel.file: source.encode() for kernel, source in zip(model.kernels, stored.sources, strict=True)
    }
    found |= stored.files
    own = [PLAYER] if sample is None and page is None else [INDEX, PAGE, PLAYER]
    if sample is not None:
        places, found[SAMPLE], size = _sample_places(sample)
        model = replace(model, sample=places, files={**model.files, SAMPLE: size})
    if steps is not None:
        tables, found[STEPS], size = _places(STEPS, steps.tables)
        stored_steps = WebSteps(steps.rows, steps.tokens, tables)
        model = replace(model, steps=stored_steps, files={**model.files, STEPS: size})
        own.append(DECODER)
    if isinstance(page, TokensPage):
        shown = page.settings(steps)
        own += page.modules
        model = replace(model, page=shown)
    elif page is not None:
        shown, extra = page.settings(graph.inputs, graph.outputs)
        model = replace(model, page=shown)
        own += page.modules
        found |= extra
    found |= {file: package_files(__package__ or "").joinpath(file).read_bytes() for file in own}
    return {**found, MODEL_FILE: model.to_json().encode()}


def _sample_places(sample: GraphSample) -> tuple[Sample, list[bytes | Array], int]:
    """Return the places of a sample's arrays in a file, the content of the file, and its size in bytes."""
    ends = {("input", name): array for name, array in sample.inputs.items()}
    places, parts, size = _places(SAMPLE, ends | {("output", name): array for name, array in sample.outputs.items()})
    inputs, outputs = ({n: p for (kind, n), p in places.items() if kind == each} for each in ("input", "output"))
    return Sample(sample.device, inputs, outputs), parts, size


def _places(file: str, arrays: Mapping[Key, Array]) -> tuple[dict[Key, FileRange], list[bytes | Array], int]:
    """Return the places of arrays in a file, the content of the file, and its size in bytes."""
    places: dict[Key, FileRange] = {}
    parts: list[bytes | Array] = []
    size = 0
    for key, array in arrays.items():
        parts.extend((bytes(-size % 256), np.ascontiguousarray(array).reshape(-1).view(np.uint8)))
        start = size + -size % 256
        size = start + array.nbytes
        places[key] = FileRange(file, start, array.nbytes)
    return places, parts, size


def _one_graph(model: MLGraph | GraphModel) -> MLGraph:
    if isinstance(model, MLGraph):
        return model
    graphs: Sequence[MLGraph] | None = getattr(model, "graphs", None)
    if graphs is None:
        raise MLTypeError("model must be an MLGraph or an imported model", operator="export", got=type(model).__name__)
    on_host = [placed for placed in model.placement if placed.where == "host"]
    if on_host:
        nodes = ", ".join(f"{placed.op} '{placed.name}'" for placed in on_host[:5])
        raise NotSupportedError("a page has no host for nodes that the device cannot run", operator="export", got=nodes)
    if len(graphs) != 1:
        raise NotSupportedError(
            "only a model that is one graph can be exported",
            operator="export",
            got=f"{len(graphs)} graphs",
            hint="Give symbolic dimensions a size: override_dims",
        )
    missing = [info.name for info in model.outputs if info.name not in graphs[0].outputs]
    if missing:
        raise NotSupportedError("every output must be a result of the graph", operator="export", got=", ".join(missing))
    return graphs[0]


def _remove_stale(folder: Path, files: Mapping[str, Content]) -> None:
    """Remove the kernels and weights that an earlier export of another graph left in the folder."""
    model = folder / MODEL_FILE
    try:
        content = json.loads(model.read_bytes())
    except (FileNotFoundError, ValueError):
        return
    if isinstance(content, dict) and cast("dict[str, Any]", content).get("format") == FORMAT:
        for path in (*folder.glob("kernels/*.wgsl"), *folder.glob("weights-*.bin")):
            if path.relative_to(folder).as_posix() not in files:
                path.unlink()
