"""The contexts of the API tests."""

from __future__ import annotations

from tests.api.conftest import anywhere, reference

__all__ = ["anywhere", "reference"]
