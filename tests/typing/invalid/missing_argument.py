"""Arguments without a default must be given."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.reshape(x)
    # refused by pyright: Argument missing for parameter "new_shape"
    # refused by mypy: Missing positional argument "new_shape" in call to "reshape"
