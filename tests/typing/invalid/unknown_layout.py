"""Enumerations are literals."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.average_pool2d(x, layout="nchv")
    # refused by pyright: cannot be assigned to parameter "layout" of type "Literal['nchw', 'nhwc']"
    # refused by mypy: has incompatible type "Literal['nchv']"; expected "Literal['nchw', 'nhwc']"
