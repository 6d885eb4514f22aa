"""`Scarce`, the counter of objects with scarce resources, for subpackages that import only the API."""

from __future__ import annotations

from ..core.garbage import Scarce

__all__ = ["Scarce"]
