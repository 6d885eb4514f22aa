"""A constant's elements are numbers."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.constant("float32", "1")
    # refused by pyright: No overloads for "constant" match
    # refused by pyright: Argument of type "Literal['1']" cannot be assigned to parameter "value" of type "Number"
    # refused by mypy: Argument 2 to "constant" of "MLGraphBuilder" has incompatible type "str"
    # refused by mypy: Argument 1 to "constant" of "MLGraphBuilder" has incompatible type "str"
