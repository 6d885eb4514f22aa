"""What holds more than memory is counted, for those who may import nothing below this room."""

from __future__ import annotations

from ..core.garbage import Scarce

__all__ = ["Scarce"]
