"""Gradients of networks on a device are those of the numpy reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import webnn_wgpu as wn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webnn_wgpu.ir.graph import Array


def classifier(
    b: wn.MLGraphBuilder, x: wn.MLOperand, first: wn.MLOperand, second: wn.MLOperand, head: wn.MLOperand
) -> wn.MLOperand:
    """The loss of a convolutional network: two convolutions, a pooling, a dense layer."""
    hidden = b.relu(b.conv2d(x, first, padding=[1, 1, 1, 1], input_layout="nhwc", filter_layout="ohwi"))
    hidden = b.max_pool2d(hidden, window_dimensions=[2, 2], strides=[2, 2], layout="nhwc")
    hidden = b.gelu(b.conv2d(hidden, second, strides=[2, 2], input_layout="nhwc", filter_layout="ohwi"))
    hidden = b.average_pool2d(hidden, layout="nhwc")
    scores = b.matmul(b.reshape(hidden, [2, 8]), head)
    return b.neg(b.reduce_mean(b.slice(b.ext.log_softmax(scores, 1), [0, 0], [2, 1])))


def transformer(
    b: wn.MLGraphBuilder, table: wn.MLOperand, q: wn.MLOperand, k: wn.MLOperand, v: wn.MLOperand, scale: wn.MLOperand
) -> wn.MLOperand:
    """The loss of a layer of a transformer: an embedding with repeated tokens, a normalization, attention with a mask."""
    tokens = b.gather(table, b.constant(np.int32([[1, 5, 1, 0, 3]])))
    normal = b.layer_normalization(tokens, scale=scale, axes=[2])
    mixed = b.ext.attention(b.matmul(normal, q), b.matmul(normal, k), b.matmul(normal, v), heads=2, causal=True)
    return b.reduce_log_sum_exp(b.matmul(b.add(tokens, mixed), b.transpose(table)))


def recurrent(b: wn.MLGraphBuilder, x: wn.MLOperand, weight: wn.MLOperand, recurrent: wn.MLOperand) -> wn.MLOperand:
    """The loss of a network of two directions."""
    (last, sequence) = b.gru(x, weight, recurrent, 4, 5, direction="both", return_sequence=True)
    return b.add(b.reduce_sum_square(sequence), b.reduce_sum(last))


def resampled(b: wn.MLGraphBuilder, x: wn.MLOperand, f: wn.MLOperand, scale: wn.MLOperand) -> wn.MLOperand:
    """The loss of a decoder of pictures: a transposed convolution, a resampling, a padding, a normalization."""
    up = b.conv_transpose2d(x, f, strides=[2, 2], groups=2)
    up = b.resample2d(up, mode="linear", sizes=[9, 7])
    up = b.pad(up, [0, 0, 1, 2], [0, 0, 2, 1], mode="reflection")
    return b.reduce_l2(b.tanh(b.instance_normalization(up, scale=scale)))


def rectified(
    b: wn.MLGraphBuilder, x: wn.MLOperand, f: wn.MLOperand, slope: wn.MLOperand, divisor: wn.MLOperand
) -> wn.MLOperand:
    """The loss of rectifiers, of pools whose windows overlap or leave elements out, and of quotients."""
    wide = b.hard_swish(b.linear(b.conv2d(x, f), alpha=4))
    pools = [
        b.max_pool2d(b.leaky_relu(wide, alpha=0.3), window_dimensions=[3, 2], strides=[2, 1], padding=[1, 0, 0, 1]),
        b.average_pool2d(b.prelu(wide, slope), window_dimensions=[2, 2], strides=[3, 3]),
        b.l2_pool2d(b.elu(wide), window_dimensions=[2, 3], dilations=[2, 1]),
    ]
    loss = b.reduce_mean(b.relu(b.div(wide, b.add(b.softplus(divisor), b.constant("float32", 0.5)))))
    for pool in pools:
        loss = b.add(loss, b.reduce_mean(b.erf(b.mul(pool, pool))))
    return loss


NETWORKS: Mapping[str, tuple[Callable[..., wn.MLOperand], Sequence[tuple[int, ...]]]] = {
    "classifier": (classifier, [(2, 8, 8, 3), (4, 3, 3, 3), (8, 3, 3, 4), (8, 5)]),
    "transformer": (transformer, [(6, 8), (8, 8), (8, 8), (8, 8), (8,)]),
    "recurrent": (recurrent, [(4, 2, 3), (2, 15, 3), (2, 15, 5)]),
    "rectifiers": (rectified, [(2, 3, 9, 8), (4, 3, 3, 3), (4, 1, 1), (1, 4, 7, 6)]),
    "decoder": (resampled, [(1, 4, 3, 3), (4, 3, 3, 3), (6,)]),
}


def computed(context: wn.MLContext, name: str) -> Sequence[Array]:
    network, shapes = NETWORKS[name]
    rng = np.random.default_rng(7)
    feeds = {str(i): (0.4 * rng.standard_normal(shape)).astype(np.float32) for i, shape in enumerate(shapes)}
    builder = wn.MLGraphBuilder(context)
    operands = [builder.input(name, {"dataType": "float32", "shape": a.shape}) for name, a in feeds.items()]
    loss = network(builder, *operands)
    outputs = {f"gradient {i}": g for i, g in enumerate(builder.gradients(loss, operands))}
    found = context.compute(builder.build({"loss": loss, **outputs}), feeds)
    return [found["loss"], *(found[name] for name in outputs)]


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_on_a_device_are_those_of_the_reference(context: wn.MLContext, name: str) -> None:
    expected = computed(wn.ml.create_context(backend="reference"), name)
    for found, wanted in zip(computed(context, name), expected, strict=True):
        assert np.abs(wanted).max() > 0
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-5 * np.abs(wanted).max())
