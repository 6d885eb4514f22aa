"""A browser for the pages, where there is one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


class Browser:
    """Chromium without a window; each call is a process of its own, with a profile of its own."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program, self._folder = program, folder

    def _run(self, page: Path, address: str, *options: str) -> str:
        # No sandbox: containers seldom allow one. No GPU: the tests' own driver has other work.
        fixed = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={self._folder}")
        command = [self._program, *fixed, *options, f"{page.as_uri()}#{address}"]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout

    def document(self, page: Path, address: str = "") -> str:
        """What the page has become once its script has run."""
        return self._run(page, address, "--dump-dom")

    def attribute(self, document: str, name: str) -> int:
        """A number that the page's script says of itself."""
        found = re.search(rf'<html[^>]* data-{name}="(\d+)"', document)
        assert found, f"the script has not come as far as data-{name}"
        return int(found[1])

    def picture(self, page: Path, target: Path, address: str = "", size: tuple[int, int] = (1000, 700)) -> bytes:
        """A PNG of the page."""
        self._run(page, address, f"--screenshot={target}", f"--window-size={size[0]},{size[1]}")
        return target.read_bytes()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser: neither CHROMIUM nor the search path has any of {', '.join(NAMES)}")
    return Browser(program, tmp_path_factory.mktemp("browser"))
