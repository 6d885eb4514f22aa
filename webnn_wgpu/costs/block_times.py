"""The times of the tiled kernel of matrix products on a GPU, by which tiles and parts of sums are chosen.

Constants are clock cycles and registers that fit 1,516 measurements on an NVIDIA H200: 115 products, convolutions and gradients
of filters in up to 40 tiles and parts each. In the geometric mean, the tiles chosen by the estimate take 1.03 times as long as
the fastest ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .architectures import CORE_INVOCATIONS

if TYPE_CHECKING:
    from .sizes import ConvolutionSize, ProductSize
    from .tiles import BlockTile, WinogradTile

_LAUNCH_CYCLES = 6400
"""A dispatch, from the end of the preceding one to its first workgroups' reads."""

_START_CYCLES = 3750
"""The start of a workgroup: its instructions, uniforms, and the first slice."""

_RESULT_CYCLES = 90
"""The end of a workgroup, for each result of an invocation, which is finished and stored."""

_SLICE_LATENCY_CYCLES = 320
"""Reading a slice from the cache that cores share, and the barriers, if no other workgroup of the core works meanwhile."""

_DEPENDENCY = 0.864
"""The time of a slice's arithmetic in a single workgroup, relative to that of a core which has several, for one result.

It grows with the tenth root of an invocation's results, whose copies wait longer: 1.14 for 16 results, and 1.31 for 64.
"""

_HIDDEN = 0.6
"""The share of the reads of workgroup memory that arithmetic hides, or of the arithmetic that reads hide."""

_COPY_SLOTS = 34
"""Issue slots in which an invocation finds a quad, waits for it, and copies it into workgroup memory."""

_PATCH_SLOTS = 39
"""Additional issue slots for each read of an image, which may be outside."""

_SHARED_STEP_SLOTS = 7
"""The same if a quad takes several reads, and all invocations copy the same steps.

AMD's compiler then finds taps and their offsets in scalar instructions: a tile of 128 x 32 takes 6.7 slots for each read.
"""

_REST_SLOTS = 6
"""Additional issue slots for a quad, if the last slice goes past the end of the sum, so that some numbers are replaced by 0."""

_EXCHANGE_SLOTS = 1.4
"""Issue slots of an invocation for each result and group, if groups share the sums of a tile."""

_NORMALIZED_SLOTS = 15
"""Additional issue slots for a quad of a left factor whose rows are normalized: a center is subtracted, numbers and squares are
added up. AMD's compiler takes 13.5 in a tile of 64 x 128, and 15 in one of 128 x 32."""

_NORMALIZED_CYCLES = 1000
"""Additional cycles of a workgroup then. Estimated: it reads the numbers of centers, waits at two barriers for the factors of
rows, and multiplies each result."""

_NORMALIZED_REGISTERS = 3
"""Additional registers for such a quad: the center and both sums."""

_POOLED_CYCLES = 1000
"""Additional cycles of a workgroup that takes the mean over its rows. Estimated: it waits at two barriers, and the invocations
that store the means add up 8 to 64 quads each."""

_COMBINE_CYCLES = 10_000
"""The dispatch that adds up the parts of sums. One that takes the mean over pixels takes as long by estimate."""

_HOST_CYCLES = 3600
"""The time of the host to record and submit a dispatch more: 2 us."""

_PART_BYTES = 8
"""Bytes of a part of a result, which is stored and read again."""

_SLICE_READS_SHARE = 0.53
"""The share of the rate of the shared cache at which cores read slices together, if the cache limits them.

Small tiles read both factors the most often. Gradients of filters, whose sums are long, take up to 1.4 times as long in them.
"""

_OTHER_REGISTERS = 24
"""Registers of an invocation besides its results and its copies: operands and addresses."""

_COPY_REGISTERS = 24
"""Registers of an invocation for each quad of the next slice that it copies: the quad, and where it comes from and goes.

A tile of 128 x 32 copies five quads. A core then works on four of its workgroups at once: 576 of them took an H200 longer than
those of larger tiles.
"""

_TRANSFORM_SLOTS = 100
"""Issue slots in which an invocation transforms a patch in a channel: it finds 16 numbers, adds and stores them. Estimated:
AMD's compiler takes some 80 with the places in workgroup memory."""

