"""Options of extension operators have the names that the signature shows."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.ext.attention(x, x, x, causual=True)
    # refused by pyright: No parameter named "causual"
    # refused by mypy: Unexpected keyword argument "causual" for "attention" of "AttentionExtensions"; did you mean "causal"?
