"""Methods and attributes under the specification's names, with options as the specification's dictionaries."""

from typing import assert_type

import webnn_wgpu as wn


def program(context: wn.MLContext) -> None:
    builder = context.createGraphBuilder()
    x = builder.input("x", {"dataType": "float32", "shape": [2, 3]})
    mean = builder.reduceMean(x, {"axes": [1], "keepDimensions": True, "label": "mean"})
    assert_type(mean, wn.MLOperand)
    assert mean.dataType == "float32"
    limited = builder.clamp(builder.sub(x, mean), {"minValue": -1, "maxValue": 1})
    product = builder.gemm(limited, x, {"bTranspose": True, "alpha": 0.5})
    flags = builder.logicalNot(builder.isNaN(builder.leakyRelu(product, {"alpha": 0.1})))
    picked = builder.gatherElements(x, builder.argMax(x, 0, {"keepDimensions": True, "outputDataType": "int32"}), {"axis": 0})
    graph = builder.build({"flags": flags, "picked": picked})
    assert graph.getInputNames() == ["x"]
    source = context.createTensor({"dataType": "float32", "shape": [2, 3], "writable": True})
    targets = {
        "flags": context.createTensor([2, 2], "uint8", readable=True),
        "picked": context.createTensor({"dataType": "float32", "shape": [1, 3], "readable": True}),
    }
    assert source.dataType == "float32"
    context.writeTensor(source, [[1, 2, 3], [4, 5, 6]])
    context.dispatch(graph, {"x": source}, targets)
    assert context.readTensor(targets["flags"]).tolist() == [[1, 1], [1, 1]]
    assert context.opSupportLimits()["preferredInputLayout"] == "nchw"
