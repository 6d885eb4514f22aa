"""The cache on disk between processes: small text files, each of which is either complete or absent.

A file is renamed once it is written. A consumer therefore reads all of it or nothing, even if several
processes write it, or a process is killed meanwhile. The first line is a digest of the rest, which detects later damage. No
content of the files is executed.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from contextlib import suppress
from pathlib import Path

import platformdirs

from .files import UNFINISHED, replace_file
from .settings import cache_enabled

logger = logging.getLogger("webnn_wgpu")

_ABANDONED_S = 3600
"""Age from which on a file that is still being written belongs to a process that is no more."""

_DAY_S = 86400
"""How precisely it is known when a file was last used."""

_damaged: set[Path] = set()


def cache_folder() -> Path | None:
    """Return the user's folder for caches, even if it does not exist or may not be used.

    None if the folder is unknown: users of containers may have no home directory.
    """
    try:
        folder = Path(platformdirs.user_cache_dir("webnn_wgpu"))
    except RuntimeError:
        return None
    return folder if folder.is_absolute() else None


def usable_folder() -> Path | None:
    """Return the user's folder for caches, or None if caches are switched off or there is none."""
    return cache_folder() if cache_enabled() else None


def key_of(*parts: object) -> str:
    """Return a short name for the dependencies of a cached object. Equal texts of all parts give equal names.

    The parts must print alike in every process, which sets do not.

    >>> key_of("Mesa", 8) == key_of("Mesa", 8), key_of("Mesa", 8) == key_of("Mesa", 16)
    (True, False)
    """
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def read(name: str) -> str | None:
    """Return the content of a name, `folder/name.suffix`, or None if there is none or caches are switched off.

    A damaged file counts as absent. The log gets one warning about it.
    """
    folder = usable_folder()
    if folder is None:
        return None
    file = folder / name
    try:
        digest, _, text = file.read_bytes().partition(b"\n")
    except OSError:
        return None
    with suppress(OSError):  # A file that only other users may write can still be read.
        if time.time() - file.stat().st_mtime > _DAY_S:
            os.utime(file)  # for `prune`
    if digest == _digest(text):
        return text.decode()
    if file not in _damaged:
        _damaged.add(file)
        logger.warning("%s is damaged and will be made anew", file)
    return None


def write(name: str, text: str) -> None:
    """Store a text under a name, unless caches are switched off. If the write fails, the log states the reason."""
    folder = usable_folder()
    if folder is None:
        return
    file, data = folder / name, text.encode()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, _digest(data) + b"\n" + data)
    except OSError as error:
        logger.info("%s could not be written: %s", file, error)


def prune(folder: str, most_bytes: int) -> None:
    """Delete the files of a folder that were used least recently until the others take at most `most_bytes`.

    So are files that some process began to write, and was killed.
    """
    root = usable_folder()
    if root is None:
        return
    found: list[tuple[float, int, Path]] = []
    try:
        for entry in os.scandir(root / folder):
            state = entry.stat()
            abandoned = entry.name.startswith(UNFINISHED) and time.time() - state.st_mtime > _ABANDONED_S
            found.append((0.0 if abandoned else state.st_mtime, state.st_size, Path(entry.path)))
        total = sum(size for _, size, _ in found)
        for when, size, path in sorted(found):
            if total <= most_bytes and when:
                break
            path.unlink(missing_ok=True)
            total -= size
    except OSError as error:
        logger.info("%s could not be tidied: %s", folder, error)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest()[:32].encode()
