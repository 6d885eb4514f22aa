"""The programs run on the device and on the numpy reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import webnn_wgpu as wn

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def reference() -> Iterator[wn.MLContext]:
    with wn.ml.create_context(backend="reference") as made:
        yield made


@pytest.fixture(params=["device", "reference"])
def context(request: pytest.FixtureRequest, context: wn.MLContext) -> wn.MLContext:
    """The shared context on each backend in turn; not to be destroyed."""
    return context if request.param == "device" else request.getfixturevalue("reference")
