"""The specification as data: `tests/data/operators.json`, the union of the 2024 recommendation and the 2026 draft.

For each operator it has the operands, arguments and options with their data types and ranks, the rules of a call (`checks`),
the signature in Python, and where the text stands.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = Path(__file__).parent / "data" / "operators.json"


@cache
def operators() -> Mapping[str, Mapping[str, Any]]:
    """Return the operators by the specification's names."""
    return {entry["name"]: entry for entry in json.loads(FILE.read_text(encoding="utf-8"))["ops"]}
