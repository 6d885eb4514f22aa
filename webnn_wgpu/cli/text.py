"""How results are written for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable


_UNLIMITED = 1 << 20
"""The width of lines where no terminal limits it."""


def result_console() -> Console:
    """Return the console of results: as wide as the terminal. In a file or a pipe, no cell of a table is cut or wrapped."""
    console = Console()
    return console if console.is_terminal else Console(width=_UNLIMITED)


def write_section(console: Console, title: str, rows: Iterable[tuple[str, str]]) -> None:
    """Write a heading, and under it names and values in two columns.

    Lines are never folded: a path or a shader's name must stay in one piece. Values are data and no markup.

    Args:
        console: Where to.
        title: The heading.
        rows: Names and values. A row with an empty name continues the row before. No rows, no section.
    """
    rows = list(rows)
    if not rows:
        return
    console.print(Text(title, style="bold"), soft_wrap=True)
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        console.print(Text(f"  {name:<{width}}  {value}".rstrip()), soft_wrap=True)


def amount(count: int) -> str:
    """Return a number of bytes as people write it.

    Example:
        >>> from webnn_wgpu.cli.text import amount
        >>> amount(100), amount(1536), amount(3 << 20)
        ('100 bytes', '1.5 KiB', '3.0 MiB')
    """
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
