"""The devices that golden plans are made for: the records in `tests/data/caps`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "data" / "caps"

RECORDS = tuple(sorted(path.stem for path in FOLDER.glob("*.json")))
"""Names of the records."""


@cache
def record(name: str) -> str:
    """Return the JSON text of a record, which `Caps.from_json` reads."""
    return (FOLDER / f"{name}.json").read_text(encoding="utf-8")
