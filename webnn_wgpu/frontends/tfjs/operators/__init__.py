"""One module per family of operators of graph models. Each registers the functions that lower its operators."""

from importlib import import_module

from ._registry import HANDLERS, Handler, Result

__all__ = ["HANDLERS", "Handler", "Result"]

for _module in (
    "control",
    "creation",
    "elementwise",
    "images",
    "indexing",
    "linear",
    "lists",
    "normalization",
    "random",
    "shaping",
):
    import_module(f"{__name__}.{_module}")
