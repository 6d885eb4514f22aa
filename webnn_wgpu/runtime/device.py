"""Devices: opening one with all that kernels use, its queue, the errors of its calls, and its end."""

from __future__ import annotations

import atexit
import functools
import os
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any

import numpy as np
import wgpu

from ..core.caps import DEFAULT_LIMITS, Caps
from ..core.data_types import Array
from ..core.errors import (
    DeviceLostError,
    InvalidStateError,
    MLTypeError,
    NotSupportedError,
    OperationError,
    OutOfMemoryError,
    WebNNError,
)
from ..core.garbage import Scarce
from ..core.settings import forced_target
from ..costs import Target
from ..kernels.element import padded_bytes
from .adapters import INSTALL_HINT, PowerPreference, choose_adapter
from .buffer import Buffer
from .capabilities import caps_of
from .destroying import destroy_under
from .forks import FORK_HINT, FORKED, forked, watch_forks
from .messages import wgpu_message
from .native_header import import_native
from .versions import tested_wgpu

WANTED_FEATURES = (
    "shader-f16",
    "shader-int64",
    "subgroup",
    "subgroup-barrier",
    "timestamp-query",
    "timestamp-query-inside-passes",
)
"""The features that kernels and the profiler use, which are requested if the adapter has them."""

BUFFER_USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
"""The usage of the buffers of tensors, slots and constants."""


