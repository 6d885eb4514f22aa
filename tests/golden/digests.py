"""`digests.json`: short digests of the golden plans of each model for each record. Its diff shows which plans changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tests.golden.catalog import graphs, names
from tests.golden.dumping import digest_of, dump
from tests.golden.records import RECORDS
from tests.golden.rewritten import changes

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
