"""What a graph says of its inputs and outputs is enough to make tensors for them."""

from typing import assert_type

import webnn_wgpu as wn


def tensors_of(context: wn.MLContext, graph: wn.MLGraph) -> tuple[dict[str, wn.MLTensor], dict[str, wn.MLTensor]]:
    inputs = {n: context.create_tensor(t.shape, t.data_type, writable=True) for n, t in graph.inputs.items()}
    outputs = {n: context.create_tensor(list(t.shape), t.data_type, readable=True) for n, t in graph.outputs.items()}
    return inputs, outputs


def program(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context, profile="2024")
    x = builder.input("x", [2, 3], "float16")
    graph = builder.build({"y": builder.exp(x)})
    inputs, outputs = tensors_of(context, graph)
    context.dispatch(graph, inputs, outputs)
    assert context.read_tensor(outputs["y"]).tolist() == [[1, 1, 1], [1, 1, 1]]
    assert_type(graph.get_output_names(), list[str])
    assert (graph.operandCount, graph.operation_count, graph.destroyed) == (2, 1, False)
    if graph.plan is not None:
        assert "dispatch" in graph.plan.summary()
