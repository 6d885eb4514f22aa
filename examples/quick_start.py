"""A graph in ten lines: describe it, build it, run it."""

import numpy as np

import webnn_wgpu as wn

context = wn.ml.create_context()
builder = wn.MLGraphBuilder(context)
x = builder.input("x", {"dataType": "float32", "shape": [2, 3]})
weights = builder.constant(np.float32([[1, 0], [0, 1], [1, 1]]))
scores = builder.softmax(builder.matmul(x, weights), axis=1)
graph = builder.build({"scores": scores})

result = context.compute(graph, {"x": np.float32([[1, 2, 3], [3, 2, 1]])})
print(result["scores"].round(4))
print(graph.plan.summary())
