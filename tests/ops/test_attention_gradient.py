"""The gradient of attention: heads, windows, masks and lengths, sizes that fill no block, and refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ops.movers import refusal, typed
from tests.ops.test_attention import qkv
from tests.support import check_op, open_profile, random_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

NAME = "x.attention_gradient"


@pytest.fixture(scope="module", params=["full", "hardware"])
def device(request: pytest.FixtureRequest) -> Device:
    """A device that takes products, if it is a software adapter, and one that computes blocks of scores again."""
    return open_profile(request.param)


ATOL = {"float32": 2e-5, "float16": 1e-2}

# Blocks of keys and rows that are full, ragged and of one element; grouped queries; values of another size; wide heads.
CASES = (
    ((1, 1), 1, 1, (4, 4)),
    ((2, 2), 33, 33, (32, 32)),
    ((4, 2), 9, 70, (32, 32)),
    ((3, 1), 1, 100, (32, 32)),
    ((2, 2), 3, 65, (16, 96)),
    ((2, 1), 40, 35, (7, 5)),
    ((1, 1), 34, 33, (132, 260)),
)


def with_gradient(arrays: Sequence[Array]) -> list[Array]:
    """Return query, key and value behind a gradient of their attention."""
    q, _, v = arrays
    return [random_array(np.random.default_rng(9), str(q.dtype), (*q.shape[:3], v.shape[3]), 1), *arrays]


def check(device: Device, arrays: Sequence[Array | None], atol: float | None = None, **attrs: Any) -> list[Array]:
    inputs = [*arrays, *(None for _ in range(6 - len(arrays)))]
    assert inputs[0] is not None
    return check_op(device, NAME, inputs, attrs, atol=atol or ATOL[str(inputs[0].dtype)])


@pytest.mark.parametrize("data_type", ["float32", "float16"])
def test_sizes(device: Device, data_type: str) -> None:
    for heads, queries, keys, sizes in CASES:
        check(device, with_gradient(qkv(heads, queries, keys, sizes, 2, data_type)))


def test_windows(device: Device) -> None:
    arrays = with_gradient(qkv((4, 2), 70, 100, (32, 16)))
    check(device, arrays, causal=True)
    check(device, arrays, causal=True, offset=-3)
    check(device, arrays, left=7, right=3)
    check(device, arrays, left=40, softcap=3.0, scale=0.7)


def test_masks(device: Device) -> None:
    rng = np.random.default_rng(3)
    arrays = with_gradient(qkv((4, 2), 70, 100, (16, 16), 2))
    for shape, data_type in (
        ((100,), "float32"),
        ((70, 100), "float32"),
        ((2, 1, 70, 1), "float32"),
        ((4, 1, 100), "uint8"),
        ((2, 4, 70, 100), "float16"),
    ):
        hidden = rng.random(shape) < 0.3
        mask = ~hidden if data_type == "uint8" else np.where(hidden, -np.inf, rng.random(shape))
        check(device, [*arrays, mask.astype(data_type)], softcap=2.0)


def test_lengths(device: Device) -> None:
    arrays = with_gradient(qkv((2, 1), 9, 70, (16, 16), 3))
    for lengths in (np.int32([40, 0, 70]), np.uint32([33])):
        for mask in (None, np.random.default_rng(4).standard_normal((9, 70)).astype(np.float32)):
            check(device, [*arrays, mask, lengths])
            check(device, [*arrays, mask, lengths], causal=True, left=20)


def test_keys_behind_the_length_do_not_count(device: Device) -> None:
    arrays = with_gradient(qkv((2, 2), 5, 40, (8, 8)))
    for array in arrays[2:]:
        array[:, :, 21:] = np.nan
    found = check(device, [*arrays, None, np.int32([21])])
    assert all(np.isfinite(array).all() for array in found)
    assert not any(np.any(array[:, :, 21:]) for array in found[1:])


def test_heads_side_by_side(device: Device) -> None:
    rng = np.random.default_rng(5)
    q, k, v, g = (random_array(rng, "float32", shape, 1) for shape in ((2, 40, 64), (2, 50, 32), (2, 50, 24), (2, 40, 48)))
    check(device, [g, q, k, v], heads=4, kv_heads=2, causal=True)


def test_large_scores(device: Device) -> None:
    g, q, k, v = with_gradient(qkv((1, 1), 40, 40, (16, 16)))
    check(device, [g, 8 * q, k, v], atol=1e-4)


def test_default_limits() -> None:
    arrays = with_gradient(qkv((4, 2), 40, 70, (32, 32), 1, "float16"))
    check(open_profile("default-limits"), [*arrays, np.ones((70,), np.uint8), np.int32([65])], causal=True)


def test_refusals() -> None:
    x = typed("float32", 1, 2, 3, 4)
    for types, attrs, words in (
        ([typed("float32", 1, 2, 3, 5), x, x, x, None, None], {}, "shape of the result of attention"),
        ([x, x, typed("float32", 1, 2, 3, 5), x, None, None], {}, "same size"),
        ([x, x, typed("float16", 1, 2, 3, 4), x, None, None], {}, "must equal gradient data type"),
        ([x, x, x, x, None, None], {"softcap": -1.0}, "softcap must not be negative"),
    ):
        assert words in str(refusal(NAME, types, attrs))
