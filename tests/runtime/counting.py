"""Counts calls of wgpu-native's C functions and the bytes they move, whichever of wgpu's two doors they go through."""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import wgpu

from .native import lib, libf

ONE_SHOT = ("wgpuDeviceCreateCommandEncoder", "wgpuCommandEncoderBeginComputePass", "wgpuQueueSubmit")
"""What a submission needs once: an encoder, its pass, and the submission itself."""

CREATING = (
    *sorted({name for name in dir(libf) if name.startswith("wgpuDeviceCreate")} - set(ONE_SHOT)),
    "wgpuTextureCreateView",
)
"""What makes a lasting object on the device: buffers, textures, bind groups, layouts, modules, pipelines, query sets, ..."""

HOST_COPIES = (
    "wgpuQueueWriteBuffer",
    "wgpuQueueWriteTexture",
    "wgpuBufferMapAsync",
    "wgpuBufferGetMappedRange",
)
"""Every way that data has between the host and the device, in either direction."""


BYTES_UP, BYTES_DOWN = "bytes written to buffers", "bytes of mapped buffers"
"""What is counted besides calls."""


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count the calls of the functions above, and the bytes of buffers they write or map, while the block runs."""
    calls: Counter[str] = Counter()
    names = (*CREATING, *ONE_SHOT, *HOST_COPIES)
    doors: list[dict[str, Any]] = [vars(libf), vars(lib)]
    kept = [{name: door[name] for name in names if name in door} for door in doors]

    def wrap(name: str, function: Any) -> Any:
        def call(*args: Any) -> Any:
            # A write of no bytes copies nothing: a device is asked so whether it is still there.
            calls[name] += name != "wgpuQueueWriteBuffer" or bool(args[-1])
            if name == "wgpuQueueWriteBuffer":
                calls[BYTES_UP] += int(args[-1])
            elif name == "wgpuBufferMapAsync":
                calls[BYTES_DOWN] += int(args[3])
            return function(*args)

        return call

    for door, functions in zip(doors, kept, strict=True):
        door.update({name: wrap(name, function) for name, function in functions.items()})
    try:
        yield calls
    finally:
        for door, functions in zip(doors, kept, strict=True):
            door.update(functions)


def created(calls: Counter[str]) -> dict[str, int]:
    """Return which lasting objects were made, and how many."""
    return {name: calls[name] for name in CREATING if calls[name]}


def count_objects() -> dict[str, int]:
    """Return how many of wgpu's objects of each kind are alive, natively."""
    counts: Any = wgpu.diagnostics.wgpu_native_counts.get_dict()
    return {name: entry["count"] for name, entry in counts.items() if name != "total"}


def resident_bytes() -> int:
    """Return the memory that this process holds of its own, swapped out or not, after what it has freed was given back.

    Pages of files come and go as the system likes; and freed memory that was given back comes again piece by piece, which would
    look like growth.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return sum(int(kilobytes) for kilobytes in re.findall(r"^(?:RssAnon|VmSwap):\s+(\d+) kB", status, re.MULTILINE)) * 1024
