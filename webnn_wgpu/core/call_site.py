"""Where an operator was made: in a program, or in a file of a graph."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import TypeAlias

_PACKAGE = f"{Path(__file__).resolve().parent.parent}{os.sep}"
_COMMANDS = f"{_PACKAGE}cli{os.sep}"
"""A call from this folder comes from click, not from an application."""

CallSite: TypeAlias = tuple[CodeType, int] | str
"""A function, or module, of a program, and the offset in its bytecode. Working out the line is left for later. A place in the
file of a graph is a string: `model.webnn:12:9`."""


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
