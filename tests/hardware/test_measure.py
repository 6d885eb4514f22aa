"""`python -m tests.hardware.measure`, on the adapter of the tests."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.conformance import sources
from tests.hardware import measure
from webnn_wgpu.testing.suite import NO_TIME, SuiteRecord

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from webnn_wgpu.testing import Case

pytestmark = pytest.mark.device


def some_cases() -> list[Case]:
    return [case for case in sources.file_cases() if case.operator == "relu"]


def run(folder: Path, *arguments: str) -> tuple[int, SuiteRecord]:
    """Run the command and return its status and its record. When its time is over, it goes on here, as the process must."""
    status = measure.main([*arguments, "--seconds", "0", "--output", str(folder)], end=lambda status: None)
    (file,) = folder.glob("*.json")
    (page,) = folder.glob("*.html")
    assert page.stem == file.stem
    return status, SuiteRecord.from_json(file.read_text(encoding="utf-8"))


def test_a_run_has_cases_models_tuning_and_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BENCH_MODELS", raising=False)
    monkeypatch.setattr(sources, "all_cases", some_cases)
    status, record = run(tmp_path, "--minutes", "5", "--only", "mlp")
    assert status == 0
    assert record.conformance is not None
    assert record.conformance.passed == len(some_cases())
    (figures,) = record.models
    assert figures.name == "mlp"
    assert figures.dispatches == 2
    assert figures.difference is not None
    assert figures.difference <= 2e-5
    assert figures.tuned_ms
    assert record.variants
    peer = figures.peers["onnxruntime CPU"]
    assert peer.wall_ms
    assert peer.first_ms
    assert peer.first_ms > peer.wall_ms


def test_what_the_time_does_not_suffice_for_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BENCH_MODELS", raising=False)
    monkeypatch.setattr(sources, "all_cases", some_cases)
    status, record = run(tmp_path, "--minutes", "0", "--only", "mlp")
    assert status == 0
    assert record.conformance is not None
    assert (record.conformance.passed, record.conformance.not_run) == (0, len(some_cases()))
    (figures,) = record.models
    assert (figures.name, figures.note, figures.error) == ("mlp", NO_TIME, "")


def test_a_run_that_hangs_ends_with_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BENCH_MODELS", raising=False)
    monkeypatch.setattr(sources, "all_cases", some_cases)
    over: list[Callable[[], None]] = []
    statuses: list[int] = []

    def limit(until: float, call: Callable[[], None]) -> nullcontext[None]:
        over.append(call)
        return nullcontext()

    def hang(*arguments: object, **options: object) -> None:
        over[0]()
        raise SystemExit

    monkeypatch.setattr(measure, "TimeLimit", limit)
    monkeypatch.setattr(measure, "run_suite", hang)
    with pytest.raises(SystemExit):
        measure.main(["--only", "mlp", "resnet50", "--output", str(tmp_path)], end=statuses.append)
    (file,) = tmp_path.glob("*.json")
    record = SuiteRecord.from_json(file.read_text(encoding="utf-8"))
    assert record.conformance is not None
    assert record.conformance.passed == len(some_cases())
    assert [(figures.name, figures.note) for figures in record.models] == [("mlp", NO_TIME), ("resnet50", NO_TIME)]
    assert statuses == [0]


def test_a_wrong_case_fails_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, *_ = some_cases()
    (name, wanted), *_ = case.expected.items()
    wrong = replace(case, name="wrong", expected={**case.expected, name: replace(wanted, data=1e4)})
    monkeypatch.setattr(sources, "all_cases", lambda: [case, wrong])
    status, record = run(tmp_path, "--minutes", "5", "--only", "nothing")
    assert status == 1
    assert record.conformance is not None
    assert record.conformance.passed == 1
    assert list(record.conformance.failed) == [f"{case.operator}: wrong"]


def test_a_runtime_that_fails_says_why(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no model")
    (tmp_path / "inputs.npz").write_bytes(b"")
    assert "onnxruntime CPU" in measure.runtimes([sys.executable])
    figures, results = measure.run_peer(
        sys.executable, "onnxruntime CPU", tmp_path / "model.onnx", tmp_path / "inputs.npz", tmp_path, 0, 60
    )
    assert results is None
    assert figures.note
    assert figures.wall_ms is None


def test_a_runtime_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "peers.py"
    program.write_text("import time; time.sleep(60)")
    monkeypatch.setattr(measure, "PEERS", program)
    figures, results = measure.run_peer(sys.executable, "any", program, program, tmp_path, 0, 0.2)
    assert (figures.note, results) == ("took too long", None)
