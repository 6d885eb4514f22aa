"""`webnn-wgpu ops`: every operator, with what the adapter supports."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import webnn_wgpu as wn
from webnn_wgpu.cli.app import app
from webnn_wgpu.ops import OPS
from webnn_wgpu.runtime import adapters


def test_the_table_has_every_operator() -> None:
    result = CliRunner().invoke(app, ["ops"], env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output
    assert "RuntimeWarning" not in result.stderr
    rows = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    for name, op in OPS.items():
        assert (name in rows) == (not op.internal), name
    assert "plain, subgroup, tiled" in rows["matmul"]
    assert rows["logicalNot"].split()[1:] == ["x"]


def test_json_holds_the_support_limits(context: wn.MLContext) -> None:
    result = CliRunner().invoke(app, ["ops", "--json"])
    limits = context.op_support_limits()
    own = {name: limits[name] for name, op in OPS.items() if not op.internal and not op.extension}
    assert json.loads(result.stdout) == own | {f"x.{name}": members for name, members in limits["extensions"].items()}


def test_without_an_adapter_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapters, "adapters", list)
    result = CliRunner().invoke(app, ["ops"])
    assert result.exit_code == 1
    assert "mesa-vulkan-drivers" in result.output
