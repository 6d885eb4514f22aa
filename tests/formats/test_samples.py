"""Graph files of other programs: each valid one computes, each invalid one is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.optional import GRAPH_FILES

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = GRAPH_FILES.folder()
SAMPLES: dict[str, list[dict[str, Any]]] = (
    {"cases": [], "rejects": []} if FOLDER is None else json.loads((FOLDER / "cases.json").read_text())
)


def _options(folder: Path, sample: dict[str, Any]) -> dict[str, str]:
    return {name: str(folder / path) for name, path in sample["options"].items()}


def _check(sample: dict[str, Any], context: wn.MLContext) -> None:
    assert FOLDER is not None
    with wn.load(FOLDER / sample["file"], context, override_dims=sample["override_dims"], **_options(FOLDER, sample)) as model:
        data = np.load(FOLDER / sample["data"])
        results = model.run({name: data[f"in{i}"] for i, name in enumerate(sample["inputs"])})
    assert list(results) == sample["outputs"]
    for i, name in enumerate(sample["outputs"]):
        expected, result = data[f"out{i}"], results[name]
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        if expected.dtype.kind != "f":
            np.testing.assert_array_equal(result, expected)
            continue
        relative, absolute = (8e-3, 4e-3) if expected.dtype == np.float16 else (2e-4, 2e-5)
        largest = max(1.0, float(np.abs(expected[np.isfinite(expected)], dtype=np.float64).max(initial=0)))
        np.testing.assert_allclose(result.astype(np.float64), expected, rtol=relative, atol=absolute * largest)


@pytest.mark.parametrize("sample", SAMPLES["cases"], ids=lambda s: s["file"])
def test_valid_files_compute_on_the_device(sample: dict[str, Any], context: wn.MLContext) -> None:
    _check(sample, context)


@pytest.mark.parametrize("sample", SAMPLES["cases"], ids=lambda s: s["file"])
def test_valid_files_compute_on_the_reference(sample: dict[str, Any]) -> None:
    with wn.ml.create_context(backend="reference") as context:
        _check(sample, context)


@pytest.mark.parametrize("sample", SAMPLES["rejects"], ids=lambda s: s["file"])
def test_invalid_files_are_refused_with_place_and_culprit(sample: dict[str, Any]) -> None:
    assert FOLDER is not None
    with wn.ml.create_context(backend="reference") as context, pytest.raises(wn.MLTypeError) as refused:
        wn.load(FOLDER / sample["file"], context, **_options(FOLDER, sample))
    message = str(refused.value)
    assert (FOLDER / sample["file"]).stem in message
    assert any(words in message for words in sample["says"]), message
    assert isinstance(refused.value, OSError)