class Device:
    """One wgpu device with its caps. Every context on the same `wgpu.GPUDevice` shares one of these objects.

    Attributes:
        gpu: the `wgpu.GPUDevice`.
        caps: the features, limits and identity of the device.
        target: the caps with the costs of the device, or of the kind of device that `WEBNN_WGPU_TARGET` names.
        owned: whether it was opened here, rather than handed in by its owner.
        lock: held while the device's queue is used.
        users: contexts on it that have not ended.
    """

    def __init__(self, gpu: wgpu.GPUDevice, *, owned: bool, caps: Caps | None = None) -> None:
        kind = forced_target()  # first, because it may raise
        self.gpu, self.owned = gpu, owned
        watch_forks()
        if owned:
            _destroy_at_exit()
            _opened.add(gpu)
        self._native: Any = gpu  # polling and releasing are not part of wgpu's public API
        self.lock = threading.RLock()
        destroy_under(self.lock, gpu)
        self._gone = False
        self.users = 0
        with self.translated("opening the device"):
            self.caps = caps or caps_of(gpu)
        self.target = Target.of(self.caps, kind)
        self.shared: dict[str, Any] = {}
        """Caches of the other modules of this package, by module."""

    @classmethod
    def of(cls, gpu: Any, *, owned: bool = False) -> Device:
        """Return the `Device` of a `wgpu.GPUDevice`, always the same one.

        Raises:
            MLTypeError: `gpu` is not a `wgpu.GPUDevice`.
            DeviceLostError: the device is lost.
        """
        if not isinstance(gpu, wgpu.GPUDevice):
            raise MLTypeError(
                "a context is made from a wgpu.GPUDevice or from options",
                got=f"{type(gpu).__name__}",
                operator="create_context",
                hint=_hint_for(gpu),
            )
        with _of_lock:
            # Kept on the GPUDevice, so that both live equally long. A table of devices would keep the devices alive.
            if _is_destroyed(gpu):
                raise DeviceLostError("the wgpu.GPUDevice was destroyed", operator="create_context", hint="Request a new one")
            found: Device | None = gpu.__dict__.get("_webnn_wgpu")
            if found is None:
                import_native()
                found = gpu.__dict__["_webnn_wgpu"] = cls(gpu, owned=owned)
        found.check()
        return found

    @property
    def lost(self) -> bool:
        """Whether the device is known to be gone: its owner has destroyed it, or a call has failed for that."""
        return self._gone or forked.is_set() or _is_destroyed(self.gpu)

    def loss(self, what: str = "") -> DeviceLostError:
        """Return the error of calls on a device that is gone.

        Args:
            what: the consequence for the call, for the message: "the data did not arrive".
        """
        if forked.is_set():
            return DeviceLostError(FORKED, hint=FORK_HINT)
        # `MLContext.lost` and later errors repeat the rule alone, so the rule states the cause where the package knows it.
        rule, cause = (_DESTROYED, "") if _is_destroyed(self.gpu) else ("the device is lost", f"{_OVERLONG}. ")
        call, device = ("recover()", "a new device") if self.owned else ("recover(device)", "another device of yours")
        return DeviceLostError(f"{rule}: {what}" if what else rule, hint=f"{cause}context.{call} returns a context on {device}")

    def check(self) -> None:
        """Raise DeviceLostError if the device is lost, even if only the driver knows of the loss.

        wgpu sends no notice when a driver gives up a device, for example because a kernel kept it busy for too long. Calls on a
        lost device end the process inside wgpu-native, so the package makes this check before such calls. It takes
        microseconds.
        """
        if self.lost:
            raise self.loss()
        with self.lock, self.translated("asking it"):
            if not tested_wgpu():
                self.gpu.create_command_encoder().finish()
                return
            if "probe" not in self.shared:
                self.shared["probe"] = self.gpu.create_buffer(label="probe", size=4, usage=wgpu.BufferUsage.COPY_DST)
            # A write of no bytes takes almost no time. wgpu's public API would reject it.
            self.queue_write(self.shared["probe"], 0, _NOTHING)

    def translated(self, doing: str) -> AbstractContextManager[None]:
        """Raise wgpu's errors as the specification's kinds.

        Args:
            doing: the operation that can fail, for the message: "a run".
        """
        return _Translated(self, doing)

    def _failed(self, error: wgpu.GPUError, doing: str) -> WebNNError:
        """Return one of wgpu's errors as the specification's kind."""
        # wgpu-native has it as an error of validation where a buffer or texture is made.
        if isinstance(error, wgpu.GPUOutOfMemoryError) or "Not enough memory left" in str(error):
            return OutOfMemoryError(f"the device has no memory for {doing}: {wgpu_message(error)}")
        if self.lost or "device is lost" in str(error):
            self._gone = True
            return self.loss(f"{doing} failed")
        return OperationError(f"{doing} failed: {wgpu_message(error)}")

    @contextmanager
    def running(self, labels: Iterable[str]) -> Generator[None]:
        """Have errors name the kernels that were running or being made."""
        try:
            yield
        except WebNNError as error:
            raise error.named(label=", ".join(labels)) from error

    @property
    def description(self) -> str:
        """Adapter, driver and backend for people: `llvmpipe (LLVM 15.0.6, 256 bits), Mesa 22.3.6, Vulkan`."""
        parts = (self.caps.device, self.caps.driver, self.caps.backend)
        return ", ".join(p for p in parts if p)

    def queue_write(self, buffer: wgpu.GPUBuffer, offset_bytes: int, data: Array) -> None:
        """Queue a write of a C-contiguous array of whole words. The caller may change the array at once.

        wgpu's public function takes longer to check its arguments than the C function to write some kilobytes.

        Raises:
            wgpu.GPUError: the device is lost.
        """
        queue: Any = self.gpu.queue
        native: Any = buffer
        if tested_wgpu():
            lib, pointer_to = _native_library()
            lib.wgpuQueueWriteBuffer(queue._internal, native._internal, offset_bytes, pointer_to(data), data.nbytes)
        else:
            queue.write_buffer(buffer, offset_bytes, data)

    def create_buffer(self, size_bytes: int, label: str = "") -> Buffer:
        """Return a zero-filled storage buffer of at least `size_bytes`.

        Raises:
            OutOfMemoryError: larger than the device allows, or the device has no memory left.
            DeviceLostError: the device is gone.
        """
        return Buffer(self, self.create_gpu_buffer(padded_bytes(size_bytes), BUFFER_USAGE, label))

    def create_staging(self, size_bytes: int) -> wgpu.GPUBuffer:
        """Return a buffer for readback. The method raises the exceptions of `create_buffer`."""
        return self.create_gpu_buffer(size_bytes, wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST, "what is read back")

    def create_gpu_buffer(self, size_bytes: int, usage: int, label: str) -> wgpu.GPUBuffer:
        """Return a buffer of a size and usage. The method raises the exceptions of `create_buffer`."""
        limit = self.caps.limit("max-buffer-size")
        if size_bytes > limit:
            raise OutOfMemoryError(
                "a buffer is larger than the device allows",
                label=label,
                got=f"{size_bytes} bytes",
                allowed=f"max-buffer-size {limit}",
            )
        with self.translated(f"buffer '{label}' of {size_bytes} bytes"):
            return self.gpu.create_buffer(label=label, size=size_bytes, usage=usage)

    def submit(self, encoder: wgpu.GPUCommandEncoder, buffers: Iterable[Buffer], staging: wgpu.GPUBuffer | None = None) -> None:
        """Finish an encoder and submit it at once. Checks and exceptions are those of `submit_by`."""
        self.submit_by(lambda: self.gpu.queue.submit([encoder.finish()]), buffers, staging)

    def submit_by(self, submit: Callable[[], None], buffers: Iterable[Buffer], staging: wgpu.GPUBuffer | None = None) -> None:
        """Check the buffers and the device, then call a function that finishes an encoder and submits it.

        A submit that fails validation ends the whole process inside wgpu-native. The method therefore rules out all causes of
        such a failure. The device still exists, no buffer is destroyed or mapped, and the command buffer was not submitted
        before because it never leaves `submit`.

        Args:
            submit: submits a command buffer, which must not have been submitted before.
            buffers: the storage buffers of the recorded work.
            staging: the destination of a readback.

        Raises:
            InvalidStateError: a buffer was destroyed or is mapped. Nothing is submitted.
            DeviceLostError: the device is lost. Nothing is submitted.
        """
        with self.lock:
            for buffer in buffers:
                if buffer.in_doubt:
                    buffer.check()
            if staging is not None and staging.map_state != "unmapped":
                raise InvalidStateError(
                    "the staging buffer is mapped", got=f"map_state '{staging.map_state}'", allowed="'unmapped'"
                )
            self.check()
            try:  # as `translated`, which would take longer than to record a small graph
                submit()
            except wgpu.GPUError as error:
                raise self._failed(error, "a submission") from error

    def close(self) -> None:
        """Count the end of a context. The last one clears the caches of a device that the package opened.

        The device can be freed then.
        """
        with self.lock:
            self.users -= 1
            if self.owned and self.users <= 0:
                self.shared.clear()
                self.gpu.__dict__.pop("_webnn_wgpu", None)

    def release(self) -> None:
        """Free a device that no other object uses. It and its queue refer to each other, which delays their collection."""
        self.gpu.destroy()
        self._native._release()

    def wait(self) -> None:
        """Wait until all submitted work is done."""
        self._native._poll_wait()

    def poll(self) -> None:
        """Let wgpu deliver the callbacks of finished work, and return at once."""
        self._native._poll()


