"""Programs for images as pywebnn's users write them: convolution, pooling, quantization."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as webnn

IMAGE = np.arange(2 * 4 * 4, dtype=np.float32).reshape(1, 2, 4, 4)


def ones(builder: Any, *shape: int) -> Any:
    return builder.constant(np.ones(shape, dtype=np.float32))


# By position, in pywebnn's order, and by its names.
SPELLINGS: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[int]]] = {
    "conv2d": (
        lambda b, x: b.conv2d(x, ones(b, 2, 1, 3, 3), [2, 1], [1, 1], [1, 0, 1, 2], 2, "nchw", "oihw", ones(b, 2)),
        lambda b, x: b.conv2d(
            input=x,
            filter=ones(b, 2, 1, 3, 3),
            strides=[2, 1],
            dilations=[1, 1],
            pads=[1, 0, 1, 2],
            groups=2,
            input_layout="nchw",
            filter_layout="oihw",
            bias=ones(b, 2),
        ),
        [1, 2, 2, 5],
    ),
    "conv_transpose2d": (
        lambda b, x: b.conv_transpose2d(x, ones(b, 2, 1, 3, 3), [2, 2], [1, 1], [1, 1, 1, 1], [1, 1]),
        lambda b, x: b.conv_transpose2d(
            x, ones(b, 2, 1, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1], groups=1
        ),
        [1, 1, 8, 8],
    ),
    "average_pool2d": (
        lambda b, x: b.average_pool2d(x, [2, 2], [2, 2], [1, 1], [1, 1, 1, 1], "nchw"),
        lambda b, x: b.average_pool2d(input=x, window_dimensions=[2, 2], strides=[2, 2], pads=[1, 1, 1, 1]),
        [1, 2, 3, 3],
    ),
    "max_pool2d": (
        lambda b, x: b.max_pool2d(x, [2, 2], [2, 2]),
        lambda b, x: b.max_pool2d(input=x, window_dimensions=[2, 2], strides=[2, 2], layout="nchw"),
        [1, 2, 2, 2],
    ),
    "global_average_pool": (
        lambda b, x: b.global_average_pool(x, "nhwc"),
        lambda b, x: b.global_average_pool(input=x, layout="nhwc"),
        [1, 1, 1, 4],
    ),
    "global_max_pool": (
        lambda b, x: b.global_max_pool(x, "nchw"),
        lambda b, x: b.global_max_pool(input=x),
        [1, 2, 1, 1],
    ),
}


def test_options_by_position_and_by_name(context: webnn.MLContext) -> None:
    builder = context.create_graph_builder()
    x = builder.input("x", [1, 2, 4, 4], "float32")
    outputs: dict[str, Any] = {}
    for name, (by_position, by_name, shape) in SPELLINGS.items():
        outputs[name], outputs[f"{name} by name"] = by_position(builder, x), by_name(builder, x)
        assert outputs[name].shape == shape, name
    results = context.compute(builder.build(outputs), {"x": IMAGE})
    for name in SPELLINGS:
        np.testing.assert_array_equal(results[name], results[f"{name} by name"], name)
    padded = np.pad(IMAGE, [(0, 0), (0, 0), (1, 0), (1, 2)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2]
    np.testing.assert_allclose(results["conv2d"], windows.sum((4, 5)) + 1, rtol=1e-6)
    assert results["max_pool2d"].tolist() == IMAGE[:, :, 1::2, 1::2].tolist()
    assert results["global_max_pool"].reshape(-1).tolist() == [15, 31]
    np.testing.assert_allclose(results["global_average_pool"].reshape(-1), IMAGE.mean((0, 1, 2)), rtol=1e-6)


def test_a_small_network(context: webnn.MLContext) -> None:
    rng = np.random.default_rng(1)
    builder = context.create_graph_builder()
    x = builder.input("input", [1, 3, 8, 8], "float32")
    filters = builder.constant(rng.standard_normal((4, 3, 3, 3)).astype("float32"), [4, 3, 3, 3], "float32")
    bias = builder.constant(np.zeros((1, 4, 1, 1), dtype=np.float32))
    hidden = builder.clamp(
        builder.add(builder.conv2d(x, filters, strides=[2, 2], pads=[1, 1, 1, 1]), bias), min_value=0.0, max_value=6.0
    )
    pooled = builder.reshape(builder.global_average_pool(hidden), [1, 4])
    graph = builder.build({"output": builder.softmax(pooled, axis=1)})
    output = context.compute(graph, {"input": rng.standard_normal((1, 3, 8, 8)).astype("float32")})["output"]
    assert output.shape == (1, 4)
    np.testing.assert_allclose(output.sum(), 1, rtol=1e-5)


REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "conv2d of 3-D": (lambda b, x, y: b.conv2d(y, ones(b, 1, 2, 3, 3)), "Conv2d input must be 4D"),
    "conv2d groups": (
        lambda b, x, y: b.conv2d(x, ones(b, 3, 1, 3, 3), groups=3),
        "Conv2d input channels.*must be divisible by groups",
    ),
    "conv2d layout": (lambda b, x, y: b.conv2d(x, ones(b, 1, 2, 3, 3), input_layout="chwn"), "Invalid input_layout"),
    "conv_transpose2d of 3-D": (lambda b, x, y: b.conv_transpose2d(y, ones(b, 2, 1, 3, 3)), "ConvTranspose2d input must be 4D"),
    "conv_transpose2d layout": (
        lambda b, x, y: b.conv_transpose2d(x, ones(b, 2, 1, 3, 3), input_layout="chwn"),
        "Invalid input_layout",
    ),
    "average_pool2d of 3-D": (lambda b, x, y: b.average_pool2d(y, window_dimensions=[2, 2]), "Pool2d input must be 4D"),
    "max_pool2d layout": (lambda b, x, y: b.max_pool2d(x, layout="chwn"), "Invalid layout"),
    "global_average_pool of 3-D": (lambda b, x, y: b.global_average_pool(y), "Global pooling input must be 4D"),
    "global_max_pool of 3-D": (lambda b, x, y: b.global_max_pool(y), "Global pooling input must be 4D"),
    "global_max_pool layout": (lambda b, x, y: b.global_max_pool(x, layout="chwn"), "Invalid layout"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_errors_of_the_builder(context: webnn.MLContext, case: str) -> None:
    make, phrase = REFUSED[case]
    builder = context.create_graph_builder()
    x, y = builder.input("x", [1, 2, 4, 4], "float32"), builder.input("y", [2, 4, 4], "float32")
    with pytest.raises(ValueError, match=phrase):
        make(builder, x, y)


def test_support_limits(context: webnn.MLContext) -> None:
    limits = context.op_support_limits()
    for operator, operands in {
        "conv2d": ("input", "filter", "bias", "output"),
        "convTranspose2d": ("input", "filter", "bias", "output"),
        "averagePool2d": ("input", "output"),
        "maxPool2d": ("input", "output"),
    }.items():
        for operand in operands:
            assert "float32" in limits[operator][operand]["dataTypes"]


def test_numbers_of_eight_bits_and_back(context: webnn.MLContext) -> None:
    builder = context.create_graph_builder()
    x = builder.input("x", [4], "float32")
    scale = builder.constant(np.array([0.5], dtype=np.float32), [1], "float32")
    zero_point = builder.constant(np.array([3], dtype=np.int8), [1], "int8")
    quantized = builder.quantize_linear(x, scale, zero_point)
    assert quantized.data_type == "int8"
    graph = builder.build({"y": builder.dequantize_linear(quantized, scale, zero_point), "q": quantized})
    results = context.compute(graph, {"x": np.array([-1, 0.26, 2, 100], dtype=np.float32)})
    assert results["q"].tolist() == [1, 4, 7, 127]
    assert results["y"].tolist() == [-1, 0.5, 2, 62]
