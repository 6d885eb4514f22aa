"""Work before timed kernels, so that a GPU has its usual clock.

A GPU that waits for the host lowers its clock, to a sixth on an NVIDIA H200. Timed runs wait for their times each, so kernels
would look slower than they are in a program that keeps the device busy, and by a different factor each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..kernels.spec import Grid, grid_1d
from .peak import Probe

if TYPE_CHECKING:
    import wgpu

    from .device import Device

_BUFFER_BYTES = 1024


class ClockLoad:
    """Arithmetic that keeps a device busy for the time that its costs name."""

    def __init__(self, device: Device, microseconds: float) -> None:
        buffers = [device.create_buffer(_BUFFER_BYTES, name) for name in ("clock load source", "clock load result")]
        self._probe = Probe(device, "arithmetic", buffers)
        self._grid: Grid = grid_1d(self._probe.workgroups_of(microseconds), device.caps)

    @classmethod
    def of(cls, device: Device) -> ClockLoad | None:
        """Return the load of a device, always the same one. None where clocks do not fall."""
        microseconds = device.target.costs.runtime.clock_load_us
        if not microseconds:
            return None
        if "clock load" not in device.shared:
            device.shared["clock load"] = cls(device, microseconds)
        return cast("ClockLoad", device.shared["clock load"])

    def record(self, encoder: wgpu.GPUCommandEncoder) -> None:
        """Record the work in a pass of its own."""
        self._probe.record(encoder.begin_compute_pass(), self._grid)
