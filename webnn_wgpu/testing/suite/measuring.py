"""Measurement of one model: times, kernels under the roofline, memory, and the gain of tuning."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from webnn_wgpu import MLContext, MLGraph, Tuning, WebNNError

from ...core.data_types import Array
from ...core.progress import Progress
from ...inspection import GraphProfile
from .figures import ModelFigures, SlowKernel
from .models import BuiltInModel

FEWEST_RUNS = 3
_SLOWEST = 5
_PROFILED_RUNS = 3


class LoadedModel(Protocol):
    """A model that is compiled for a context, and its inputs."""

    def run(self) -> Mapping[str, Array]:
        """Run it once and return its outputs."""
        ...

    def graphs(self) -> Sequence[MLGraph]:
        """Return the graphs that run on the device."""
        ...

    def profile(self, runs: int) -> GraphProfile:
        """Return the times of its kernels."""
        ...

    def tune(self, progress: Progress | None) -> Tuning:
        """Measure the variants of its kernels."""
        ...

    def close(self) -> None:
        """Free it."""
        ...


Loader = Callable[[Tuning | None], LoadedModel]
"""Compiles a model, with measured variants or without."""


@dataclass
class LoadedGraph:
    """A built-in model that is compiled.

    Attributes:
        context: where it runs.
        graph: the compiled graph.
        feeds: its inputs.
    """

    context: MLContext
    graph: MLGraph
    feeds: Mapping[str, Array]

    @classmethod
    def of(cls, model: BuiltInModel, context: MLContext, tuning: Tuning | None) -> LoadedGraph:
        """Build a model and compile it."""
        builder, output, feeds = model.network(context)
        return cls(context, builder.build({"output": output}, tuning=False if tuning is None else tuning), feeds)

    def run(self) -> Mapping[str, Array]:
        """Run it once and return its outputs."""
        return self.context.compute(self.graph, self.feeds)

    def graphs(self) -> Sequence[MLGraph]:
        """Return the one graph."""
        return [self.graph]

    def profile(self, runs: int) -> GraphProfile:
        """Return the times of its kernels."""
        return self.graph.profile(self.feeds, runs=runs)

    def tune(self, progress: Progress | None) -> Tuning:
        """Measure the variants of its kernels."""
        return self.graph.tune(save=False, progress=progress)

    def close(self) -> None:
        """Free it."""
        self.graph.destroy()


def measure(name: str, description: str, load: Loader, seconds: float, until: float = math.inf) -> ModelFigures:
    """Load a model, run it for some time, and return its figures. The figures include an error of the package.

    Args:
        name: the model's name.
        description: the description of the model for people.
        load: compiles the model.
        seconds: the time for its runs. A run that takes longer is repeated a few times nevertheless.
        until: the time by `time.monotonic` after which no more run begins that the figures do not need.
    """
    begin = time.perf_counter()
    try:
        model = load(None)
    except (WebNNError, MemoryError) as error:
        return ModelFigures(name=name, description=description, error=str(error))
    try:
        loaded = time.perf_counter()
        model.run()
        first = time.perf_counter() - loaded
        walls = timed(model.run, seconds, until)
        profile = model.profile(_PROFILED_RUNS if time.monotonic() < until else 1)
        plans = [graph.plan for graph in model.graphs() if graph.plan is not None]
        return ModelFigures(
            name=name,
            description=description,
            load_ms=(loaded - begin) * 1e3,
            first_run_ms=first * 1e3,
            runs=len(walls),
            wall_ms=float(np.median(walls)),
            best_ms=min(walls),
            gpu_ms=profile.gpu_ms,
            dispatches=sum(len(plan.dispatches) for plan in plans),
            shaders=len({dispatch.spec for plan in plans for dispatch in plan.dispatches}),
            operations=sum(kernel.operations or 0 for kernel in profile.kernels),
            device_bytes=sum(plan.total_bytes for plan in plans),
            slowest=tuple(_slow_kernels(profile)),
        )
    except (WebNNError, MemoryError) as error:
        return ModelFigures(name=name, description=description, error=str(error))
    finally:
        model.close()


def tuned(
    figures: ModelFigures, load: Loader, seconds: float, progress: Progress | None, until: float = math.inf
) -> tuple[ModelFigures, Tuning | None]:
    """Tune a model, and return its figures with the gain, and the tuning. The tuning is None if it failed.

    Args:
        figures: the figures of the model.
        load: compiles the model.
        seconds: the time for its runs.
        progress: called as `MLGraph.tune` calls it. An exception that it raises ends the measurement.
        until: the time by `time.monotonic` after which one run of the tuned model must do.
    """
    try:
        model = load(None)
        try:
            model.run()
            before = _variants(model)
            found = model.tune(progress)
        finally:
            model.close()
        model = load(found)
        try:
            model.run()
            walls = timed(model.run, seconds, until)
            changed = sum(a != b for a, b in zip(before, _variants(model), strict=False))
        finally:
            model.close()
    except (WebNNError, MemoryError) as error:
        return replace(figures, error=f"tuning: {error}"), None
    return replace(figures, tuned_ms=float(np.median(walls)), tuned=changed), found


def timed(run: Callable[[], Any], seconds: float, until: float = math.inf) -> list[float]:
    """Return the milliseconds of runs in some time, and of a few at least. After `until` one is enough."""
    walls: list[float] = []
    end = time.monotonic() + seconds
    while not walls or (time.monotonic() < until and (len(walls) < FEWEST_RUNS or time.monotonic() < end)):
        begin = time.perf_counter()
        run()
        walls.append((time.perf_counter() - begin) * 1e3)
    return walls


def relative_difference(found: Mapping[str, Array], wanted: Mapping[str, Array]) -> float:
    """Return the largest difference between outputs of floats, as a part of the largest number of the wanted ones."""
    most = 0.0
    for name, array in wanted.items():
        if array.dtype.kind == "f" and array.size:
            wide = array.astype(np.float64)
            largest = float(np.abs(wide).max()) or 1.0
            most = max(most, float(np.abs(np.asarray(found[name], np.float64).reshape(wide.shape) - wide).max()) / largest)
    return most


def _variants(model: LoadedModel) -> list[Any]:
    plans = [graph.plan for graph in model.graphs() if graph.plan is not None]
    return [dispatch.spec for plan in plans for dispatch in plan.dispatches]


def _slow_kernels(profile: GraphProfile) -> list[SlowKernel]:
    limits = [(kernel, profile.limit(kernel)) for kernel in profile.slowest(_SLOWEST).kernels]
    return [
        SlowKernel(
            shader=kernel.shader,
            operators=kernel.operators,
            milliseconds=kernel.microseconds / 1e3,
            peak_share=limit.share if limit else None,
            limit=limit.name if limit else "",
        )
        for kernel, limit in limits
    ]
