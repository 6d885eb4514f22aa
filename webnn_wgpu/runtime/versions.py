"""The versions of wgpu whose internals the package knows."""

from __future__ import annotations

import wgpu


def tested_wgpu() -> bool:
    """Return whether the package knows the internals of the installed version of wgpu."""
    return wgpu.__version__.startswith(("0.31.", "0.32."))
