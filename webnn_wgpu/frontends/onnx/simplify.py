"""Simplification of a model by a package of others, before it is lowered."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import onnx

from webnn_wgpu import MLTypeError, NotSupportedError

SIMPLIFIERS = ("onnxslim",)


def simplified(source: str | os.PathLike[str] | bytes | onnx.ModelProto, by: str) -> onnx.ModelProto:
    """Return a model that computes the same with fewer nodes.

    Args:
        source: path of a file, the bytes of one, or a parsed model.
        by: the package that does it: "onnxslim".

    Raises:
        MLTypeError: `by` names none of them.
        NotSupportedError: the package is not installed, or fails.
        FileNotFoundError: no such file.
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
    except Exception as error:  # whatever the package stumbles over
        raise NotSupportedError(
            f"{by} could not simplify the model: {type(error).__name__}: {error}", operator="load", hint="Load it without"
        ) from error
