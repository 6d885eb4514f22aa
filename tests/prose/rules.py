"""The rules of the style guide that a program can check, as checks of proselint."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from proselint.checks import __register__ as stock_checks
from proselint.registry import CheckRegistry
from proselint.registry.checks import Check, CheckFlags, CheckResult
from proselint.tools import LintFile

from tests.prose.extraction import sentences

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_SENTENCE = 34
"""Words of a sentence. The guide asks for about 20, so this marks sentences that need a second look."""

STOCK = ("archaism", "cliches", "hedging", "malapropisms", "needless_variants", "nonwords", "redundancy")
"""proselint's own checks that suit technical text."""

BRITISH = re.compile(
    r"\b\w*(?:optimis|recognis|normalis|initialis|quantis|serialis|generalis|summaris|organis|minimis|maximis|vectoris|"
    r"neighbour|colour|behaviour|favour|labell|modell|cancell(?!ation)|travell)\w*\b|\b(?:grey|centre[ds]?|licence|artefacts?|analyse[ds]?|"
    r"catalogue|misspelt|learnt|whilst|towards)\b",
    re.IGNORECASE,
)

CLAUSES = re.compile(r"\b(?:what|who|whoever|whatever|nobody)\b", re.IGNORECASE)
"""Words that stand where a noun would name the thing."""

GLOSSARY = Path(__file__).resolve().parents[2] / "docs" / "glossary.md"


def retired() -> list[str]:
    """Return the words that the glossary retires, without those in italics or with a remark, which have other meanings too."""
    rows = re.findall(r"^\| [^|]+ \| [^|]+ \| ([^|]+) \|$", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    words = [word.strip() for row in rows if row not in ("Do not write", "---") for word in row.split(",")]
    return [word for word in words if not re.search(r"[*(`]", word)]


RETIRED = re.compile(
    rf"\b(?:{'|'.join(map(re.escape, retired()))}|manieth|thereof|hither|comes? along|for ever|so to speak|by itself alone)\b",
    re.IGNORECASE,
)
"""Words that the glossary replaces, and old words."""


def _pattern(path: str, pattern: re.Pattern[str], message: str, *, quotes: bool = True) -> Check:
    def check(text: str, rule: Check) -> Iterator[CheckResult]:
        for match in pattern.finditer(text):
            yield CheckResult(rule.path, message.format(match[0]), match.span(), None)

    return Check(check_type=check, path=path, message=message, flags=CheckFlags(allow_quotes=quotes))


def _length(text: str, rule: Check) -> Iterator[CheckResult]:
    for start, sentence in sentences(text):
        words = len(sentence.split())
        if words > LONGEST_SENTENCE:
            yield CheckResult(rule.path, f"The sentence has {words} words.", (start, start + len(sentence)), None)


OWN = (
    _pattern("guide.spelling", BRITISH, "American spelling: {!r}."),
    _pattern("guide.clauses", CLAUSES, "Use a noun instead of a clause with {!r}.", quotes=False),
    _pattern("guide.semicolons", re.compile(r";(?=\s)"), "Split the sentence at the semicolon."),
    _pattern("guide.retired", RETIRED, "The glossary has another term for {!r}."),
    Check(check_type=_length, path="guide.length", message="Split the sentence.", flags=CheckFlags(allow_quotes=True)),
)
"""The rules of `docs/contributing/style.md`."""

_registry = CheckRegistry()
_registry.register_many((*stock_checks, *OWN))


def faults(name: str, prose: str, *, stock: bool = True) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the rule and the message of each fault of a text.

    Args:
        name: name of the file.
        prose: its prose.
        stock: whether proselint's own checks apply too.
    """
    if not prose.strip():
        return
    enabled = {"guide": True, **dict.fromkeys(STOCK if stock else (), True)}
    for result in LintFile(name, prose).lint({"max_errors": 10_000, "checks": enabled}):
        yield result.pos[0], result.check_result.check_path, result.check_result.message
