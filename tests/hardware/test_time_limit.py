"""The end of a run whose time is over."""

from __future__ import annotations

import threading
import time

from tests.hardware.time_limit import TimeLimit


def test_the_end_comes_while_something_is_waited_for() -> None:
    over = threading.Event()
    with TimeLimit(time.monotonic() + 0.01, over.set):
        assert over.wait(60)


def test_a_run_that_leaves_in_time_is_not_ended() -> None:
    over = threading.Event()
    with TimeLimit(time.monotonic() + 0.2, over.set) as limit:
        pass
    assert not limit._thread.is_alive()
    assert not over.is_set()
