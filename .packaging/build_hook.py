"""Puts the Python that Jinja makes of the templates into wheels."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledTemplates(BuildHookInterface):
    """Compiles them as a wheel is built. An editable install has none: there templates are edited."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the modules where the wheel takes them from."""
        self._folder = Path(tempfile.mkdtemp())
        if version != "editable":
            template_code(Path(self.root)).compile_templates(Path(self.root, "shaders"), self._folder)
            build_data["force_include"][str(self._folder)] = "webnn_wgpu/compiled_templates"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Tidy up."""
        shutil.rmtree(self._folder)


def template_code(root: Path) -> Any:
    """Return `webnn_wgpu.kernels.template_code`, without the package, which needs more than a build has."""
    spec = importlib.util.spec_from_file_location("template_code", root / "webnn_wgpu" / "kernels" / "template_code.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
