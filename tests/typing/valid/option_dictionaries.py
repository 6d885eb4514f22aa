"""Dictionaries of options and descriptors that are made before the call, in both spellings of their keys."""

import webnn_wgpu as wn
from webnn_wgpu.typing import MLConv2dOptions, MLOperandDescriptor, MLPool2dOptions, MLReduceOptions, MLTriangularOptions


def program(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    descriptor: MLOperandDescriptor = {"dataType": "float32", "shape": [1, 2, 6, 6]}
    image = builder.input("image", descriptor)
    weights = builder.constant({"dataType": "float32", "shape": [3, 2, 3, 3]}, bytes(4 * 3 * 2 * 3 * 3))
    convolution: MLConv2dOptions = {"padding": [1, 1, 1, 1], "inputLayout": "nchw", "filterLayout": "oihw"}
    convolution["label"] = "conv"
    pooling: MLPool2dOptions = {"window_dimensions": [2, 2], "strides": (2, 2), "roundingType": "ceil"}
    reduction: MLReduceOptions = {"axes": [0, 1], "keepDimensions": False}
    triangle: MLTriangularOptions = {"upper": False}
    pooled = builder.max_pool2d(builder.conv2d(image, weights, convolution), pooling)
    result = builder.triangular(builder.reduce_sum(pooled, reduction), triangle)
    assert result.shape == (3, 3)
    assert builder.reduce_sum(pooled, options=reduction, label="again").shape == (3, 3)
