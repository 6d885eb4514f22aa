"""Importing what needs packages that are not installed with this one by themselves."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ..core.errors import NotSupportedError
from ..core.imports import uncollected


@contextmanager
def needed_by(name: str, extra: str) -> Generator[None]:
    """Import what `name` needs, of packages that an extra of this one brings.

    Raises:
        NotSupportedError: one of them is not installed; the message says how to get it.
    """
    try:
        with uncollected():
            yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("webnn_wgpu"):
            raise
        raise NotSupportedError(
            f"{name} needs the package '{error.name}'", hint=f"pip install 'webnn-wgpu[{extra}]'"
        ) from error
