"""Graphs in the formats of other programs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import coreml, graphviz, html, javascript, onnx, python, web

_MODULES = ("coreml", "graphviz", "html", "javascript", "onnx", "python", "web")

if not TYPE_CHECKING:  # of which type checkers would conclude that the module has any name

    def __getattr__(name: str) -> Any:
        # Some modules need other packages, so each is imported when it is first used.
        if name not in _MODULES:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        return import_module(f".{name}", __name__)


__all__ = ["coreml", "graphviz", "html", "javascript", "onnx", "python", "web"]
