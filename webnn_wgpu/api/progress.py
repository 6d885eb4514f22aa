"""The callback `progress(done, total, what)` for subpackages that use only the public API."""

from __future__ import annotations

from ..core.progress import MEASURING, READING, UPLOADING, Progress

__all__ = ["MEASURING", "READING", "UPLOADING", "Progress"]
