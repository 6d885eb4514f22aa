"""Quantized models: 8 bits as QuantizeLinear and DequantizeLinear pairs, and weights of 4 bits in blocks.

Needs the extra `onnx`. Weights stay quantized on the device: 4-bit ones are two to a byte there too.
"""

import numpy as np
from models import quantized

import webnn_wgpu as wn

x = np.random.default_rng(0).standard_normal((4, 32)).astype(np.float32)
for bits in (8, 4):
    file = quantized(bits)
    found = wn.analyze(file, override_dims={"batch": 4})
    with wn.load_onnx(file, fallback="host") as model:
        y = model.run({"x": x})["y"]
    print(f"{bits} bits: {found.parameters} parameters in {found.parameter_bytes} bytes, y {y.dtype} {y.shape}")
