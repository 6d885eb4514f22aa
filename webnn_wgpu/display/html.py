"""HTML of tables and facts, for notebooks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..ir.types import TensorType


def escape(text: str) -> str:
    """Return a text as HTML shows it."""
    import html  # here, for its tables take half a megabyte, which only notebooks need

    return html.escape(text)


def table_html(title: str, rows: Sequence[Sequence[str]], numbers: Collection[int] = ()) -> str:
    """Return a table whose first row has the headings. Columns of `numbers` are right-aligned.

    >>> table_html("<t>", [("n",), ("1",)])
    '<table><caption style="text-align: left">&lt;t&gt;</caption><tr><th style="text-align: left">n</th></tr>...
    """

    def row(cells: Sequence[str], tag: str) -> str:
        sides = ("right" if i in numbers else "left" for i in range(len(cells)))
        return "".join(
            f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>' for cell, side in zip(cells, sides, strict=True)
        )

    body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows[1:])
    caption = f'<caption style="text-align: left">{escape(title)}</caption>'
    return f"<table>{caption}<tr>{row(rows[0], 'th')}</tr>{body}</table>"


def facts_html(title: str, facts: Mapping[str, str]) -> str:
    """Return a title with a table of names and texts."""
    rows = "".join(
        f'<tr><th style="text-align: left">{escape(name)}</th><td style="text-align: left">{escape(text)}</td></tr>'
        for name, text in facts.items()
        if text
    )
    return f"<b>{escape(title)}</b><table>{rows}</table>"


def type_facts(wanted: TensorType) -> dict[str, str]:
    """Return the data type, the shape and the size as texts by name."""
    return {"data type": wanted.data_type, "shape": str(list(wanted.shape)), "bytes": f"{wanted.size_bytes:,}"}
