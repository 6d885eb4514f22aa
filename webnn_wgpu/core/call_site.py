"""Where an operator was made: in a program, or in a file of a graph. Warnings point to the program too."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import TypeAlias

_PACKAGE = f"{Path(__file__).resolve().parent.parent}{os.sep}"
_COMMANDS = f"{_PACKAGE}cli{os.sep}"
"""A call from this folder comes from click, not from an application."""

CallSite: TypeAlias = tuple[CodeType, int] | str
"""A function, or module, of a program, and the offset in its bytecode. Working out the line is left for later. A place in the
file of a graph is a string: `model.webnn:12:9`."""

_thread = threading.local()

_SITES = 3
"""Most call sites that a message names."""


def call_site(depth: int) -> CallSite | None:
    """Return the call site of this package in the application, or None without one. Takes one to two microseconds.

    Args:
        depth: the number of innermost calls, including this function, that are known to belong to the package.
    """
    # inspect.currentframe cannot skip frames, and walking back costs as much as the rest.
    frame: FrameType | None = sys._getframe(depth)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_code.co_filename.startswith(_COMMANDS):
            return None
        frame = frame.f_back
    return None if frame is None else (frame.f_code, frame.f_lasti)


@contextmanager
def on_behalf_of(site: CallSite | None) -> Generator[None]:
    """Have the warnings of a background thread point to the call that started it."""
    _thread.site = site
    try:
        yield
    finally:
        del _thread.site


def warn(message: str) -> None:
    """Issue a RuntimeWarning that points to the application's call of this package."""
    site: CallSite | None = getattr(_thread, "site", None) or call_site(2)
    if site is None:  # a command, which catches its warnings
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return
    file, _, line = file_and_line(site).rpartition(":")
    warnings.warn_explicit(message, RuntimeWarning, file, int(line))


def file_and_line(site: CallSite) -> str:
    """Return a site as a text such as `model.py:12`. The line is 0 if Python's compiler did not record it."""
    if isinstance(site, str):
        return site
    code, instruction = site
    found = (line for start, end, line in code.co_lines() if start <= instruction < end)
    return f"{code.co_filename}:{next(found, None) or 0}"


def made_at(sites: Iterable[CallSite | None]) -> str:
    """Return a sentence with the places where an application or a graph file made operators, or "" if they are unknown."""
    known = list(dict.fromkeys(file_and_line(site) for site in sites if site is not None))
    more = len(known) - _SITES
    places = ", ".join(known[:_SITES]) + (f" and {more} more" if more > 0 else "")
    return f"{'Its operators were' if len(known) > 1 else 'The operator was'} made at {places}" if known else ""
