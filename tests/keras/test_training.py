"""Training with Keras: numbers, files, callbacks and sources of data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import webnn_wgpu as wn
from webnn_wgpu import eager

RNG = np.random.default_rng(3)
X = RNG.standard_normal((48, 4)).astype(np.float32)
Y = (X @ RNG.standard_normal((4, 2)) + 0.5).astype(np.float32)


def _linear(keras: Any, optimizer: Any) -> Any:
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
    model.compile(optimizer=optimizer, loss="mse", metrics=["mae"])
    return model


def _descent(weights: list[NDArray[Any]], batches: list[slice], rate: float, momentum: float) -> list[NDArray[Any]]:
    """Return the weights after steps of gradient descent with momentum, in float64."""
    kernel, bias = (each.astype(np.float64) for each in weights)
    moved = [np.zeros_like(kernel), np.zeros_like(bias)]
    for rows in batches:
        x, y = X[rows].astype(np.float64), Y[rows].astype(np.float64)
        slope = 2 * (x @ kernel + bias - y) / y.size
        moved = [momentum * old - rate * new for old, new in zip(moved, (x.T @ slope, slope.sum(0)), strict=True)]
        kernel, bias = kernel + moved[0], bias + moved[1]
    return [kernel, bias]


def test_descent_has_the_weights_of_float64(keras: Any) -> None:
    model = _linear(keras, keras.optimizers.SGD(0.05, momentum=0.9))
    before = model.get_weights()
    history = model.fit(X, Y, batch_size=12, epochs=3, shuffle=False, verbose=0)
    expected = _descent(before, [slice(n, n + 12) for n in range(0, 48, 12)] * 3, 0.05, 0.9)
    for found, wanted in zip(model.get_weights(), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)
    assert sorted(history.history) == ["loss", "mae"]
    assert history.history["loss"][-1] < history.history["loss"][0]


def test_a_step_is_one_graph_that_repeats(keras: Any) -> None:
    model = _linear(keras, "adam")
    model.fit(X, Y, batch_size=12, epochs=1, verbose=0)
    model.evaluate(X, Y, batch_size=12, verbose=0)
    before = eager.statistics(keras.context())
    model.fit(X, Y, batch_size=12, epochs=2, verbose=0)
    model.evaluate(X, Y, batch_size=12, verbose=0)
    after = eager.statistics(keras.context())
    assert after.compilations == before.compilations
    # Four batches in each of two epochs and in the evaluation, and the reset of metrics before each of these.
    assert after.runs - before.runs <= 12 + 12


def test_weights_keep_their_memory(keras: Any) -> None:
    model = _linear(keras, "adam")
    model.fit(X, Y, verbose=0)
    weights = [variable._value.value for variable in (*model.trainable_variables, *model.optimizer.variables)]
    memory = [weight.ml_tensor() for weight in weights]
    model.fit(X, Y, verbose=0)
    assert all(weight.ml_tensor() is each for weight, each in zip(weights, memory, strict=True))


def test_a_value_that_a_step_asks_for_is_an_error_in_tracing_alone(keras: Any) -> None:
    seen: list[float] = []

    class Asking(keras.Sequential):
        def train_step(self, data: Any) -> Any:
            loss = keras.ops.mean(keras.ops.square(self(data[0]) - data[1]))
            weights = self.trainable_weights
            self.optimizer.apply(keras.gradients(loss, weights), weights)
            seen.append(float(loss))
            return {"loss": loss}

    model = Asking([keras.layers.Input((4,)), keras.layers.Dense(2)])
    model.compile("sgd")
    with pytest.warns(UserWarning, match="operator by operator: .*the value is not known"):
        model.fit(X, Y, batch_size=24, epochs=3, shuffle=False, verbose=0)
    assert len(seen) == 6
    assert seen[-1] < seen[0]
    with pytest.raises(eager.UnknownValueError, match="not known"):
        keras.ops.convert_to_numpy(eager.placeholder((2,)) + 1)


def test_a_model_moves_to_the_context_in_use(keras: Any) -> None:
    model = _linear(keras, "adam")
    model.fit(X, Y, verbose=0)
    before, predicted = keras.context(), model.predict(X, verbose=0)
    keras.use(wn.ml.create_context(backend="reference"))
    assert keras.context() is not before
    np.testing.assert_array_equal(model.predict(X, verbose=0), predicted)
    model.fit(X, Y, verbose=0)
    assert model.layers[0].kernel.value.value.context is keras.context()
    keras.use(before)
    assert not np.array_equal(model.predict(X, verbose=0), predicted)


def test_values_that_are_kept_do_not_change_with_the_training(keras: Any) -> None:
    model = _linear(keras, "sgd")
    model.fit(X, Y, verbose=0)
    kept = model.layers[0].kernel.value
    numbers = kept.numpy()
    lazy = kept * 2.0
    model.fit(X, Y, verbose=0)
    np.testing.assert_array_equal(kept.numpy(), numbers)
    np.testing.assert_array_equal(np.asarray(lazy), numbers * 2)
    assert not np.array_equal(np.asarray(model.layers[0].kernel), numbers)


def test_a_file_keeps_weights_and_the_optimizer(keras: Any, tmp_path: Path) -> None:
    model = _linear(keras, "adam")
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "linear.keras")
    again = keras.models.load_model(tmp_path / "linear.keras")
    np.testing.assert_array_equal(again.predict(X, verbose=0), model.predict(X, verbose=0))
    for each in (model, again):
        each.fit(X, Y, shuffle=False, verbose=0)
    for found, wanted in zip(again.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_callbacks_see_steps_and_stop_the_training(keras: Any) -> None:
    losses: list[float] = []
    watch = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: losses.append(float(logs["loss"])))
    stop = keras.callbacks.EarlyStopping(monitor="loss", min_delta=1e6, patience=1)
    rate = keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 / (epoch + 1))
    model = _linear(keras, "sgd")
    history = model.fit(X, Y, batch_size=16, epochs=9, callbacks=[watch, stop, rate], verbose=0)
    assert len(history.history["loss"]) == 2
    assert len(losses) == 6
    assert float(np.asarray(model.optimizer.learning_rate)) == pytest.approx(0.05)


def test_generators_and_validation(keras: Any) -> None:
    def batches() -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        while True:
            for n in range(0, 48, 16):
                yield X[n : n + 16], Y[n : n + 16]

    from_arrays, from_generator = (_linear(keras, "sgd") for _ in range(2))
    from_generator.set_weights(from_arrays.get_weights())
    from_arrays.fit(X, Y, batch_size=16, shuffle=False, verbose=0)
    history = from_generator.fit(batches(), steps_per_epoch=3, validation_data=(X, Y), verbose=0)
    for found, wanted in zip(from_generator.get_weights(), from_arrays.get_weights(), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert history.history["val_loss"] == [pytest.approx(from_arrays.evaluate(X, Y, verbose=0)[0])]


def test_a_functional_model_with_dropout_and_statistics(keras: Any) -> None:
    inputs = keras.Input((4,))
    hidden = keras.layers.Dense(16, activation="gelu")(inputs)
    hidden = keras.layers.Dropout(0.1)(keras.layers.BatchNormalization()(hidden))
    model = keras.Model(inputs, keras.layers.Dense(2)(keras.layers.Concatenate()([hidden, inputs])))
    model.compile(keras.optimizers.AdamW(0.02, clipnorm=1.0), "mse", steps_per_execution=2)
    losses = model.fit(X, Y, batch_size=12, epochs=8, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]
    assert np.abs(np.asarray(model.layers[2].moving_mean)).max() > 0.01


def test_a_function_of_the_host_makes_the_step_run_by_operators(keras: Any) -> None:
    class Median(keras.metrics.Mean):
        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
            return super().update_state(keras.ops.median(y_pred))

    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse", metrics=[Median(name="median")])
    before = model.get_weights()
    with pytest.warns(UserWarning, match="median runs on the host"):
        model.fit(X, Y, batch_size=24, shuffle=False, verbose=0)
    expected = _descent(before, [slice(0, 24), slice(24, 48)], 0.01, 0.0)
    for found, wanted in zip(model.get_weights(), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)


def test_half_floats_keep_weights_of_float32(keras: Any) -> None:
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2, dtype="mixed_float16")])
    model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.05)), "mse")
    losses = model.fit(X, Y, batch_size=12, epochs=4, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert model.layers[0].kernel.dtype == "float32"
    assert model.predict(X[:1], verbose=0).dtype == np.float16


def test_layers_of_preprocessing_find_the_backend(keras: Any) -> None:
    layer = keras.layers.Normalization(axis=-1)
    layer.adapt(X)
    found = np.asarray(layer(X))
    np.testing.assert_allclose(found, (X - X.mean(0)) / X.std(0), rtol=1e-4, atol=1e-5)
    flipped = keras.layers.RandomFlip("horizontal", seed=1)(np.arange(6, dtype="float32").reshape(1, 1, 3, 2), training=True)
    assert flipped.shape == (1, 1, 3, 2)


def test_derivatives_in_a_direction(keras: Any) -> None:
    ops = keras.ops
    x, direction = np.float32([[1, 2], [3, 4]]), np.float32([[1, 0], [0, 2]])
    (square, total), (of_square, of_total), shape = ops.jvp(
        lambda x: ((ops.matmul(x, x), ops.sum(x)), x.shape), (x,), (direction,), has_aux=True
    )
    np.testing.assert_array_equal(np.asarray(square), x @ x)
    np.testing.assert_array_equal(np.asarray(of_square), direction @ x + x @ direction)
    assert (float(total), float(of_total), shape) == (10, 3, (2, 2))


def test_a_graph_has_the_predictions_of_a_model(keras: Any, tmp_path: Path) -> None:
    layers = keras.layers
    picture, words = keras.Input((6, 6, 2), name="picture"), keras.Input((None,), dtype="int32", name="words")
    seen = layers.GlobalAveragePooling2D()(layers.BatchNormalization()(layers.Conv2D(4, 3, activation="relu")(picture)))
    read = layers.LSTM(5)(layers.Embedding(9, 3, mask_zero=True)(words))
    both = layers.Dense(3)(layers.Dropout(0.5)(layers.Concatenate()([seen, read])))
    model = keras.Model({"picture": picture, "words": words}, {"scores": layers.Softmax()(both), "read": read})
    x = {"picture": RNG.standard_normal((2, 6, 6, 2)).astype(np.float32), "words": np.int32([[1, 2, 0], [3, 0, 0]])}
    # The weights of a model that has not run are pending.
    graph = keras.graph(model, x)
    assert repr(graph) == (
        "MLGraph(picture: float32[2, 6, 6, 2], words: int32[2, 3] -> read: float32[2, 5], scores: float32[2, 3])"
    )
    predicted = model.predict(x, verbose=0)
    for suffix in ("onnx", "webnn"):
        graph.save(tmp_path / f"model.{suffix}")
        found = wn.load(tmp_path / f"model.{suffix}", keras.context()).run(x)
        for name, wanted in predicted.items():
            np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-6)


def test_a_graph_keeps_the_weights_of_its_time(keras: Any) -> None:
    model = _linear(keras, "adam")
    graph, before = keras.graph(model, X[:3]), model.predict(X[:3], verbose=0)
    model.fit(X, Y, verbose=0)
    np.testing.assert_array_equal(keras.context().compute(graph, {"input": X[:3]})["output"], before)
    pair = keras.Model(model.inputs, [model.outputs[0], model.outputs[0] * 2])
    assert list(keras.graph(pair, X[:3].astype(np.float64)).outputs) == ["output_0", "output_1"]


def test_models_without_a_graph_are_refused(keras: Any) -> None:
    class Median(keras.Model):
        def call(self, x: Any) -> Any:
            return keras.ops.median(x, axis=1)

    model = Median()
    with pytest.raises(wn.MLTypeError, match=r"graph: the model must be built; got median.*\. Call it on a batch first"):
        keras.graph(model, X)
    model(X)
    with pytest.raises(eager.UnknownValueError, match="median runs on the host"):
        keras.graph(model, X)
    with pytest.raises(wn.NotSupportedError, match=r"graph\('input'\): inputs and outputs must be .*; got float32\[0, 4\]"):
        keras.graph(_linear(keras, "adam"), X[:0])
    with pytest.raises(NotImplementedError, match=r"webnn_wgpu\.keras\.graph\(model, x\)"):
        _linear(keras, "adam").export("model")
