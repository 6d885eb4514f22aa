"""Outputs have names."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.build([builder.relu(x)])
    # refused by pyright: cannot be assigned to parameter "outputs" of type "Mapping[str, MLOperand]"
    # refused by mypy: has incompatible type "list[MLOperand]"; expected "Mapping[str, MLOperand]"
