"""The package exports what it lists."""

import webnn_wgpu as wn


def program() -> None:
    wn.laod("model.onnx")
    # refused by pyright: "laod" is not a known attribute of module "webnn_wgpu"
    # refused by mypy: Module has no attribute "laod"
