"""Imports onnx_ir without sympy, where the program allows that: see `optimize_process`.

onnx_ir computes with symbolic dimensions by sympy, whose import takes longer than all else that a model needs. Nothing here
computes with them: sympy, and the module of onnx_ir that needs it at once, are left to be loaded when one of their names is
first used. So are modules that onnx imports and nothing here uses.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

from webnn_wgpu.api.process import process_options

_LATER = (
    "sympy",
    "onnx_ir._symbolic_shapes",
    "onnx.compose",
    "onnx.gen_proto",
    "google.protobuf.json_format",
    "google.protobuf.text_format",
)


class _Later(MetaPathFinder):
    """Finds some modules such that they are loaded when they are first used."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname in _LATER else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


if process_options().lazy_modules:
    _finder = _Later()
    sys.meta_path.insert(0, _finder)
    try:
        import_module("onnx_ir")
    finally:
        sys.meta_path.remove(_finder)
