"""What the commands that rewrite a file of data say about the changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def changes(things: str, before: Mapping[str, Any], after: Mapping[str, Any], file: Path) -> str:
    """Return a sentence about the entries of a rewritten file: how many are new, changed and gone.

    >>> changes("golden graphs", {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 0, "d": 4}, Path(__file__))
    'golden graphs: 1 new, 1 changed, 1 removed, 1 as before. Written: tests/golden/rewritten.py'
    """
    place = file.resolve().relative_to(Path(__file__).resolve().parents[2]).as_posix()
    if before == after:
        return f"{things}: nothing changed in {place}"
    counts = {
        "new": len(after.keys() - before.keys()),
        "changed": sum(before[name] != after[name] for name in before.keys() & after.keys()),
        "removed": len(before.keys() - after.keys()),
        "as before": sum(before[name] == after[name] for name in before.keys() & after.keys()),
    }
    return f"{things}: {', '.join(f'{number} {what}' for what, number in counts.items() if number)}. Written: {place}"
