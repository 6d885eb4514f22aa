"""`ImportedModel`: the operations of imported models that do not depend on their format."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import index
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from webnn_wgpu import MLContext, MLGraph, MLPromise, MLTypeError, NotSupportedError
from webnn_wgpu.api.progress import Progress
from webnn_wgpu.api.tuning import Tuning, tune_graphs

from ..description import Placed, Placement, ValueInfo
from ..timing import Profile, Span, watched
from .feeds import check_feeds, feed_array
from .held import Array
from .module import FALLBACKS
from .stages import Feed

ValueT = TypeVar("ValueT")


class ModelProgram(Protocol):
    """The compiled stages of a model."""

    @property
    def staged(self) -> int:
        """The number of stages that were planned so far."""
        ...

    @property
    def compiled(self) -> int:
        """The number of WebNN graphs that were compiled so far."""
        ...

    def placements(self) -> tuple[Placed, ...]:
        """Return the places of the nodes, for the shapes compiled last."""
        ...

    def graphs(self) -> list[MLGraph]:
        """Return the graphs of the last run. Before any run, those that were compiled last."""
        ...

    def destroy(self) -> None:
        """Free the graphs."""
        ...


class ImportedModel(ABC):
    """A model on a context.

    Attributes:
        context: where it runs.
        name: its name in messages.
        dims: the sizes of symbolic dimensions that are fixed.
        inputs: its inputs.
        outputs: its outputs.
        loading: the times of its loading.
    """

    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]

    def __init__(self, context: MLContext, name: str, override_dims: Mapping[str, int] | None, fallback: str) -> None:
        if fallback not in FALLBACKS:
            raise MLTypeError("unknown fallback", operator="load", got=repr(fallback), allowed=", ".join(FALLBACKS))
        self.context, self.name = context, name
        self.dims = {symbol: count_of(size, f"override_dims['{symbol}']", 0) for symbol, size in (override_dims or {}).items()}
        self.loading: tuple[Span, ...] = ()
        self._fallback = fallback
        self._reported: tuple[Placed, ...] = ()
        self._staged = 0

    # running --------------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def _stages(self) -> ModelProgram:
        """The compiled stages."""

    @abstractmethod
    def _run(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the outputs for checked inputs, both in the order of the declarations."""

    def run(self, feeds: Mapping[str, Any], outputs: Iterable[str] | None = None) -> dict[str, Array]:
        """Run the model.

        Args:
            feeds: an array for each input, by name. Lists and numbers are converted. Arrays must have the input's type.
            outputs: names of the outputs that are wanted. All by default.

        Returns:
            The outputs by name, in the model's order.

        Raises:
            MLTypeError: a missing or unknown input, or a wrong type or shape.
            NotSupportedError: an operator that cannot run. The message names node, operator and reason.
        """
        return self._named(feeds, outputs, self._run)

    def _named(
        self, feeds: Mapping[str, Any], outputs: Iterable[str] | None, compute: Callable[[list[Array]], list[Array]]
    ) -> dict[str, Array]:
        """Check the arguments of `run`, and return the wanted outputs by name."""
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
        pairs = zip(self.outputs, compute(arrays), strict=True)
        return {info.name: array for info, array in pairs if wanted is None or info.name in wanted}

    def run_async(self, feeds: Mapping[str, Any], outputs: Iterable[str] | None = None) -> MLPromise[dict[str, Array]]:
        """Run the model in the background and return a promise of the results of `run` for the same arguments."""
        return MLPromise[dict[str, Array]].in_background(lambda: self.run(feeds, outputs))

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
        save it as `NAME.tuning.json` beside the file.

        Args:
            feeds: as for `run`.
            save: whether to add the results to the user's cache.
            progress: called as `progress(done, total, what)`, with numbers of operators and the one that is measured next.

        Returns:
            The measured choices.

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
        graphs = list(dict.fromkeys([*self.graphs, *ran]))
        if not graphs:
            raise NotSupportedError("the model has no graph that runs on the device", operator="tune", got=repr(self))
        return tune_graphs(graphs, save, progress)

    def checked_feeds(self, feeds: Mapping[str, Any]) -> list[Array]:
        """Return the arrays that `run` makes of its feeds, in the order of the inputs.

        Args:
            feeds: an array for each input, by name.

        Raises:
            MLTypeError: as `run` does.
        """
        check_feeds(feeds, [i.name for i in self.inputs])
        sizes: dict[str, int] = dict(self.dims)
        return [self._check_feed(info, feeds, sizes) for info in self.inputs]

    def _check_feed(self, info: ValueInfo, feeds: Mapping[str, Any], sizes: dict[str, int]) -> Array:
        if feeds.get(info.name) is None:
            raise MLTypeError("missing input", operator="run", got=f"no '{info.name}'", allowed=str(info))
        array = feed_array(feeds[info.name], info.dtype, info.name, info)
        if info.shape is not None:
            has_rank = fits = len(info.shape) == array.ndim
            for wanted, size in zip(info.shape, array.shape, strict=False):
                expected = sizes.setdefault(wanted, size) if isinstance(wanted, str) else wanted
                fits = fits and expected in (None, size)
            if not fits:
                pinned = ", ".join(f"{n} = {s}" for n, s in sizes.items())
                raise MLTypeError(
                    "wrong shape of input",
                    operator="run",
                    got=f"{info.name}: {list(array.shape)}",
                    allowed=str(info) + (f" with {pinned}" if pinned and has_rank else ""),
                )
        return array

    # facts ----------------------------------------------------------------------------------------------------------

    def _pinned(self, info: ValueInfo) -> tuple[int, ...] | None:
        """Return an input's shape if every size is known."""
        if info.shape is None:
            return None
        sizes = [self.dims.get(d) if isinstance(d, str) else d for d in info.shape]
        return None if None in sizes else tuple(s for s in sizes if s is not None)

    def _known_feeds(self, values: Iterable[ValueT]) -> dict[ValueT, Feed] | None:
        """Return the feeds of the inputs if every size is known, else None.

        Args:
            values: the values, in the order of the inputs.
        """
        pairs = [(value, self._pinned(info), info.dtype) for value, info in zip(values, self.inputs, strict=True)]
        found = {value: Feed(shape, dtype) for value, shape, dtype in pairs if shape is not None}
        return found if len(found) == len(pairs) else None

    def _report(self) -> None:
        """Log where the nodes run, once for each placement, after a compilation."""
        if self._stages.staged == self._staged:
            return
        self._staged = self._stages.staged
        placed = self._stages.placements()
        if placed and placed != self._reported:
            self._reported = placed
            level = logging.WARNING if self._fallback == "warn" and self.placement.on("host") else logging.INFO
            logging.getLogger(type(self).__module__).log(level, "%s: %s", self.name, self.placement.summary())

    @property
    def placement(self) -> Placement:
        """Where each node runs, for the shapes compiled last. Empty before the first."""
        return Placement(self._reported)

    @property
    def compiled(self) -> int:
        """How many WebNN graphs were compiled so far."""
        return self._stages.compiled

    @property
    def graphs(self) -> list[MLGraph]:
        """The WebNN graphs of the last run, in the order in which they run. Before any run, those that were compiled last."""
        return self._stages.graphs()

    @property
    def graph(self) -> MLGraph:
        """The first of `graphs`, and usually the only one.

        Raises:
            NotSupportedError: nothing has been compiled yet, or the model needed no graph.
        """
        graphs = self.graphs
        if not graphs:
            raise NotSupportedError(
                "the model has no graph yet",
                operator="graph",
                hint="Run it, or load it with the sizes of its dimensions as `override_dims`",
            )
        return graphs[0]

    def destroy(self) -> None:
        """Free the graphs and the weights that no other graph uses. A later run compiles the model again."""
        self._stages.destroy()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.destroy()

    def __repr__(self) -> str:
        inputs, outputs = ", ".join(map(str, self.inputs)), ", ".join(map(str, self.outputs))
        return f"{type(self).__name__}({self.name}: {inputs} -> {outputs})"


def is_wide(wide_float16: bool | None, context: MLContext) -> bool:
    """Return whether float16 values between nodes are stored as float32. By default they are on software adapters."""
    return not context.accelerated if wide_float16 is None else wide_float16


def count_of(value: Any, what: str, least: int, operator: str = "load") -> int:
    """Return a whole number, of numpy's too.

    Raises:
        MLTypeError: the value is no whole number, or less than `least`.
    """
    try:
        number = index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise MLTypeError(f"{what} must be a whole number", operator=operator, got=repr(value), allowed=f"{least} and more")
    return number
