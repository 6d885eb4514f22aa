"""Contexts, graphs and tensors are context managers that return themselves."""

from typing import assert_type

import webnn_wgpu as wn


def program(context: wn.MLContext) -> None:
    with wn.ml.create_context(backend="reference") as own, own.create_tensor([2], "float32", writable=True) as tensor:
        assert_type(own, wn.MLContext)
        builder = own.create_graph_builder(profile="2026")
        with builder.build({"y": builder.abs(builder.input("x", [2], "float32"))}) as graph:
            assert_type(graph, wn.MLGraph)
        own.write_tensor(tensor, [1, 2])
        assert_type(own.memory(), wn.MLMemory)
        assert own.memory().total == sum(own.memory().values())
    assert (graph.destroyed, tensor.destroyed) == (True, True)
