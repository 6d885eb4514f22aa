from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from webnn_wgpu.plan.slots import Lifetime, assign_slots

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


@settings(max_examples=300)
@given(LIFETIMES)
def test_no_two_live_values_share_a_slot(lifetimes: dict[int, Lifetime]) -> None:
    placed, sizes = assign_slots(lifetimes)
    assert placed.keys() == lifetimes.keys()
    assert set(placed.values()) == set(range(len(sizes)))
    for value, slot in placed.items():
        life = lifetimes[value]
        assert sizes[slot] >= life.size_bytes
        for other, at in placed.items():
            if other != value and at == slot:
                # Not even in one dispatch: it would read and write one buffer.
                assert lifetimes[other].last < life.first or life.last < lifetimes[other].first


@settings(max_examples=300)
@given(LIFETIMES)
def test_sharing_never_costs_memory(lifetimes: dict[int, Lifetime]) -> None:
    _, sizes = assign_slots(lifetimes)
    assert sum(sizes) <= sum(life.size_bytes for life in lifetimes.values())
    largest = [max((v.size_bytes for v in lifetimes.values() if v.first <= t <= v.last), default=0) for t in range(30)]
    live = [sum(v.size_bytes for v in lifetimes.values() if v.first <= t <= v.last) for t in range(30)]
    assert sum(sizes) >= max(live)
    assert max(sizes, default=0) == max(largest)


def test_a_chain_takes_two_slots() -> None:
    placed, sizes = assign_slots({i: Lifetime(i, i + 1, 64) for i in range(10)})
    assert sizes == [64, 64]
    assert [placed[i] for i in range(10)] == [0, 1] * 5


def test_the_slot_that_fits_best_is_taken() -> None:
    lifetimes = {0: Lifetime(0, 0, 1024), 1: Lifetime(0, 0, 64), 2: Lifetime(0, 0, 128), 3: Lifetime(1, 1, 96)}
    placed, sizes = assign_slots(lifetimes)
    assert sizes[placed[3]] == 128
    assert len(sizes) == 3


def test_the_largest_free_slot_grows() -> None:
    placed, sizes = assign_slots({0: Lifetime(0, 0, 64), 1: Lifetime(0, 0, 128), 2: Lifetime(1, 1, 256)})
    assert placed[2] == placed[1]
    assert sorted(sizes) == [64, 256]


def test_nothing_to_place() -> None:
    assert assign_slots({}) == ({}, [])
