"""Lists hold integers."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.max_pool2d(x, strides=["2", "2"])
    # refused by pyright: Argument of type "list[str]" cannot be assigned to parameter "strides" of type "Sequence[int] | None"
    # refused by mypy: List item 0 has incompatible type "str"; expected "int"
    # refused by mypy: List item 1 has incompatible type "str"; expected "int"
