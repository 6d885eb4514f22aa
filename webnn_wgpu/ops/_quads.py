"""Launching kernels that write their output in quads, and dividing their work where a tensor is larger than a binding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..core.caps import Caps
from ..costs import Target
from ..ir.types import TensorType
from ..kernels.element import QUAD, padded_bytes
from ..kernels.spec import WIDE_WORDS, Binding, Grid, Interval, Reach, UniformType, Work, grid_1d

OCTET = 2 * QUAD
"""Elements that kernels read and write at once in words of 64 bits."""

WORKGROUP = 64
"""Invocations per workgroup of kernels that write quads, as in `quad_main` of `shaders/lib/tensor.wgsl.j2`."""


def quad_launch(
    num_elements: int, target: Target, iterations: int = 1
) -> tuple[tuple[tuple[str, UniformType, int], ...], Grid]:
    """Return the uniforms `quads` and `rounds` and the grid of a kernel that writes `num_elements` in quads.

    `rounds` is how many quads an invocation takes, one after the other. `iterations` are those of the loops that make one quad.
    """
    quads = -(-num_elements // QUAD)
    rounds = target.costs.launches.rounds_of_quads(quads, iterations)
    return (("quads", "u32", quads), ("rounds", "u32", rounds)), grid_1d(-(-quads // (WORKGROUP * rounds)), target.caps)


def fits_binding(type_: TensorType, caps: Caps) -> bool:
    """Return whether kernels may bind a tensor of a type whole."""
    return padded_bytes(type_.size_bytes) <= caps.limit("max-storage-buffer-binding-size")


def has_wide_words(target: Target) -> bool:
    """Return whether the device has words of 64 bits, and reads them in less time than as many of 32 bits."""
    return target.costs.products.subgroup.wide_words and WIDE_WORDS in target.caps.features


def in_wide_words(bindings: Iterable[Binding], target: Target) -> list[Binding]:
    """Return bindings that are read by `load4_` functions, in words of 64 bits where that takes less time."""
    wide = has_wide_words(target)
    return [
        replace(b, words=b.words or 2) if wide and b.access == "read" and b.quad and b.element == "float32" else b
        for b in bindings
    ]


def reads_octets(types: Iterable[TensorType], target: Target) -> bool:
    """Return whether kernels should read and write tensors of these types in pairs of quads, in words of 64 bits."""
    if not has_wide_words(target):
        return False
    return all(t.data_type == "float32" and t.num_elements % OCTET == 0 and fits_binding(t, target.caps) for t in types)


def quad_work(num_elements: int, target: Target, reach: Reach, moved: Iterable[int] = (), iterations: int = 1) -> Work:
    """Return the unit of work by which a kernel with the main function `quad_main` can be divided.

    Args:
        num_elements: the number of elements that the kernel writes, as for `quad_launch`.
        target: the device.
        reach: returns the elements of each operand that the kernel touches to write elements first..end-1.
        moved: positions of the operands whose elements the kernel copies bit by bit.
        iterations: the number of loop iterations that compute one quad.
    """

    def launch(quads: int) -> tuple[dict[str, int], Grid]:
        fields, grid = quad_launch(quads * QUAD, target, iterations)
        return {name: value for name, _, value in fields}, grid

    def in_elements(first: int, end: int) -> Sequence[Interval | None]:
        return reach(first * QUAD, min(end * QUAD, num_elements))

    return Work(-(-num_elements // QUAD), launch, in_elements, frozenset(moved))
