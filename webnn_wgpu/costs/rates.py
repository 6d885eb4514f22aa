"""Rates of GPUs, by which estimates compare memory, arithmetic and dispatches. They fit measurements on an NVIDIA H200."""

from __future__ import annotations

from dataclasses import dataclass

CYCLES_PER_NS = 1.8
"""Clock cycles of a core per ns: 1.98 of an NVIDIA H200, 2.5 of large GPUs for games, 1.3 of small ones."""

CORE_BYTES_PER_NS = 32 * CYCLES_PER_NS
"""Bytes per ns that one workgroup reads from the cache that cores share. A core can read 64 per clock, as AMD and NVIDIA state.
Workgroups that multiply weights by a state got 50 to 70 on an H200."""

CACHED_BYTES_PER_NS = 64 * CYCLES_PER_NS
"""Bytes per ns that many workgroups read from the cache of their core. Estimated."""

SHARED_BYTES_PER_CYCLE = 28
"""Bytes per clock that the cache delivers to one core if all cores read from it. An H200 delivers 59 for reads alone. 28 fit
the parts of sums, which are written too."""

_INTEGRATED_BYTES_PER_NS = 134.0
"""Bytes per ns of an integrated GPU behind its own cache of 1 MB or so: those of the system cache of an Apple M1. The memory of
Adreno 740 and X1 delivers 63 and 135. Source: github.com/azhirnov/cpu-gpu-arch."""

LOADS_NS = 700.0
"""Time until the loads that an invocation issues together have arrived, from the memory or the cache that cores share."""

DEPENDENT_DISPATCH_NS = 4000.0
"""Time of a dispatch that reads the results of the preceding dispatch.

An H200 takes 1.7 to 2 us for a small one. Its first reads take more, and the C calls that record and submit it take the host
2 us.
"""


@dataclass(frozen=True, kw_only=True)
class DeviceRates:
    """The rates of a GPU, by which estimates compare memory with dispatches.

    Attributes:
        cores: cores of the GPU.
        integrated: whether it shares the memory of the processor.

    Example:
        >>> DeviceRates(cores=40).bytes_per_ns
        2016.0
    """

    cores: int
    integrated: bool = False

    @property
    def bytes_per_ns(self) -> float:
        """Bytes per ns that all cores together read from the cache that they share."""
        return self.cores * SHARED_BYTES_PER_CYCLE * CYCLES_PER_NS

    @property
    def passed_bytes_per_ns(self) -> float:
        """Bytes per ns of tensors that a dispatch writes and the next one reads."""
        return min(self.bytes_per_ns, _INTEGRATED_BYTES_PER_NS) if self.integrated else self.bytes_per_ns
