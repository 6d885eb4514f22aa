"""The built-in models of the benchmark: networks of common architectures with random weights, made by the builder.

They need no file and no extra of the package, so that records of all machines are of the same models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from webnn_wgpu import MLContext, MLGraphBuilder, MLOperand

from ...core.data_types import Array

FloatType: TypeAlias = Literal["float32", "float16"]


class RandomNetwork:
    """A network under construction: layers with random weights that keep the scale of their inputs.

    Attributes:
        builder: the builder of its graph.
        data_type: the data type of operands and weights.
        feeds: random inputs by name.
    """

    def __init__(self, context: MLContext, data_type: FloatType) -> None:
        self.builder = MLGraphBuilder(context)
        self.data_type: FloatType = data_type
        self.feeds: dict[str, Array] = {}
        self._random = np.random.default_rng(0)

    def input(self, name: str, *shape: int) -> MLOperand:
        """Add an input of normal numbers."""
        self.feeds[name] = self._random.standard_normal(shape, np.float32).astype(self.data_type)
        return self.builder.input(name, shape, self.data_type)

    def weights(self, *shape: int, summed: int) -> MLOperand:
        """Add weights, of which a number of products is summed up to one result."""
        values = self._random.standard_normal(shape, np.float32) * np.float32(summed**-0.5)
        return self.builder.constant(values.astype(self.data_type), shape, self.data_type)

    def dense(self, x: MLOperand, units: int) -> MLOperand:
        """Add a dense layer over the last dimension."""
        width = x.shape[-1]
        product = self.builder.matmul(x, self.weights(width, units, summed=width))
        return self.builder.add(product, self.weights(units, summed=100))

    def norm(self, x: MLOperand) -> MLOperand:
        """Add a layer normalization over the last dimension."""
        width = x.shape[-1]
        scale, bias = (self.weights(width, summed=1) for _ in range(2))
        return self.builder.layer_normalization(x, axes=[len(x.shape) - 1], scale=scale, bias=bias)

    def convolution(self, x: MLOperand, channels: int, size: int, *, stride: int = 1, groups: int = 1) -> MLOperand:
        """Add a convolution whose result is as large as its input, or smaller by the stride."""
        each, pad = x.shape[1] // groups, size // 2
        taps = self.weights(channels, each, size, size, summed=each * size * size)
        bias = self.weights(channels, summed=100)
        return self.builder.conv2d(x, taps, bias=bias, padding=[pad] * 4, strides=[stride] * 2, groups=groups)

    def attention(self, x: MLOperand, heads: int, *, past: int = 0, name: str = "") -> MLOperand:
        """Add self-attention. With past tokens, it includes their keys and values, which are inputs of the graph."""
        b = self.builder
        rows, width = x.shape[-2:]

        def by_head(part: MLOperand) -> MLOperand:
            return b.transpose(b.reshape(part, [1, rows, heads, width // heads]), permutation=[0, 2, 1, 3])

        query, key, value = (by_head(self.dense(x, width)) for _ in range(3))
        if past:
            shape = (1, heads, past, width // heads)
            key = b.concat([self.input(f"{name}_keys", *shape), key], 2)
            value = b.concat([self.input(f"{name}_values", *shape), value], 2)
        scale = b.constant(np.array((width // heads) ** -0.5, self.data_type), (), self.data_type)
        scores = b.mul(b.matmul(query, b.transpose(key, permutation=[0, 1, 3, 2])), scale)
        mixed = b.transpose(b.matmul(b.softmax(scores, 3), value), permutation=[0, 2, 1, 3])
        return self.dense(b.reshape(mixed, [1, rows, width]), width)

    def block(self, x: MLOperand, heads: int, *, past: int = 0, name: str = "") -> MLOperand:
        """Add a transformer's layer that normalizes first."""
        x = self.builder.add(x, self.attention(self.norm(x), heads, past=past, name=name))
        width = x.shape[-1]
        return self.builder.add(x, self.dense(self.builder.gelu(self.dense(self.norm(x), 4 * width)), width))


def _product(n: RandomNetwork) -> MLOperand:
    return n.builder.matmul(n.input("a", 1024, 1024), n.weights(1024, 1024, summed=1024))


def _mobilenet(n: RandomNetwork) -> MLOperand:
    """MobileNetV2 (M. Sandler et al., 2018) for 224 x 224 pixels."""

    def relu6(x: MLOperand) -> MLOperand:
        return n.builder.clamp(x, min_value=0, max_value=6)

    x = relu6(n.convolution(n.input("image", 1, 3, 224, 224), 32, 3, stride=2))
    settings = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    for expand, channels, repeats, first in settings:
        for i in range(repeats):
            stride, inner = (first if i == 0 else 1), x.shape[1] * expand
            y = relu6(n.convolution(x, inner, 1)) if expand > 1 else x
            y = n.convolution(relu6(n.convolution(y, inner, 3, stride=stride, groups=inner)), channels, 1)
            x = n.builder.add(x, y) if y.shape == x.shape else y
    return _classified(n, relu6(n.convolution(x, 1280, 1)))


