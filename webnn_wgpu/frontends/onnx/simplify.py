"""Simplification of a model by another package, before the lowering."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import onnx

from webnn_wgpu import MLTypeError, NotSupportedError

SIMPLIFIERS = ("onnxslim",)


def simplified(source: str | os.PathLike[str] | bytes | onnx.ModelProto, by: str) -> onnx.ModelProto:
    """Return an equivalent model with fewer nodes.

    Args:
        source: the path of a file, its bytes, or a parsed model.
        by: the name of the package: "onnxslim".

    Raises:
        MLTypeError: `by` is unknown.
        NotSupportedError: the package is not installed, or fails.
        FileNotFoundError: the file does not exist.
    """
    if by not in SIMPLIFIERS:
        raise MLTypeError("unknown simplifier", operator="load", got=repr(by), allowed=", ".join(SIMPLIFIERS))
    try:
        package: Any = import_module(by)
    except ModuleNotFoundError as error:
        raise NotSupportedError(
            f"simplify='{by}' needs the package '{error.name}'", operator="load", hint="pip install 'webnn-wgpu[simplify]'"
        ) from error
    if isinstance(source, (str, os.PathLike)):
        os.stat(source)
    try:
        model = onnx.load_from_string(source) if isinstance(source, bytes) else source
        return package.slim(model if isinstance(model, onnx.ModelProto) else os.fspath(model))
    except Exception as error:  # the package raises errors of many types
        raise NotSupportedError(
            f"{by} could not simplify the model: {type(error).__name__}: {error}", operator="load", hint="Load it without"
        ) from error
