"""The sources of measured choices that callers name, and `MLGraph.tune`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ..core.errors import MLTypeError
from ..kernels.tuning import Sources, Tuning, keep
from ..passes import run_passes
from ..tuner import Tuner
from .backend import DeviceBackend, no_device
from .progress import Progress

if TYPE_CHECKING:
    from .graph import MLGraph

TuningSource: TypeAlias = "Tuning | str | os.PathLike[str] | Sequence[Tuning | str | os.PathLike[str]] | bool | None"
"""Sources of measured choices: a `Tuning`, its file, or several of them.

The first source with an operator counts. None means the files in the default locations, and False no source."""


def sources_of(tuning: TuningSource, operator: str) -> Sources:
    """Return the sources that an argument names.

    Args:
        tuning: the argument.
        operator: the name of the operation in messages.

    Raises:
        MLTypeError: it is something else.
        FileNotFoundError: there is no such file.
    """
    if tuning is False:
        return None
    if tuning is None or tuning is True:
        return ()
    if isinstance(tuning, Tuning | str | bytes | os.PathLike) or not isinstance(tuning, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
        tuning = (tuning,)
    found: list[Tuning | Path] = []
    for source in tuning:
        if isinstance(source, Tuning):
            found.append(source)
        elif isinstance(source, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
            file = Path(source)
            file.stat()  # raises where there is none
            found.append(file)
        else:
            raise MLTypeError("tuning must be a Tuning, a file or False", operator=operator, got=type(source).__name__)
    return tuple(found)


def tune_graphs(graphs: Sequence[MLGraph], save: bool, progress: Progress | None) -> Tuning:
    """Measure the kernel variants for the operators of one context's graphs (see `MLGraph.tune`)."""
    context = graphs[0]._context
    for graph in graphs:
        context._check_graph(graph, "tune")
    backend = context._backend
    if not isinstance(backend, DeviceBackend):
        raise no_device()
    with context._guarded("tune"):
        tuner = Tuner(backend.device)
        for graph in graphs:
            tuner.add(run_passes(graph.source, backend.target, graph._disabled_passes)[0])
        tuner.run(progress)
    tuning = Tuning.of(backend.caps, tuner.choices)
    if save:
        keep(tuning, backend.caps)
    return tuning
