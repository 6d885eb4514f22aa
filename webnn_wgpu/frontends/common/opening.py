"""Loading a model from a file, and the files beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from webnn_wgpu import MLTypeError
from webnn_wgpu.api.tuning import TuningSource

from ..dims import sidecar, symbols_in
from ..timing import span, watched
from ..tuning import with_file_beside
from .model import ImportedModel

FileT = TypeVar("FileT")
ImportedT = TypeVar("ImportedT", bound=ImportedModel)

UNKNOWN_DIMENSION = "override_dims must name symbolic dimensions of the inputs"
"""The rule that a size for another name breaks."""


def load_file(
    source: object,
    override_dims: Mapping[str, int] | None,
    tuning: TuningSource,
    read: Callable[[], FileT],
    made: Callable[[FileT, Mapping[str, int], TuningSource], ImportedT],
) -> ImportedT:
    """Return the model of a file, with the times of its loading.

    Args:
        source: the file, whose path leads to the files beside it.
        override_dims: sizes of symbolic dimensions. They come before those of the file beside it.
        tuning: the tuning. It comes before that of the file beside it.
        read: reads the file.
        made: makes the model of the file, with the sizes and the tuning.
    """
    with watched() as watch:
        with span("load", "the file"):
            file = read()
        loaded = made(file, {**sidecar(source), **(override_dims or {})}, with_file_beside(tuning, source))
    loaded.loading = tuple(watch.spans)
    symbols = symbols_in(info.shape for info in loaded.inputs)
    if unknown := sorted(set(override_dims or {}).difference(symbols)):
        loaded.destroy()
        raise MLTypeError(
            UNKNOWN_DIMENSION,
            operator="load",
            got=repr(unknown[0]),
            allowed=", ".join(symbols) or "none",
        )
    return loaded
