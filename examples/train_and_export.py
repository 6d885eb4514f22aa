"""From arrays to a trained network in an ONNX model, a WebNN graph file and a web page."""

import numpy as np

import webnn_wgpu as wn
from webnn_wgpu import train

rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, (256, 2)).astype(np.float32)
inside = (np.hypot(*x.T) < 0.7).astype(np.float32).reshape(256, 1)


def classify(b, p, x):
    hidden = b.tanh(b.add(b.matmul(x, p["w1"]), p["b1"]))
    return b.sigmoid(b.add(b.matmul(hidden, p["w2"]), p["b2"]))


def forward(b, p, inputs):
    error = b.sub(classify(b, p, inputs["x"]), inputs["inside"])
    return b.reduce_mean(b.mul(error, error))


context = wn.ml.create_context()
weights = {"w1": train.glorot_uniform([2, 16], rng), "b1": np.zeros(16), "w2": np.zeros([16, 1]), "b2": np.zeros(1)}
inputs = {name: {"dataType": "float32", "shape": [256, n]} for name, n in (("x", 2), ("inside", 1))}
with train.Step(context, forward, weights, train.Adam(learning_rate=0.05), inputs=inputs) as step:
    losses = [step({"x": x, "inside": inside})["loss"] for _ in range(200)]
    trained = step.parameters()

b = wn.MLGraphBuilder(context)
point = b.input("point", [1, 2], "float32")
graph = b.build({"inside": classify(b, {name: b.constant(array) for name, array in trained.items()}, point)})
graph.save("disk.onnx")
graph.save("disk.webnn")
wn.exporters.web.write(graph, "page", inputs={"point": np.float32([[0.2, 0.4]])})
print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f}")
for file in ("disk.onnx", "disk.webnn", "page"):
    print(f"written: {file}", wn.load(file, context).run({"point": np.float32([[0.2, 0.4]])})["inside"])
