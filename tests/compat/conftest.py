"""The context of the ported programs: the default adapter's, which the session shares."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest

import webnn_wgpu

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def webnn(monkeypatch: pytest.MonkeyPatch, context: webnn_wgpu.MLContext) -> Iterator[object]:
    """The package under the name its programs import; whatever context they ask for, they get the shared one."""

    def create_context(_self: webnn_wgpu.ML, *_args: object, **_options: object) -> webnn_wgpu.MLContext:
        return context

    monkeypatch.setattr(webnn_wgpu.ML, "create_context", create_context)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        yield webnn_wgpu
