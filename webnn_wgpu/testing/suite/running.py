"""A run of the benchmark: all models one after the other, and then, where it is asked for, their tuning."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from webnn_wgpu import MLContext

from .figures import ModelFigures, SuiteRecord
from .measuring import LoadedGraph, Loader, measure, tuned
from .models import MODELS


@dataclass(frozen=True)
class Job:
    """A model to measure.

    Attributes:
        name: its name.
        description: the same for people.
        load: compiles it.
        beside: adds the figures of other runtimes.
    """

    name: str
    description: str
    load: Loader
    beside: Callable[[ModelFigures], ModelFigures] | None = None


class OutOfTimeError(Exception):
    """The time of a run is over."""


def built_in(context: MLContext, only: Sequence[str] = ()) -> list[Job]:
    """Return the built-in models, or those of them that are named."""
    return [
        Job(name, model.description, partial(LoadedGraph.of, model, context))
        for name, model in MODELS.items()
        if not only or name in only
    ]


def run_suite(
    record: SuiteRecord,
    jobs: Sequence[Job],
    *,
    seconds: float,
    tune_until: float | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> SuiteRecord:
    """Measure models and return the record with their figures.

    Args:
        record: the record so far.
        jobs: the models.
        seconds: the time for the runs of each.
        tune_until: the time by `time.monotonic` at which tuning ends, finished or not. None tunes nothing.
        tell: called with the name of the model that is measured next.
    """
    for job in jobs:
        tell(job.name)
        figures = measure(job.name, job.description, job.load, seconds)
        record = record.with_model(job.beside(figures) if job.beside else figures)
    if tune_until is None:
        return record
    first = len(record.models) - len(jobs)

    def check_time(done: int, total: int, what: str) -> None:
        if time.monotonic() > tune_until:
            raise OutOfTimeError

    for number, job in enumerate(jobs, first):
        if record.models[number].error:
            continue
        tell(f"{job.name}: tuning")
        try:
            record = record.with_tuning(number, *tuned(record.models[number], job.load, seconds, check_time))
        except OutOfTimeError:
            break
    return record
