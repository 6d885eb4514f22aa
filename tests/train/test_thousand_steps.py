"""A thousand steps of each way to train: what goes between host and device, and the memory that they keep."""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu.tfjs as tf
from tests.runtime.counting import BYTES_DOWN, BYTES_UP, counted, created, resident_bytes
from tests.train import networks
from webnn_wgpu import eager, train

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from contextlib import AbstractContextManager

    import webnn_wgpu as wn

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads the size of the process from Linux's /proc"),
]

STEPS = 1000
WARM_UP = 200
"""Steps before memory is measured: allocators and pools take what they need."""
LIMIT_BYTES = 5_000_000

RNG = np.random.default_rng(0)
X = RNG.standard_normal((32, 8)).astype(np.float32)
Y = (X @ RNG.standard_normal((8, 1))).astype(np.float32)


@contextmanager
def compiled(context: wn.MLContext) -> Generator[Callable[[], float]]:
    """A step of a small transformer."""
    inputs = networks.batch_of(length=8, batch=2)
    sizes = networks.parameters(layers=1, width=16, length=8, vocabulary=12)
    tokens = RNG.integers(0, 12, (2, 9)).astype(np.int32)
    batch = {"tokens": tokens[:, :-1], "targets": tokens[:, 1:]}
    with train.Step(context, networks.transformer, sizes, train.Adam(learning_rate=0.001), inputs=inputs) as step:
        yield lambda: step(batch)["loss"]


@contextmanager
def eagerly(context: wn.MLContext) -> Generator[Callable[[], float]]:
    """A loop over eager operators, with momentum."""
    weight, momentum = (eager.Variable(np.zeros((8, 1), np.float32), context=context) for _ in range(2))

    def step() -> float:
        error = eager.tensor(X) @ weight - eager.tensor(Y)
        loss = eager.ops.reduce_mean(error * error)
        (gradient,) = eager.gradients(loss, [weight])
        momentum.assign(momentum * 0.5 + gradient)
        weight.assign(weight - momentum * 0.01)
        return loss.item()

    yield step


@contextmanager
def minimizing(context: wn.MLContext) -> Generator[Callable[[], float]]:
    """TensorFlow.js's loop."""
    kernel, bias = tf.variable(np.zeros((8, 1), np.float32)), tf.variable(np.zeros(1, np.float32))
    optimizer = tf.train.adam(0.01)

    def step() -> float:
        rows, target = tf.tensor(X), tf.tensor(Y)

        def cost() -> tf.Tensor:
            return tf.losses.mean_squared_error(target, tf.add(tf.mat_mul(rows, kernel), bias))

        found = optimizer.minimize(cost, True, [kernel, bias])
        assert found is not None
        return found.item()

    yield step
    optimizer.dispose()


@contextmanager
def with_keras(context: wn.MLContext) -> Generator[Callable[[], float]]:
    """Keras's loop over batches."""
    if find_spec("keras") is None:
        pytest.skip("the extra `keras` is not installed")
    from webnn_wgpu import keras

    found: Any = keras
    found.use(context)
    found.utils.clear_session()
    model = found.Sequential([found.layers.Input((8,)), found.layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")
    yield lambda: float(model.train_on_batch(X, Y))


PAGE = 4096
"""The smallest buffer that results are copied to and mapped in."""

BATCH = X.nbytes + Y.nbytes
WAYS: Mapping[str, tuple[Callable[[wn.MLContext], AbstractContextManager[Callable[[], float]]], int, frozenset[str]]] = {
    # Two rows of 8 tokens and as many targets, and Adam's two scalars.
    "step": (compiled, 2 * 2 * 8 * 4 + 2 * 4, frozenset()),
    "eager": (eagerly, BATCH, frozenset()),
    # TensorFlow.js's Adam has two corrections that change with the steps, for each of two variables.
    "minimize": (minimizing, BATCH + 4 * 4, frozenset()),
    # Keras has two scalars.
    "keras": (with_keras, BATCH + 2 * 4, frozenset()),
}
"""How to train, the most bytes that a step writes, and what it may create."""


@pytest.mark.parametrize("way", WAYS)
def test_a_thousand_steps_move_batches_and_scalars_and_keep_no_memory(
    way: str, context: wn.MLContext, record_property: Callable[[str, object], None]
) -> None:
    make, most_up, may_create = WAYS[way]
    eager.set_default_context(context)
    try:
        with make(context) as step:
            first = step()
            for _ in range(WARM_UP):
                step()
            gc.collect()
            device, resident = context.memory().total, resident_bytes()
            with counted() as calls:
                losses = [step() for _ in range(STEPS)]
            gc.collect()
            grown = resident_bytes() - resident
            found: dict[str, Any] = {
                "bytes up": calls[BYTES_UP] / STEPS,
                "bytes down": calls[BYTES_DOWN] / STEPS,
                "grown": grown,
                "device grown": context.memory().total - device,
                "created": created(calls),
            }
            record_property("found", found)
            print(way, found)
            assert losses[-1] < first
            assert set(created(calls)) <= may_create
            assert found["bytes up"] <= most_up
            assert found["bytes down"] <= PAGE
            assert found["device grown"] <= 0
            assert grown < LIMIT_BYTES
    finally:
        eager.set_default_context(None)
