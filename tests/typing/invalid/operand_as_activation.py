"""The option `activation` takes an activation, not an operator's result."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.conv2d(x, x, activation=builder.relu(x))
    # refused by pyright: cannot be assigned to parameter "activation" of type "MLActivation | None"
    # refused by mypy: has incompatible type "MLOperand"; expected "MLActivation | None"
