"""`webnn-wgpu bench --suite`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tests.cli.test_models import call
from webnn_wgpu.testing.suite import SuiteRecord

if TYPE_CHECKING:
    from pathlib import Path


def test_the_suite_prints_a_table_and_writes_a_record(tmp_path: Path) -> None:
    file, page = tmp_path / "a.json", tmp_path / "a.html"
    result = call("bench", "--suite", "--only", "product", "-t", "0", "--json", file, "--html", page)
    record = SuiteRecord.from_json(file.read_text(encoding="utf-8"))
    (figures,) = record.models
    assert (figures.name, figures.runs) == ("product", 3)
    assert re.search(rf"product +{figures.wall_ms:.2f} ", result.stdout)
    assert record.adapter in result.stdout
    assert "product" in result.stderr
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    printed = call("bench", "--suite", "--only", "product", "-t", "0", "--json", "-").stdout
    assert json.loads(printed)["models"][0]["name"] == "product"


def test_what_the_suite_has_not_is_said(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    assert "no model is called 'bert'; there are product," in call("bench", "--suite", "--only", "bert", exit_code=2).stderr
    assert "name no MODEL" in call("bench", tmp_path / "model.onnx", "--suite", exit_code=2).stderr
    assert "--tune is an option of --suite" in call("bench", tmp_path / "model.onnx", "--tune", exit_code=2).stderr
    assert "measures a device" in call("bench", "--suite", "--device", "reference", exit_code=1).stderr
