"""CPU time of training steps beside PyTorch, measured in turns.

`python -m tests.train.beside_torch.speed` needs torch, which no extra installs, and a software adapter: a GPU's time is not
CPU time. PyTorch runs on one thread, as more threads wait for each other actively. It ends with an error where a bound is
exceeded.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

import webnn_wgpu as wn
from tests.train.beside_torch.networks import torch_transformer, torch_weights
from tests.train.networks import batch_of, parameters, transformer
from webnn_wgpu import train
from webnn_wgpu.train import glorot_uniform

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from webnn_wgpu import MLGraphBuilder, MLOperand
    from webnn_wgpu.typing import MLOperandDescriptor

    Array = NDArray[Any]
    Operands = Mapping[str, MLOperand]
    Tensors = Mapping[str, torch.Tensor]

RATE = 1e-3


@dataclass(frozen=True)
class Network:
    """A network in both libraries.

    Attributes:
        forward: adds the loss to a graph.
        torch_forward: computes the loss of a batch.
        weights: the initial parameters.
        inputs: the descriptors of a batch.
        batch: a batch.
        bound: the most times PyTorch's CPU time that a step may take.
    """

    forward: Callable[[MLGraphBuilder, Operands, Operands], MLOperand]
    torch_forward: Callable[[Tensors, Mapping[str, Array]], torch.Tensor]
    weights: Mapping[str, Array]
    inputs: Mapping[str, MLOperandDescriptor]
    batch: Mapping[str, Array]
    bound: float


def cross_entropy(b: MLGraphBuilder, scores: MLOperand, labels: MLOperand) -> MLOperand:
    """Return the mean of the negative logarithms of the labels' probabilities."""
    found = b.gather_elements(b.ext.log_softmax(scores, 1), b.reshape(labels, [labels.shape[0], 1]), axis=1)
    return b.neg(b.reduce_mean(found))


def perceptron() -> Network:
    """Return a network of three layers: 784, 512, 256 and 10 wide."""
    rng, sizes, batch = np.random.default_rng(0), (784, 512, 256, 10), 128
    weights: dict[str, Array] = {}
    for layer, size in enumerate(pairwise(sizes)):
        weights |= {f"w{layer}": glorot_uniform(list(size), rng), f"b{layer}": np.zeros(size[1], np.float32)}

    def forward(b: MLGraphBuilder, p: Operands, inputs: Operands) -> MLOperand:
        x = inputs["x"]
        for layer in range(3):
            x = b.add(b.matmul(x, p[f"w{layer}"]), p[f"b{layer}"])
            x = b.relu(x) if layer < 2 else x
        return cross_entropy(b, x, inputs["labels"])

    def torch_forward(p: Tensors, given: Mapping[str, Array]) -> torch.Tensor:
        x = torch.from_numpy(given["x"])
        for layer in range(3):
            x = x @ p[f"w{layer}"] + p[f"b{layer}"]
            x = functional.relu(x) if layer < 2 else x
        return functional.cross_entropy(x, torch.from_numpy(given["labels"]).long())

    return Network(forward, torch_forward, weights, *_labelled(rng, [batch, 784]), bound=5)


