"""The programs of the guides run: the blocks of each page, one after the other, in an empty folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDES = sorted((Path(__file__).resolve().parents[2] / "docs" / "guides").glob("*.md"))


@pytest.mark.device
@pytest.mark.filterwarnings("ignore:no hardware adapter was found:RuntimeWarning")
@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_the_programs_of_a_guide_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), str(page), "exec"), {})
