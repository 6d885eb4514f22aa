"""A run of the benchmark: all models one after the other, and then, where it is asked for, their tuning."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from webnn_wgpu import MLContext

from .figures import ModelFigures, SuiteRecord
from .measuring import LoadedGraph, Loader, measure, tuned
from .models import MODELS

NO_TIME = "not measured: the time is over"


@dataclass(frozen=True)
class Job:
    """A model to measure.

    Attributes:
        name: its name.
        description: the same for people.
        load: compiles it.
        beside: adds the figures of other runtimes. It gets the time by `time.monotonic` at which the model's turn ends.
    """

    name: str
    description: str
    load: Loader
    beside: Callable[[ModelFigures, float], ModelFigures] | None = None


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
    until: float = math.inf,
    tune_until: float | None = None,
    tell: Callable[[str], None] = lambda _: None,
    keep: Callable[[SuiteRecord], None] = lambda _: None,
) -> SuiteRecord:
    """Measure models and return the record with their figures.

    Each model has its turn, an equal part of the time that is left when it begins. At the turn's end its runs become few, and
    time that it does not take is left to the models after it.

    Args:
        record: the record so far.
        jobs: the models.
        seconds: the time for the runs of each.
        until: the time by `time.monotonic` after which no model begins. Its figures then have a note that says so.
        tune_until: the time by `time.monotonic` at which tuning ends, finished or not. None tunes nothing. Models with short
            runs are tuned first.
        tell: called with the name of the model that is measured next.
        keep: called with the record after each model.
    """
    first = len(record.models)
    for number, job in enumerate(jobs):
        now = time.monotonic()
        if now >= until:
            record = record.with_model(ModelFigures(name=job.name, description=job.description, note=NO_TIME))
            continue
        turn = now + (until - now) / (len(jobs) - number)
        tell(job.name)
        figures = measure(job.name, job.description, job.load, seconds, turn)
        record = record.with_model(job.beside(figures, turn) if job.beside else figures)
        keep(record)
    return record if tune_until is None else _tune(record, jobs, first, seconds, tune_until, tell, keep)


def left_out(record: SuiteRecord, jobs: Sequence[Job]) -> SuiteRecord:
    """Return a record of an unfinished run, with a note for each model that it does not have."""
    measured = {(figures.name, figures.description) for figures in record.models}
    for job in jobs:
        if (job.name, job.description) not in measured:
            record = record.with_model(ModelFigures(name=job.name, description=job.description, note=NO_TIME))
    return record


def _tune(
    record: SuiteRecord,
    jobs: Sequence[Job],
    first: int,
    seconds: float,
    until: float,
    tell: Callable[[str], None],
    keep: Callable[[SuiteRecord], None],
) -> SuiteRecord:
    """Return the record with the tuning of its models from number `first` on."""

    def check_time(done: int, total: int, what: str) -> None:
        if time.monotonic() >= until:
            raise OutOfTimeError

    measured = [number for number, figures in enumerate(record.models) if number >= first and figures.runs]
    for number in sorted(measured, key=lambda number: record.models[number].wall_ms):
        if time.monotonic() >= until:
            break
        job = jobs[number - first]
        tell(f"{job.name}: tuning")
        try:
            record = record.with_tuning(number, *tuned(record.models[number], job.load, seconds, check_time, until))
        except OutOfTimeError:
            break
        keep(record)
    return record
