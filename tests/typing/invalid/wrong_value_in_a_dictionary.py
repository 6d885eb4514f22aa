"""Values of dictionaries have types."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.transpose(x, {"permutation": 1})
    # refused by pyright: "Literal[1]" is not assignable to "Sequence[int]"
    # refused by mypy: expression has type "int", TypedDict item "permutation" has type "Sequence[int] | None"
