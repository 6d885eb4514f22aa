"""`WebNNModel`: a graph file that runs on a WebNN context."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from webnn_wgpu import MLContext, MLGraph, MLPromise, MLTypeError, ml
from webnn_wgpu.formats.document import Document, DynamicDimension, TensorDeclaration
from webnn_wgpu.formats.reading import ConstantArrays, read

from .building import build, used_names

Array = NDArray[Any]


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a graph file.

    Attributes:
        name: its name.
        shape: its sizes; a string is the name of a dynamic dimension. None for an output that is not computed yet.
        dtype: its type, as a numpy dtype; None for an output that is not computed yet.
    """

    name: str
    shape: tuple[int | str, ...] | None
    dtype: np.dtype[Any] | None

    def __str__(self) -> str:
        sizes = "?" if self.shape is None else ", ".join(map(str, self.shape))
        return f"{self.name}: {self.dtype or '?'}[{sizes}]"


def load_webnn(
    path: str | os.PathLike[str],
    context: MLContext | None = None,
    *,
    weights: str | os.PathLike[str] | None = None,
    manifest: str | os.PathLike[str] | None = None,
    override_dims: Mapping[str, int] | None = None,
    cache_size: int = 8,
    **options: Any,
) -> WebNNModel:
    """Load a `.webnn` file, or its JSON form.

    Args:
        path: the file. What it contains decides between text and JSON, not its suffix.
        context: where to run; the default context by default.
        weights: the file of weights: `.safetensors`, or a blob with a manifest. By default it is searched beside the file,
            as `NAME.safetensors`, `NAME.weights`, `model.safetensors` and `model.weights`.
        manifest: the manifest of a blob of weights.
        override_dims: sizes of dynamic dimensions, by name.
        cache_size: number of sets of sizes whose graphs are kept, at least 1.
        options: for `MLGraphBuilder.build`.

    Returns:
        The model, compiled already if all sizes are known.

    Raises:
        FileNotFoundError: no such file.
        MLTypeError: a file that is wrong. The message begins with file, line and column.
        NotSupportedError: an operator that the device cannot run.
    """
    document = read(path)
    arrays = ConstantArrays(document, weights, manifest)
    return WebNNModel(document, arrays, context or ml.create_context(), override_dims or {}, options, cache_size)


