"""Checks of nodes and constants that need no shapes, so that a model is refused when it is loaded."""

from __future__ import annotations

import numpy as np

from ..common.held import is_held
from .module import TfliteModule
from .operators import TfliteHandler, handler
from .tensors import TfliteGraph, TfliteNode


def check_graph(module: TfliteModule, graph: TfliteGraph) -> None:
    """Check the nodes of a subgraph and the sizes of its constants.

    Raises:
        NotSupportedError: an unknown operator, an operator of a newer version, a type that cannot be held, or a constant whose
            bytes do not fit its shape.
    """
    for node in graph.nodes:
        record = node.record
        if not (record.custom and record.name in module.custom_operators):
            check_node(module, node, handler(record.name, record.custom))
    for value in graph.values:
        if module.constants.has(value.record):
            module.constants.check(value.record)


def check_node(module: TfliteModule, node: TfliteNode, found: TfliteHandler | None) -> None:
    """Check the operator of a node, its version and the types of its tensors.

    Raises:
        NotSupportedError: the node cannot run with any shapes.
    """
    record = node.record
    if found is None:
        hint = ""
        if record.custom:
            flex = record.name.startswith("Flex")
            hint = "; it is an operator of TensorFlow" if flex else "; custom_operators can give it a function"
        raise module.refusal(node, f"the operator is not known{hint}")
    if record.version > found.version:
        raise module.refusal(node, f"versions up to {found.version} are supported")
    for value in (*node.inputs, *node.outputs):
        if value is None or value.record.type_name == "resource":
            continue
        dtype = value.record.dtype
        doubles = dtype is not None and dtype == np.dtype(np.float64)
        if dtype is None or not is_held(dtype) or (doubles and not found.doubles):
            where = f"tensor {value.record.index} ('{value.name}')"
            raise module.refusal(node, f"{where} has the type {value.record.type_name}")
