"""Mesa's drivers beside another LLVM: they are found as Vulkan's loader finds them, and run with symbols of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from webnn_wgpu.runtime import driver_symbols

PROGRAM = """
import numpy as np
from webnn_wgpu.runtime import driver_symbols
driver_symbols.exports_llvm = lambda: {exports}
driver_symbols.has_plain_allocator = lambda: {plain}
import webnn_wgpu as wn
with wn.ml.create_context() as context:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {{"dataType": "float32", "shape": [2]}})
    with builder.build({{"y": builder.relu(x)}}) as graph:
        print(context.compute(graph, {{"x": np.float32([-1, 2])}})["y"].tolist(), driver_symbols.have_own_symbols())
"""


def manifest(folder: Path, name: str, library: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json.dumps({"ICD": {"library_path": library, "api_version": "1.3.0"}}))
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_DATA_DIRS"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return tmp_path


def test_drivers_of_folders_are_those_of_mesa(folder: Path) -> None:
    drivers = folder / "XDG_DATA_DIRS" / "vulkan" / "icd.d"
    manifest(drivers, "a.json", "/usr/lib/libvulkan_lvp.so")
    manifest(drivers, "b.json", "libGLX_nvidia.so.0")
    manifest(drivers, "c.json", "libvulkan_radeon.so")
    manifest(drivers, "d.json", "../libvulkan_intel.so")
    (drivers / "e.json").write_text("{")
    (drivers / "f.json").write_text("[]")
    found = [
        d for d in driver_symbols.mesa_drivers() if "XDG" in d or d in ("/usr/lib/libvulkan_lvp.so", "libvulkan_radeon.so")
    ]
    assert found == ["/usr/lib/libvulkan_lvp.so", "libvulkan_radeon.so", str(drivers / "../libvulkan_intel.so")]
    assert "libGLX_nvidia.so.0" not in driver_symbols.mesa_drivers()


def test_variables_name_drivers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = manifest(folder / "own", "one.json", "libvulkan_one.so")
    manifest(folder / "more", "two.json", "libvulkan_two.so")
    monkeypatch.setenv("VK_ADD_DRIVER_FILES", str(folder / "more"))
    assert driver_symbols.mesa_drivers()[0] == "libvulkan_two.so"
    monkeypatch.setenv("VK_DRIVER_FILES", f"{one}:{folder / 'none.json'}")
    assert driver_symbols.mesa_drivers() == ["libvulkan_one.so"]


@pytest.mark.skipif(not driver_symbols.DEEP, reason="only glibc lets a library look its symbols up in its own libraries first")
@pytest.mark.parametrize(("exports", "plain"), [(True, True), (False, True), (True, False)])
def test_drivers_have_own_symbols_beside_another_llvm(exports: bool, plain: bool) -> None:
    if not driver_symbols.mesa_drivers():
        pytest.skip("there is no driver of Mesa")
    command = [sys.executable, "-c", PROGRAM.format(exports=exports, plain=plain)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f"[0.0, 2.0] {exports and plain}"


PYTHONS = [sys.executable, *(p for p in ("/usr/bin/python3",) if Path(p).exists())]
"""This Python, and that of the system, which Debian and Ubuntu link to fixed addresses."""


def symbols_of(python: str, preloaded: str = "") -> list[str]:
    """Return what a Python finds about its symbols. The module needs nothing that is not installed with every Python."""
    run = f"import runpy; module = runpy.run_path({driver_symbols.__file__!r})"
    program = f"{run}; print(module['exports_llvm'](), module['has_plain_allocator']())"
    environment = {**os.environ, "LD_PRELOAD": preloaded}
    done = subprocess.run([python, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("python", PYTHONS)
def test_a_process_without_another_llvm_exports_none(python: str) -> None:
    assert symbols_of(python) == ["False", "True"]


@pytest.mark.skipif(not driver_symbols.DEEP, reason="drivers are loaded with symbols of their own where there is glibc")
@pytest.mark.parametrize("python", PYTHONS)
def test_a_preloaded_allocator_is_found(tmp_path: Path, python: str) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler to make an allocator with")
    (tmp_path / "allocator.c").write_text(
        "void *__libc_calloc(unsigned long, unsigned long);\n"
        "void *calloc(unsigned long count, unsigned long size) { return __libc_calloc(count, size); }\n"
    )
    library = tmp_path / "allocator.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "allocator.c"], check=True)
    assert symbols_of(python, str(library)) == ["False", "False"]
