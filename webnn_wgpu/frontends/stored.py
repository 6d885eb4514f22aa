"""`StoredModel`: a folder for browsers, opened on a WebNN context, and `analyze`, which allocates nothing."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from webnn_wgpu import MLContext, MLGraph, MLPromise, MLTypeError, ml
from webnn_wgpu.api.progress import Progress
from webnn_wgpu.api.stored_graphs import load_stored_graph, plan_stored_graph
from webnn_wgpu.formats.web.model import FORMAT, VERSION, WebModel, WebTensor

from .common.feeds import check_feeds, feed_array
from .description import Analysis, Memory, Placed, Placement, ValueInfo
from .timing import Profile, Span, compute, span, watched

Array = NDArray[Any]


def load_stored(
    folder: str | os.PathLike[str], context: MLContext | None = None, progress: Progress | None = None
) -> StoredModel:
    """Load a folder as `webnn_wgpu.load` does."""
    with watched() as watch:
        with span("load", "the folder"):
            model = StoredModel(folder, context or ml.create_context(), progress)
    model.loading = tuple(watch.spans)
    return model


def analyze(folder: str | os.PathLike[str], context: MLContext) -> Analysis:
    """Return the content of a folder and the memory of its graph. Nothing is allocated or run.

    Args:
        folder: the folder.
        context: the context of the graph.

    Raises:
        FileNotFoundError: the folder has no `model.json`.
        MLTypeError: a folder that is wrong.
    """
    stored, plan, problem = plan_stored_graph(folder, context)
    inputs, outputs = (tuple(_info(n, t) for n, t in end.items()) for end in (stored.inputs, stored.outputs))
    return Analysis(
        name=stored.name,
        inputs=inputs,
        outputs=outputs,
        shapes={name: tensor.shape for name, tensor in stored.inputs.items()},
        opsets={FORMAT: VERSION},
        operators=dict(Counter(stored.kernels[d.kernel].name for d in stored.dispatches).most_common()),
        parameters=None,
        parameter_bytes=sum(constant.place.size_bytes for constant in stored.constants),
        placement=Placement(_placed(stored)),
        graphs=1,
        dispatches=len(stored.dispatches),
        memory=None if plan is None else Memory.of(plan),
        problem=problem,
        passes=(),
    )


def _info(name: str, tensor: WebTensor) -> ValueInfo:
    return ValueInfo(name, tensor.shape, np.dtype(tensor.data_type))


def _placed(stored: WebModel) -> list[Placed]:
    return [Placed(label, stored.kernels[d.kernel].name, "device") for d in stored.dispatches for label in d.operators]


class StoredModel:
    """A folder for browsers on a context: a compiled graph, whose operators are not known. Made by `load`.

    Attributes:
        context: where it runs.
        name: the name of the model.
        graph: the graph.
        inputs, outputs: the graph's interface.
        loading: the durations of the model's loading.

    Example:
        >>> _ = wn.exporters.web.write(b.build({"y": b.relu(x)}), "page")
        >>> with wn.load("page") as model:
        ...     print(model, model.run({"x": np.full((2, 3), -1, np.float32)})["y"].max())
        StoredModel(page: x: float32[2, 3] -> y: float32[2, 3]) 0.0
    """

    def __init__(self, folder: str | os.PathLike[str], context: MLContext, progress: Progress | None = None) -> None:
        self.context = context
        self.graph, stored = load_stored_graph(folder, context, progress)
        self.name = stored.name
        ends = (self.graph.inputs, self.graph.outputs)
        self.inputs, self.outputs = (tuple(ValueInfo(n, t.shape, np.dtype(t.numpy)) for n, t in end.items()) for end in ends)
        self.loading: tuple[Span, ...] = ()
        self._placed = _placed(stored)

    @property
    def graphs(self) -> tuple[MLGraph, ...]:
        """The graph."""
        return (self.graph,)

    @property
    def placement(self) -> Placement:
        """Where each operator runs: on the device. The kernel stands for the operator, whose name is unknown."""
        return Placement(self._placed)

    def run(self, feeds: Mapping[str, Any], outputs: Iterable[str] | None = None) -> dict[str, Array]:
        """Run the model.

        Args:
            feeds: an array for each input, by name.
            outputs: the names of the wanted outputs. None is all.

        Returns:
            The outputs by name, in the model's order.

        Raises:
            MLTypeError: a missing or unknown input or output, a wrong type or shape.
        """
        names = [info.name for info in self.outputs]
        wanted = names if outputs is None else list(outputs)
        for name in wanted:
            if name not in names:
                raise MLTypeError("unknown output", operator="run", got=repr(name), allowed=", ".join(names))
        check_feeds(feeds, [info.name for info in self.inputs])
        results = compute(
            self.context, self.graph, {i.name: _checked(i, feeds[i.name]) for i in self.inputs if i.name in feeds}
        )
        return {name: results[name] for name in names if name in wanted}

    def run_async(self, feeds: Mapping[str, Any], outputs: Iterable[str] | None = None) -> MLPromise[dict[str, Array]]:
        """Run the model in the background and return a promise of the results of `run` for the same arguments."""
        return MLPromise[dict[str, Array]].in_background(lambda: self.run(feeds, outputs))

    def profile(self, feeds: Mapping[str, Any]) -> Profile:
        """Run the model once and return the duration of each step and each kernel.

        Args:
            feeds: as for `run`.

        Raises:
            MLTypeError: as `run` does.
        """
        with watched() as watch:
            watch.spans += self.loading
            start = time.perf_counter()
            outputs = self.run(feeds)
            wall_ms = (time.perf_counter() - start) * 1e3
        return watch.profile(outputs, wall_ms)

    def destroy(self) -> None:
        """Free the memory of the graph."""
        self.graph.destroy()

    def __enter__(self) -> StoredModel:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.destroy()

    def __repr__(self) -> str:
        return f"StoredModel({self.name}: {', '.join(map(str, self.inputs))} -> {', '.join(map(str, self.outputs))})"


def _checked(info: ValueInfo, value: Any) -> Array:
    """Return an input's array. A graph alone would take any shape with as many elements."""
    array = feed_array(value, info.dtype, info.name, info)
    if array.shape != info.shape:
        got = f"{info.name}: {list(array.shape)}"
        raise MLTypeError("wrong shape of input", operator="run", got=got, allowed=str(info))
    return array
