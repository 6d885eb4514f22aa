"""Contexts of the API tests: one on the device, one on the numpy reference, and fresh ones that a test may destroy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import webnn_wgpu as wn
from tests.support import open_profile

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def reference() -> Iterator[wn.MLContext]:
    with wn.ml.create_context(backend="reference") as context:
        yield context


@pytest.fixture(params=["device", "reference"])
def anywhere(request: pytest.FixtureRequest) -> wn.MLContext:
    """The shared context on each backend in turn; not to be destroyed."""
    return request.getfixturevalue("context" if request.param == "device" else "reference")


@pytest.fixture(params=["device", "reference"])
def fresh(request: pytest.FixtureRequest) -> Iterator[wn.MLContext]:
    """A context of the test's own on each backend in turn. Those on a device share one, hence its compiled kernels."""
    if request.param == "device":
        context = wn.ml.create_context(open_profile("full").gpu)
    else:
        context = wn.ml.create_context(backend="reference")
    with context:
        yield context
