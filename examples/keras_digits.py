"""Keras on WebGPU: a convolutional network learns to read digits, and a `.keras` file keeps it.

The digits are drawn here: glyphs of 5 x 7 points near the middle of a picture, of random brightness, with noise.
"""

import numpy as np

from webnn_wgpu import keras

GLYPHS = (
    "01110 10001 10011 10101 11001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00110 01000 10000 11111",
    "11111 00010 00100 00010 00001 10001 01110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00010 01100",
)
POINTS = np.array([[[int(point) for point in row] for row in glyph.split()] for glyph in GLYPHS], np.float32)
SIZE = 12


def digits(rng, count):
    """Return pictures [count, 12, 12, 1] and their digits."""
    labels = rng.integers(0, 10, count).astype(np.int32)
    pictures = rng.normal(0, 0.1, (count, SIZE, SIZE, 1)).astype(np.float32)
    for picture, label in zip(pictures, labels, strict=True):
        top, left = rng.integers(1, 4), rng.integers(2, 5)
        picture[top : top + 7, left : left + 5, 0] += rng.uniform(0.6, 1.2) * POINTS[label]
    return pictures, labels


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

pictures, labels = digits(rng, 1920)
model.fit(pictures, labels, batch_size=32, epochs=2, verbose=2)

held_out, right = digits(rng, 320)
loss, accuracy = model.evaluate(held_out, right, batch_size=32, verbose=0)
print(f"held-out pictures: loss {loss:.2f}, accuracy {accuracy:.3f}")

model.save("digits.keras")
again = keras.models.load_model("digits.keras")
same = np.array_equal(again.predict(held_out, verbose=0), model.predict(held_out, verbose=0))
print(f"the stored model predicts the same: {same}")
print(f"compiled graphs: {keras.compilation.graphs}, runs: {keras.compilation.dispatches}")
