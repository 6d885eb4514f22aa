"""The documentation is complete, and its links lead somewhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.generation.readme import counted
from webnn_wgpu.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = (*sorted(DOCS.rglob("*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")))

GENERATED = (
    "contributing/index.md",
    "contributing/security.md",
    "how-it-works/passes.md",
    "reference/changelog.md",
    "reference/tflite-operators.md",
)
"""Pages that `docs/generation/pages.py` writes, besides those of operators."""

CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    text = CODE.sub(lambda match: match[0].strip("`") if "\n" not in match[0] else "", page.read_text("utf-8"))
    headings = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading.lower())).strip("-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_anchors_of_a_page_resolve(page: Path) -> None:
    broken: list[str] = []
    for target in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", page.read_text("utf-8"))):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        relative = file.relative_to(DOCS).as_posix() if file.is_relative_to(DOCS) else ""
        if relative in GENERATED or relative.startswith("reference/operators/"):
            continue
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_blank_line_ends_a_table(page: Path) -> None:
    # Without it, Markdown takes the next paragraph for a row.
    assert re.search(r"^\|.*\|\n(?!\||\n).+", page.read_text(encoding="utf-8"), re.MULTILINE) is None


def test_the_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 160
    assert len(text.encode()) <= 10_240


def test_every_environment_variable_is_documented() -> None:
    text = (DOCS / "reference" / "environment.md").read_text("utf-8")
    used = {
        name
        for file in (ROOT / "webnn_wgpu").rglob("*.py")
        for name in re.findall(r"\bWEBNN_WGPU_[A-Z]+\b", file.read_text("utf-8"))
    }
    assert used
    assert not {name for name in used if f"`{name}`" not in text}


def test_every_command_is_documented() -> None:
    """The reference has all options. Here each command is named where people look for a tool."""
    guides = "\n".join(page.read_text("utf-8") for page in PAGES)
    assert not {name for name in app.commands if f"webnn-wgpu {name}" not in guides}


def test_every_example_is_in_the_gallery() -> None:
    text = (DOCS / "guides" / "gallery.md").read_text("utf-8")
    programs = {path.name for path in (ROOT / "examples").glob("*.py")} - {"digits.py", "models.py"}
    assert not {name for name in programs if f"`{name}`" not in text}


def test_every_extra_is_documented() -> None:
    text = (DOCS / "start" / "install.md").read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = set(project["optional-dependencies"]) - {"dev", "docs"}
    assert not {extra for extra in extras if f"`{extra}`" not in text}


def test_readme_counts_the_operators() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    counts = re.findall(r"\ball (\d+) operators of WebNN|\b(\d+) extension operators", text)
    assert len(counts) == 2
    assert text == counted(text), "run `python -m tests.generation`"
