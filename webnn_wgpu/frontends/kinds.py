"""Kinds of files that their suffixes do not tell apart."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

_ONNX_EXPORT = "torch.onnx.export writes ONNX models"
_PICTURE = "A picture is an input: webnn-wgpu run model.onnx -i PICTURE"
_STARTS = (
    (b"\xff\xd8\xff", "a JPEG picture", _PICTURE),
    (b"\x89PNG", "a PNG picture", _PICTURE),
    (b"GIF8", "a GIF picture", _PICTURE),
    (b"RIFF", "a WebP picture, or a sound", _PICTURE),
    (b"\x93NUMPY", "a numpy array", "An array is an input: webnn-wgpu run model.onnx -i ARRAY.npy"),
    (b"version https://git-lfs", "a pointer of Git LFS", "git lfs pull downloads the model"),
    (b"PK\x03\x04", "a ZIP archive, as PyTorch and Keras write", _ONNX_EXPORT),
    (b"\x80", "a pickle, as PyTorch writes", _ONNX_EXPORT),
    (b"\x89HDF", "an HDF5 file, as Keras writes", "tf2onnx writes ONNX models of Keras models"),
    (b"GGUF", "a GGUF model", "Models of this kind are not supported"),
    (b"<", "a page of HTML or XML", "Download the model itself"),
)
"""Starts of files that are given by mistake in place of a model, their kinds, and the next steps."""

_WGSL = ("@compute", "@group(", "var<storage")
"""Words of compute shaders."""

_TFLITE_AT, _TFLITE = 4, b"TFL3"

MOST_TEXT = 1 << 28
"""The maximum size of the model.json of a TensorFlow.js model, in bytes."""


def is_tfjs(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is the model.json of a TensorFlow.js model, by its content."""
    place = Path(path)
    if place.suffix.lower() != ".json" or not place.is_file() or place.stat().st_size > MOST_TEXT:
        return False
    data = place.read_bytes()
    if b'"modelTopology"' not in data:
        return False
    try:
        document: Any = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "modelTopology" in document


def mistaken_for_model(data: bytes) -> tuple[str, str]:
    r"""Return the kind of a file that is no ONNX model, and the next step, or two empty texts.

    Args:
        data: the first bytes of the file.

    >>> mistaken_for_model(b"GIF89a")[0], mistaken_for_model(b"\x08\x07")[0]
    ('a GIF picture', '')
    >>> mistaken_for_model(b"@group(0) @binding(0) var<storage> x: array<f32>;")[0]
    'WGSL'
    """
    for start, what, hint in _STARTS:
        if data.startswith(start):
            return what, hint
    if data[_TFLITE_AT:].startswith(_TFLITE):
        return "a TFLite model", "The file's name must end in .tflite"
    text = data.decode("utf-8", "replace")
    is_text = bool(text) and all(c.isprintable() or c.isspace() for c in text[:-1]) and "\ufffd" not in text[:-1]
    if is_text and any(word in text for word in _WGSL):
        return "WGSL", "`webnn_wgpu.run_wgsl` runs a shader, and `webnn_wgpu.debug.interpret` finds its races"
    return ("a text", "") if is_text else ("", "")
