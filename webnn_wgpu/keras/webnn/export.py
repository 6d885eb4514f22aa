"""Exports of Keras that this backend does not have: `webnn_wgpu.keras.graph` gives a graph to save instead."""

from __future__ import annotations


class OpenvinoExportArchive:
    """The archive of a model for serving, which only other backends write. Keras imports it by this name."""

    def __init__(self) -> None:
        raise NotImplementedError(
            "`export_saved_model` only currently supports the tensorflow, jax and torch backends. "
            "webnn_wgpu.keras.graph(model, x).save('model.onnx') writes the predictions of a model."
        )
