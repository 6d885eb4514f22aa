"""The default context of TensorFlow.js's functions is the context of the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from webnn_wgpu import eager

if TYPE_CHECKING:
    from collections.abc import Iterator

    import webnn_wgpu as wn


@pytest.fixture(autouse=True)
def _default_context(context: wn.MLContext) -> Iterator[None]:
    eager.set_default_context(context)
    yield
    eager.set_default_context(None)
