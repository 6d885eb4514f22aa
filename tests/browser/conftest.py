"""One browser and one server for the tests of a process, where there is a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.chromium import NAMES, Chromium, Server, program

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("pages"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Chromium]:
    path = program()
    if path is None:
        pytest.skip(f"no browser: neither CHROMIUM nor the search path has any of {', '.join(NAMES)}")
    with Chromium(path) as opened:
        yield opened
