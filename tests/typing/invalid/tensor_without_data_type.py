"""A tensor has a shape and a data type."""

import webnn_wgpu as wn


def program(context: wn.MLContext) -> None:
    context.create_tensor([2, 2], readable=True)
    # refused by pyright: "list[int]" is not assignable to "MLTensorDescriptor"
    # refused by mypy: No overload variant of "create_tensor" of "Tensors" matches argument types "list[int]", "bool"
