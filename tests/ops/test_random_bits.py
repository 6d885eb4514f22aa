"""Random words: the known answers of Random123, the same on devices and in numpy, and numbers made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.ops.movers import refusal, typed
from tests.support import check_op, open_profile
from webnn_wgpu.ops.random_bits import threefry

if TYPE_CHECKING:
    from webnn_wgpu.runtime.device import Device

KNOWN = (
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
)
"""Key, counter and words."""

KEY = np.uint32([7, 1234567])


def test_known_answers() -> None:
    for key, (high, low), words in KNOWN:
        with np.errstate(over="ignore"):
            found = threefry(np.uint32(key), np.uint32([high]), np.uint32([low]))
        assert tuple(int(word[0]) for word in found) == words


def test_words_of_devices(device: Device) -> None:
    for shape in ([], [1], [3, 5], [4, 33, 65]):
        check_op(device, "x.random_bits", [KEY], {"shape": shape})


@pytest.mark.parametrize("profile", ["default-limits", "hardware"])
def test_other_profiles(profile: str) -> None:
    check_op(open_profile(profile), "x.random_bits", [KEY], {"shape": [1001]})


def computed(context: wn.MLContext, method: str, *arguments: Any, key: Any = KEY, **options: Any) -> Any:
    b = wn.MLGraphBuilder(context)
    words = b.input("key", [2], "uint32")
    given = [b.constant(a) if isinstance(a, np.ndarray) else a for a in arguments]
    given.insert(method == "dropout", words)
    return context.compute(b.build({"y": getattr(b.ext, method)(*given, **options)}), {"key": key})["y"]


def test_numbers_of_equal_probability(context: wn.MLContext) -> None:
    found = computed(context, "random_uniform", [100, 1000])
    np.testing.assert_array_equal(found, computed(wn.ml.create_context(backend="reference"), "random_uniform", [100, 1000]))
    counts, _ = np.histogram(found, 10, (0, 1))
    assert counts.sum() == found.size
    assert np.abs(counts - 10_000).max() < 400
    within = computed(context, "random_uniform", [1000], low=-3.0, high=-2.0)
    assert within.min() >= -3
    assert within.max() <= -2
    assert np.any(found.ravel()[:1000] != computed(context, "random_uniform", [1000], key=KEY + np.uint32(1)))


def test_normal_numbers(context: wn.MLContext) -> None:
    found = computed(context, "random_normal", [100, 1000], mean=1.0, deviation=2.0)
    normal = (found - 1) / 2
    assert [np.mean(normal**power) for power in (1, 2, 3, 4)] == pytest.approx([0, 1, 0, 3], abs=0.05)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("data_type", ["float32", "float16"])
def test_dropped_elements(context: wn.MLContext, data_type: str) -> None:
    x = np.arange(1, 10_001).astype(data_type)
    found = computed(context, "dropout", x, 0.25)
    dropped = found == 0
    assert abs(dropped.mean() - 0.25) < 0.02
    np.testing.assert_allclose(found[~dropped], x[~dropped] / 0.75, rtol=1e-3 if data_type == "float16" else 1e-6)
    np.testing.assert_array_equal(computed(context, "dropout", x, 0.0), x)


def test_the_gradient_of_dropped_elements_is_0(context: wn.MLContext) -> None:
    b = wn.MLGraphBuilder(context)
    x, key = b.input("x", [1000], "float32"), b.input("key", [2], "uint32")
    y = b.ext.dropout(x, key, 0.4)
    graph = b.build({"y": y, "gradient": b.gradients(y, x)[0]})
    found = context.compute(graph, {"x": np.ones(1000, np.float32), "key": KEY})
    np.testing.assert_array_equal(found["gradient"], found["y"])


def test_refusals(context: wn.MLContext) -> None:
    key = typed("uint32", 2)
    assert "key must have two elements" in str(refusal("x.random_bits", [typed("uint32", 3)], {"shape": [2]}))
    for shape in ([0], [2**31 - 1, 3]):
        assert "positive dimensions, and fewer" in str(refusal("x.random_bits", [key], {"shape": shape}))
    for method, arguments, options, words in (
        ("random_uniform", ([2],), {"low": np.inf}, "bounds must be finite"),
        ("random_normal", ([2],), {"mean": np.nan}, "mean and deviation must be finite"),
        ("dropout", (np.ones(3, np.float32), 1.0), {}, "rate must be in its range"),
    ):
        with pytest.raises(wn.MLTypeError, match=words):
            computed(context, method, *arguments, **options)
