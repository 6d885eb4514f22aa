"""Enumerations are literals, also in dictionaries."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.pad(x, [1, 1], [1, 1], {"mode": "mirror"})
    # refused by pyright: "Literal['mirror']" is not assignable to type "Literal['constant']"
    # refused by mypy: expression has type "Literal['mirror']", TypedDict item "mode" has type
