"""Gradients of twenty networks are those of PyTorch's autograd in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

torch: Any = pytest.importorskip("torch", reason="torch is no dependency")
F: Any = torch.nn.functional

TOKENS, TARGETS = np.int32([[3, 0, 3, 5, 1]]), np.int32([[1], [0], [4], [2]])


@dataclass(frozen=True)
class Network:
    """A loss, written for a builder and for PyTorch, and the shapes of its parameters."""

    name: str
    shapes: Sequence[tuple[int, ...]]
    ours: Callable[..., wn.MLOperand]
    theirs: Callable[..., Any]

    def __str__(self) -> str:
        return self.name


def dense(name: str, ours: Callable[..., Any], theirs: Callable[..., Any]) -> Network:
    """Two layers with an activation between them."""
    return Network(
        f"dense-{name}",
        [(4, 6), (6, 8), (8,), (8, 3)],
        lambda b, x, w, c, v: b.reduce_sum_square(b.matmul(ours(b, b.add(b.matmul(x, w), c)), v)),
        lambda x, w, c, v: (theirs(x @ w + c) @ v).square().sum(),
    )


def cross_entropy(b: wn.MLGraphBuilder, scores: wn.MLOperand) -> wn.MLOperand:
    rows = b.ext.log_softmax(scores, 1)
    return b.neg(b.reduce_mean(b.gather_elements(rows, b.constant(TARGETS), axis=1)))


def attention_block(b: wn.MLGraphBuilder, x: Any, scale: Any, q: Any, k: Any, v: Any, o: Any) -> wn.MLOperand:
    rows = b.layer_normalization(x, scale=scale, axes=[2])
    mixed = b.ext.attention(*(b.matmul(rows, w) for w in (q, k, v)), heads=2, causal=True)
    return b.reduce_sum_square(b.add(x, b.matmul(mixed, o)))


def torch_attention_block(x: Any, scale: Any, q: Any, k: Any, v: Any, o: Any) -> Any:
    rows = F.layer_norm(x, x.shape[2:], scale, eps=1e-5)
    q, k, v = ((rows @ w).unflatten(2, (2, -1)).transpose(1, 2) for w in (q, k, v))
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
    return (x + mixed @ o).square().sum()


def grouped_attention(b: wn.MLGraphBuilder, q: Any, k: Any, v: Any, mask: Any) -> wn.MLOperand:
    return b.reduce_sum_square(b.ext.attention(q, k, v, mask=mask, softcap=2.0))


def torch_grouped_attention(q: Any, k: Any, v: Any, mask: Any) -> Any:
    k, v = (x.repeat_interleave(2, 1) for x in (k, v))
    scores = 2 * torch.tanh(q @ k.transpose(2, 3) / q.shape[3] ** 0.5 / 2) + mask
    return (scores.softmax(3) @ v).square().sum()


def recurrent(b: wn.MLGraphBuilder, x: Any, w: Any, r: Any, c: Any, d: Any) -> wn.MLOperand:
    last, _, sequence = b.lstm(x, w, r, 5, 4, bias=c, recurrent_bias=d, layout="ifgo", return_sequence=True)
    return b.add(b.reduce_sum_square(sequence), b.reduce_sum(last))


def torch_recurrent(x: Any, w: Any, r: Any, c: Any, d: Any) -> Any:
    state = (torch.zeros(1, x.shape[1], 4, dtype=x.dtype), torch.zeros(1, x.shape[1], 4, dtype=x.dtype))
    sequence, last, _ = torch.lstm(x, state, [w[0], r[0], c[0], d[0]], True, 1, 0.0, False, False, False)
    return sequence.square().sum() + last.sum()


def gated(b: wn.MLGraphBuilder, x: Any, w: Any, r: Any, c: Any, d: Any) -> wn.MLOperand:
    options: Any = {"layout": "rzn", "reset_after": True}
    (last,) = b.gru(x, w, r, 5, 4, bias=c, recurrent_bias=d, **options)
    return b.reduce_sum_square(last)


def torch_gated(x: Any, w: Any, r: Any, c: Any, d: Any) -> Any:
    state = torch.zeros(1, x.shape[1], 4, dtype=x.dtype)
    return torch.gru(x, state, [w[0], r[0], c[0], d[0]], True, 1, 0.0, False, False, False)[1].square().sum()


NETWORKS = (
    dense("relu", lambda b, x: b.relu(x), F.relu),
    dense("gelu", lambda b, x: b.gelu(x), F.gelu),
    dense("silu", lambda b, x: b.mul(x, b.sigmoid(x)), F.silu),
    dense("elu", lambda b, x: b.elu(x, alpha=0.7), lambda x: F.elu(x, 0.7)),
    dense("softplus", lambda b, x: b.softplus(x), F.softplus),
    dense("softmax", lambda b, x: b.softmax(x, 1), lambda x: x.softmax(1)),
    dense("hard-swish", lambda b, x: b.hard_swish(x), F.hardswish),
    Network(
        "classifier",
        [(4, 6), (6, 5)],
        lambda b, x, w: cross_entropy(b, b.matmul(x, w)),
        lambda x, w: F.cross_entropy(x @ w, torch.tensor(TARGETS[:, 0], dtype=torch.int64)),
    ),
    Network(
        "convolution",
        [(2, 4, 9, 8), (6, 2, 3, 3), (6,)],
        lambda b, x, f, c: b.reduce_sum_square(
            b.conv2d(x, f, bias=c, groups=2, padding=[1, 1, 1, 1], strides=[2, 1], dilations=[1, 2])
        ),
        lambda x, f, c: F.conv2d(x, f, c, (2, 1), (1, 1), (1, 2), 2).square().sum(),
    ),
    Network(
        "pools",
        [(2, 3, 8, 8), (4, 3, 3, 3)],
        lambda b, x, f: b.reduce_sum_square(
            b.average_pool2d(
                b.max_pool2d(b.relu(b.conv2d(x, f)), window_dimensions=[2, 2], strides=[2, 2]), window_dimensions=[2, 2]
            )
        ),
        lambda x, f: F.avg_pool2d(F.max_pool2d(F.relu(F.conv2d(x, f)), 2), 2, 1).square().sum(),
    ),
    Network(
        "depthwise",
        [(2, 6, 7, 7), (6, 1, 3, 3), (8, 6, 1, 1)],
        lambda b, x, f, g: b.reduce_sum_square(b.conv2d(b.clamp(b.conv2d(x, f, groups=6), min_value=0, max_value=6), g)),
        lambda x, f, g: F.conv2d(F.relu6(F.conv2d(x, f, groups=6)), g).square().sum(),
    ),
    Network(
        "decoder",
        [(1, 4, 3, 3), (4, 2, 3, 3), (2,)],
        lambda b, x, f, c: b.reduce_sum_square(
            b.tanh(b.resample2d(b.conv_transpose2d(x, f, bias=c, strides=[2, 2]), mode="linear", sizes=[10, 11]))
        ),
        lambda x, f, c: torch.tanh(F.interpolate(F.conv_transpose2d(x, f, c, 2), (10, 11), mode="bilinear")).square().sum(),
    ),
    Network(
        "normalizations",
        [(2, 4, 5, 6), (4,), (4,), (6,)],
        lambda b, x, s, c, t: b.reduce_sum_square(
            b.sigmoid(b.ext.rms_normalization(b.instance_normalization(x, scale=s, bias=c), scale=t, axes=[3]))
        ),
        lambda x, s, c, t: torch.sigmoid(F.rms_norm(F.instance_norm(x, weight=s, bias=c), (6,), t, 1e-5)).square().sum(),
    ),
    Network(
        "batch-normalization",
        [(4, 3, 5, 5), (3,), (3,)],
        lambda b, x, s, c: b.reduce_sum(
            b.tanh(
                b.batch_normalization(
                    x,
                    b.reduce_mean(x, axes=[0, 2, 3]),
                    b.reduce_mean(
                        b.pow(b.sub(x, b.reduce_mean(x, axes=[0, 2, 3], keep_dimensions=True)), b.constant("float32", 2.0)),
                        axes=[0, 2, 3],
                    ),
                    scale=s,
                    bias=c,
                )
            )
        ),
        lambda x, s, c: torch.tanh(F.batch_norm(x, None, None, s, c, training=True)).sum(),
    ),
    Network("attention", [(2, 5, 8), (8,), *[(8, 8)] * 4], attention_block, torch_attention_block),
    Network(
        "grouped-attention",
        [(2, 4, 3, 8), (2, 2, 5, 8), (2, 2, 5, 6), (3, 5)],
        grouped_attention,
        torch_grouped_attention,
    ),
    Network(
        "embedding",
        [(6, 8), (8, 6)],
        lambda b, t, w: b.reduce_log_sum_exp(b.matmul(b.gather(t, b.constant(TOKENS)), w)),
        lambda t, w: (t[torch.tensor(TOKENS, dtype=torch.int64)] @ w).logsumexp((0, 1, 2)),
    ),
    Network("lstm", [(5, 2, 3), (1, 16, 3), (1, 16, 4), (1, 16), (1, 16)], recurrent, torch_recurrent),
    Network("gru", [(5, 2, 3), (1, 12, 3), (1, 12, 4), (1, 12), (1, 12)], gated, torch_gated),
    Network(
        "arithmetic",
        [(3, 4), (4,), (3, 1)],
        lambda b, x, y, z: b.reduce_mean(b.div(b.exp(b.sin(b.mul(x, y))), b.add(b.max(x, z), b.constant("float32", 5.0)))),
        lambda x, y, z: (torch.exp(torch.sin(x * y)) / (torch.maximum(x, z) + 5)).mean(),
    ),
)


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_gradients_are_those_of_torch(context: wn.MLContext, network: Network) -> None:
    rng = np.random.default_rng(11)
    arrays = [(0.5 * rng.standard_normal(shape)).astype(np.float32) for shape in network.shapes]
    given = [torch.tensor(array, dtype=torch.float64, requires_grad=True) for array in arrays]
    loss = network.theirs(*given)
    wanted = [gradient.numpy() for gradient in torch.autograd.grad(loss, given)]
    b = wn.MLGraphBuilder(context)
    operands = [b.input(str(i), list(array.shape), "float32") for i, array in enumerate(arrays)]
    ours = network.ours(b, *operands)
    outputs = {f"gradient {i}": gradient for i, gradient in enumerate(b.gradients(ours, operands))}
    found = context.compute(b.build({"loss": ours, **outputs}), {str(i): array for i, array in enumerate(arrays)})
    assert found["loss"] == pytest.approx(loss.item(), rel=1e-4)
    for name, gradient in zip(outputs, wanted, strict=True):
        np.testing.assert_allclose(found[name], gradient, rtol=0, atol=1e-4 * np.abs(gradient).max(), err_msg=name)


def test_there_are_twenty_networks() -> None:
    assert len({network.name for network in NETWORKS}) == 20
