"""A list of axes is a list, also where it has one item."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.reduce_mean(x, axes=1)
    # refused by pyright: Argument of type "Literal[1]" cannot be assigned to parameter "axes" of type "Sequence[int] | None"
    # refused by mypy: has incompatible type "int"; expected "Sequence[int] | None"
