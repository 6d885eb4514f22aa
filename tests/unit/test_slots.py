from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from webnn_wgpu.plan.slots import Lifetime, Place, assign_slots, live_bytes

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


def neighbours(lifetimes: dict[int, Lifetime]) -> set[frozenset[int]]:
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
    apart = neighbours(lifetimes) if reading else set()
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
            assert beside or before or not life.overlaps(lifetimes[other])


@settings(max_examples=200)
@given(LIFETIMES)
def test_sharing_never_costs_memory(lifetimes: dict[int, Lifetime]) -> None:
    _, sizes = assign_slots(lifetimes, neighbours(lifetimes))
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
