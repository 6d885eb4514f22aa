from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from functools import cache as cache_results
from pathlib import Path

import pytest

from tests.kernels.operators import calls
from tests.support import op_graph
from tests.unit.plans import caps_of
from webnn_wgpu.core import cache
from webnn_wgpu.costs import Target
from webnn_wgpu.kernels import sources
from webnn_wgpu.kernels.sources import source_of, templates_digest
from webnn_wgpu.kernels.spec import KernelSpec
from webnn_wgpu.kernels.templates import render, shader_root
from webnn_wgpu.plan import make_plan


@cache_results
def specs() -> tuple[KernelSpec, ...]:
    """Return kernels of every operator."""
    caps = caps_of("lavapipe")
    plans = [make_plan(op_graph(call.name, call.arrays(), call.attrs, call.constants), Target.of(caps)) for call in calls()]
    return tuple(dict.fromkeys(d.spec for plan in plans for d in plan.dispatches))


def keys() -> list[str]:
    """Return what their sources are kept under."""
    return [cache.key_of(spec) for spec in specs()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("WEBNN_WGPU_CACHE", raising=False)
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    return tmp_path / "kernels"


def test_kernels_have_the_same_key_in_every_process() -> None:
    # Sets would print in another order, and objects without a text of their own with their address.
    program = "import tests.unit.test_sources as own; print(*own.keys())"
    found = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == keys()
    assert len(set(keys())) == len(keys()) > 100


def test_a_source_is_rendered_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = specs()[::9]
    rendered = [source_of(spec) for spec in some]
    assert rendered == [render(spec) for spec in some]
    monkeypatch.setattr(sources, "render", lambda spec: pytest.fail("it is on disk"))
    assert [source_of(spec) for spec in some] == rendered
    assert len(list(folder.iterdir())) == len(some)


def test_a_damaged_source_is_rendered_anew(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    spec = specs()[0]
    source = source_of(spec)
    (file,) = folder.iterdir()
    file.write_bytes(file.read_bytes().replace(b"fn main", b"fn niam"))
    with caplog.at_level(logging.WARNING):
        assert source_of(spec) == source
        assert source_of(spec) == source
    assert [record.getMessage() for record in caplog.records] == [f"{file} is damaged and will be made anew"]


def test_a_changed_template_makes_other_sources(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copytree(shader_root(), tmp_path / "shaders")
    before = templates_digest()
    monkeypatch.setattr(sources, "shader_root", lambda: tmp_path / "shaders")
    try:
        templates_digest.cache_clear()
        assert templates_digest() == before
        with (tmp_path / "shaders" / "lib" / "math" / "exp.wgsl").open("a") as file:
            file.write("// changed\n")
        templates_digest.cache_clear()
        assert templates_digest() != before
    finally:
        templates_digest.cache_clear()


def test_the_cache_does_not_grow_for_ever(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_MOST_BYTES", 200_000)
    monkeypatch.setattr(sources, "_TIDY_AFTER", 1)
    for spec in specs()[:100]:
        source_of(spec)
    assert 0 < sum(file.stat().st_size for file in folder.iterdir()) <= 200_000
