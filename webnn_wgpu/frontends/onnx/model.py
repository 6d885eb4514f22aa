"""`Model`: an ONNX model that runs on a WebNN context."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import index
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import numpy as np
import onnx
import onnx_ir

from webnn_wgpu import MLContext, MLGraph, MLPromise, MLTypeError, NotSupportedError
from webnn_wgpu.api.progress import Progress
from webnn_wgpu.api.tuning import Tuning, TuningSource, tune_graphs

from ..description import Placed, Placement, ValueInfo
from ..dims import sidecar
from ..timing import Profile, Span, span, watched
from ..tuning import with_file_beside
from .decoding import Decoder, State
from .description import value_info
from .module import FALLBACKS, OnnxModule
from .program import OnnxProgram
from .reading import read
from .simplify import simplified
from .types import Array

log = logging.getLogger(__name__)

Fallback = Literal["warn", "host", "error"]
Simplifier = Literal["onnxslim"]


class Model:
    """An ONNX model on a context. Made by `load` and `load_onnx`.

    A model is compiled for the shapes of its inputs: when it is loaded if they are known then, else by the first `run` with
    shapes that are new. The graphs of the last few sets of shapes are kept.

    Example:
        >>> model = wn.load_onnx(mlp)
        >>> model.inputs[0].name, model.run({"x": np.ones((2, 4), np.float32)})["y"].shape
        ('x', (2, 3))
    """

    def __init__(
        self,
        model: onnx_ir.Model,
        name: str,
        context: MLContext,
        *,
        fallback: Fallback = "warn",
        override_dims: Mapping[str, int] | None = None,
        cache_size: int = 8,
        kv_cache: int | None = None,
        wide_float16: bool | None = None,
        tuning: TuningSource = None,
        progress: Progress | None = None,
    ) -> None:
        if fallback not in FALLBACKS:
            raise MLTypeError("unknown fallback", operator="load", got=repr(fallback), allowed=", ".join(FALLBACKS))
        self.context = context
        self.name = name
        self.dims = {symbol: _count(size, f"override_dims['{symbol}']", 0) for symbol, size in (override_dims or {}).items()}
        cache_size = _count(cache_size, "cache_size", 1)
        self._progress = progress
        graph = model.graph
        wide = not context.accelerated if wide_float16 is None else wide_float16
        self._module = OnnxModule(model, fallback, name, wide, tuning)
        self._program: OnnxProgram | Decoder
        if kv_cache is None:
            given = [v for v in graph.inputs if v.const_value is None]
            self._program = OnnxProgram(self._module, context, list(graph), given, graph.outputs, cache_size)
        else:
            self._program = Decoder(self._module, context, kv_cache, self.dims, cache_size)
        self.inputs = tuple(value_info(v, name) for v in self._program.inputs)
        self.outputs = tuple(value_info(v, name, declared=False) for v in self._program.outputs)
        self._reported: tuple[Placed, ...] = ()
        self._staged = 0
        self.loading: tuple[Span, ...] = ()
        shapes = [self._pinned(info) for info in self.inputs]
        if all(s is not None for s in shapes):
            self._prepare([s for s in shapes if s is not None])

    # running ------------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Return empty caches of keys and values, for `run`.

        Raises:
            NotSupportedError: the model was loaded without `kv_cache`.
        """
        return State(self._decoder("state"))

    def run(
        self, feeds: Mapping[str, Any], outputs: Iterable[str] | None = None, *, state: State | None = None
    ) -> dict[str, Array]:
        """Run the model.

        Args:
            feeds: an array for each input, by name. Lists and numbers are converted. Arrays must have the input's type.
            outputs: names of the wanted outputs. None is all.
            state: caches of keys and values, which the run adds to. Without it a model with `kv_cache` begins with empty ones.

        Returns:
            The outputs by name, in the model's order.

        Raises:
            MLTypeError: a missing or unknown input, a wrong type or shape, no room left in the caches, or another model's.
            NotSupportedError: an operator that cannot run. The message names node, operator, operator set and reason.

        Example:
            >>> wn.load_onnx(mlp).run({"x": np.zeros((1, 4), np.float32)}).keys()
            dict_keys(['y'])
        """
        arrays = self.checked_feeds(feeds)
        if isinstance(outputs, str):
            # Else its letters would be the names.
            raise MLTypeError(
                "outputs must be a list of names",
                operator="run",
                got=repr(outputs),
                allowed=f"some of {[o.name for o in self.outputs]}",
            )
        wanted = None if outputs is None else set(outputs)
        for name in wanted or ():
            if name not in {o.name for o in self.outputs}:
                raise MLTypeError(
                    "unknown output", operator="run", got=repr(name), allowed=", ".join(o.name for o in self.outputs)
                )
        given = dict(zip(self._program.inputs, arrays, strict=True))
        if state is not None:
            results = self._decoder("run").run(given, state, self._progress)
        elif isinstance(self._program, Decoder):
            with self.state() as empty:
                results = self._program.run(given, empty, self._progress)
        else:
            results = self._program.run(given, self._progress)
        self._report()
        pairs = zip(self.outputs, results, strict=True)
        return {info.name: array for info, array in pairs if wanted is None or info.name in wanted}

    def _decoder(self, operator: str) -> Decoder:
        if not isinstance(self._program, Decoder):
            raise NotSupportedError(
                "the model's caches do not stay on the device", operator=operator, hint="load(..., kv_cache=ROWS) makes them"
            )
        return self._program

    def run_async(
        self, feeds: Mapping[str, Any], outputs: Iterable[str] | None = None, *, state: State | None = None
    ) -> MLPromise[dict[str, Array]]:
        """Run the model in the background and return a promise of the outputs."""
        return MLPromise[dict[str, Array]].in_background(lambda: self.run(feeds, outputs, state=state))

    def profile(self, feeds: Mapping[str, Any]) -> Profile:
        """Run the model once, step by step, and return the time of each step and each kernel.

        Steps that follow each other here may overlap in `run`, which is a little faster. The host's clock times them. The
        device's timestamps time the kernels, for which each graph is run once more: see `MLGraph.profile`.

        Args:
            feeds: as for `run`.

        Returns:
            The times, with those of the model's loading. `print` shows them as a table. The results are in `outputs`.

        Raises:
            MLTypeError, NotSupportedError: as `run` does.

        Example:
            >>> profile = wn.load_onnx(mlp).profile({"x": np.zeros((1, 4), np.float32)})
            >>> [span.kind for span in profile.spans]
            ['load', 'lower', 'compile', 'submit', 'run', 'read back']
            >>> profile.spans[4].kernels[0].labels
            ('gemm_0', 'relu_1')
        """
        with watched() as watch:
            watch.spans += self.loading
            start = time.perf_counter()
            outputs = self.run(feeds)
            wall_ms = (time.perf_counter() - start) * 1e3
        return watch.profile(outputs, wall_ms)

    def tune(self, feeds: Mapping[str, Any], *, save: bool = True, progress: Progress | None = None) -> Tuning:
        """Measure the kernel variants that there are for the model's operators with these inputs, as `MLGraph.tune` does.

        The model itself stays as it is: load it again to have it compiled with the results. To ship that with the model,
        save it as `NAME.tuning.json` beside `NAME.onnx`.

        Args:
            feeds: as for `run`.
            save: whether to add it to the user's cache.
            progress: called as `progress(done, total, what)`, with numbers of operators and the one that is measured next.

        Raises:
            MLTypeError, NotSupportedError: as `run` and `MLGraph.tune` do.

        Example:
            >>> tuning = wn.load_onnx(mlp).tune({"x": np.zeros((1, 4), np.float32)}, save=False)
            >>> [name.partition(":")[0] for name in tuning.choices]
            ['gemm', 'gemm']
        """
        with watched() as watch:
            self.run(feeds)
        # Bodies of loops whose rounds the host counts are only among those that ran.
        ran = [graph for graph in watch.inputs if not graph.destroyed]
        graphs = list(dict.fromkeys([*self._program.graphs(), *ran]))
        if not graphs:
            raise NotSupportedError("the model has no graph that runs on the device", operator="tune", got=repr(self))
        return tune_graphs(graphs, save, progress)

    def checked_feeds(self, feeds: Mapping[str, Any]) -> list[Array]:
        """Return the arrays that `run` makes of its feeds, in the order of the inputs.

        Raises:
            MLTypeError: as `run` does.
        """
        unknown = set(feeds).difference(i.name for i in self.inputs)
        if unknown:
            raise MLTypeError(
                "unknown input", operator="run", got=repr(min(unknown)), allowed=", ".join(i.name for i in self.inputs)
            )
        sizes: dict[str, int] = dict(self.dims)
        return [self._check_feed(info, feeds, sizes) for info in self.inputs]

    def _check_feed(self, info: ValueInfo, feeds: Mapping[str, Any], sizes: dict[str, int]) -> Array:
        if feeds.get(info.name) is None:
            raise MLTypeError("missing input", operator="run", got=f"no '{info.name}'", allowed=str(info))
        value = feeds[info.name]
        try:
            array = np.asarray(value, None if hasattr(value, "dtype") else info.dtype)
        except (ValueError, TypeError, OverflowError) as error:
            raise MLTypeError("wrong input", operator="run", got=f"{info.name}: {error}", allowed=str(info)) from error
        if array.dtype != info.dtype:
            raise MLTypeError("wrong type of input", operator="run", got=f"{info.name}: {array.dtype}", allowed=str(info))
        if info.shape is not None:
            fits = len(info.shape) == array.ndim
            for wanted, size in zip(info.shape, array.shape, strict=False):
                expected = sizes.setdefault(wanted, size) if isinstance(wanted, str) else wanted
                fits = fits and expected in (None, size)
            if not fits:
                pinned = ", ".join(f"{n} = {s}" for n, s in sizes.items())
                raise MLTypeError(
                    "wrong shape of input",
                    operator="run",
                    got=f"{info.name}: {list(array.shape)}",
                    allowed=str(info) + (f" with {pinned}" if pinned else ""),
                )
        return array

    # compiling ----------------------------------------------------------------------------------------------------

    def _pinned(self, info: ValueInfo) -> tuple[int, ...] | None:
        """Return an input's shape if every size is known."""
        if info.shape is None:
            return None
        sizes = [self.dims.get(d) if isinstance(d, str) else d for d in info.shape]
        return None if None in sizes else tuple(s for s in sizes if s is not None)

    def _prepare(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Compile the first stage for shapes of the inputs."""
        if isinstance(self._program, Decoder):
            return  # it compiles for what it is fed
        self._program.prepare(
            {v: (s, i.dtype) for v, s, i in zip(self._program.inputs, shapes, self.inputs, strict=True)}, self._progress
        )
        self._report()

    def _report(self) -> None:
        """Log where the nodes run, once for each placement, after something was compiled."""
        if self._program.staged == self._staged:
            return
        self._staged = self._program.staged
        placed = self._program.placements()
        if placed and placed != self._reported:
            self._reported = placed
            level = logging.WARNING if self._module.fallback == "warn" and self.placement.on("host") else logging.INFO
            log.log(level, "%s: %s", self.name, self.placement.summary())

    @property
    def placement(self) -> Placement:
        """Where each node runs, for the shapes compiled last. Empty before the first."""
        return Placement(self._reported)

    @property
    def graph(self) -> MLGraph:
        """The WebNN graph compiled last.

        Raises:
            NotSupportedError: nothing has been compiled yet, or the model needed no graph.
        """
        graphs = self._program.graphs()
        if not graphs:
            raise NotSupportedError(
                "the model has no graph yet", operator="graph", hint="Run it, or pin its symbolic dimensions"
            )
        return graphs[0]

    @property
    def graphs(self) -> list[MLGraph]:
        """The WebNN graphs of the run, or the shapes, compiled last, in the order in which they run."""
        return self._program.graphs()

    @property
    def source(self) -> onnx_ir.Model:
        """The ONNX model, its local functions inlined."""
        return self._module.model

    @property
    def compiled(self) -> int:
        """How many WebNN graphs were compiled so far."""
        return self._program.compiled

    # the end ------------------------------------------------------------------------------------------------------

    def destroy(self) -> None:
        """Free the graphs and the weights that no other graph uses."""
        self._program.destroy()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.destroy()

    def __repr__(self) -> str:
        return f"Model({self.name}: {', '.join(map(str, self.inputs))} -> {', '.join(map(str, self.outputs))})"


def _count(value: Any, what: str, least: int) -> int:
    """Return a whole number, of numpy's too."""
    try:
        number = index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise MLTypeError(f"{what} must be a whole number", operator="load", got=repr(value), allowed=f"{least} and more")
    return number


def load_model(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto,
    opened: Callable[[], MLContext],
    *,
    simplify: Simplifier | None = None,
    override_dims: Mapping[str, int] | None = None,
    tuning: TuningSource = None,
    **options: Any,
) -> Model:
    """Load an ONNX model as `webnn_wgpu.load_onnx` does, on a context that is only asked for once the model is read."""
    with watched() as watch:
        with span("load", "the file"):
            model, name = open_model(source, simplify)
        dims = {**sidecar(source), **(override_dims or {})}
        loaded = Model(model, name, opened(), override_dims=dims, tuning=with_file_beside(tuning, source), **options)
    loaded.loading = tuple(watch.spans)
    return loaded


def open_model(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto, simplify: Simplifier | None = None
) -> tuple[onnx_ir.Model, str]:
    """Read a model, simplify it on request, and return it and its name in messages."""
    if simplify is None:
        return read(source)
    model, name = read(simplified(source, simplify))
    return model, Path(source).name if isinstance(source, (str, os.PathLike)) else name
