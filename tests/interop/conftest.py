"""A context on a device as a program of somebody else's has it: WebGPU's default limits, and no features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import webnn_wgpu as wn
from tests.support import open_profile

if TYPE_CHECKING:
    from collections.abc import Iterator

    import wgpu


@pytest.fixture
def gpu() -> wgpu.GPUDevice:
    return open_profile("default-limits").gpu


@pytest.fixture
def own(gpu: wgpu.GPUDevice) -> Iterator[wn.MLContext]:
    """A context of the test's own on that device."""
    with wn.ml.create_context(gpu) as context:
        yield context


@pytest.fixture(scope="session")
def reference() -> Iterator[wn.MLContext]:
    with wn.ml.create_context(backend="reference") as context:
        yield context
