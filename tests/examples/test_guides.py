"""The code of the documentation runs.

pytest collects blocks with prompts as doctests. The tests here run the other Python blocks of each page, one after the other,
in a process and a folder of their own.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from examples.models import tflite_classifier

if TYPE_CHECKING:
    from tests.programs import Programs

ROOT = Path(__file__).resolve().parents[2]
PAGES = (*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md")
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def programs_of(page: Path) -> list[str]:
    """Return the Python blocks of a page that have no prompts."""
    return [code for language, code in BLOCK.findall(page.read_text("utf-8")) if language == "python" and ">>>" not in code]


@pytest.mark.device
@pytest.mark.parametrize("page", [p for p in PAGES if programs_of(p)], ids=lambda page: page.stem)
def test_the_programs_of_a_page_run(page: Path, tmp_path: Path, programs: Programs) -> None:
    if page.stem == "tflite":
        if importlib.util.find_spec("ai_edge_litert") is None:
            pytest.skip("the page's program is for ai-edge-litert, which is not installed")
        shutil.copy(tflite_classifier(), tmp_path / "model.tflite")
    program = tmp_path / "program.py"
    program.write_text("\n".join(programs_of(page)), "utf-8")
    run = programs.run([program], folder=tmp_path)
    assert run.returncode == 0, run.stderr


def test_blocks_with_prompts_are_python() -> None:
    """Doctest finds prompts in every fence. The language gives readers colors and a copy button."""
    wrong = [
        f"{page.relative_to(ROOT)}: {code.splitlines()[0]}"
        for page in PAGES
        for language, code in BLOCK.findall(page.read_text("utf-8"))
        if ">>>" in code and language != "python"
    ]
    assert not wrong