def _resnet(n: RandomNetwork) -> MLOperand:
    """ResNet-50 (K. He et al., 2015) for 224 x 224 pixels."""
    b = n.builder
    x = b.relu(n.convolution(n.input("image", 1, 3, 224, 224), 64, 7, stride=2))
    x = b.max_pool2d(x, window_dimensions=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])
    for width, repeats, first in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(repeats):
            stride = first if i == 0 else 1
            y = b.relu(n.convolution(b.relu(n.convolution(x, width, 1)), width, 3, stride=stride))
            y = n.convolution(y, 4 * width, 1)
            x = b.relu(b.add(x if y.shape == x.shape else n.convolution(x, 4 * width, 1, stride=stride), y))
    return _classified(n, x)


def _classified(n: RandomNetwork, x: MLOperand) -> MLOperand:
    pooled = n.builder.average_pool2d(x)
    return n.builder.softmax(n.dense(n.builder.reshape(pooled, [1, x.shape[1]]), 1000), 1)


def _unet(n: RandomNetwork) -> MLOperand:
    """A U-Net (O. Ronneberger et al., 2015) of four levels for 128 x 128 pixels."""
    b = n.builder

    def twice(x: MLOperand, channels: int) -> MLOperand:
        for _ in range(2):
            x = b.relu(n.convolution(x, channels, 3))
        return x

    x, kept = n.input("image", 1, 3, 128, 128), list[MLOperand]()
    for channels in (32, 64, 128):
        kept.append(twice(x, channels))
        x = b.max_pool2d(kept[-1], window_dimensions=[2, 2], strides=[2, 2])
    x = twice(x, 256)
    for before in reversed(kept):
        channels = before.shape[1]
        taps = n.weights(x.shape[1], channels, 2, 2, summed=x.shape[1])
        x = twice(b.concat([before, b.conv_transpose2d(x, taps, strides=[2, 2])], 1), channels)
    return n.convolution(x, 2, 1)


def _encoder(n: RandomNetwork) -> MLOperand:
    """The layers of all-MiniLM-L6-v2: 6 of width 384 with 12 heads, for 128 tokens."""
    x = n.input("embeddings", 1, 128, 384)
    for _ in range(6):
        x = n.block(x, 12)
    return n.builder.reduce_mean(n.norm(x), axes=[1])


def _decoder(n: RandomNetwork) -> MLOperand:
    """One token through 6 layers of GPT-2's width, 768 with 12 heads, after 256 others."""
    x = n.input("embedding", 1, 1, 768)
    for layer in range(6):
        x = n.block(x, 12, past=256, name=f"layer{layer}")
    return n.norm(x)


def _recurrent(n: RandomNetwork) -> MLOperand:
    """Two LSTM layers of 256 units over 100 time steps."""
    x = n.input("sequence", 100, 1, 256)
    for _ in range(2):
        weight, recurrent = (n.weights(1, 4 * 256, 256, summed=256) for _ in range(2))
        results = n.builder.lstm(x, weight, recurrent, 100, 256, return_sequence=True)
        x = n.builder.reshape(results[-1], [100, 1, 256])
    return x


@dataclass(frozen=True)
class BuiltInModel:
    """A model of the benchmark.

    Attributes:
        description: the model, for people.
        layers: builds it and returns its output.
        data_type: the data type of all its tensors.
    """

    description: str
    layers: Callable[[RandomNetwork], MLOperand]
    data_type: FloatType = "float32"

    def network(self, context: MLContext) -> tuple[MLGraphBuilder, MLOperand, Mapping[str, Array]]:
        """Return a builder with the model, its output, and inputs."""
        network = RandomNetwork(context, self.data_type)
        return network.builder, self.layers(network), network.feeds


MODELS: Mapping[str, BuiltInModel] = {
    "product": BuiltInModel("a product of two matrices of 1024 x 1024", _product),
    "product_fp16": BuiltInModel("the same in float16", _product, "float16"),
    "mobilenet_v2": BuiltInModel("MobileNetV2, 224 x 224 pixels", _mobilenet),
    "resnet50": BuiltInModel("ResNet-50, 224 x 224 pixels", _resnet),
    "unet": BuiltInModel("a U-Net of 4 levels, 128 x 128 pixels", _unet),
    "encoder": BuiltInModel("an encoder of 6 layers of 384, 128 tokens", _encoder),
    "encoder_fp16": BuiltInModel("the same in float16", _encoder, "float16"),
    "decoder_fp16": BuiltInModel("a decoder of 6 layers of 768 in float16, one token after 256", _decoder, "float16"),
    "recurrent": BuiltInModel("two LSTM layers of 256, 100 time steps", _recurrent),
}
"""The built-in models by name."""