class WebNNModel:
    """A graph file on a context. Made by `load`.

    A model with dynamic dimensions is compiled for each set of sizes. The graphs of the last few sets are kept.

    Attributes:
        context: where it runs.
        name: the graph's name.
        inputs, outputs: the graph's inputs and outputs as the file declares them.
    """

    def __init__(
        self,
        document: Document,
        arrays: ConstantArrays,
        context: MLContext,
        sizes: Mapping[str, int],
        options: Mapping[str, Any],
        cache_size: int,
    ) -> None:
        if cache_size < 1:
            raise MLTypeError("cache_size must be an integer", operator="load", got=str(cache_size), allowed="at least 1")
        self._cache_size = cache_size
        self.context, self.name = context, document.name
        self._document, self._arrays, self._sizes, self._options = document, arrays, dict(sizes), dict(options)
        self._used = used_names(document)
        self._graphs: OrderedDict[tuple[tuple[str, int], ...], MLGraph] = OrderedDict()
        self.inputs = tuple(TensorInfo(d.public_name, _shown(d), np.dtype(d.data_type)) for d in document.inputs)
        self.outputs = tuple(TensorInfo(o.name, None, None) for o in document.outputs)
        if not self._open():
            self._graph(self._sizes)

    def _open(self) -> list[str]:
        """Return the names of dimensions without a size."""
        names = (d.name for i in self._document.inputs for d in i.shape if isinstance(d, DynamicDimension))
        return [n for n in dict.fromkeys(names) if n not in self._sizes]

    @property
    def graph(self) -> MLGraph:
        """The graph, where all sizes are known.

        Raises:
            MLTypeError: the sizes of dynamic dimensions are open.
        """
        missing = self._open()
        if missing:
            raise MLTypeError(
                "the sizes of dynamic dimensions are open",
                operator="load",
                got=", ".join(missing),
                hint="override_dims sets them.",
            )
        return self._graph(self._sizes)

    @property
    def graphs(self) -> tuple[MLGraph, ...]:
        """The graphs that are compiled and kept."""
        return tuple(self._graphs.values())

    @property
    def compiled(self) -> int:
        """The number of graphs that are kept."""
        return len(self._graphs)

    def _graph(self, sizes: Mapping[str, int]) -> MLGraph:
        key = tuple(sorted(sizes.items()))
        graph = self._graphs.pop(key, None) or build(self._document, self._arrays, self.context, sizes, **self._options)
        self._graphs[key] = graph
        if len(self._graphs) > self._cache_size:
            self._graphs.popitem(last=False)[1].destroy()
        return graph

    def run(self, feeds: Mapping[str, Any], outputs: Iterable[str] | None = None) -> dict[str, Array]:
        """Run the model.

        Args:
            feeds: an array for each input, by name. Inputs that no output depends on may be left out.
            outputs: names of the wanted outputs; all by default.

        Returns:
            The outputs by name, in the file's order.

        Raises:
            MLTypeError: a missing or unknown input or output, a wrong type or shape, or sizes of one dimension that differ.
        """
        known = {d.public_name: d for d in self._document.inputs}
        for name in feeds:
            if name not in known:
                raise MLTypeError("unknown input", operator="run", got=repr(name), allowed=", ".join(known) or "none")
        names = [o.name for o in self.outputs]
        wanted = names if outputs is None else list(outputs)
        for name in wanted:
            if name not in names:
                raise MLTypeError("unknown output", operator="run", got=repr(name), allowed=", ".join(names))
        arrays: dict[str, Array] = {}
        sizes = dict(self._sizes)
        for name, declaration in known.items():
            if name not in feeds:
                if declaration.name in self._used:
                    raise MLTypeError("an input is missing", operator="run", got=f"no '{name}'", allowed=", ".join(known))
                continue
            array = _checked(declaration, feeds[name], sizes)
            if declaration.name in self._used:
                arrays[name] = array
        results = self.context.compute(self._graph(sizes), arrays)
        return {name: results[name] for name in names if name in wanted}

    def run_async(self, feeds: Mapping[str, Any], outputs: Iterable[str] | None = None) -> MLPromise[dict[str, Array]]:
        """Run the model in the background and return a promise of what `run` returns."""
        return MLPromise[dict[str, Array]].in_background(lambda: self.run(feeds, outputs))

    def destroy(self) -> None:
        """Free the memory of the model's graphs. The model compiles again when it runs."""
        while self._graphs:
            self._graphs.popitem()[1].destroy()

    def __enter__(self) -> WebNNModel:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.destroy()

    def __repr__(self) -> str:
        return f"WebNNModel({self.name}: {', '.join(map(str, self.inputs))} -> {', '.join(o.name for o in self.outputs)})"


def _shown(declaration: TensorDeclaration) -> tuple[int | str, ...]:
    return tuple(d.name if isinstance(d, DynamicDimension) else d for d in declaration.shape)


def _checked(declaration: TensorDeclaration, value: Any, sizes: dict[str, int]) -> Array:
    """Return an input's array, and take the sizes of its dynamic dimensions."""
    name, dtype = declaration.public_name, np.dtype(declaration.data_type)
    array: Array = np.asarray(value, None if hasattr(value, "dtype") else dtype)
    if array.dtype != dtype:
        raise MLTypeError(f"wrong type of input '{name}'", operator="run", got=str(array.dtype), allowed=str(dtype))
    expected = f"[{', '.join(map(str, _shown(declaration)))}]"
    if array.ndim != len(declaration.shape):
        raise MLTypeError(f"wrong shape of input '{name}'", operator="run", got=str(list(array.shape)), allowed=expected)
    for own, size in zip(declaration.shape, array.shape, strict=True):
        wanted = sizes.setdefault(own.name, size) if isinstance(own, DynamicDimension) else own
        if size != wanted:
            raise MLTypeError(
                f"wrong shape of input '{name}'",
                operator="run",
                got=str(list(array.shape)),
                allowed=f"{expected}" + (f" with {own.name} = {wanted}" if isinstance(own, DynamicDimension) else ""),
            )
    return array
