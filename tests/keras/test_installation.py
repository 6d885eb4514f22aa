"""How the backend comes into Keras."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support import with_repository

pytestmark = pytest.mark.skipif(find_spec("keras") is None, reason="the extra `keras` is not installed")


def _run(program: str, repository: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=with_repository(repository) | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_does_not_import_keras(repository: Path) -> None:
    assert _run("import sys, webnn_wgpu; print('keras' in sys.modules)", repository) == "False\n"


def test_the_backend_is_the_same_library_under_both_names(repository: Path) -> None:
    program = (
        "import os, sys, webnn_wgpu.keras as ours, keras\n"
        "print(keras.backend.backend(), ours.layers is keras.layers, os.environ['KERAS_BACKEND'])\n"
        "print(sorted(name for name in sys.modules if 'backend.openvino' in name))\n"
    )
    assert _run(program, repository, KERAS_BACKEND="jax") == "webnn True jax\n[]\n"


def test_another_backend_that_is_loaded_is_named(repository: Path) -> None:
    program = (
        "import sys, types\n"
        "keras = sys.modules['keras'] = types.ModuleType('keras')\n"
        "keras.backend = types.SimpleNamespace(backend=lambda: 'numpy')\n"
        "try:\n import webnn_wgpu.keras\nexcept Exception as error: print(type(error).__name__, error)\n"
    )
    found = _run(program, repository)
    assert found.startswith("InvalidStateError")
    assert "Keras with the backend numpy" in found
    assert "Import webnn_wgpu.keras first" in found
