"""A read into memory of the caller's returns nothing."""

import numpy as np

import webnn_wgpu as wn


def program(context: wn.MLContext, tensor: wn.MLTensor) -> None:
    context.read_tensor(tensor, np.zeros(2)).sum()
    # refused by pyright: Cannot access attribute "sum" for class "None"
    # refused by mypy: "None" has no attribute "sum"
