"""Functions of the host: the guide lists them, and the device has the others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def test_the_guide_lists_the_functions_of_the_host(keras: Any, repository: Path) -> None:
    from webnn_wgpu.keras.webnn import host

    guide = (repository / "docs" / "guides" / "keras.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (`.*) \|$", guide, re.MULTILINE))
    listed = {module: re.findall(r"`(\w+)`", rows[module]) for module in host.FUNCTIONS}
    assert listed == {module: [n for n in names if n[0] != "_"] for module, names in host.FUNCTIONS.items()}


def test_complex_numbers_strings_and_empty_arrays_stay_on_the_host(keras: Any) -> None:
    ops = keras.ops
    found = ops.multiply(np.complex64([1 + 2j, 3]), 2)
    np.testing.assert_array_equal(np.asarray(found), [2 + 4j, 6])
    assert ops.sum(ops.zeros((0, 3)), axis=0).shape == (3,)
    np.testing.assert_allclose(np.asarray(ops.fft((np.float32([1, 0, 0, 0]), np.zeros(4, "float32")))[0]), np.ones(4))


def test_narrow_types_are_rounded_and_wrapped(keras: Any) -> None:
    ops = keras.ops
    large = ops.cast(np.int32([32767]), "int16")
    assert np.asarray(ops.add(large, ops.ones((1,), "int16"))).tolist() == [-32768]
    third = ops.divide(ops.ones((1,), "bfloat16"), ops.full((1,), 3, "bfloat16"))
    assert str(np.asarray(third).dtype) == "bfloat16"
    assert float(np.asarray(third)[0]) == 0.333984375


def test_sparse_matrices_become_dense_batch_by_batch(keras: Any) -> None:
    from scipy import sparse

    x = sparse.random(8, 6, density=0.3, format="csr", dtype=np.float32, random_state=0)
    np.testing.assert_array_equal(np.asarray(keras.ops.convert_to_tensor(x)), x.toarray())
    model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    np.testing.assert_array_equal(model.predict(x, verbose=0), model.predict(x.toarray(), verbose=0))
    batches = [(x[:4], np.zeros((4, 2), np.float32)), (x[4:], np.zeros((4, 2), np.float32))]
    weights = model.get_weights()
    losses = model.fit((batch for batch in batches), shuffle=False, verbose=0).history["loss"]
    model.set_weights(weights)
    dense = [(rows.toarray(), wanted) for rows, wanted in batches]
    assert model.fit((batch for batch in dense), shuffle=False, verbose=0).history["loss"] == losses


def test_pictures_are_checked_and_deformed(keras: Any) -> None:
    image = keras.ops.image
    with pytest.raises(ValueError, match="Invalid channel size"):
        image.rgb_to_grayscale(np.zeros((4, 4, 4), np.float32))
    assert image.rgb_to_grayscale(np.zeros((4, 4, 1), np.float32)).shape == (4, 4, 1)
    pictures = np.random.default_rng(0).random((1, 8, 8, 3), np.float32)
    first, again, other = (np.asarray(image.elastic_transform(pictures, seed=seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
