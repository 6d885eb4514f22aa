"""The import of onnx_ir without sympy, if the application allows it: see `optimize_process`.

onnx_ir uses sympy for arithmetic with symbolic dimensions. The import of sympy takes longer than all other imports of a model.
This package does not use that arithmetic, so sympy and the onnx_ir module that imports it are loaded at the first use of their
names. The same applies to modules that onnx imports and this package does not use.
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
    """An import finder that defers the execution of some modules to their first use."""

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
