"""`digests.json`: short digests of the golden plans of each model for each record. Its diff shows which plans changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.golden.catalog import graphs, names
from tests.golden.dumping import digest_of, dump
from tests.golden.records import RECORDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FILE = Path(__file__).with_name("digests.json")


def of_record(device: str, models: Sequence[str]) -> dict[str, str]:
    """Return model -> digest for a recorded device."""
    return {model: digest_of(dump(model, device, graphs())) for model in models}


def read() -> Mapping[str, Mapping[str, str]]:
    """Return model -> record -> digest as checked in."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def write() -> str:
    """Write the digests of the package as it is now, a line for each model. Return a sentence about what changed."""
    before = read()
    found = {device: of_record(device, names()) for device in RECORDS}
    rows = {model: {device: found[device][model] for device in RECORDS} for model in sorted(names())}
    text = ",\n".join(f"{json.dumps(model)}: {json.dumps(row)}" for model, row in rows.items())
    FILE.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")
    return changes("golden graphs", before, rows, FILE)


def changes(things: str, before: Mapping[str, Any], after: Mapping[str, Any], file: Path) -> str:
    """Return a sentence about the entries of a rewritten file: how many are new, changed and gone.

    >>> changes("golden graphs", {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 0, "d": 4}, FILE)
    'golden graphs: 1 new, 1 changed, 1 removed, 1 as before. Written: tests/golden/digests.json'
    """
    place = file.relative_to(Path(__file__).parents[2]).as_posix()
    if before == after:
        return f"{things}: nothing changed in {place}"
    counts = {
        "new": len(after.keys() - before.keys()),
        "changed": sum(before[name] != after[name] for name in before.keys() & after.keys()),
        "removed": len(before.keys() - after.keys()),
        "as before": sum(before[name] == after[name] for name in before.keys() & after.keys()),
    }
    return f"{things}: {', '.join(f'{number} {what}' for what, number in counts.items() if number)}. Written: {place}"
