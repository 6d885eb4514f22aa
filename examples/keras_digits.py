"""Keras on WebGPU: a convolutional network learns to read digits, and a `.keras` file keeps it.

The digits are drawn: `digits.py`.
"""

import numpy as np
from digits import SIZE, digits

from webnn_wgpu import eager, keras


def images(rng, count):
    """Return pictures [count, 12, 12, 1] and their digits."""
    pictures, labels = digits(rng, count)
    return np.moveaxis(pictures, 1, 3), labels


keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
model = keras.Sequential(
    [
        keras.layers.Input((SIZE, SIZE, 1)),
        keras.layers.Conv2D(8, 3, padding="same", activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dropout(0.1),
        keras.layers.Dense(10),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(0.01),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)

pictures, labels = images(rng, 1920)
model.fit(pictures, labels, batch_size=32, epochs=2, verbose=2)

held_out, right = images(rng, 320)
loss, accuracy = model.evaluate(held_out, right, batch_size=32, verbose=0)
print(f"held-out pictures: loss {loss:.2f}, accuracy {accuracy:.3f}")

model.save("digits.keras")
print("written: digits.keras")
again = keras.models.load_model("digits.keras")
same = np.array_equal(again.predict(held_out, verbose=0), model.predict(held_out, verbose=0))
print(f"the stored model predicts the same: {same}")
statistics = eager.statistics(keras.context())
print(f"compiled graphs: {statistics.compilations}, runs: {statistics.runs}")
