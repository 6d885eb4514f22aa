"""Networks to train: the models that training steps are measured with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from webnn_wgpu.train import glorot_uniform

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from webnn_wgpu import MLGraphBuilder, MLOperand
    from webnn_wgpu.typing import MLOperandDescriptor

LAYERS, HEADS, WIDTH, LENGTH, VOCABULARY, BATCH = 4, 4, 128, 128, 96, 8
"""The sizes of the transformer."""


def batch_of(*, length: int = LENGTH, batch: int = BATCH) -> Mapping[str, MLOperandDescriptor]:
    """Return the inputs of a step of the transformer: tokens, and the tokens that follow them."""
    return {name: {"dataType": "int32", "shape": [batch, length]} for name in ("tokens", "targets")}


def parameters(
    *, layers: int = LAYERS, width: int = WIDTH, length: int = LENGTH, vocabulary: int = VOCABULARY
) -> Mapping[str, NDArray[np.float32]]:
    """Return the initial parameters of the transformer."""
    rng = np.random.default_rng(0)
    one = {"scale": np.ones(width, np.float32), "bias": np.zeros(width, np.float32)}
    found = {"embedding": glorot_uniform([vocabulary, width], rng), "positions": glorot_uniform([length, width], rng)}
    sizes = {**dict.fromkeys("qkvo", (width, width)), "up": (width, 4 * width), "down": (4 * width, width)}
    for layer in range(layers):
        for norm in ("first", "second"):
            found |= {f"{layer}/{norm}/{name}": array for name, array in one.items()}
        for name, shape in sizes.items():
            found[f"{layer}/{name}/weight"] = glorot_uniform(list(shape), rng)
            found[f"{layer}/{name}/bias"] = np.zeros(shape[1], np.float32)
    found |= {f"last/{name}": array for name, array in one.items()}
    return {**found, "head/weight": glorot_uniform([width, vocabulary], rng), "head/bias": np.zeros(vocabulary, np.float32)}


def transformer(b: MLGraphBuilder, given: Mapping[str, MLOperand], inputs: Mapping[str, MLOperand]) -> MLOperand:
    """Return the loss of the transformer: the cross entropy of the next tokens."""

    def dense(x: MLOperand, name: str) -> MLOperand:
        return b.add(b.matmul(x, given[f"{name}/weight"]), given[f"{name}/bias"])

    def normal(x: MLOperand, name: str) -> MLOperand:
        return b.layer_normalization(x, scale=given[f"{name}/scale"], bias=given[f"{name}/bias"], axes=[2])

    x = b.add(b.gather(given["embedding"], inputs["tokens"]), given["positions"])
    layers = sum(name.endswith("/q/weight") for name in given)
    for layer in range(layers):
        rows = normal(x, f"{layer}/first")
        mixed = b.ext.attention(*(dense(rows, f"{layer}/{name}") for name in "qkv"), heads=HEADS, causal=True)
        x = b.add(x, dense(mixed, f"{layer}/o"))
        x = b.add(x, dense(b.gelu(dense(normal(x, f"{layer}/second"), f"{layer}/up")), f"{layer}/down"))
    scores = dense(normal(x, "last"), "head")
    batch, length, vocabulary = scores.shape
    rows = b.ext.log_softmax(b.reshape(scores, [batch * length, vocabulary]), 1)
    return b.neg(b.reduce_mean(b.gather_elements(rows, b.reshape(inputs["targets"], [batch * length, 1]), axis=1)))
