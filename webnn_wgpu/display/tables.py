"""Tables of facts about a graph, as text and for rich."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

_GAP = 1
"""The width of the gap between columns of a table, beside a space on either side of each cell."""

_WRAPPED = 32
"""The width that a column of sentences needs at least, if its cells are as long."""

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
    title: str,
    rows: Sequence[Sequence[str]],
    numbers: Collection[int] = (),
    sentences: Collection[int] = (),
    *,
    names: Collection[int] = (),
    optional: Sequence[int] = (),
) -> Any:
    """Return a table for rich, whose first row has the headings. Columns that are too wide end in an ellipsis.

    Args:
        title: the title above the table.
        rows: the headings, then the rows.
        numbers: the columns of numbers, which are never made narrower.
        sentences: the columns whose cells wrap over several lines instead.
        names: the columns of names, which are never made narrower either.
        optional: the columns that a narrow terminal leaves out, in this order.
    """
    return _FittingTable(title, rows, numbers, sentences, names, optional)


class _FittingTable:
    """A table that leaves out columns until the others fit the terminal."""

    def __init__(
        self,
        title: str,
        rows: Sequence[Sequence[str]],
        numbers: Collection[int],
        sentences: Collection[int],
        names: Collection[int],
        optional: Sequence[int],
    ) -> None:
        self.title, self.rows, self.numbers, self.sentences, self.names = title, rows, numbers, sentences, names
        self.optional = optional

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.text import Text

        shown, left_out = list(range(len(self.rows[0]))), list[int]()
        for column in self.optional:
            if self._least_width(shown) <= options.max_width:
                break
            shown.remove(column)
            left_out.append(column)
        yield self._table(shown)
        if left_out:
            headings = ", ".join(self.rows[0][i] for i in sorted(left_out))
            yield Text(f"  A wider terminal or a pipe also shows: {headings}")

    def _least_width(self, shown: Sequence[int]) -> int:
        """Return the width of some columns, in which sentences may wrap."""
        widths = (max(len(row[i]) for row in self.rows) for i in shown)
        return sum(2 + _GAP + (min(w, _WRAPPED) if i in self.sentences else w) for i, w in zip(shown, widths, strict=True))

    def _table(self, shown: Sequence[int]) -> Any:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(title=self.title, title_justify="left", box=box.SIMPLE_HEAD)
        for i in shown:
            # Columns that may not wrap are never made narrower. Of the others, no cell does, but they give way to those.
            justify = "right" if i in self.numbers else "left"
            table.add_column(self.rows[0][i], justify=justify, no_wrap=i in self.numbers or i in self.names)
        for row in self.rows[1:]:
            # Labels are data and no markup.
            wraps = [i in self.sentences for i in shown]
            cells = zip((row[i] for i in shown), wraps, strict=True)
            table.add_row(*(Text(c, no_wrap=not wrap, overflow="fold" if wrap else "ellipsis") for c, wrap in cells))
        return table


def first_few(labels: Sequence[str]) -> str:
    """Return the first labels, and the number of the others."""
    more = len(labels) - _NAMED
    return ", ".join(labels[:_NAMED]) + (f" and {more} more" if more > 0 else "")
