"""What the tests of models share: where the weights are."""

from __future__ import annotations

from pathlib import Path

import pytest

from webnn_wgpu.demos.sentence_encoder import SentenceEncoder


@pytest.fixture(scope="session")
def model_dir() -> Path:
    try:
        return SentenceEncoder.find_model_dir()
    except FileNotFoundError as error:
        pytest.skip(str(error))
