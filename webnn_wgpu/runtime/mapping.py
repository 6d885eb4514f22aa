"""Mapping a staging buffer to be read, in two ways that do the same.

`PlainMap` uses wgpu's public API: a promise, which a thread of wgpu's keeps by polling the device. `RawMap` calls the C
function beneath, and whoever wants the data polls the device himself: to make a promise and wake that thread for it takes a
third of the CPU time of a small graph. It is taken where `RawRecorder` is.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from types import TracebackType
from typing import Any, Protocol
from weakref import WeakValueDictionary

import wgpu

from .device import Device, tested_wgpu
from .recorder import uses_raw_calls

_LOOK_S = 0.1
"""How often a wait for another thread looks whether the device is still there."""

_SHORTEST_PAUSE_S = 0.0001


class PendingMap(Protocol):
    """A staging buffer that is being mapped."""

    def arrived(self) -> bool:
        """Return whether the buffer is mapped, or could not be; never waits, except with a wgpu that cannot tell."""
        ...

    def wait(self) -> bool:
        """Wait for that and return True, or False if the device goes before: nobody would tell."""
        ...

    def finish(self) -> None:
        """Make the buffer ready to be looked into, once `wait` has returned True.

        Raises:
            RuntimeError: it could not be mapped.
        """
        ...


class PlainMap:
    """Maps through wgpu's public API."""

    def __init__(self, device: Device, staging: wgpu.GPUBuffer) -> None:
        self._device = device
        # wgpu would submit once more before it maps, which a copy that has just been submitted does not need.
        mode: Any = "READ_NOSYNC" if tested_wgpu() else wgpu.MapMode.READ
        # wgpu binds a promise to the event loop that it finds running here, and then resolves it there, also behind our back
        # and after the loop has ended. Without these hooks it finds none.
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(None, None)
        try:
            self._promise = staging.map_async(mode)
        finally:
            sys.set_asyncgen_hooks(*hooks)
        self._event: threading.Event | None = getattr(self._promise, "_thread_event", None)

    def arrived(self) -> bool:
        """Return whether the buffer is mapped, or could not be; waits where wgpu cannot tell."""
        if self._event is None:
            with suppress(RuntimeError, wgpu.GPUError):  # `finish` raises it again
                self._promise.sync_wait()
            return True
        return self._event.is_set()

    def wait(self) -> bool:
        """Wait for that and return True, or False if the device goes before."""
        if self._event is None:
            return True  # `finish` waits
        if not self._event.is_set():
            self._device.wait()  # here: that wgpu's own thread is told and tells this one takes as long as a small graph
        while not self._event.wait(_LOOK_S):
            if self._device.lost:
                self._device.wait()
                return self._event.is_set()
        return True

    def finish(self) -> None:
        """Make the buffer ready to be looked into."""
        self._promise.sync_wait()


class RawMap:
    """Maps through wgpu-native's C function, and keeps what wgpu's buffer knows of its own state as wgpu would."""

    def __init__(self, device: Device, staging: wgpu.GPUBuffer) -> None:
        self._device = device
        self._staging: Any = staging
        self._outcome: tuple[int, str] | None = None
        _native().map(self, self._staging)

    def told(self, status: int, message: str) -> None:
        """Note what has become of it."""
        self._outcome = status, message

    def arrived(self) -> bool:
        """Return whether the buffer is mapped, or could not be; never waits."""
        if self._outcome is None and not self._device.lost:
            self._device.poll()
            _native().raise_interrupt()
        return self._outcome is not None

    def wait(self) -> bool:
        """Wait for that and return True, or False if the device goes before."""
        pause_s = _SHORTEST_PAUSE_S
        while self._outcome is None:
            lost = self._device.lost
            self._device.wait()
            _native().raise_interrupt()
            if self._outcome is None:
                if lost:
                    return False
                time.sleep(pause_s)  # another thread has polled first, and is about to say so
                pause_s = min(2 * pause_s, _LOOK_S)
        return True

    def finish(self) -> None:
        """Make the buffer ready to be looked into."""
        assert self._outcome is not None
        status, message = self._outcome
        native = _native()
        if status != native.success:
            raise RuntimeError(message or f"status {status}")
        self._staging._mapped_status = 0, self._staging.size, wgpu.MapMode.READ
        self._staging._mapped_memoryviews = []
        self._staging._map_state = "mapped"


class _NativeMapping:
    """What lies beneath wgpu's public API.

    Attributes:
        success: the status of a buffer that is mapped.
    """

    def __init__(self) -> None:
        from wgpu.backends import wgpu_native
        from wgpu.backends.wgpu_native import _api

        self._ffi: Any = wgpu_native.ffi
        self._lib: Any = wgpu_native.lib
        self._checked: Any = _api.libf
        self.success: int = self._lib.WGPUMapAsyncStatus_Success
        self._numbers = itertools.count(1)
        self._under_way: WeakValueDictionary[int, RawMap] = WeakValueDictionary()
        self._interrupted: BaseException | None = None
        # One for all, for as long as the process runs: wgpu-native may call it when nobody wants the data any more.
        signature = "void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)"
        self._told = self._ffi.callback(signature, self._tell, onerror=self._interrupt)

    def map(self, mapping: RawMap, staging: Any) -> None:
        """Ask for the content of a staging buffer."""
        number = next(self._numbers)
        self._under_way[number] = mapping
        staging._map_state = "pending"
        info = {
            "mode": self._lib.WGPUCallbackMode_AllowProcessEvents,
            "callback": self._told,
            "userdata1": self._ffi.cast("void *", number),
        }
        native = self._ffi.new("WGPUBufferMapCallbackInfo *", info)
        self._checked.wgpuBufferMapAsync(staging._internal, wgpu.MapMode.READ, 0, staging.size, native[0])

    def _tell(self, status: int, message: Any, number: Any, _: Any) -> None:
        mapping = self._under_way.get(int(self._ffi.cast("uintptr_t", number)))
        if mapping is not None:
            text = b"" if message.data == self._ffi.NULL else self._ffi.unpack(message.data, message.length)
            mapping.told(status, text.decode(errors="replace"))

    def _interrupt(self, _kind: type[BaseException], error: BaseException, trace: TracebackType) -> None:
        """Tell after all, and keep an interrupt for whoever polls: what comes while he does is raised in the callback."""
        arguments = trace.tb_frame.f_locals
        self._interrupted = error
        self._tell(*(arguments[name] for name in ("status", "message", "number", "_")))

    def raise_interrupt(self) -> None:
        """Raise what a poll was interrupted by."""
        if self._interrupted is not None:
            error, self._interrupted = self._interrupted, None
            raise error


@cache
def _native() -> _NativeMapping:
    return _NativeMapping()


def map_staging(device: Device, staging: wgpu.GPUBuffer) -> PendingMap:
    """Ask for the content of a staging buffer, which was copied into and is not mapped.

    Raises:
        DeviceLostError: the device is gone.
    """
    if device.lost:
        raise device.loss()
    with device.translated("a read"):
        return RawMap(device, staging) if uses_raw_calls() else PlainMap(device, staging)
