"""Extension operators, under both spellings of their names."""

from typing import assert_type

import numpy as np

import webnn_wgpu as wn


def program(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    tokens = builder.input("tokens", [1, 5, 8], "float32")
    attended = builder.ext.attention(tokens, tokens, tokens, heads=2, causal=True, scale=0.5)
    assert_type(attended, wn.MLOperand)
    normal = builder.ext.rmsNormalization(attended, epsilon=1e-6, axes=[2])
    bits = builder.ext.bitwise_and(builder.cast(normal, "int32"), builder.constant("int32", 7))
    image = builder.reshape(builder.cast(bits, "float32"), [1, 1, 5, 8])
    larger = builder.ext.resample(image, axes=[2, 3], scales=[2, 2], mode="cubic", antialias=True)
    places = builder.constant(np.zeros((1, 3, 5, 2), np.float32))
    sampled = builder.ext.gridSample(larger, places, padding_mode="border")
    assert builder.ext.log_softmax(sampled, 3, label="log").shape == (1, 1, 3, 5)
