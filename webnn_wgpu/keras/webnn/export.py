"""Exports of Keras that this backend does not have: `webnn_wgpu.exporters` writes graphs instead."""

from __future__ import annotations


class OpenvinoExportArchive:
    """The archive of a model for serving, which only other backends write. Keras imports it by this name."""

    def __init__(self) -> None:
        raise NotImplementedError(
            "`export_saved_model` only currently supports the tensorflow, jax and torch backends. "
            "webnn_wgpu.exporters writes graphs."
        )
