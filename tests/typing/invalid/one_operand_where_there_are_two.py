"""`top_k` returns values and indices."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> wn.MLOperand:
    best: wn.MLOperand = builder.ext.top_k(x, 3)
    # refused by pyright: Type "list[MLOperand]" is not assignable to declared type "MLOperand"
    # refused by mypy: expression has type "list[MLOperand]", variable has type "MLOperand"
    return best
