"""Times of the depthwise kernel on a GPU, by the pixels of an invocation.

Neighboring pixels share the loads of taps and of most input pixels. But few invocations leave a GPU idle: each waits for loads,
and its instructions follow each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .sizes import ConvolutionSize

_CHANNELS = 4
"""Channels of an invocation, which it loads at once."""

MOST_WRITTEN_PRODUCTS = 128
"""Products of taps and pixels, of four channels each, up to which they are written out instead of a loop. Estimated."""

_WAITING_LOADS = 24
"""Loads of four channels that an invocation waits for at the same time: in 96 registers."""

_LOAD_INSTRUCTIONS = 6
"""Instructions of a load: its address, and zeros outside of the input."""

_INSTRUCTION_NS = 1.4
"""Time of an instruction of a subgroup that shares its scheduler with few others. Estimated: 2.5 clock cycles."""

_SCHEDULED_PER_NS = 128 * 1.8
"""Instructions that the invocations of a core start per ns. Assumed: 128 per clock cycle."""

_TOLERANCE = 1.2
"""The ratio of estimates up to which more pixels of an invocation are preferred, because they share more loads."""


@dataclass(frozen=True, kw_only=True)
class DepthwiseTimes:
    """Rates of a GPU, and the times of the kernel that follow from them.

    Attributes:
        cores: cores of the GPU.
        bytes_per_ns: bytes that all cores read from their caches per ns.
        loads_ns: the time until loads that are issued together have arrived.
    """

    cores: int
    bytes_per_ns: float
    loads_ns: float

    def pixels(self, size: ConvolutionSize, step: int, possible: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """Return the rows and columns of pixels of an invocation, about the fastest of the possible ones.

        Args:
            size: the convolution.
            step: input pixels from one pixel to the next, if pixels share their input. Otherwise 0.
            possible: pairs of rows and columns, the largest first.
        """
        times = {pixels: self._ns(size, step, *pixels) for pixels in possible}
        return next(pixels for pixels, ns in times.items() if ns <= _TOLERANCE * min(times.values()))

    def _ns(self, size: ConvolutionSize, step: int, rows: int, columns: int) -> float:
        """Return the time of the kernel if an invocation computes some rows and columns of pixels."""
        (out_height, out_width), (height, width) = size.output, size.kernel
        invocations = size.images * -(-out_height // rows) * -(-out_width // columns) * -(-size.channels // _CHANNELS)
        products = size.taps * rows * columns
        if step:
            read_rows = (rows - 1) * step + height
            loads = read_rows * ((columns - 1) * step + width) + size.taps
        else:
            read_rows, loads = height, products + size.taps
        in_loop = products > MOST_WRITTEN_PRODUCTS
        rounds = read_rows * math.ceil(loads / read_rows / _WAITING_LOADS) if in_loop else math.ceil(loads / _WAITING_LOADS)
        instructions = _CHANNELS * products + _LOAD_INSTRUCTIONS * loads
        waiting_ns = rounds * self.loads_ns + instructions * _INSTRUCTION_NS
        return max(
            waiting_ns,
            invocations * instructions / (self.cores * _SCHEDULED_PER_NS),
            invocations * loads * 4 * _CHANNELS / self.bytes_per_ns,
        )
