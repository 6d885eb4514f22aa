"""`webnn-wgpu interpret`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx
import pytest
from click.testing import CliRunner, Result

import webnn_wgpu as wn
from examples.models import mlp
from webnn_wgpu.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

    from webnn_wgpu.inspection import Kernel


def call(*arguments: Any, typed: str = "", exit_code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["interpret", *map(str, arguments)], input=typed)
    assert result.exit_code == exit_code, result.output
    return result


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(mlp(), tmp_path / "mlp.onnx")
    return tmp_path / "mlp.onnx"


@pytest.fixture
def kernel(model: Path) -> Kernel:
    with wn.load(model, override_dims={"N": 1}) as loaded:
        return list(loaded.graph.kernels.values())[-1]


def test_a_kernel(model: Path, kernel: Kernel) -> None:
    line = call(model, "--kernel", kernel.name).stdout
    assert line.startswith(f"{kernel.name}: ")
    assert "nothing found" in line


def test_stops(model: Path, kernel: Kernel) -> None:
    shown = call(model, "--kernel", kernel.name, "--invocation", "0,0,0", typed="n\nv\np params\nc\n").stdout
    first, second = (line for line in shown.splitlines() if " in main, invocation (0, 0, 0): " in line)
    assert first != second
    assert "nothing found" in shown
    shown = call(model, "--kernel", kernel.name, "--break", "1").stdout
    assert f"no stop: no statement was run at line 1\n`webnn-wgpu kernels {model} --show {kernel.name}` prints" in shown
    shown = call(model, "--kernel", kernel.name, "--invocation", "999999").stdout
    assert "no stop: invocation (999999, 0, 0) ran no statement\n" in shown
    shown = call(model, "--kernel", kernel.name, "--workgroup", "0", "--break", "99999", exit_code=1).output
    assert "a breakpoint must be a line of the kernel" in shown


def test_wrong_options(model: Path) -> None:
    assert "'nobody' is the name of no kernel" in call(model, "--kernel", "nobody", exit_code=2).output
    assert "is not of the form X,Y,Z" in call(model, "--kernel", "x", "--workgroup", "a", exit_code=2).output
