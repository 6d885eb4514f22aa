"""Exceptions have the fields that messages are made of, and are also Python's own kinds."""

from typing import assert_type

import webnn_wgpu as wn


def refusal(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> wn.MLTypeError | None:
    try:
        builder.reshape(x, [5], label="flat")
    except wn.MLTypeError as error:
        return error
    return None


def program(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", [2, 3], "float32")
    refused = refusal(builder, x)
    assert refused is not None
    assert_type(refused.operator, str)
    assert (refused.operator, refused.label) == ("reshape", "flat")
    assert issubclass(wn.MLTypeError, TypeError)
    assert issubclass(wn.OperationError, wn.WebNNError)
