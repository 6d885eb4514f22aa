"""Each operator has the dictionary of its own options."""

import webnn_wgpu as wn
from webnn_wgpu.typing import MLPool2dOptions


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand, options: MLPool2dOptions) -> None:
    builder.conv2d(x, x, options)
    # refused by pyright: Argument of type "MLPool2dOptions" cannot be assigned to parameter "options" of type "MLConv2dOptions"
    # refused by mypy: has incompatible type "MLPool2dOptions"; expected "MLConv2dOptions"
