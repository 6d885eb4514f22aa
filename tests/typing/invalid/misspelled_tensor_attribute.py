"""A tensor has no other attributes than the documented ones."""

import webnn_wgpu as wn


def program(tensor: wn.MLTensor) -> None:
    print(tensor.data_typ)
    # refused by pyright: Cannot access attribute "data_typ" for class "MLTensor"
    # refused by mypy: "MLTensor" has no attribute "data_typ"; maybe "data_type"?
