"""`load_layers_model` and `load_graph_model`: TensorFlow.js's functions that load models."""

from __future__ import annotations

import os
from typing import Any

from webnn_wgpu import MLContext, NotSupportedError, ml
from webnn_wgpu.frontends.loading import load
from webnn_wgpu.frontends.tfjs import TfjsModel
from webnn_wgpu.frontends.tfjs.contents import GRAPH
from webnn_wgpu.frontends.tfjs.reading import read

from .layers import LayersModel


def load_layers_model(path: str | os.PathLike[str], context: MLContext | None = None) -> LayersModel:
    """Load a layers model, which predicts, trains and can be saved.

    Args:
        path: the path of `model.json`.
        context: where to run. None is the default context.

    Returns:
        The model, with the weights of the file.

    Raises:
        FileNotFoundError: no such file.
        NotSupportedError: not a layers model, or a broken one. The message has the file and the culprit.

    Example:
        >>> from examples.models import tfjs_layers
        >>> with load_layers_model(tfjs_layers()) as model:
        ...     model.compile("sgd", "meanSquaredError")
        ...     history = model.fit(np.zeros((8, 4), np.float32), np.zeros((8, 2), np.float32), epochs=2)
        >>> len(history.history["loss"])
        2
    """
    file = read(path)
    return LayersModel(file, context or ml.create_context())


def load_graph_model(path: str | os.PathLike[str], context: MLContext | None = None, **options: Any) -> TfjsModel:
    """Load a graph model, as `webnn_wgpu.load` does.

    Args:
        path: the path of `model.json`.
        context: where to run. None is the default context.
        options: options of `webnn_wgpu.load`.

    Returns:
        The model, which predicts.

    Raises:
        FileNotFoundError: no such file.
        NotSupportedError: not a graph model, or a broken one. The message has the file and the culprit.
    """
    model = load(path, context, **options)
    if not isinstance(model, TfjsModel) or model.kind != GRAPH:
        model.destroy()
        raise NotSupportedError("load_graph_model: the file is no graph model", got=os.fspath(path), allowed=GRAPH)
    return model
