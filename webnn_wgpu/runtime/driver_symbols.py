"""Mesa's Vulkan drivers in a process that exports an LLVM of its own, as TensorFlow does.

The dynamic loader looks a library's symbols up among those that the whole process exports first. A driver that links with LLVM
would call the other LLVM, and the driver's LLVM would initialize variables of the other. The process then ends at the first
kernel or at its exit. A driver that is loaded with `RTLD_DEEPBIND` looks its symbols up in its own libraries first.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

SYMBOL = "LLVMContextCreate"
"""A function of every LLVM."""

ALLOCATOR = "calloc"
"""A function of every allocator that replaces the C library's.

The Python of Debian and Ubuntu is linked to fixed addresses. It hands `malloc` and `free` to its parser of XML, and therefore
has addresses of its own for them.
"""

DEEP = getattr(os, "RTLD_DEEPBIND", 0)
"""The flag of glibc. Other C libraries have none."""

_loaded: list[ctypes.CDLL] = []
"""The drivers that were loaded here, which stay loaded."""


def have_own_symbols() -> bool:
    """Return whether Mesa's drivers were loaded with symbols of their own."""
    return bool(_loaded)


@functools.cache
def separate_drivers() -> None:
    """Load Mesa's Vulkan drivers with symbols of their own if the process exports another LLVM.

    Only the first call has an effect, because drivers stay loaded as they are once Vulkan's loader has them. A process with a
    preloaded allocator is left alone: its drivers would free memory of one allocator by the other.
    """
    if not (DEEP and sys.platform == "linux" and exports_llvm() and has_plain_allocator()):
        return
    for library in mesa_drivers():
        with suppress(OSError):
            _loaded.append(ctypes.CDLL(library, os.RTLD_NOW | os.RTLD_LOCAL | DEEP))


def exports_llvm() -> bool:
    """Return whether the process exports the functions of an LLVM."""
    return _address(None, SYMBOL) is not None


def has_plain_allocator() -> bool:
    """Return whether the process takes its memory from the C library."""
    return _address(None, ALLOCATOR) == _address("libc.so.6", ALLOCATOR)


def mesa_drivers() -> list[str]:
    """Return the libraries of Mesa's drivers among those that Vulkan's loader would load."""
    libraries: dict[str, None] = {}
    for manifest in _manifests():
        with suppress(OSError, ValueError, KeyError, TypeError):
            library = str(json.loads(manifest.read_bytes())["ICD"]["library_path"])
            if os.path.basename(library).startswith("libvulkan_"):
                # Names without a folder are looked up in the search path of libraries.
                libraries[str(manifest.parent / library) if "/" in library else library] = None
    return list(libraries)


def _manifests() -> Iterator[Path]:
    """Yield the files that name Vulkan drivers, which stand in variables or in folders."""
    named = os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES")
    places = [Path(p) for p in (named or os.environ.get("VK_ADD_DRIVER_FILES", "")).split(os.pathsep) if p]
    if not named:
        folders = (
            os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"),
            *(os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep),
            "/etc",
            os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"),
            *(os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(os.pathsep),
        )
        places += [Path(folder) / "vulkan" / "icd.d" for folder in folders]
    for place in places:
        yield from sorted(place.glob("*.json")) if place.is_dir() else [place]


def _address(library: str | None, symbol: str) -> int | None:
    """Return the address of a library's function, or of the process's if there is no library. None if there is none."""
    try:
        return ctypes.cast(getattr(ctypes.CDLL(library), symbol), ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None
