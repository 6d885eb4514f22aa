"""Graphs of the predictions of models, for exporters and programs without Keras."""

from __future__ import annotations

from typing import Any

from keras.src import tree
from keras.src.backend.common.stateless_scope import StatelessScope

from webnn_wgpu import MLGraph, MLTypeError, NotSupportedError, eager

from . import core
from .tensor import recorded, unknown


def graph(model: Any, x: Any) -> MLGraph:
    """Return the predictions of a model as a graph, with the weights as constants.

    An array becomes the input "input". Arrays in a mapping become inputs with the names of its keys, and arrays in a list
    "input_0", "input_1" and so on. The outputs are named in the same way: "output", keys, or "output_0".

    Args:
        model: a model that is built.
        x: a batch as for `predict`. The inputs of the graph have its shapes and data types.

    Returns:
        The graph, on the context that Keras computes on.

    Raises:
        MLTypeError: the model is not built.
        NotSupportedError: an input or output that no device holds: complex numbers, strings, or no elements.
        UnknownValueError: a function of the model runs on the host, or its Python code asks for the value of a tensor.

    Example:
        >>> from webnn_wgpu import keras
        >>> model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(3, activation="softmax")])
        >>> keras.graph(model, np.zeros((1, 2)))
        MLGraph(input: float32[1, 2] -> output: float32[1, 3])
    """
    if not model.built:
        raise MLTypeError("the model must be built", operator="graph", got=model.name, hint="Call it on a batch first")
    inputs = tree.map_structure(lambda each: unknown(each.shape, each.dtype), tree.map_structure(core.convert_to_tensor, x))
    given = _named(inputs, "input")
    # Seeds and other states that a prediction changes keep their values.
    with StatelessScope():
        outputs = model.predict_step((inputs,))
    return eager.graph(given, _named(outputs, "output"))


def _named(structure: Any, word: str) -> dict[str, eager.Tensor]:
    """Return the tensors of a structure by the name of their place."""
    found: dict[str, eager.Tensor] = {}
    for path, each in tree.flatten_with_path(structure):
        places = path if path and isinstance(path[0], str) else (word, *path)
        name, tensor = "_".join(map(str, places)), core.convert_to_tensor(each)
        if tensor.value is None:
            rule = "inputs and outputs must be tensors that a device holds"
            raise NotSupportedError(rule, operator="graph", label=name, got=f"{tensor.dtype}{list(tensor.shape)}")
        found[name] = recorded(tensor)
    return found
