"""Importing without looking for garbage, where the program allows that."""

from __future__ import annotations

import gc
import weakref

import pytest

from webnn_wgpu.core import process
from webnn_wgpu.core.imports import uncollected


class Ring:
    """What only the garbage collector frees."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def _unfrozen(monkeypatch):
    monkeypatch.setattr(process, "_options", process.ProcessOptions(deferred_collection=True))
    gc.unfreeze()
    gc.collect()
    yield
    gc.freeze()  # as the collected tests were
    assert gc.isenabled()


def test_what_was_made_is_old_and_still_found_once_it_is_garbage():
    with uncollected():
        ring = Ring()
    gone = weakref.ref(ring)
    assert any(found is ring for found in gc.get_objects(generation=2))
    del ring
    gc.collect()
    assert gone() is None


def test_without_leave_garbage_is_looked_for(monkeypatch):
    monkeypatch.setattr(process, "_options", process.ProcessOptions())
    with uncollected():
        assert gc.isenabled()
        ring = Ring()
    assert not any(found is ring for found in gc.get_objects(generation=2))


def test_what_others_have_frozen_stays_so():
    gc.freeze()
    frozen = gc.get_freeze_count()
    with uncollected():
        ring = Ring()
    # Other threads may free a few of these objects meanwhile. Unfreezing leaves none.
    assert gc.get_freeze_count() > frozen // 2 > 0
    assert any(found is ring for found in gc.get_objects())


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
