"""Networks know three activations by name."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.gru(x, x, x, 2, 4, activations=["sigmoid", "swish"])
    # refused by pyright: "Literal['swish']" is not assignable to type
    # refused by mypy: has incompatible type "Literal['swish']"
