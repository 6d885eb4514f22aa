"""`MLPromise`: the eventual result of an asynchronous call, without a dependency on any event loop."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator
from typing import Any, Generic, ParamSpec, TypeVar, cast

from ..core.call_site import call_site, on_behalf_of

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")

_LONGEST_PAUSE_S = 0.01
"""How long an awaiting coroutine of asyncio or trio sleeps at most before it looks again."""


class MLPromise(Generic[T]):
    """The result of an `_async` call: wait for it, await it under asyncio, trio or a plain loop, or chain on it.

    Example:
        >>> promise = MLPromise.resolved(20)
        >>> promise.then(lambda n: n + 1).sync_wait()
        21
    """

    def __init__(self, wait: Callable[[], T], ready: Callable[[], bool] = lambda: True) -> None:
        self._wait: Callable[[], T] | None = wait
        self._ready: Callable[[], bool] | None = ready
        self._lock = threading.RLock()
        self._value: T | None = None
        self._error: Exception | None = None

    @classmethod
    def resolved(cls, value: T) -> MLPromise[T]:
        """Return a promise that has its result already.

        Args:
            value: the result.

        Example:
            >>> MLPromise.resolved(20).done()
            True
        """
        promise = cls(lambda: value)
        promise.result()
        return promise

    @classmethod
    def attempt(cls, call: Callable[[], MLPromise[T]]) -> MLPromise[T]:
        """Return the promise of a call, or a promise that raises the error of the call.

        Args:
            call: returns a promise, or raises an error.

        Example:
            >>> MLPromise.attempt(lambda: MLPromise.resolved(20)).result()
            20
        """
        try:
            return call()
        except Exception as error:
            promise = cls(lambda: cast("T", None))
            promise._settle(None, error)
            return promise

    @classmethod
    def in_background(cls, work: Callable[[], T]) -> MLPromise[T]:
        """Run a function in a thread of its own, and return a promise of its result.

        Args:
            work: the function. The promise raises its exceptions.

        Example:
            >>> MLPromise.in_background(lambda: 4 * 5).result()
            20
        """
        outcome: list[tuple[T | None, BaseException | None]] = []
        finished = threading.Event()

        site = call_site(2)

        def run() -> None:
            try:
                with on_behalf_of(site):
                    outcome.append((work(), None))
            except BaseException as error:  # the waiting thread raises it
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
        """Return whether the result is available, without waiting."""
        ready = self._ready
        return ready is None or ready()

    def result(self) -> T:
        """Wait for the result and return it. After an interrupt, a second call continues the wait.

        Raises:
            Exception: the error of the call.
        """
        with self._lock:
            if self._wait is not None:
                try:
                    self._settle(self._wait(), None)
                except Exception as error:
                    self._settle(None, error)
        if self._error is not None:
            raise self._error
        return cast("T", self._value)

    sync_wait = result

    def _settle(self, value: T | None, error: Exception | None) -> None:
        self._value, self._error = value, error
        self._wait = self._ready = None  # and with them all that they hold

    def then(
        self,
        on_fulfilled: Callable[[T], U | MLPromise[U]],
        on_rejected: Callable[[Exception], U | MLPromise[U]] | None = None,
    ) -> MLPromise[U]:
        """Return a promise of `on_fulfilled(result)`, or of `on_rejected(error)`.

        The callback runs during the wait for the new promise. If it returns a promise, the new promise has the same result.

        Args:
            on_fulfilled: a function of the result.
            on_rejected: a function of the error. None passes the error on.

        Example:
            >>> MLPromise.resolved(20).then(lambda n: n + 1).result()
            21
        """

        def wait() -> U:
            try:
                value = self.result()
            except Exception as error:
                if on_rejected is None:
                    raise
                following = on_rejected(error)
            else:
                following = on_fulfilled(value)
            return cast("U", following.result() if isinstance(following, MLPromise) else following)  # pyright: ignore[reportUnknownMemberType] - what the callback's promise holds is U

        return MLPromise(wait, self.done)

    def __await__(self) -> Generator[Any, None, T]:
        pause_s = 0.0
        while not self.done():
            yield from _pause(pause_s)
            pause_s = min(2 * pause_s + 0.0001, _LONGEST_PAUSE_S)
        return self.result()


def promised(method: Callable[P, T]) -> Callable[P, MLPromise[T]]:
    """Return a method that calls another one and returns a promise of its result or its error."""

    def call(*args: P.args, **kwargs: P.kwargs) -> MLPromise[T]:
        return MLPromise[T].attempt(lambda: MLPromise[T].resolved(method(*args, **kwargs)))

    call.__name__, call.__qualname__ = f"{method.__name__}_async", f"{method.__qualname__}_async"
    call.__doc__ = f"Return a promise of the result of `{method.__name__}` for the same arguments."
    return call


def _pause(seconds: float) -> Generator[Any, None, None]:
    """Let other coroutines run. Event loops resume a bare yield later, but asyncio and trio need their own sleep."""
    asyncio: Any = sys.modules.get("asyncio")
    trio: Any = sys.modules.get("trio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        yield from asyncio.sleep(seconds).__await__()
    elif trio is not None and trio.lowlevel.in_trio_run():
        yield from trio.sleep(seconds).__await__()
    else:
        yield
