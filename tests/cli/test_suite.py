"""`webnn-wgpu bench --suite`."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.cli.test_models import call
from webnn_wgpu.testing.suite import ModelFigures, SuiteRecord

if TYPE_CHECKING:
    from pathlib import Path

    import webnn_wgpu as wn


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
    assert "--num_runs is an option of MODEL" in call("bench", "--suite", "-r", "5", exit_code=2).stderr
    assert "--input is an option of MODEL" in call("bench", "--suite", "-i", "x=1", exit_code=2).stderr
    assert "measures a device" in call("bench", "--suite", "--device", "reference", exit_code=1).stderr


def test_two_records_are_compared(tmp_path: Path, context: wn.MLContext) -> None:
    begun = SuiteRecord.begin(context)
    common = ModelFigures(name="product", runs=3, wall_ms=4.0, gpu_ms=2.0)
    others = (ModelFigures(name="unet", runs=3, wall_ms=1.0), ModelFigures(name="resnet50", note="not measured"))
    first = replace(begun, models=(common, *others))
    second = replace(begun, models=(replace(common, wall_ms=5.0, gpu_ms=None), others[1]), processor="another machine")
    files = tmp_path / "one.json", tmp_path / "two.json"
    for file, record in zip(files, (first, second), strict=True):
        file.write_text(record.to_json(), encoding="utf-8")
    printed = call("bench", "--compare", *files).stdout
    assert re.search(r"product +4\.00 +5\.00 +1\.250 +2\.00 *$", printed, re.MULTILINE)
    assert "unet" not in printed
    assert "resnet50" not in printed
    assert f"{begun.processor} | another machine" in printed
    files[0].write_text("{}", encoding="utf-8")
    assert "is no record of this command" in call("bench", "--compare", *files, exit_code=1).stderr