def convolutions() -> Network:
    """Return a network of two convolutions with 32 and 64 channels, a pool, and layers 128 and 10 wide."""
    rng, batch = np.random.default_rng(0), 64
    shapes = {"f0": [32, 1, 3, 3], "f1": [64, 32, 3, 3], "w0": [64 * 14 * 14, 128], "w1": [128, 10]}
    weights: dict[str, Array] = {}
    for name, shape in shapes.items():
        fans = (9 * shape[1], 9 * shape[0]) if len(shape) == 4 else (shape[0], shape[1])
        weights[name] = glorot_uniform(shape, rng, fan_in=fans[0], fan_out=fans[1])
    weights |= {"c0": np.zeros(32, np.float32), "c1": np.zeros(64, np.float32)}
    weights |= {"b0": np.zeros(128, np.float32), "b1": np.zeros(10, np.float32)}

    def forward(b: MLGraphBuilder, p: Operands, inputs: Operands) -> MLOperand:
        x = inputs["x"]
        for layer in range(2):
            x = b.relu(b.conv2d(x, p[f"f{layer}"], bias=p[f"c{layer}"], padding=[1, 1, 1, 1]))
        x = b.reshape(b.max_pool2d(x, window_dimensions=[2, 2], strides=[2, 2]), [batch, 64 * 14 * 14])
        x = b.relu(b.add(b.matmul(x, p["w0"]), p["b0"]))
        return cross_entropy(b, b.add(b.matmul(x, p["w1"]), p["b1"]), inputs["labels"])

    def torch_forward(p: Tensors, given: Mapping[str, Array]) -> torch.Tensor:
        x = torch.from_numpy(given["x"])
        for layer in range(2):
            x = functional.relu(functional.conv2d(x, p[f"f{layer}"], p[f"c{layer}"], padding=1))
        x = functional.relu(functional.max_pool2d(x, 2).flatten(1) @ p["w0"] + p["b0"])
        return functional.cross_entropy(x @ p["w1"] + p["b1"], torch.from_numpy(given["labels"]).long())

    return Network(forward, torch_forward, weights, *_labelled(rng, [batch, 1, 28, 28]), bound=6)


def small_transformer() -> Network:
    """Return the transformer of 4 layers, 128 wide, with 8 times 128 tokens."""
    inputs = batch_of()
    rng = np.random.default_rng(0)
    batch = {name: rng.integers(0, 96, each["shape"], np.int32) for name, each in inputs.items()}
    return Network(transformer, torch_transformer, parameters(), inputs, batch, bound=4)


def _labelled(rng: np.random.Generator, shape: list[int]) -> tuple[Mapping[str, MLOperandDescriptor], Mapping[str, Array]]:
    """Return the descriptors of a batch with labels, and a batch."""
    inputs: Mapping[str, MLOperandDescriptor] = {
        "x": {"dataType": "float32", "shape": shape},
        "labels": {"dataType": "int32", "shape": shape[:1]},
    }
    labels = rng.integers(0, 10, shape[:1], np.int32)
    return inputs, {"x": rng.standard_normal(shape, np.float32), "labels": labels}


def spent(step: Callable[[], object], count: int) -> float:
    """Return the CPU time of a step in milliseconds."""
    began = time.process_time()
    for _ in range(count):
        step()
    return (time.process_time() - began) * 1e3 / count


def compare(context: wn.MLContext, name: str, network: Network, turns: int, count: int) -> bool:
    """Measure both in turns, and return whether the multiple is within the bound."""
    weights = torch_weights(network.weights)
    optimizer = torch.optim.Adam(list(weights.values()), lr=RATE)

    def by_torch() -> float:
        optimizer.zero_grad()
        loss = network.torch_forward(weights, network.batch)
        loss.backward()
        optimizer.step()
        return loss.item()

    adam = train.Adam(learning_rate=RATE)
    with train.Step(context, network.forward, network.weights, adam, inputs=network.inputs) as step:
        for _ in range(2):
            np.testing.assert_allclose(step(network.batch)["loss"], by_torch(), rtol=1e-3)
        times = [(spent(lambda: step(network.batch), count), spent(by_torch, count)) for _ in range(turns)]
    ours, theirs = (median(column) for column in zip(*times, strict=True))
    multiples = sorted(a / b for a, b in times)
    multiple = median(multiples)
    print(
        f"{name}: {ours:.1f} ms, PyTorch {theirs:.1f} ms: {multiple:.2f} times "
        f"({multiples[0]:.2f} to {multiples[-1]:.2f}), at most {network.bound:g}",
        flush=True,
    )
    return multiple <= network.bound


NETWORKS: Mapping[str, Callable[[], Network]] = {"mlp": perceptron, "cnn": convolutions, "transformer": small_transformer}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--steps", type=int, default=3, help="steps of a turn")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    device = wn.ml.create_context()
    found = [compare(device, name, NETWORKS[name](), arguments.turns, arguments.steps) for name in arguments.networks]
    raise SystemExit(0 if all(found) else "a bound is exceeded")
