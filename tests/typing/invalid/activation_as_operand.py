"""An activation without its operand is none."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.add(builder.relu(), x)
    # refused by pyright: Argument of type "MLActivation" cannot be assigned to parameter "a" of type "MLOperand"
    # refused by mypy: has incompatible type "MLActivation"; expected "MLOperand"
