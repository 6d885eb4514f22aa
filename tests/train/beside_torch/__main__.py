"""Training beside PyTorch: the same initial weights and batches, and the losses of both.

`PYTHONPATH=examples python -m tests.train.beside_torch` needs torch, which no extra installs. It ends with an error where a
bound is exceeded.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

import webnn_wgpu as wn
import webnn_wgpu.tfjs as tf
from examples.train_digits import BATCH, SIZE, digits, forward, initial, scores
from tests.optional import REPOSITORY
from tests.train.beside_torch.networks import torch_transformer, torch_weights
from tests.train.networks import batch_of, parameters, transformer
from webnn_wgpu import eager, keras, train

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    Array = NDArray[Any]
    Batch = tuple[Array, Array]
    Level = Callable[[wn.MLContext, list[Batch], Batch], tuple[list[float], Array]]

EPOCHS, BATCHES, RATE = 3, 60, 0.01
"""The training of the digits."""
LOSS_BOUND, EPOCH_BOUND, ACCURACY_BOUND = 0.02, 0.01, 0.965
"""The largest difference of the transformer's last loss and of the digits' first epoch, and the smallest accuracy."""


def torch_losses(weights: dict[str, torch.Tensor], rate: float, losses: Iterator[torch.Tensor]) -> list[float]:
    """Return losses, with an update by Adam after each."""
    optimizer = torch.optim.Adam(list(weights.values()), lr=rate)
    found: list[float] = []
    for loss in losses:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


# a transformer ----------------------------------------------------------------------------------------------------------


def windows(length: int, batch: int, steps: int) -> tuple[int, list[dict[str, Array]]]:
    """Return the number of characters of the license, and batches of its text."""
    text = (REPOSITORY / "LICENSE").read_text("utf-8")
    characters = sorted(set(text))
    tokens = np.array([characters.index(character) for character in text], np.int32)
    rng = np.random.default_rng(1)
    starts = rng.integers(0, len(tokens) - length, (steps, batch, 1)) + np.arange(length)
    return len(characters), [{"tokens": tokens[places], "targets": tokens[places + 1]} for places in starts]


def compare_transformers(context: wn.MLContext, width: int, length: int, batch: int, steps: int) -> bool:
    """Train the transformer of 4 layers in both, and return whether the last losses agree."""
    vocabulary, batches = windows(length, batch, steps)
    weights = parameters(width=width, length=length, vocabulary=vocabulary)
    rate = 1e-3
    given = torch_weights(weights)
    expected = torch_losses(given, rate, (torch_transformer(given, each) for each in batches))
    inputs = batch_of(length=length, batch=batch)
    with train.Step(context, transformer, weights, train.Adam(learning_rate=rate), inputs=inputs) as step:
        found = [step(each)["loss"] for each in batches]
    difference = abs(found[-1] / expected[-1] - 1)
    largest = max(abs(a / b - 1) for a, b in zip(found, expected, strict=True))
    print(f"transformer, width {width}, {batch} x {length} tokens: loss {found[0]:.4f}, after {steps} steps {found[-1]:.4f}")
    print(f"  PyTorch {expected[-1]:.4f}; difference {difference:.2%}, at most {largest:.2%} in a step", flush=True)
    return difference < LOSS_BOUND


# digits -----------------------------------------------------------------------------------------------------------------


def last_channels(p: Mapping[str, Array]) -> list[Array]:
    """Return the parameters of the digits' network for pictures with channels last."""
    filters = (p[name].transpose(2, 3, 1, 0) for name in ("filter1", "filter2"))
    weight = p["weight"].reshape(16, 3, 3, 10).transpose(1, 2, 0, 3).reshape(144, 10)
    first, second = filters
    return [np.float32(array) for array in (first, p["bias1"], second, p["bias2"], weight, p["bias"])]


def by_torch(_: wn.MLContext, batches: list[Batch], held_out: Batch) -> tuple[list[float], Array]:
    """Return the losses, and the scores of pictures that were held out."""
    p = torch_weights(initial(np.random.default_rng(0)))

    def found(pictures: Array) -> torch.Tensor:
        x = torch.tensor(pictures)
        for layer in "12":
            x = functional.conv2d(x, p[f"filter{layer}"], p[f"bias{layer}"], padding=1)
            x = functional.avg_pool2d(functional.relu(x), 2)
        return x.flatten(1) @ p["weight"] + p["bias"]

    steps = (functional.cross_entropy(found(pictures), torch.tensor(labels).long()) for pictures, labels in batches)
    losses = torch_losses(p, RATE, steps)
    return losses, found(held_out[0]).detach().numpy()


