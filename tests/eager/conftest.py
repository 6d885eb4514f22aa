"""A context and an engine of its own for each test, so that counts begin at 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import webnn_wgpu as wn
from webnn_wgpu import eager
from webnn_wgpu.eager.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def engine() -> Iterator[Engine]:
    """The engine of a new reference context, which is the default one."""
    with wn.ml.create_context(backend="reference") as context:
        eager.set_default_context(context)
        yield Engine.of(context)
        eager.set_default_context(None)