class _Translated:
    """A context manager that raises wgpu's errors as the specification's kinds.

    It is no generator function, because a generator would take longer than many of the calls that it surrounds.
    """

    __slots__ = ("_device", "_doing")

    def __init__(self, device: Device, doing: str) -> None:
        self._device, self._doing = device, doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, wgpu.GPUError):
            raise self._device._failed(error, self._doing) from error


def open_device(
    *,
    power_preference: PowerPreference = "default",
    prefer_software: bool = False,
) -> Device:
    """Open the device that options ask for.

    Args:
        power_preference: the preference among several adapters.
        prefer_software: whether a software adapter is preferred to hardware.

    Returns:
        A device with every feature and the limits that kernels use, as far as the adapter has them.

    Raises:
        NotSupportedError: no adapter exists. The message names the packages to install.
    """
    adapter = choose_adapter(power_preference, prefer_software)
    if adapter is None:
        kind = "software WebGPU adapter" if prefer_software else "WebGPU adapter"
        raise NotSupportedError(f"no {kind} was found", operator="create_context", hint=INSTALL_HINT)
    return open_adapter(adapter)


def open_adapter(adapter: wgpu.GPUAdapter) -> Device:
    """Open a device on an adapter, with every feature and the limits that kernels use, as far as it has them.

    Raises:
        NotSupportedError: the adapter gives none.
    """
    _opened.make_room()
    limits = {name: adapter.limits[name] for name in DEFAULT_LIMITS if name in adapter.limits}
    try:
        gpu = adapter.request_device_sync(
            label="webnn_wgpu",
            required_features=[f for f in WANTED_FEATURES if f in adapter.features],
            required_limits=limits,
        )
    except (RuntimeError, wgpu.GPUError) as error:
        raise NotSupportedError(
            f"the adapter gives no device: {wgpu_message(error)}", operator="create_context", got=adapter.info["device"]
        ) from error
    return Device.of(gpu, owned=True)


_of_lock = threading.Lock()

_opened: Scarce[wgpu.GPUDevice] = Scarce(few=12)
"""Those that were opened here. A device and its queue refer to each other, and have megabytes and threads.

One program may use more than half as many while its kernels are compiled.
"""


@functools.cache
def _destroy_at_exit() -> None:
    """See to it that the devices that were opened here are destroyed while their threads still run.

    Each has a daemon thread that polls it. When the interpreter ends, such threads stop wherever they are: one that has just
    been woken holds a lock that wgpu then waits for, forever, as it frees the device.
    """

    def destroy() -> None:
        for gpu in list(_opened.alive):
            gpu.destroy()

    # Registered after the first device exists: atexit calls handlers in reverse order, so this one runs before wgpu's own.
    atexit.register(destroy)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_opened.alive.clear)  # a fork destroys nothing at its exit


def _hint_for(given: Any) -> str:
    """Return how an object of wgpu leads to a device."""
    if isinstance(given, wgpu.GPUAdapter):
        return "adapter.request_device_sync() returns a device"
    return "gpu.request_adapter_sync().request_device_sync() returns a device" if isinstance(given, wgpu.GPU) else ""


def _is_destroyed(gpu: Any) -> bool:
    # wgpu has no attribute for it. The thread that polls a device exists until the device is destroyed.
    return getattr(gpu, "_poller", gpu) is None


_NOTHING = np.empty(0, np.uint8)
_DESTROYED = "the device is lost, because the program called its destroy()"
_OVERLONG = (
    "Drivers give up on a device that a kernel keeps busy for too long. `dispatch_steps` divides a run, and names such a kernel"
)


@functools.cache
def _native_library() -> tuple[Any, Callable[[Array], Any]]:
    """Return wgpu-native's C functions, which raise wgpu's errors, and the function that returns the pointer to an array."""
    from wgpu.backends.wgpu_native import _api, ffi

    functions: Any = _api.libf
    pointer_to: Any = ffi.from_buffer
    return functions, pointer_to
