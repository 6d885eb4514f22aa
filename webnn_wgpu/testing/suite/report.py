"""The record of a benchmark as a page of HTML: one file that loads nothing."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, Template

from .figures import SuiteRecord


def report(record: SuiteRecord) -> str:
    """Return the page of a record. It carries the record itself, as JSON."""
    peers = list(dict.fromkeys(name for figures in record.models for name in figures.peers))
    # A script ends at the first `</`, wherever that is.
    return _template().render(record=record, peers=peers, data=record.to_json().replace("</", "<\\/"))


@cache
def _template() -> Template:
    text = (Path(__file__).parent / "page" / "suite.html.j2").read_text(encoding="utf-8")
    return Environment(autoescape=True, keep_trailing_newline=True).from_string(text)
