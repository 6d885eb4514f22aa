"""What a context's device can do at most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..runtime.peak import Peak
from ..runtime.peak import measured_peak as peak_of_device
from .backend import DeviceBackend, no_device

if TYPE_CHECKING:
    from .context import MLContext


def measured_peak(context: MLContext, *, again: bool = False) -> Peak:
    """Return how many operations and bytes per second the context's device can do at most, as two probe kernels measured it.

    It takes about a second, and is then kept in the user's cache. What else runs on the machine lowers it: measure `again` on a
    quiet one.

    Args:
        context: a context on a device.
        again: whether to measure in any case.

    Returns:
        `flops`, of float32; `bytes_per_second`, read and written; and their `balance`, the operations for each byte from which
        on arithmetic bounds a kernel.

    Raises:
        NotSupportedError: the context runs graphs in numpy.
        InvalidStateError: the context is lost.
        OutOfMemoryError: the device has no memory for two buffers of a moderate size.

    Example:
        >>> peak = wn.measured_peak(context)
        >>> peak.flops > 0 and peak.bytes_per_second > 0
        True
    """
    backend = context._backend
    if not isinstance(backend, DeviceBackend):
        raise no_device()
    with context._guarded("measured_peak"), context._lock:
        return peak_of_device(backend.device, again=again)
