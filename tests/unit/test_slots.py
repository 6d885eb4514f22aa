from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webnn_wgpu.plan.slots import Lifetime, Place, assign_slots, live_bytes

NETWORKS = json.loads((Path(__file__).parents[1] / "data" / "lifetimes.json").read_text(encoding="utf-8"))
"""Lifetimes as first dispatch, last dispatch and bytes, and pairs that must lie apart, of networks as a software adapter runs
them, with what a product adds in memory of its own."""

LIFETIMES = st.dictionaries(
    st.integers(0, 1000),
    st.builds(
        lambda first, length, size: Lifetime(first, first + length, 32 * size),
        st.integers(0, 20),
        st.integers(0, 8),
        st.integers(1, 64),
    ),
    max_size=40,
)


def neighbors(lifetimes: dict[int, Lifetime]) -> set[frozenset[int]]:
    """Pairs of a value and those that live when it is written, as if its dispatch read them all."""
    return {
        frozenset((one, other))
        for one, life in lifetimes.items()
        for other, before in lifetimes.items()
        if one != other and before.first <= life.first <= before.last
    }


@settings(max_examples=200)
@given(LIFETIMES, st.sampled_from([32, 256]), st.booleans())
def test_no_two_live_values_share_memory(lifetimes: dict[int, Lifetime], alignment: int, reading: bool) -> None:
    apart = neighbors(lifetimes) if reading else set()
    placed, sizes = assign_slots(lifetimes, apart, alignment=alignment)
    assert placed.keys() == lifetimes.keys()
    assert {place.slot for place in placed.values()} == set(range(len(sizes)))
    assert sum(sizes) >= live_bytes(lifetimes.values())
    for value, place in placed.items():
        life = lifetimes[value]
        assert place.offset_bytes % alignment == 0
        assert place.offset_bytes + life.size_bytes <= sizes[place.slot]
        for other, at in placed.items():
            if other == value or at.slot != place.slot:
                continue
            assert frozenset((value, other)) not in apart
            beside = at.offset_bytes >= place.offset_bytes + life.size_bytes
            before = at.offset_bytes + lifetimes[other].size_bytes <= place.offset_bytes
            assert beside or before or life.last < lifetimes[other].first or lifetimes[other].last < life.first


@settings(max_examples=200)
@given(LIFETIMES)
def test_sharing_never_costs_memory(lifetimes: dict[int, Lifetime]) -> None:
    _, sizes = assign_slots(lifetimes, neighbors(lifetimes))
    assert sum(sizes) <= sum(life.size_bytes for life in lifetimes.values())


@settings(max_examples=100)
@given(LIFETIMES)
def test_slots_of_several_values_keep_to_what_the_device_can_hold(lifetimes: dict[int, Lifetime]) -> None:
    placed, sizes = assign_slots(lifetimes, largest_bytes=1500)
    for slot, size in enumerate(sizes):
        assert size <= 1500 or size == max(lifetimes[v].size_bytes for v, place in placed.items() if place.slot == slot)


def test_a_chain_takes_two_slots() -> None:
    chain = {i: Lifetime(i, i + 1, 64) for i in range(10)}
    placed, sizes = assign_slots(chain, [frozenset((i, i + 1)) for i in range(9)])
    assert sizes == [64, 64]
    assert [placed[i].slot for i in range(10)] in ([0, 1] * 5, [1, 0] * 5)


def test_what_is_read_together_may_lie_side_by_side() -> None:
    lifetimes = {0: Lifetime(0, 2, 64), 1: Lifetime(1, 2, 32), 2: Lifetime(2, 3, 64)}
    placed, sizes = assign_slots(lifetimes, [frozenset((0, 2)), frozenset((1, 2))])
    assert sorted(sizes) == [64, 96]
    assert placed == {0: Place(0, 0), 1: Place(0, 64), 2: Place(1, 0)}


def test_a_large_value_lies_where_small_ones_were() -> None:
    lifetimes = {0: Lifetime(0, 1, 64), 1: Lifetime(0, 1, 64), 2: Lifetime(2, 3, 128)}
    assert assign_slots(lifetimes)[1] == [128]


def test_the_same_values_get_the_same_places() -> None:
    lifetimes = {i: Lifetime(i % 7, i % 7 + i % 5, 32 * (1 + i * 37 % 19)) for i in range(60)}
    assert assign_slots(lifetimes) == assign_slots(lifetimes)


@pytest.mark.parametrize(
    ("network", "least"),
    [
        ("vit_tiny", 7 / 6),
        ("whisper_tiny_enc", 7 / 6),
        ("efficientnet_b0", 1.15),
        ("mobilenet_v2", 1.1),
        ("squeezenet1_1", 1.0493),
        ("unet_256", 1.0089),
        ("yolov8n_320", 1.0),
        ("gpt2_prefill64", 1.0556),
    ],
)
def test_networks_take_little_more_than_they_must(network: str, least: float) -> None:
    """`least`: the least slots that keep the pairs apart, as an exact solver found it, over the most that lives at a time."""
    lifetimes = {i: Lifetime(*life) for i, life in enumerate(NETWORKS[network]["lifetimes"])}
    _, sizes = assign_slots(lifetimes, [frozenset(pair) for pair in NETWORKS[network]["apart"]])
    assert least <= sum(sizes) / live_bytes(lifetimes.values()) + 1e-4
    assert sum(sizes) / live_bytes(lifetimes.values()) <= least * 1.03
