"""Imports of packages that only an extra of this package installs."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ..core.errors import NotSupportedError
from ..core.imports import uncollected


@contextmanager
def needed_by(name: str, extra: str) -> Generator[None]:
    """Guard imports of the packages that `name` needs from an extra of this package.

    Raises:
        NotSupportedError: a package is not installed. The message has the command that installs it.
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
