"""The prose follows the style guide, and the linter finds what it is for."""

from __future__ import annotations

import json

import pytest

from tests.prose.__main__ import BUDGETS, ROOT, counts, faults_of, modules, pages
from tests.prose.extraction import docstrings, of_markdown, sentences
from tests.prose.rules import faults


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_no_faults(page):
    assert not [f"{line}: {rule}: {message}" for line, rule, message in faults_of(page)]


def test_docstrings_have_no_more_faults_than_their_budgets():
    budgets = json.loads(BUDGETS.read_text("utf-8"))
    over = {rule: count for rule, count in counts(modules()).items() if count > budgets.get(rule, 0)}
    assert not over, f"`python -m tests.prose FILE` lists the faults of a module; allowed are {budgets}"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("What nobody reads is freed.", "guide.clauses"),
        ("The planner frees the slot; the kernel runs.", "guide.semicolons"),
        ("The optimiser fuses operators.", "guide.spelling"),
        (" ".join(["word"] * 40) + ".", "guide.length"),
        ("The library decides by rules of thumb.", "guide.retired"),
    ],
)
def test_a_fault_is_found_with_its_line(text, rule):
    assert (3, rule) in [(line, name) for line, name, _ in faults("page.md", f"Good.\n\n{text}", stock=False)]


def test_code_is_no_prose():
    prose = of_markdown("# What it is\n\nUse `what;` here.\n\n```python\nwhat; who\n```\n\n| what | who |\n")
    assert "what" not in prose.lower()
    assert prose.count("\n") == 9


def test_sentences_end_at_full_stops_paragraphs_and_entries(tmp_path):
    module = tmp_path / "module.py"
    module.write_text('"""One. Two goes\non.\n\nArgs:\n    what: three\n    b: four\n\n    >>> what; who\n"""\n')
    ((line, prose),) = docstrings(module)
    assert line == 1
    assert [" ".join(text.split()) for _, text in sentences(prose)] == ["One.", "Two goes on.", "xxxx: three", "x: four"]
