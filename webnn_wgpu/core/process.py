"""Changes of the process by the package: none, unless the application requests them by `optimize_process`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ProcessOptions:
    """The permitted changes of the process: the arguments of `optimize_process`, which describes them."""

    lazy_modules: bool = False
    header_tables: bool = False
    deferred_collection: bool = False
    driver_threads: bool = False
    without_opengl: bool = False
    heap_trimming: bool = False


_options = ProcessOptions()


def process_options() -> ProcessOptions:
    """Return the permitted changes."""
    return _options


def set_process_options(options: ProcessOptions) -> None:
    """Set the permitted changes from now on."""
    global _options  # noqa: PLW0603 - there is one process
    _options = options
