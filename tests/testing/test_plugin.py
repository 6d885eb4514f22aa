"""What the plugin does in a project of somebody else's, that has the package installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

from tests.support import with_repository
from webnn_wgpu.testing.kernels import contexts

if TYPE_CHECKING:
    from pathlib import Path

PLUGIN = "_webnn_wgpu_pytest"

TESTS = '''
import numpy as np
import pytest

SOURCE = """
@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&x)) { y[id.x] = x[id.x] * FACTOR; }
}"""

@pytest.mark.parametrize("factor", [2, 3])
def test_scale(check_kernel, factor):
    report = check_kernel(SOURCE, lambda x: x * np.float32(factor), shapes=[(5,)], workgroups=1, constants={"FACTOR": factor})
    print(report)

def test_wrong(check_kernel):
    check_kernel(SOURCE, np.square, shapes=[(5,)], workgroups=1, constants={"FACTOR": 2}, label="scale")
'''


UNUSED = """
import sys

def test_nothing_is_imported(request):
    assert request.config.pluginmanager.hasplugin("_webnn_wgpu_pytest")
    assert not [name for name in sys.modules if name.partition(".")[0] in ("webnn_wgpu", "wgpu", "numpy", "jinja2")]
"""


def run(folder: Path, repository: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_own.py").write_text(text, encoding="utf-8")
    environment = with_repository(repository, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    # Where it lies if the package is run from the repository without being installed.
    environment["PYTHONPATH"] += os.pathsep + str(repository / ".packaging" / "pytest")
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rA",
            "-p",
            PLUGIN,
            "-p",
            "no:cacheprovider",
            str(folder),
        ],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_fixture_runs_a_test_on_each_adapter(tmp_path: Path, repository: Path) -> None:
    done = run(tmp_path, repository, TESTS)
    adapters = len(contexts())
    assert f"{adapters} failed, {2 * adapters} passed" in done.stdout, done.stdout + done.stderr
    assert "webnn_wgpu.testing.kernel_report.KernelFault: kernel scale" in done.stdout
    assert "y: 5 of 5 elements are further than 0 ULP from the reference" in done.stdout


def test_the_package_is_not_imported_before_the_fixture_is_used(tmp_path: Path, repository: Path) -> None:
    done = run(tmp_path, repository, UNUSED)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pytest_finds_it(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["entry-points"]["pytest11"] == {"webnn_wgpu": PLUGIN}
