"""Files that are packed into a model as a zip archive behind it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Generator
from contextlib import contextmanager

from .contents import TfliteFile


@contextmanager
def archive_of(file: TfliteFile) -> Generator[zipfile.ZipFile | None]:
    """Open the archive of a model's packed files. None if the model has none."""
    try:
        archive = zipfile.ZipFile(file.path if file.path is not None else io.BytesIO(file.data))
    except (zipfile.BadZipFile, OSError, ValueError):
        yield None
        return
    with archive:
        yield archive
