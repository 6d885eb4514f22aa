"""The prose linter: `python -m tests.prose [FILE ...]` prints the faults of pages and docstrings by the style guide.

Pages have no faults. Docstrings have at most as many of each rule as `budgets.json` states. `--update` sets the budgets to the
current counts. Without files, the linter reads the documentation, changelog fragments and the package.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.prose.extraction import docstrings, of_markdown
from tests.prose.rules import faults

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parents[2]

BUDGETS = Path(__file__).with_name("budgets.json")


def pages() -> list[Path]:
    """Return the pages that the linter reads: all but the history of changes."""
    names = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
    return [
        *(ROOT / name for name in names),
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "changelog.d").glob("+*.md")),
    ]


def modules() -> list[Path]:
    """Return the modules whose docstrings the linter reads."""
    return sorted((ROOT / "webnn_wgpu").rglob("*.py"))


def faults_of(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the rule and the message of each fault of a file."""
    if path.suffix == ".md":
        yield from faults(path.name, of_markdown(path.read_text("utf-8")))
        return
    for line, prose in docstrings(path):
        for below, rule, message in faults(path.name, prose, stock=False):
            yield line + below - 1, rule, message


def counts(paths: Iterable[Path]) -> dict[str, int]:
    """Return the number of faults of docstrings by rule."""
    return dict(sorted(Counter(rule for path in paths for _, rule, _ in faults_of(path)).items()))


def main() -> int:
    """Print the faults, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.prose", description="Prose of pages and docstrings.")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--update", action="store_true", help="set the budgets of docstrings to the current counts")
    options = parser.parse_args()
    if options.update:
        BUDGETS.write_text(json.dumps(counts(modules()), indent=1) + "\n", "utf-8")
        return 0
    found = 0
    for path in options.files or pages():
        for line, rule, message in faults_of(path):
            print(f"{path}:{line}: {rule}: {message}")
            found += 1
    if not options.files:
        budgets = json.loads(BUDGETS.read_text("utf-8"))
        for rule, count in counts(modules()).items():
            if count > budgets.get(rule, 0):
                print(f"docstrings: {rule}: {count} faults, {budgets.get(rule, 0)} are allowed")
                found += 1
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
