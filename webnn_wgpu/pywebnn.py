"""pywebnn's rules where the specification's draft differs from them: `import webnn_wgpu.pywebnn as webnn`.

All other names are those of `webnn_wgpu`.

Example:
    >>> import webnn_wgpu.pywebnn as webnn
    >>> builder = webnn.ML().create_context(accelerated=False).create_graph_builder()
    >>> x = builder.input("x", [2, 3], "float32")
    >>> builder.arg_max(x, axis=1).data_type, builder.logical_not(x).data_type
    ('int64', 'uint8')
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .api import pywebnn_rules

ML = pywebnn_rules.PywebnnML
MLGraphBuilder = pywebnn_rules.PywebnnBuilder
ml = pywebnn_rules.pywebnn_ml

__all__ = ["ML", "MLGraphBuilder", "ml"]

if not TYPE_CHECKING:  # type checkers would conclude that the module has any name

    def __getattr__(name: str) -> Any:
        return getattr(import_module("webnn_wgpu"), name)
