"""An operand's attributes can be read only."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    x.shape = x.shape
    # refused by pyright: Cannot assign to attribute "shape" for class "MLOperand"
    # refused by mypy: Property "shape" defined in "MLOperand" is read-only
