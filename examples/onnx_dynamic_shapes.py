"""Sequences of different lengths: a model with symbolic dimensions compiles once for each set of shapes, and keeps it.

Needs the extra `onnx`.
"""

import numpy as np
from models import bert

import webnn_wgpu as wn

with wn.load_onnx(bert(), fallback="host") as model:
    print(model.inputs[0])
    before = 0
    for batch, length in [(1, 8), (2, 5), (1, 13), (1, 8), (2, 5)]:
        ids = np.arange(batch * length, dtype=np.int64).reshape(batch, length)
        embedding = model.run({"input_ids": ids, "attention_mask": np.ones_like(ids)})["embedding"]
        kind = "compiled" if model.compiled > before else "kept"
        print(f"[{batch}, {length}] -> {list(embedding.shape)}: {kind}")
        before = model.compiled

# One shape, pinned when the model is loaded: `run` never compiles, and other shapes are refused.
with wn.load_onnx(bert(), fallback="host", override_dims={"batch": 1, "sequence": 8}) as model:
    try:
        model.run({"input_ids": np.zeros((1, 9), np.int64), "attention_mask": np.ones((1, 9), np.int64)})
    except wn.MLTypeError as error:
        print(error)
