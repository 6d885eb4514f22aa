"""Where benchmarks leave their figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.benchmarks.results import Results

if TYPE_CHECKING:
    from collections.abc import Iterator

    import webnn_wgpu as wn


@pytest.fixture(scope="session")
def results(context: wn.MLContext) -> Iterator[Results]:
    found = Results()
    yield found
    found.write(context)
