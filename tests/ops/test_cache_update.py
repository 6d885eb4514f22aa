from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.ops.movers import TYPES, assert_same_bits, check_moves, random_bits, refusal, typed
from tests.runtime.counting import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.runtime.device import Device

SHAPES = (
    # Rows of quads of words of every type; of words.
    ((2, 3, 8, 16), 3, 2),
    ((1, 2, 5, 4), 2, 2),
    ((2, 6, 4), 6, 1),
    ((7, 4), 1, 0),
    ((2, 2, 3, 4, 2, 2), 2, 3),
)


def by_hand(cache: np.ndarray, new: np.ndarray, positions: Sequence[int], axis: int) -> np.ndarray:
    result = cache.copy()
    for place in np.ndindex(*new.shape):
        row = place[axis] + positions[place[0] if axis and len(positions) > 1 else 0]
        if 0 <= row < cache.shape[axis]:
            result[(*place[:axis], row, *place[axis + 1 :])] = new[place]
    return result


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize(("shape", "count", "axis"), SHAPES)
def test_every_type(profile_device: Device, data_type: str, shape: tuple[int, ...], count: int, axis: int) -> None:
    rng = np.random.default_rng(3)
    cache = random_bits(rng, data_type, shape)
    new = random_bits(rng, data_type, (*shape[:axis], count, *shape[axis + 1 :]))
    position = np.array([1], np.int32)
    (found,) = check_moves(profile_device, "x.cache_update", [cache, new, position], {"axis": axis})
    assert_same_bits(found, by_hand(cache, new, [1], axis))


@pytest.mark.parametrize("start", [-2, 0, 5, 7, 8, 2**31 - 1, -(2**31)])
def test_rows_outside_are_left_out(device: Device, start: int) -> None:
    cache, new = np.zeros((1, 2, 8, 4), np.float32), np.ones((1, 2, 3, 4), np.float32)
    (found,) = check_moves(device, "x.cache_update", [cache, new, np.array(start, np.int32)], {})
    assert_same_bits(found, by_hand(cache, new, [start], 2))


def test_a_position_for_each_batch(device: Device) -> None:
    rng = np.random.default_rng(4)
    cache, new = (rng.standard_normal((3, 2, n, 4)).astype(np.float32) for n in (9, 2))
    (found,) = check_moves(device, "x.cache_update", [cache, new, np.array([6, 0, 3], np.uint32)], {})
    assert_same_bits(found, by_hand(cache, new, [6, 0, 3], 2))


def test_refusals() -> None:
    cache, new, at = typed("float32", 1, 2, 8, 4), typed("float32", 1, 2, 3, 4), typed("int32", 1)
    for inputs, words in (
        ([cache, typed("float32", 1, 2, 9, 4), at], "more rows"),
        ([cache, typed("float32", 1, 3, 3, 4), at], "except axis 2"),
        ([cache, typed("float32", 2, 3, 4), at], "same rank"),
        ([cache, new, typed("int32", 2)], "one for each batch"),
        ([typed("uint8", 1, 2, 8, 3), typed("uint8", 1, 2, 1, 3), at], "whole words"),
        ([typed("float16", 1, 2, 8, 3), typed("float16", 1, 2, 1, 3), at], "whole words"),
    ):
        assert words in str(refusal("x.cache_update", inputs, {}))


def decoder(context: wn.MLContext) -> wn.MLGraph:
    b = wn.MLGraphBuilder(context)
    cache = b.input("past", {"dataType": "float32", "shape": [1, 1, 4, 4]})
    new = b.input("new", {"dataType": "float32", "shape": [1, 1, 1, 4]})
    at = b.input("at", {"dataType": "int32", "shape": [1]})
    present = b.ext.cache_update(cache, new, at)
    return b.build({"sum": b.reduce_sum(present, axes=[2]), "present": present}, aliases={"present": "past"})


@pytest.mark.parametrize("backend", ["device", "reference"])
def test_in_place(backend: str) -> None:
    context = wn.ml.create_context(**({"backend": "reference"} if backend == "reference" else {}))
    graph = decoder(context)
    if graph.plan is not None:
        assert graph.plan.aliases == {"present": "past"}
        assert not any("copy" in d.reason or d.label.startswith("output") for d in graph.plan.dispatches)
    past = context.create_tensor([1, 1, 4, 4], "float32", readable=True)
    new, at = (context.create_tensor(s, t, writable=True) for s, t in (([1, 1, 1, 4], "float32"), ([1], "int32")))
    total = context.create_tensor([1, 1, 4], "float32", readable=True)
    expected = np.zeros((4, 4), np.float32)
    for step in range(4):
        context.write_tensor(new, np.full(4, step + 1, np.float32))
        context.write_tensor(at, [step])
        context.dispatch(graph, {"past": past, "new": new, "at": at}, {"sum": total, "present": past})
        expected[step] = step + 1
        assert np.array_equal(context.read_tensor(past)[0, 0], expected)
        assert np.array_equal(context.read_tensor(total)[0, 0], expected.sum(0))
    feeds = {"past": np.ones((1, 1, 4, 4), np.float32), "new": np.zeros((1, 1, 1, 4), np.float32), "at": [2]}
    results = context.compute(graph, feeds)
    assert np.array_equal(results["present"][0, 0, :, 0], [1, 1, 0, 1])
    assert np.array_equal(results["sum"][0, 0], np.full(4, 3))
    other = context.create_tensor([1, 1, 4, 4], "float32")
    with pytest.raises(wn.MLTypeError, match="must be one tensor"):
        context.dispatch(graph, {"past": past, "new": new, "at": at}, {"sum": total, "present": other})
    context.destroy()


def test_aliases_that_cannot_be_kept() -> None:
    with wn.ml.create_context(backend="reference") as context:

        def build(aliases: dict[str, str], *, named_twice: bool = False) -> None:
            b = wn.MLGraphBuilder(context)
            cache = b.input("past", {"dataType": "float32", "shape": [1, 1, 4, 4]})
            new = b.constant(np.ones((1, 1, 1, 4), np.float32))
            present = b.ext.cache_update(cache, new, b.constant("int32", 0))
            outputs = {"present": present, "y": b.relu(present), "other type": b.cast(present, "float16")}
            if named_twice:
                outputs["again"] = present
            b.build(outputs, aliases=aliases)

        build({"present": "past"})
        for words, aliases, options in (
            ("must name an output", {"other": "past"}, {}),
            ("must name an input", {"present": "other"}, {}),
            ("must have its input's type", {"other type": "past"}, {}),
            ("must have one alias", {"present": "past", "y": "past"}, {}),
            ("must have one name", {"present": "past"}, {"named_twice": True}),
        ):
            with pytest.raises(wn.MLTypeError, match=words):
                build(aliases, **options)


def test_memory_for_arrays_is_taken_when_arrays_come() -> None:
    with wn.ml.create_context() as context, counted() as calls:
        graph = decoder(context)
        built = calls["wgpuDeviceCreateBuffer"]
        feeds = {"past": np.zeros((1, 1, 4, 4), np.float32), "new": np.ones((1, 1, 1, 4), np.float32), "at": [1]}
        for _ in range(2):
            assert np.array_equal(context.compute(graph, feeds)["sum"][0, 0], np.ones(4))
        # past (and present), new, at, sum, and staging
        assert calls["wgpuDeviceCreateBuffer"] == built + 5
