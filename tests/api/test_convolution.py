"""Convolutions through the public API: spellings, activations of the 2024 text, what programs look for in messages."""

from __future__ import annotations

import numpy as np
import pytest

import webnn_wgpu as wn
from webnn_wgpu.core.errors import MLTypeError


@pytest.fixture
def builder(context: wn.MLContext) -> wn.MLGraphBuilder:
    return wn.MLGraphBuilder(context)


def image(builder: wn.MLGraphBuilder, name: str = "x", shape: tuple[int, ...] = (1, 4, 6, 6)) -> wn.MLOperand:
    return builder.input(name, {"dataType": "float32", "shape": shape})


def ones(builder: wn.MLGraphBuilder, *shape: int) -> wn.MLOperand:
    return builder.constant(np.ones(shape, np.float32))


def test_every_spelling_is_the_same_call(builder: wn.MLGraphBuilder) -> None:
    x, taps = image(builder), ones(builder, 3, 3, 4, 8)
    spellings = [
        builder.conv2d(x, taps, padding=[1, 0, 1, 2], strides=[2, 1], filter_layout="hwio"),
        builder.conv2d(x, taps, pads=(1, 0, 1, 2), strides=(2, 1), filterLayout="hwio"),
        builder.conv2d(x, taps, {"padding": [1, 0, 1, 2], "strides": [2, 1], "filterLayout": "hwio"}),
    ]
    assert {tuple(s.shape) for s in spellings} == {(1, 8, 3, 7)}
    taps = ones(builder, 4, 8, 3, 3)
    spellings = [
        builder.conv_transpose2d(x, taps, pads=[1, 1, 1, 1], strides=[2, 2], output_sizes=[12, 11]),
        builder.convTranspose2d(x, taps, {"padding": [1, 1, 1, 1], "strides": [2, 2], "outputPadding": [1, 0]}),
    ]
    assert {tuple(s.shape) for s in spellings} == {(1, 8, 12, 11)}


def test_an_activation_runs_within_the_kernel(context: wn.MLContext, builder: wn.MLGraphBuilder) -> None:
    x = image(builder)
    outputs = {
        "forward": builder.conv2d(x, ones(builder, 3, 4, 3, 3), activation=builder.clamp(max_value=-50)),
        "transposed": builder.conv_transpose2d(x, ones(builder, 4, 3, 3, 3), activation=builder.relu()),
    }
    with builder.build(outputs) as graph:
        assert len(graph.plan.dispatches) == 2
        results = context.compute(graph, {"x": np.full((1, 4, 6, 6), -1, np.float32)})
    np.testing.assert_array_equal(results["forward"], np.full((1, 3, 4, 4), -50, np.float32))
    np.testing.assert_array_equal(results["transposed"], np.zeros((1, 3, 8, 8), np.float32))


def test_activations_must_be_the_builders_own(context: wn.MLContext, builder: wn.MLGraphBuilder) -> None:
    x, taps = image(builder), ones(builder, 4, 4, 1, 1)
    for method in (builder.conv2d, builder.conv_transpose2d):
        with pytest.raises(MLTypeError, match="activation must belong to the builder"):
            method(x, taps, activation=wn.MLGraphBuilder(context).relu())
        with pytest.raises(MLTypeError, match="activation must be an activation"):
            method(x, taps, activation="relu")  # pyright: ignore[reportArgumentType] - what is refused
        with pytest.raises(MLTypeError, match="2-D results only"):
            method(x, taps, activation=builder.softmax())


def test_operands_must_be_the_builders_own(context: wn.MLContext, builder: wn.MLGraphBuilder) -> None:
    x, taps, other = image(builder), ones(builder, 4, 4, 1, 1), wn.MLGraphBuilder(context)
    foreign = image(other), ones(other, 4, 4, 1, 1), ones(other, 4)
    for method in (builder.conv2d, builder.conv_transpose2d):
        for operands in ((foreign[0], taps, None), (x, foreign[1], None), (x, taps, foreign[2])):
            with pytest.raises(MLTypeError, match="belong"):
                method(operands[0], operands[1], bias=operands[2])
        with pytest.raises(MLTypeError, match="filter must be an operand"):
            method(x, np.ones((4, 4, 1, 1), np.float32))  # pyright: ignore[reportArgumentType] - what is refused


def test_messages_that_programs_look_for(builder: wn.MLGraphBuilder) -> None:
    x, taps = image(builder), ones(builder, 4, 4, 1, 1)
    flat = image(builder, "flat", (4, 6, 6))
    for method, name in ((builder.conv2d, "Conv2d"), (builder.conv_transpose2d, "ConvTranspose2d")):
        with pytest.raises(ValueError, match=f"{name} input must be 4D"):
            method(flat, taps)
        with pytest.raises(ValueError, match=f"{name} input channels.*must be divisible by groups"):
            method(x, taps, groups=3)
        with pytest.raises(ValueError, match="Invalid input_layout"):
            method(x, taps, input_layout="invalid")
