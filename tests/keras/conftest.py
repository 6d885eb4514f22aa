"""Keras on the reference backend, in the process of the tests."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

import webnn_wgpu as wn


@pytest.fixture(scope="module")
def keras() -> Any:
    if find_spec("keras") is None:
        pytest.skip("the extra `keras` is not installed")
    from webnn_wgpu import keras

    keras.use(wn.ml.create_context(backend="reference"))
    keras.utils.clear_session()
    keras.utils.set_random_seed(0)
    return keras
