"""Two equivalent ways to map a staging buffer for reading.

`PlainMap` uses wgpu's public API: a promise, which a thread of wgpu resolves by polling the device. `RawMap` calls the
underlying C function, and the consumer of the data polls the device. The promise and the wake-up of that thread take a third of
the CPU time of a small graph. The package uses `RawMap` with the same versions of wgpu as `RawRecorder`.
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

from .device import Device
from .recorder import uses_raw_calls
from .versions import tested_wgpu

_LOOK_S = 0.1
"""The interval at which a wait for another thread checks that the device still exists."""

_SHORTEST_PAUSE_S = 0.0001


class PendingMap(Protocol):
    """A staging buffer that is being mapped."""

    def arrived(self) -> bool:
        """Return whether the mapping has succeeded or failed, without a wait unless wgpu cannot tell."""
        ...

    def wait(self) -> bool:
        """Wait for the mapping and return True, or False if the device is lost before. wgpu does not report the loss."""
        ...

    def finish(self) -> None:
        """Make the buffer ready to be looked into, once `wait` has returned True.

        Raises:
            RuntimeError: the buffer could not be mapped.
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
        """Return whether the mapping has succeeded or failed. The method waits if wgpu cannot tell."""
        if self._event is None:
            with suppress(RuntimeError, wgpu.GPUError):  # `finish` raises it again
                self._promise.sync_wait()
            return True
        return self._event.is_set()

    def wait(self) -> bool:
        """Wait for the mapping and return True, or return False if the device is lost before."""
        if self._event is None:
            return True  # `finish` waits
        if not self._event.is_set():
            self._device.wait()  # here: a notice by wgpu's own thread takes as long as a small graph
        while not self._event.wait(_LOOK_S):
            if self._device.lost:
                self._device.wait()
                return self._event.is_set()
        return True

    def finish(self) -> None:
        """Make the buffer ready to be looked into."""
        self._promise.sync_wait()


class RawMap:
    """A mapping by wgpu-native's C function, which updates the state of wgpu's buffer object as wgpu does."""

    def __init__(self, device: Device, staging: wgpu.GPUBuffer) -> None:
        self._device = device
        self._staging: Any = staging
        self._outcome: tuple[int, str] | None = None
        _native().map(self, self._staging)

    def told(self, status: int, message: str) -> None:
        """Store the outcome of the mapping."""
        self._outcome = status, message

    def arrived(self) -> bool:
        """Return whether the mapping has succeeded or failed, without a wait."""
        if self._outcome is None and not self._device.lost:
            self._device.poll()
            _native().raise_interrupt()
        return self._outcome is not None

    def wait(self) -> bool:
        """Wait for the mapping and return True, or return False if the device is lost before."""
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
    """The internals of wgpu that `RawMap` uses.

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
        # One callback for the whole process: wgpu-native may call it after the last consumer of the data is gone.
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
        """Deliver the outcome, and keep an interrupt for the next poll. Python raises interrupts of a poll in the callback."""
        arguments = trace.tb_frame.f_locals
        self._interrupted = error
        self._tell(*(arguments[name] for name in ("status", "message", "number", "_")))

    def raise_interrupt(self) -> None:
        """Raise the exception that interrupted a poll."""
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
