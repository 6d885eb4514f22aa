"""The sentence encoder runs on the device alone: nothing but its shaders makes the numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.support import new_profile, open_profile
from webnn_wgpu.demos.sentence_encoder import SentenceEncoder
from webnn_wgpu.kernels.spec import KernelSpec
from webnn_wgpu.reference import interpreter
from webnn_wgpu.runtime import device as runtime_device
from webnn_wgpu.runtime import pipelines

SENTENCES = ["A small cat sleeps on the warm stove.", "Shares fell sharply on Tuesday."]


def encode(model_dir: Path, context: wn.MLContext) -> np.ndarray:
    with SentenceEncoder(model_dir, context) as encoder:
        return encoder.encode(SENTENCES)


@pytest.fixture(scope="module")
def embeddings(model_dir: Path, context: wn.MLContext) -> np.ndarray:
    return encode(model_dir, context)


def test_the_reference_takes_no_part_in_a_run(
    model_dir: Path, context: wn.MLContext, embeddings: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SentenceEncoder(model_dir, context) as encoder:
        (batch,) = encoder.batches(encoder.tokenize(SENTENCES))
        encoder.graph_for(*batch.shape)

        def refuse(*args: object) -> None:
            raise AssertionError("the reference was called after build()")

        monkeypatch.setattr(interpreter, "evaluate", refuse)
        monkeypatch.setattr(interpreter, "interpret", refuse)
        np.testing.assert_array_equal(encoder.encode(SENTENCES), embeddings)


def templates_used(model_dir: Path, context: wn.MLContext) -> list[str]:
    with SentenceEncoder(model_dir, context) as encoder:
        (batch,) = encoder.batches(encoder.tokenize(SENTENCES))
        plan = encoder.graph_for(*batch.shape).plan
        assert plan is not None
        return sorted({d.spec.template for d in plan.dispatches})


@pytest.fixture
def fresh_context(request: pytest.FixtureRequest) -> Iterator[wn.MLContext]:
    """A context on a device of its own, which has compiled nothing yet."""
    device = new_profile(request.param)
    with wn.ml.create_context(device.gpu) as context:
        yield context


@pytest.mark.parametrize("fresh_context", ["full", "default-limits"], indirect=True)
def test_every_template_counts(
    model_dir: Path, fresh_context: wn.MLContext, embeddings: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Make each template in turn return before it stores anything; the embeddings must change."""
    used = templates_used(model_dir, fresh_context)
    assert {"attention", "elementwise", "gather", "normalization", "reduce"} <= {name.split(".")[0] for name in used}
    render = pipelines.source_of
    unchanged: list[str] = []
    for corrupted in used:

        def broken(spec: KernelSpec, corrupted: str = corrupted) -> str:
            source = render(spec)
            if spec.template != corrupted:
                return source
            broken_source, count = re.subn(r"(fn main\([^{]*\{)", r"\1 if (true) { return; }", source)
            assert count == 1
            return broken_source

        monkeypatch.setattr(pipelines, "source_of", broken)
        # Forget what the device has compiled, so that every kernel is rendered again.
        runtime_device.Device.of(fresh_context.device).shared.pop("pipelines", None)
        if np.allclose(encode(model_dir, fresh_context), embeddings, atol=1e-3):
            unchanged.append(corrupted)
    assert unchanged == []


def test_a_device_with_default_limits_and_no_features_gives_the_same(model_dir: Path, embeddings: np.ndarray) -> None:
    device = open_profile("default-limits")
    assert not device.caps.features
    with wn.ml.create_context(device.gpu) as context:
        np.testing.assert_allclose(encode(model_dir, context), embeddings, atol=2e-6)
