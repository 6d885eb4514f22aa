"""The prose follows the style guide, and the linter finds what it is for."""

from __future__ import annotations

import pytest

from tests.prose.__main__ import ROOT, faults_of, over_budget, pages
from tests.prose.extraction import comments, docstrings, messages, of_markdown, sentences
from tests.prose.rules import faults


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_no_faults(page):
    assert not [f"{line}: {rule}: {message}" for line, _, rule, message in faults_of(page)]


def test_docstrings_messages_and_templates_keep_their_budgets():
    assert not over_budget(), "`python -m tests.prose FILE` lists the faults of a file"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("What nobody reads is freed.", "guide.clauses"),
        ("The planner frees the slot; the kernel runs.", "guide.semicolons"),
        ("The optimiser fuses operators.", "guide.spelling"),
        (" ".join(["word"] * 40) + ".", "guide.length"),
        ("The library decides by rules of thumb.", "guide.retired"),
        ("Whoever reads the value waits.", "guide.retired"),
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


def test_messages_are_the_texts_of_errors_warnings_and_logs(tmp_path):
    module = tmp_path / "module.py"
    module.write_text(
        'raise fail("a text", got=f"a {value} here", other="no message")\nlogger.info("two\\nlines")\nprint("no message")\n'
    )
    assert list(messages(module)) == [(1, "a text"), (1, "a X here")]


def test_comments_of_a_template_keep_their_lines(tmp_path):
    template = tmp_path / "kernel.wgsl.j2"
    template.write_text("// op: x\n// `what` it is\n{% set a = 1 %}\n    // who\nlet x = 1;\n{# nobody #}\n")
    ((line, prose),) = comments(template)
    found = [(at, message) for at, rule, message in faults("kernel", prose, stock=False) if rule == "guide.clauses"]
    assert line == 1
    assert [at for at, _ in found] == [4, 6]


def test_entries_of_a_head_end_sentences(tmp_path):
    template = tmp_path / "kernel.wgsl.j2"
    template.write_text("// The `read` is\n//   quad   four neighbors\n//          at once\n//   row    one at a time\n")
    ((_, prose),) = comments(template)
    found = [" ".join(text.split()) for _, text in sentences(prose)]
    assert found == ["The XXXXXX is", "quad four neighbors at once", "row one at a time"]
