"""`MLPromise`: the eventual result of an asynchronous call, without a dependency on any event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")
U = TypeVar("U")


class MLPromise(Generic[T]):
    """The result of an `_async` call: wait for it, await it in any event loop, or chain on it.

    Example:
        >>> promise = MLPromise.resolved(20)
        >>> promise.then(lambda n: n + 1).sync_wait()
        21
    """

    def __init__(self, wait: Callable[[], T], ready: Callable[[], bool] = lambda: True) -> None:
        self._wait, self._ready = wait, ready
        self._lock = threading.RLock()
        self._settled = False
        self._value: T | None = None
        self._error: BaseException | None = None

    @classmethod
    def resolved(cls, value: T) -> MLPromise[T]:
        """Return a promise that has its result already."""
        promise = cls(lambda: value)
        promise.result()
        return promise

    @classmethod
    def in_background(cls, work: Callable[[], T]) -> MLPromise[T]:
        """Run `work` in a thread of its own and return a promise of its result."""
        outcome: list[tuple[T | None, BaseException | None]] = []
        finished = threading.Event()

        def run() -> None:
            try:
                outcome.append((work(), None))
            except BaseException as error:  # handed to whoever waits, whatever it is
                outcome.append((None, error))
            finished.set()

        def wait() -> T:
            finished.wait()
            value, error = outcome[0]
            if error is not None:
                raise error
            return cast("T", value)

        threading.Thread(target=run, name="webnn_wgpu", daemon=True).start()
        return cls(wait, finished.is_set)

    def done(self) -> bool:
        """Return whether the result is there; never waits."""
        return self._settled or self._ready()

    def result(self) -> T:
        """Wait for the result and return it.

        Raises:
            Exception: whatever the call failed with.
        """
        with self._lock:
            if not self._settled:
                try:
                    self._value = self._wait()
                except BaseException as error:
                    self._error = error
                self._settled = True
        if self._error is not None:
            raise self._error
        return cast("T", self._value)

    sync_wait = result

    def then(self, on_fulfilled: Callable[[T], U], on_rejected: Callable[[BaseException], U] | None = None) -> MLPromise[U]:
        """Return a promise of `on_fulfilled(result)`, or of `on_rejected(error)`; the callback runs when that is waited for."""

        def wait() -> U:
            try:
                value = self.result()
            except BaseException as error:
                if on_rejected is None:
                    raise
                return on_rejected(error)
            return on_fulfilled(value)

        return MLPromise(wait, self.done)

    def __await__(self) -> Generator[Any, None, T]:
        # A bare yield means "again later" to every event loop that follows the coroutine protocol.
        while not self.done():
            yield
        return self.result()