def by_step(context: wn.MLContext, batches: list[Batch], held_out: Batch) -> tuple[list[float], Array]:
    """As `by_torch`, on the compiled step."""
    inputs: Any = {
        "pictures": {"dataType": "float32", "shape": [BATCH, 1, SIZE, SIZE]},
        "labels": {"dataType": "int32", "shape": [BATCH]},
    }
    weights: Any = initial(np.random.default_rng(0))
    adam = train.Adam(learning_rate=RATE)
    with train.Step(context, forward, weights, adam, inputs=inputs) as step:
        losses = [step({"pictures": pictures, "labels": labels})["loss"] for pictures, labels in batches]
        trained = step.parameters()
    b = wn.MLGraphBuilder(context)
    constants = {name: b.constant(array) for name, array in trained.items()}
    graph = b.build({"scores": scores(b, constants, b.input("pictures", held_out[0].shape, "float32"))})
    return losses, np.array(context.compute(graph, {"pictures": held_out[0]})["scores"])


def by_eager_tensors(context: wn.MLContext, batches: list[Batch], held_out: Batch) -> tuple[list[float], Array]:
    """As `by_torch`, on eager tensors with TensorFlow.js's functions."""
    eager.set_default_context(context)
    variables = [tf.variable(array) for array in last_channels(initial(np.random.default_rng(0)))]
    filter1, bias1, filter2, bias2, weight, bias = variables

    def found(pictures: Array) -> tf.Tensor:
        x = tf.tensor(pictures.transpose(0, 2, 3, 1))
        for kernel, shift in ((filter1, bias1), (filter2, bias2)):
            x = tf.avg_pool(tf.relu(tf.add(tf.conv2d(x, kernel, 1, "same"), shift)), 2, 2, "valid")
        return tf.add(tf.mat_mul(tf.reshape(x, [-1, 144]), weight), bias)

    optimizer = tf.train.adam(RATE)
    losses: list[float] = []
    for pictures, labels in batches:
        wanted = tf.one_hot(labels, 10)
        cost = optimizer.minimize(
            lambda pictures=pictures, wanted=wanted: tf.losses.softmax_cross_entropy(wanted, found(pictures)), True, variables
        )
        assert cost is not None
        losses.append(cost.item())
    return losses, found(held_out[0]).numpy()


def by_keras(context: wn.MLContext, batches: list[Batch], held_out: Batch) -> tuple[list[float], Array]:
    """As `by_torch`, on Keras's `fit`, whose losses are the means of epochs. Its Adam has a larger epsilon."""
    library: Any = keras
    library.use(context)
    layers = library.layers
    model = library.Sequential([layers.Input((SIZE, SIZE, 1))])
    for filters in (8, 16):
        model.add(layers.Conv2D(filters, 3, padding="same", activation="relu"))
        model.add(layers.AveragePooling2D(2))
    model.add(layers.Flatten())
    model.add(layers.Dense(10))
    model.set_weights(last_channels(initial(np.random.default_rng(0))))
    model.compile(library.optimizers.Adam(RATE), library.losses.SparseCategoricalCrossentropy(from_logits=True))
    pictures, labels = (np.concatenate([batch[place] for batch in batches[:BATCHES]]) for place in (0, 1))
    rows = pictures.transpose(0, 2, 3, 1)
    history = model.fit(rows, labels, batch_size=BATCH, epochs=EPOCHS, shuffle=False, verbose=0).history["loss"]
    losses = [loss for loss in history for _ in range(BATCHES)]
    return losses, model.predict(held_out[0].transpose(0, 2, 3, 1), verbose=0)


LEVELS: Mapping[str, Level] = {
    "PyTorch": by_torch,
    "the compiled step": by_step,
    "eager tensors": by_eager_tensors,
    "Keras": by_keras,
}


def compare_digits(context: wn.MLContext) -> bool:
    """Train the digits' network at each level, and return whether all are within their bounds."""
    rng = np.random.default_rng(2)
    epoch = [digits(rng, BATCH) for _ in range(BATCHES)]
    held_out = digits(np.random.default_rng(3), 1000)
    expected, right = 0.0, True
    for name, level in LEVELS.items():
        losses, found = level(context, epoch * EPOCHS, held_out)
        first = float(np.mean(losses[:BATCHES]))
        expected = expected or first
        difference, accuracy = abs(first / expected - 1), float((found.argmax(1) == held_out[1]).mean())
        print(f"digits by {name}: first epoch {first:.5f} ({difference:.3%}), held-out accuracy {accuracy:.3f}", flush=True)
        right = right and difference < EPOCH_BOUND and accuracy >= ACCURACY_BOUND
    return right


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for size, default in {"width": 128, "length": 128, "batch": 8, "steps": 200}.items():
        parser.add_argument(f"--{size}", type=int, default=default, help=f"{size} of the transformer")
    sizes = parser.parse_args()
    device = wn.ml.create_context()
    outcomes = [compare_digits(device), compare_transformers(device, sizes.width, sizes.length, sizes.batch, sizes.steps)]
    raise SystemExit(0 if all(outcomes) else "a bound is exceeded")
