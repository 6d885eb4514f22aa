"""A string of any content is not the name of a data type."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand, data_type: str) -> None:
    builder.cast(x, data_type)
    # refused by pyright: Argument of type "str" cannot be assigned to parameter "data_type" of type "OperandDataType"
    # refused by mypy: Argument 2 to "cast" of "SelectionOperators" has incompatible type "str"
