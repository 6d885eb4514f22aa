"""Pictures of digits: glyphs of 5 x 7 points near the middle of a picture, of random brightness, with noise."""

import numpy as np

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
    """Return pictures [count, 1, 12, 12] and their digits."""
    labels = rng.integers(0, 10, count).astype(np.int32)
    pictures = rng.normal(0, 0.1, (count, 1, SIZE, SIZE)).astype(np.float32)
    for picture, label in zip(pictures, labels, strict=True):
        top, left = rng.integers(1, 4), rng.integers(2, 5)
        picture[0, top : top + 7, left : left + 5] += rng.uniform(0.6, 1.2) * POINTS[label]
    return pictures, labels
