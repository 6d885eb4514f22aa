"""The prose linter: `python -m tests.prose [FILE ...]` prints the faults of texts by the style guide.

Pages have no faults. Docstrings, messages and comments of templates have at most as many of each rule as `budgets.json` states.
`--update` sets the budgets to the current counts. Without files, the linter reads the documentation, changelog fragments, the
package and the templates.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.prose.extraction import comments, docstrings, messages, of_markdown
from tests.prose.rules import faults

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """Return the modules whose docstrings and messages the linter reads."""
    return sorted((ROOT / "webnn_wgpu").rglob("*.py"))


def templates() -> list[Path]:
    """Return the templates whose comments the linter reads."""
    return sorted((ROOT / "shaders").rglob("*.j2"))


def faults_of(path: Path) -> Iterator[tuple[int, str, str, str]]:
    """Yield the line, the kind of text, the rule and the message of each fault of a file."""
    if path.suffix == ".md":
        yield from (
            (line, "pages", rule, message) for line, rule, message in faults(path.name, of_markdown(path.read_text("utf-8")))
        )
        return
    kinds = {"templates": comments} if path.suffix == ".j2" else {"docstrings": docstrings, "messages": messages}
    for kind, texts in kinds.items():
        for line, prose in texts(path):
            for below, rule, message in faults(path.name, prose, stock=False):
                # A message joins its parts by semicolons and spans few lines of code.
                if kind != "messages" or rule not in ("guide.semicolons", "guide.length"):
                    yield line + below - 1, kind, rule, message


def counts() -> dict[str, dict[str, int]]:
    """Return the number of faults by kind of text and rule."""
    found: dict[str, Counter[str]] = {"docstrings": Counter(), "messages": Counter(), "templates": Counter()}
    for path in (*modules(), *templates()):
        for _, kind, rule, _ in faults_of(path):
            found[kind][rule] += 1
    return {kind: dict(sorted(rules.items())) for kind, rules in found.items()}


def over_budget() -> list[str]:
    """Return a line for each rule with more faults than its budget."""
    budgets = json.loads(BUDGETS.read_text("utf-8"))
    return [
        f"{kind}: {rule}: {count} faults, {budgets[kind].get(rule, 0)} are allowed"
        for kind, rules in counts().items()
        for rule, count in rules.items()
        if count > budgets[kind].get(rule, 0)
    ]


def main() -> int:
    """Print the faults, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.prose", description="Prose of pages, docstrings, messages and templates."
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--update", action="store_true", help="set the budgets to the current counts")
    options = parser.parse_args()
    if options.update:
        BUDGETS.write_text(json.dumps(counts(), indent=1) + "\n", "utf-8")
        return 0
    found = [
        f"{path}:{line}: {rule}: {message}" for path in options.files or pages() for line, _, rule, message in faults_of(path)
    ]
    if not options.files:
        found += over_budget()
    print("\n".join(found), end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
