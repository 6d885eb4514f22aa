"""An end to a run on a machine whose speed nobody knows: a driver that hangs must not keep what was measured before."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


class TimeLimit:
    """Calls a function on a thread of its own when the time is over. A context manager: leaving it cancels the call.

    The function ends the process: the thread that runs out of time may be in a call of a driver, which nothing interrupts.
    """

    def __init__(self, until: float, over: Callable[[], object]) -> None:
        """Begin to wait.

        Args:
            until: the time by `time.monotonic`.
            over: called at that time.
        """
        self._until, self._over = until, over
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._wait, name="time limit", daemon=True)

    def _wait(self) -> None:
        if not self._left.wait(max(0.0, self._until - time.monotonic())):
            self._over()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._left.set()
        self._thread.join()
