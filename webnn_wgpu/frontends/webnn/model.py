"""`WebNNModel`: a graph file that runs on a WebNN context."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import cached_property
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from webnn_wgpu import MLContext, MLGraph, MLPromise, MLTypeError, ml
from webnn_wgpu.api.progress import Progress
from webnn_wgpu.api.tuning import Tuning, TuningSource, tune_graphs
from webnn_wgpu.formats.document import Document, DynamicDimension, TensorDeclaration
from webnn_wgpu.formats.reading import ConstantArrays, read

from ..common.feeds import check_feeds, feed_array
from ..description import Placed, Placement, ValueInfo
from ..timing import Profile, Span, compute, span, watched
from ..tuning import with_file_beside
from .building import assemble, build, used_names
from .dynamic import Shape, declared_inputs, dynamic_dimensions, named_shape, symbolic

Array = NDArray[Any]


def load_webnn(
    path: str | os.PathLike[str],
    context: MLContext | None = None,
    *,
    weights: str | os.PathLike[str] | None = None,
    manifest: str | os.PathLike[str] | None = None,
    override_dims: Mapping[str, int] | None = None,
    cache_size: int = 8,
    tuning: TuningSource = None,
    **options: Any,
) -> WebNNModel:
    """Load a `.webnn` file, or its JSON form.

    Args:
        path: the file. Its content decides between text and JSON, not its suffix.
        context: the context of the graphs. None is the default context.
        weights: the file of weights: `.safetensors`, or a blob with a manifest. By default it is searched beside the file,
            as `NAME.safetensors`, `NAME.weights`, `model.safetensors` and `model.weights`.
        manifest: the manifest of a blob of weights.
        override_dims: sizes of dynamic dimensions, by name.
        cache_size: number of sets of sizes whose graphs are kept, at least 1.
        tuning: as for `MLGraphBuilder.build`. A file `NAME.tuning.json` beside the file is used too.
        options: further options of `MLGraphBuilder.build`.

    Returns:
        The model, compiled already if all sizes are known.

    Raises:
        FileNotFoundError: no such file.
        MLTypeError: a file that is wrong. The message begins with file, line and column.
        NotSupportedError: an operator that the device cannot run.
    """
    options["tuning"] = with_file_beside(tuning, path)
    with watched() as watch:
        with span("load", "the file"):
            document = read(path)
        arrays = ConstantArrays(document, weights, manifest)
        model = WebNNModel(document, arrays, context or ml.create_context(), override_dims or {}, options, cache_size)
    model.loading = tuple(watch.spans)
    return model


class WebNNModel:
    """A graph file on a context. Made by `load`.

    A model with dynamic dimensions is compiled for each set of sizes. The graphs of the last few sets are kept.

    Attributes:
        context: where it runs.
        name: the graph's name.
        inputs: the graph's inputs as the file declares them.
        dims: sizes of dynamic dimensions that are fixed.
        loading: the times of the model's loading.

    Example:
        >>> b.build({"y": b.relu(x)}).save("relu.webnn")
        >>> with wn.load("relu.webnn") as model:
        ...     print(model, model.run({"x": np.full((2, 3), -1, np.float32)})["y"].max())
        WebNNModel(relu: x: float32[2, 3] -> y) 0.0
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
        self._document, self._arrays, self.dims, self._options = document, arrays, dict(sizes), dict(options)
        self._used = used_names(document)
        self._graphs: OrderedDict[tuple[tuple[str, int], ...], MLGraph] = OrderedDict()
        self.inputs = declared_inputs(document)
        self.loading: tuple[Span, ...] = ()
        if not self._open():
            self._graph(self.dims)

    @cached_property
    def outputs(self) -> tuple[ValueInfo, ...]:
        """The graph's outputs. A size that depends on several dynamic dimensions is None."""
        types: dict[str, np.dtype[Any]] = {}

        def shapes(sizes: Mapping[str, int]) -> list[Shape]:
            with ml.create_context(backend="reference") as context:
                _, outputs = assemble(self._document, self._arrays, context, sizes)
                types.update({name: np.dtype(operand.data_type) for name, operand in outputs.items()})
                return [tuple(operand.shape) for operand in outputs.values()]

        found = symbolic(self.dynamic_dimensions, self.dims, shapes)
        return tuple(ValueInfo(o.name, shape, types[o.name]) for o, shape in zip(self._document.outputs, found, strict=True))

    @property
    def dynamic_dimensions(self) -> dict[str, int]:
        """The names of dynamic dimensions, with their largest sizes."""
        return dynamic_dimensions(self._document)

    @property
    def placement(self) -> Placement:
        """Where each operator runs: on the device, as a graph runs there as a whole or is refused."""
        nodes = self.graphs[-1].source.nodes if self.graphs else ()
        return Placement(Placed(node.label or f"{node.op}_{i}", node.op, "device") for i, node in enumerate(nodes))

    def _open(self) -> list[str]:
        """Return the names of dimensions without a size."""
        return [n for n in self.dynamic_dimensions if n not in self.dims]

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
        return self._graph(self.dims)

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
        graph = self._graphs.pop(key, None)
        if graph is None:
            with span("compile", f"{len(self._document.statements)} operators"):
                graph = build(self._document, self._arrays, self.context, sizes, **self._options)
        self._graphs[key] = graph
        if len(self._graphs) > self._cache_size:
            self._graphs.popitem(last=False)[1].destroy()
        return graph

    def run(self, feeds: Mapping[str, Any], outputs: Iterable[str] | None = None) -> dict[str, Array]:
        """Run the model.

        Args:
            feeds: an array for each input, by name. Inputs that no output depends on may be left out.
            outputs: names of the wanted outputs. None is all.

        Returns:
            The outputs by name, in the file's order.

        Raises:
            MLTypeError: a missing or unknown input or output, a wrong type or shape, or sizes of one dimension that differ.
        """
        known = {d.public_name: d for d in self._document.inputs}
        check_feeds(feeds, known)
        names = [o.name for o in self._document.outputs]
        wanted = names if outputs is None else list(outputs)
        for name in wanted:
            if name not in names:
                raise MLTypeError("unknown output", operator="run", got=repr(name), allowed=", ".join(names))
        arrays: dict[str, Array] = {}
        sizes = dict(self.dims)
        for name, declaration in known.items():
            if name not in feeds:
                if declaration.name in self._used:
                    raise MLTypeError("an input is missing", operator="run", got=f"no '{name}'", allowed=", ".join(known))
                continue
            array = _checked(declaration, feeds[name], sizes)
            if declaration.name in self._used:
                arrays[name] = array
        results = compute(self.context, self._graph(sizes), arrays)
        return {name: results[name] for name in names if name in wanted}

    def run_async(self, feeds: Mapping[str, Any], outputs: Iterable[str] | None = None) -> MLPromise[dict[str, Array]]:
        """Run the model in the background and return a promise of the results of `run` for the same arguments."""
        return MLPromise[dict[str, Array]].in_background(lambda: self.run(feeds, outputs))

    def profile(self, feeds: Mapping[str, Any]) -> Profile:
        """Run the model once, step by step, and return the time of each step and each kernel.

        Args:
            feeds: as for `run`.

        Returns:
            The times, with those of the model's loading. `print` shows them as a table. The results are in `outputs`.

        Raises:
            MLTypeError: as `run` does.
        """
        with watched() as watch:
            watch.spans += self.loading
            start = time.perf_counter()
            outputs = self.run(feeds)
            wall_ms = (time.perf_counter() - start) * 1e3
        return watch.profile(outputs, wall_ms)

    def tune(self, feeds: Mapping[str, Any], *, save: bool = True, progress: Progress | None = None) -> Tuning:
        """Measure the kernel variants for the model's operators with the sizes of these inputs, as `MLGraph.tune` does.

        The model itself stays as it is: load it again to have it compiled with the results.

        Args:
            feeds: as for `run`.
            save: whether to add the results to the user's cache. `Tuning.save` writes `NAME.tuning.json` instead.
            progress: called as `progress(done, total, what)`, with numbers of operators and the one that is measured next.

        Returns:
            The results, as `MLGraph.tune` returns them.

        Raises:
            MLTypeError, NotSupportedError: as `run` and `MLGraph.tune` do.
        """
        with watched() as watch:
            self.run(feeds)
        return tune_graphs(list(watch.inputs), save, progress)

    def destroy(self) -> None:
        """Free the memory of the model's graphs. The model compiles again when it runs."""
        while self._graphs:
            self._graphs.popitem()[1].destroy()

    def __enter__(self) -> WebNNModel:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.destroy()

    def __repr__(self) -> str:
        inputs, outputs = ", ".join(map(str, self.inputs)), ", ".join(o.name for o in self._document.outputs)
        return f"WebNNModel({self.name}: {inputs} -> {outputs})"


def _checked(declaration: TensorDeclaration, value: Any, sizes: dict[str, int]) -> Array:
    """Return an input's array, and take the sizes of its dynamic dimensions."""
    name, dtype = declaration.public_name, np.dtype(declaration.data_type)
    expected = f"[{', '.join(map(str, named_shape(declaration)))}]"
    array = feed_array(value, dtype, name, f"{dtype}{expected}")
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
