"""Exports of Keras that this backend does not have: `webnn_wgpu.exporters` writes graphs instead."""

from __future__ import annotations

from typing import Any


class OpenvinoExportArchive:
    """The archive of a model for serving, which only TensorFlow writes."""

    def track(self, resource: Any) -> None:
        """Say that there is no archive."""
        raise NotImplementedError("`track` is not implemented in the webnn backend.")

    def add_endpoint(self, name: str, fn: Any, input_signature: Any = None, **kwargs: Any) -> None:
        """Say that there is no archive."""
        raise NotImplementedError("`add_endpoint` is not implemented in the webnn backend.")
