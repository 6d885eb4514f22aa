"""Launching kernels that write their output in quads, and dividing their work where a tensor is larger than a binding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core.caps import Caps
from ..kernels.element import QUAD
from ..kernels.spec import Grid, Interval, Reach, UniformType, Work, grid_1d

WORKGROUP = 64
"""Invocations per workgroup of kernels that write quads; `quad_main` in `shaders/lib/tensor.wgsl.j2` agrees."""


MOST_ITERATIONS = 60_000
"""Iterations of all its loops together that an invocation may make: Mesa's llvmpipe ends them, in silence, after 65535."""


def quad_launch(num_elements: int, caps: Caps, iterations: int = 1) -> tuple[tuple[tuple[str, UniformType, int], ...], Grid]:
    """Return the uniforms `quads` and `rounds` and the grid of a kernel that writes `num_elements` in quads.

    `iterations` are those of the loops that make one quad.
    """
    quads = -(-num_elements // QUAD)
    # On a CPU adapter a workgroup costs 0.1 us to start: large tensors take eight quads per invocation (measured 10.6
    # against 8.9 GB/s). Hardware hides latency with more workgroups instead.
    rounds = min(8, -(-quads // (WORKGROUP * 16)), max(1, MOST_ITERATIONS // iterations)) if caps.is_cpu else 1
    return (("quads", "u32", quads), ("rounds", "u32", rounds)), grid_1d(-(-quads // (WORKGROUP * rounds)), caps)


def quad_work(num_elements: int, caps: Caps, reach: Reach, moved: Iterable[int] = (), iterations: int = 1) -> Work:
    """Return how a kernel whose main is `quad_main` can be divided.

    Args:
        num_elements: elements it writes, as for `quad_launch`.
        caps: the device.
        reach: for elements first..end-1 that it writes, what it touches of each operand.
        moved: positions of operands whose elements it moves bit by bit.
        iterations: those of the loops that make one quad.
    """

    def launch(quads: int) -> tuple[dict[str, int], Grid]:
        fields, grid = quad_launch(quads * QUAD, caps, iterations)
        return {name: value for name, _, value in fields}, grid

    def in_elements(first: int, end: int) -> Sequence[Interval | None]:
        return reach(first * QUAD, min(end * QUAD, num_elements))

    return Work(-(-num_elements // QUAD), launch, in_elements, frozenset(moved))
