"""Tables of facts about a graph, as text and for rich."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

_NAMED = 3
"""Most labels that a line of a table names."""


def aligned(rows: Sequence[Sequence[str]], numbers: Collection[int] = ()) -> list[str]:
    """Return the lines of a table in columns. Columns of `numbers` are right-aligned.

    >>> aligned([("n", "name"), ("10", "x")], [0])
    [' n  name', '10  x']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    for row in rows:
        cells = [cell.rjust(w) if i in numbers else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return lines


def rich_table(
    title: str, rows: Sequence[Sequence[str]], numbers: Collection[int] = (), sentences: Collection[int] = ()
) -> Any:
    """Return a table for rich, whose first row has the headings. Columns that are too wide end in an ellipsis.

    Args:
        title: the title above the table.
        rows: the headings, then the rows.
        numbers: the columns of numbers, which are never made narrower.
        sentences: the columns whose cells wrap over several lines instead.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for i, heading in enumerate(rows[0]):
        # Columns that may not wrap are never made narrower. Of the others, no cell does, but they give way to those.
        table.add_column(heading, justify="right" if i in numbers else "left", no_wrap=i in numbers)
    for row in rows[1:]:
        # Labels are data and no markup.
        table.add_row(*(Text(c, no_wrap=i not in sentences, overflow="ellipsis") for i, c in enumerate(row)))
    return table


def first_few(labels: Sequence[str]) -> str:
    """Return the first labels, and the number of the others."""
    more = len(labels) - _NAMED
    return ", ".join(labels[:_NAMED]) + (f" and {more} more" if more > 0 else "")
