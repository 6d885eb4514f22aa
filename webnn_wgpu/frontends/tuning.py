"""The file beside a model that names the fastest kernel variants for it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from webnn_wgpu.api.tuning import TuningSource


def with_file_beside(tuning: TuningSource, source: object) -> TuningSource:
    """Return what `tuning` names and then, if there is one, the file `NAME.tuning.json` beside the model.

    Args:
        tuning: the argument. False is returned unchanged.
        source: the model, for example a file.
    """
    if tuning is False or not isinstance(source, (str, os.PathLike)):
        return tuning
    place = Path(os.fspath(source))  # pyright: ignore[reportUnknownArgumentType] - a path of any kind
    file = place.parent / f"{place.stem}.tuning.json"
    if not file.is_file():
        return tuning
    if tuning is None or tuning is True:
        return file
    given = tuning if isinstance(tuning, Sequence) and not isinstance(tuning, (str, bytes)) else (tuning,)
    return [*given, file]
