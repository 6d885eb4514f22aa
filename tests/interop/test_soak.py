from __future__ import annotations

from .soak import soak


def test_objects_and_memory_stay_as_they_are() -> None:
    seen = list(soak(1600, 4, report=lambda line: None))
    # What is made in the first tenths, caches and the allocators' reserves, is there to stay.
    (early, objects), (late, left) = seen[3], seen[-1]
    assert all(left.get(name, 0) <= count + 8 for name, count in objects.items()), (objects, left)
    assert late < early + 30e6
