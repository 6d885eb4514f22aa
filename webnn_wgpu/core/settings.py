"""Settings from the environment, read when they are needed.

WEBNN_WGPU_CACHE=off     no cache is read or written
WEBNN_WGPU_DUMP=folder   the source of every kernel is written there when it is compiled
WEBNN_WGPU_FORCE=a=b,..  kernel variants to take: operator=variant
WEBNN_WGPU_RECORDER=..   `raw` or `plain`
WEBNN_WGPU_TARGET=..     `hardware` or `software`: the kind of device that graphs are compiled for, read when a device is opened
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from .errors import MLTypeError

TargetKind: TypeAlias = Literal["hardware", "software"]
"""A kind of device: GPUs, or drivers that run shaders on the CPU."""


def cache_enabled() -> bool:
    """Return whether caches may be used."""
    return os.environ.get("WEBNN_WGPU_CACHE", "").lower() not in ("off", "0", "no", "false")


def dump_folder() -> Path | None:
    """Return the folder that WEBNN_WGPU_DUMP names, if any."""
    name = os.environ.get("WEBNN_WGPU_DUMP", "")
    return Path(name) if name else None


def forced_variants() -> dict[str, str]:
    """Return the kernel variants that WEBNN_WGPU_FORCE names, by operator.

    Raises:
        MLTypeError: an item is not of the form operator=variant.
    """
    forced: dict[str, str] = {}
    for item in filter(None, os.environ.get("WEBNN_WGPU_FORCE", "").split(",")):
        name, equals, variant = item.partition("=")
        if not (name.strip() and equals and variant.strip()):
            raise MLTypeError("WEBNN_WGPU_FORCE must hold items operator=variant", got=repr(item), allowed="matmul=tiled")
        forced[name.strip()] = variant.strip()
    return forced


def recorder_name() -> str:
    """Return the recorder that WEBNN_WGPU_RECORDER names, or an empty string."""
    return os.environ.get("WEBNN_WGPU_RECORDER", "")


def forced_target() -> TargetKind | None:
    """Return the kind of device that WEBNN_WGPU_TARGET names, or None if each device counts as its own kind.

    Raises:
        MLTypeError: the kind does not exist.
    """
    name = os.environ.get("WEBNN_WGPU_TARGET", "").strip()
    for kind in get_args(TargetKind):
        if name == kind:
            return kind
    if name:
        raise MLTypeError(
            "WEBNN_WGPU_TARGET must name a kind of device", got=repr(name), allowed=", ".join(get_args(TargetKind))
        )
    return None