_TRANSFORM_REGISTERS = 40
"""Additional registers for that: the numbers, where they come from and where they go."""

_EXCHANGED_CYCLES = 25
"""The end of a workgroup by Winograd's algorithm, for each sum of an invocation: it passes through workgroup memory, where four
invocations read it. Estimated: two barriers for 16 sums."""


@dataclass(frozen=True, kw_only=True)
class BlockTimes:
    """Times of the tiled kernel on a GPU.

    Attributes:
        cores: cores of the GPU.
        multiply_adds: multiply-adds of a core per clock.
        local_rate_bytes: bytes per clock that the workgroup memory of a core serves.
        shared_rate_bytes: bytes per clock and core that the cache serves which cores share.
        passed_rate_bytes: bytes per clock of tensors that a dispatch writes and the next one reads, for all cores together.
        registers: registers of 32 bits of a core.
        local_bytes: bytes of the workgroup memory of a core.
    """

    cores: int
    multiply_adds: int
    local_rate_bytes: int
    shared_rate_bytes: float
    passed_rate_bytes: float
    registers: int
    local_bytes: int

    def cycles(
        self,
        tile: BlockTile,
        parts: int,
        size: ProductSize,
        *,
        patch_reads: int = 0,
        normalized: bool = False,
        pooled: bool = False,
    ) -> float:
        """Return the clock cycles of a product.

        A core works on several workgroups at once, as many as its registers hold. For a slice of the sum they take the time of
        their instructions, but at least the latency of one workgroup. Cores get whole workgroups, so a large tile may leave
        some cores without work.

        Args:
            tile: the tile of a workgroup.
            parts: the parts of the sums that workgroups of their own compute.
            size: the sizes of the product.
            patch_reads: the number of reads of a quad of the left factor, if that is the patches of an image. Otherwise 0.
            normalized: whether the kernel normalizes the rows of the left factor.
            pooled: whether the kernel stores the mean over all rows of a matrix.
        """
        workgroups = parts * size.matrices * -(-size.M // tile.rows) * -(-size.N // tile.columns)
        registers = tile.results + _OTHER_REGISTERS + _COPY_REGISTERS * (tile.copies_a + tile.copies_b)
        cycles = self._loops(
            workgroups,
            invocations=tile.invocations,
            results=tile.results,
            registers=registers + normalized * _NORMALIZED_REGISTERS * tile.copies_a,
            slices=-(-size.K // (parts * tile.depth)),
            slots=self._slice_slots(tile, size, patch_reads) + normalized * _NORMALIZED_SLOTS * tile.copies_a,
            local_bytes=0,
            slice_bytes=4 * (tile.rows + tile.columns) * tile.depth,
            end_cycles=_RESULT_CYCLES * tile.results + normalized * _NORMALIZED_CYCLES + pooled * _POOLED_CYCLES,
        )
        if tile.splits > 1:
            busiest, lanes = -(-workgroups // self.cores), tile.invocations / self.multiply_adds
            cycles += busiest * lanes * _EXCHANGE_SLOTS * tile.results * tile.splits
        return cycles + self.adding(parts, size) if parts > 1 else cycles

    def winograd_cycles(self, tile: WinogradTile, size: ConvolutionSize) -> float:
        """Return the clock cycles of a 3 x 3 convolution by Winograd's algorithm in one kernel.

        Args:
            tile: the tile of a workgroup.
            size: the sizes of the convolution.
        """
        product = size.winograd_product
        transform = _COPY_SLOTS + _TRANSFORM_SLOTS / tile.halves
        copies = _COPY_SLOTS * tile.copies + transform * tile.transforming / tile.invocations
        arithmetic = tile.results * tile.step
        return self._loops(
            -(-product.M // tile.rows) * -(-product.N // tile.columns),
            invocations=tile.invocations,
            results=tile.results,
            registers=tile.results + _OTHER_REGISTERS + 4 * tile.copies + _TRANSFORM_REGISTERS,
            local_bytes=tile.local_bytes,
            slices=-(-product.K // tile.step),
            slots=self._arithmetic_slots(arithmetic, tile.local_bytes_per_multiply_add) + copies,
            # Neighboring patches share half of their pixels, which the core's own cache serves.
            slice_bytes=4 * 16 * (tile.rows // 2 + tile.columns) * tile.step,
            # Four sums become one result.
            end_cycles=(_RESULT_CYCLES / 4 + _EXCHANGED_CYCLES) * tile.results,
        )

    def _loops(
        self,
        workgroups: int,
        *,
        invocations: int,
        results: int,
        registers: int,
        local_bytes: int,
        slices: int,
        slots: float,
        slice_bytes: int,
        end_cycles: float,
    ) -> float:
        """Return the clock cycles of workgroups, which loop over slices.

        Args:
            workgroups: the number of workgroups.
            invocations: the invocations of one.
            results: the sums of an invocation.
            registers: the registers of an invocation.
            local_bytes: the bytes of workgroup memory, or 0 if registers limit the workgroups of a core more than these.
            slices: the slices of a sum.
            slots: the issue slots of an invocation for a slice.
            slice_bytes: the bytes that a workgroup reads for a slice.
            end_cycles: the clock cycles of a workgroup behind the loop.
        """
        lanes = invocations / self.multiply_adds
        slice_cycles = lanes * slots
        # A single workgroup of fewer invocations than lanes leaves the other lanes idle.
        latency_cycles = _SLICE_LATENCY_CYCLES + _DEPENDENCY * results**0.1 * slice_cycles / min(1, lanes)
        # Workgroups of a core take turns at its arithmetic, and at what the cache delivers to it.
        shared_cycles = max(slice_cycles, slice_bytes / (_SLICE_READS_SHARE * self.shared_rate_bytes))

        def together(count: int) -> float:
            return slices * max(latency_cycles, count * shared_cycles) + _START_CYCLES + end_cycles if count else 0

        most = min(self.registers // (registers * invocations), CORE_INVOCATIONS // invocations)
        most = max(1, min(most, self.local_bytes // local_bytes) if local_bytes else most)
        rounds, rest = divmod(-(-workgroups // self.cores), most)
        return _LAUNCH_CYCLES + rounds * together(most) + together(rest)

    def adding(self, parts: int, size: ProductSize) -> float:
        """Return the clock cycles of the dispatch that adds up the parts of all sums of a product."""
        moved_bytes = _PART_BYTES * parts * size.matrices * size.M * size.N
        return _COMBINE_CYCLES + _HOST_CYCLES + moved_bytes / self.passed_rate_bytes

    def normalizing(self, rows: int, length: int) -> float:
        """Return the clock cycles of a dispatch that normalizes so many rows: it reads and writes each number once."""
        moved_bytes = 2 * 4 * rows * length
        return _LAUNCH_CYCLES + _START_CYCLES + moved_bytes / self.passed_rate_bytes

    def pooling(self, size: ProductSize) -> float:
        """Return the clock cycles of a dispatch that takes the mean over all rows of each matrix of a product's result."""
        read_bytes = 4 * size.matrices * size.M * size.N
        return _COMBINE_CYCLES + _HOST_CYCLES + read_bytes / self.passed_rate_bytes

    def _slice_slots(self, tile: BlockTile, size: ProductSize, patch_reads: int) -> float:
        """Return the issue slots of an invocation for a slice."""
        # A copy takes a quad of each factor. Only those of the left one may be outside of an image.
        rest = _REST_SLOTS if tile.rest(size.K, whole=size.K % 4 == 0) == "end" else 0
        read = _SHARED_STEP_SLOTS if patch_reads > 1 and tile.shares_steps else _PATCH_SLOTS
        copies = (_COPY_SLOTS + rest) * (tile.copies_a + tile.copies_b) + read * patch_reads * tile.copies_a
        return self._arithmetic_slots(tile.results * tile.step, tile.local_bytes_per_multiply_add) + copies

    def _arithmetic_slots(self, multiply_adds: int, local_bytes_each: float) -> float:
        """Return the issue slots of an invocation for multiply-adds, and for reading their factors from workgroup memory."""
        local = multiply_adds * local_bytes_each * self.multiply_adds / self.local_rate_bytes
        more, less = max(multiply_adds, local), min(multiply_adds, local)
        return more + (1 - _HIDDEN) * less
