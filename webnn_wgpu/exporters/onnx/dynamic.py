"""Dynamic dimensions of ONNX models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from webnn_wgpu.core.errors import NotSupportedError


def with_dynamic(
    model: onnx.ModelProto, dynamic: Mapping[str, int], model_of_sizes: Callable[[Mapping[str, int]], onnx.ModelProto]
) -> onnx.ModelProto:
    """Return a model with dynamic dimensions.

    Args:
        model: the model for the largest sizes.
        dynamic: names of the dimensions, with these sizes.
        model_of_sizes: returns the model for other sizes.

    Raises:
        NotSupportedError: something other than one size of a reshape depends on a dimension. The message names it.
    """
    found = onnx.ModelProto()
    found.CopyFrom(model)
    for name, size in dynamic.items():
        if size > 1:
            _merge(found, model_of_sizes({**dynamic, name: size - 1}), name, size)
    return found


def _merge(model: onnx.ModelProto, other: onnx.ModelProto, name: str, size: int) -> None:
    """Give a model a dynamic dimension, which differs in another one."""

    def refuse(what: str) -> NotSupportedError:
        return NotSupportedError(f"the dimension '{name}' cannot stay dynamic: {what} depends on its size", operator="to_onnx")

    graph, changed = model.graph, other.graph
    if len(graph.node) != len(changed.node) or any(
        _without_names(a) != _without_names(b) for a, b in zip(graph.node, changed.node, strict=True)
    ):
        raise refuse("the operators")
    reshapes = {node.input[1]: node.name for node in graph.node if node.op_type == "Reshape"}
    others = {tensor.name: tensor for tensor in changed.initializer}
    for tensor in graph.initializer:
        before, after = numpy_helper.to_array(tensor), others.get(tensor.name)
        if after is None or after.dims != tensor.dims:
            raise refuse(f"the constant '{tensor.name}'")
        if after.raw_data == tensor.raw_data:
            continue
        apart = before != numpy_helper.to_array(after)
        if tensor.name not in reshapes or np.count_nonzero(apart | (before == -1)) != 1:
            raise refuse(f"the constant '{tensor.name}'")
        tensor.raw_data = np.where(apart, -1, before).astype(np.int64).tobytes()
    kept: list[onnx.ValueInfoProto] = []
    shapes = {value.name: value for value in (*changed.input, *changed.output, *changed.value_info)}
    for value in (*graph.input, *graph.output, *graph.value_info):
        for a, b in zip(value.type.tensor_type.shape.dim, shapes[value.name].type.tensor_type.shape.dim, strict=True):
            if a.HasField("dim_value") and a.dim_value != b.dim_value:
                follows = (a.dim_value, b.dim_value) == (size, size - 1)
                a.Clear()
                if follows:
                    a.dim_param = name
        kept.append(value)


def _without_names(node: onnx.NodeProto) -> tuple[Any, ...]:
    return node.op_type, list(node.input), list(node.output), [a.SerializeToString() for a in node.attribute]
