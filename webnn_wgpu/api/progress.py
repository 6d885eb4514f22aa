"""The callback `progress(done, total, what)` for rooms that use the public API only."""

from __future__ import annotations

from ..core.progress import MEASURING, READING, UPLOADING, Progress

__all__ = ["MEASURING", "READING", "UPLOADING", "Progress"]
