"""The context that Keras computes on: the default one of eager tensors."""

from __future__ import annotations

from webnn_wgpu import MLContext, eager


def context() -> MLContext:
    """Return the context that Keras computes on: `webnn_wgpu.ml.create_context()` makes it, unless `use` gave one."""
    return eager.default_context()


def use(chosen: MLContext) -> None:
    """Compute on a context of one's own from now on. Tensors and variables move to it when they are next used.

    Args:
        chosen: the context.
    """
    eager.set_default_context(chosen)
