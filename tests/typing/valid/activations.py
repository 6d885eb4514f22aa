"""Activations are operators with an operand and objects without one."""

from typing import assert_type

import numpy as np

import webnn_wgpu as wn


def program(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    image = builder.input("image", [1, 2, 4, 4], "float32")
    assert_type(builder.relu(image), wn.MLOperand)
    assert_type(builder.relu(), wn.MLActivation)
    assert_type(builder.elu(image, alpha=0.5), wn.MLOperand)
    assert_type(builder.hardSigmoid({"alpha": 0.1}), wn.MLActivation)
    assert_type(builder.clamp(min_value=0, max_value=6), wn.MLActivation)
    assert_type(builder.softmax(builder.flatten(image)), wn.MLOperand)
    assert_type(builder.softmax(), wn.MLActivation)
    weights = builder.constant(np.ones((3, 2, 3, 3), np.float32))
    convolved = builder.conv2d(image, weights, activation=builder.clamp({"minValue": 0}))
    assert_type(builder.gelu().apply(convolved), wn.MLOperand)
