"""Bars and lines that show how far the loading or the measurement of a model is."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import click
from rich import progress
from rich.console import Console

from webnn_wgpu.api.progress import MEASURING, READING, UPLOADING, Progress


def described(done: int, total: int, what: str) -> tuple[str, str, str]:
    """Return the present step, its progress and the next step, for the arguments of a `progress` callback.

    Example:
        >>> from webnn_wgpu.cli.progress import described
        >>> described(3, 59, "softmax[variant=subgroup]")
        ('Compiling kernels', '3/59', 'softmax[variant=subgroup]')
        >>> described(1_500_000, 90_000_000, "uploading weights")
        ('Uploading weights', '1.5/90.0 MB', '')
    """
    if what == UPLOADING:
        return "Uploading weights", f"{done / 1e6:.1f}/{total / 1e6:.1f} MB", ""
    if what == READING:
        return "Reading nodes", f"{done}/{total}", ""
    if what.startswith(MEASURING):
        return "Measuring", f"{done}/{total}", what.removeprefix(MEASURING)
    return "Compiling kernels", f"{done}/{total}", what


@contextmanager
def progress_bar(title: str = "Compiling kernels") -> Generator[Progress | None]:
    """Show a bar on stderr while nodes are read, kernels are compiled and weights are uploaded, if that is a terminal.

    Args:
        title: its text before the first call.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TextColumn("{task.fields[count]}"),
        progress.TimeElapsedColumn(),
        progress.TextColumn("{task.fields[what]}", markup=False),
    )
    with progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None, count="", what="")

        def update(done: int, total: int, what: str) -> None:
            doing, count, upcoming = described(done, total, what)
            bar.update(task, completed=done, total=total, description=doing, count=count, what=upcoming)

        yield update


def progress_lines() -> Progress:
    """Return a callback that writes a line to stderr for each new step. Logs of work of minutes then show how far it is."""
    written = ""

    def update(done: int, total: int, what: str) -> None:
        nonlocal written
        line = " ".join(filter(None, described(done, total, what)))
        if line != written:
            click.echo(line, err=True)
            written = line

    return update


def loading(path: Path) -> AbstractContextManager[Progress | None]:
    """Show a bar on stderr while a model is loaded."""
    return progress_bar(f"Loading {path.name} ({path.stat().st_size / 1e6:.1f} MB)")
