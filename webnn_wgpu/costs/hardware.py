"""Costs of GPUs. An adapter of unknown type counts as a GPU.

Figures of products, parts of sums, dispatches and caches fit measurements on an NVIDIA H200. Figures marked as assumed are
those of the software adapter. Figures marked as estimated follow from published facts about GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..core.caps import Caps
from ..core.wording import counted
from .architectures import architecture_of
from .attention import DECODE_ROWS, AttentionCosts
from .block_times import BlockTimes
from .convolutions import ConvolutionCosts
from .depthwise import MOST_WRITTEN_PRODUCTS, DepthwiseTimes
from .devices import cores_of
from .few_rows import MOST_ROWS
from .hardware_recurrent import HardwareRecurrent
from .model import PORTABLE_ITERATIONS, Costs, LaunchCosts, PassCosts, RuntimeCosts, ScatterCosts, SharingCosts
from .products import ProductCosts, SubgroupTimes
from .rates import (
    CACHED_BYTES_PER_NS,
    CORE_BYTES_PER_NS,
    CYCLES_PER_NS,
    DEPENDENT_DISPATCH_NS,
    LOADS_NS,
    SHARED_BYTES_PER_CYCLE,
    DeviceRates,
)
from .rows import SHARING_INVOCATIONS, PoolingCosts, RowCosts, SharedColumns
from .sizes import UNLIMITED, Choice, ConvolutionSize, ProductSize
from .tiles import BLOCK_TILES

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

# Assumed.
_PASSES = PassCosts(
    channels_last_product_ns=0.01,
    channels_last_result_ns=2.0,
    transpose_element_ns=1.5,
    transpose_ns=20_000.0,
    most_joined_bytes=2 << 20,
    most_products=4,
    most_folded_growth_bytes=64 << 20,
    most_fused_steps=32,
    most_repeated_steps=4,
    reads_transposed=True,
    # Kernels of attention read heads where they are. No other products of heads were found in models.
    reads_heads=False,
    moves_reshapes=True,
    merges_transposes=True,
    fuses_behind_reductions=True,
)

# Estimated: more workgroups hide latency. Half of a tile is to be used along each side.
_LAUNCHES = LaunchCosts(
    most_iterations=UNLIMITED,
    most_rounds=1,
    shared_quads=1,
    shared_rows=1,
    least_transposed_side=16,
    hides_uniforms=False,
)

# Assumed. The kernel is not chosen for GPUs, but it may be forced or measured.
_SUBGROUP_TIMES = SubgroupTimes(
    texture_ns=5.6,
    buffer_ns=15.5,
    product_ns=6.2,
    half_share=0.52,
    worth_tall=(0.1, 500_000),
    worth_halves=(0.1, 150_000),
    worth_wide=(0.03, 15_000),
    worth_large=(0.05, 100_000),
    wide_words=False,
)

_SCATTER = ScatterCosts(most_searched=2, most_comparisons=1 << 15)  # assumed

_SHARING = SharingCosts(merges=True, worth_a_kernel_ns=100_000, certain_share=0.97)  # assumed

# Estimated: caches of GPUs may be larger than those of processors. Assumed: the bytes that are soon uploaded. An H200 takes
# some 10 us for a dispatch of a network, and its host 30 to 60 us for a submit.
_RUNTIME = RuntimeCosts(
    uncached_bytes=128 << 20,
    soon_uploaded_bytes=16 << 20,
    # With half a millisecond of load, some kernels on an H200 looked 3.5 to 4 times as slow as in a run with three.
    clock_load_us=3000.0,
    has_late_begins=False,
    soon_dispatches=12,
    unbounded_loops=False,
)


@dataclass(frozen=True, kw_only=True)
class HardwareProducts(ProductCosts):
    """Costs of matrix products on a GPU. `ProductCosts.tile_of_workgroup` has the tile of the tiled kernel.

    Attributes:
        kind: the name of the adapter's kind, for people.
    """

    kind: str

    def choose(self, size: ProductSize, possible: Collection[str]) -> Choice:
        """Return the kernel of tiles in workgroup memory, or the one for few rows."""
        if size.M <= self.gemv_rows:
            return Choice("gemv", f"{self.kind}, {counted(size.M, 'row')}: split sums")
        return Choice("tiled", f"{self.kind}: tiles in workgroup memory")


_TILED_CHANNELS = 8
"""Output channels of a group up to which tiles of 32 columns would be mostly empty. Estimated."""


_TRANSFORM_NS = 8000.0
"""Time of a dispatch that transforms the patches of images, or transforms the products back, besides moving the numbers.

It fits twelve convolutions on an H200.
"""

_WORTHWHILE_SHARE = 0.75
"""The share of a convolution's time that Winograd's algorithm may take by its estimate, which errs."""


_HIGHEST_TILE = max(tile.rows for tile in BLOCK_TILES)


@dataclass(frozen=True, kw_only=True)
class HardwareConvolutions(ConvolutionCosts):
    """Costs of convolutions on a GPU.

    Attributes:
        rates: the rates of the GPU.
    """

    rates: DeviceRates

    def _winograd(self, size: ConvolutionSize, possible: Collection[str]) -> str:
        """Return the faster variant of Winograd's algorithm if it takes three quarters of the time at most.

        It makes 16 multiply-adds where the convolution makes 36. In one kernel, each workgroup transforms the patches for its
        own channels. The price of three kernels is two dispatches, which wait for each other, and two transformed tensors, 4
        times as large as input and output, that are written and read.
        """
        transformed = size.winograd_product
        moved_bytes = 2 * 4 * transformed.matrices * transformed.M * (transformed.N + transformed.K)
        apart_ns = self._product_ns(transformed) + moved_bytes / self.rates.passed_bytes_per_ns + 2 * _TRANSFORM_NS
        tile = self.winograd_tile(Choice("winograd_tiled", ""), size)
        together_ns = self.products.blocks.winograd_cycles(tile, size) / CYCLES_PER_NS
        if min(apart_ns, together_ns) > _WORTHWHILE_SHARE * self._product_ns(size.product, patch_reads=1):
            return ""
        return "winograd_tiled" if together_ns < apart_ns else "winograd"

    def _product_ns(self, size: ProductSize, patch_reads: int = 0) -> float:
        """Return the time of a product in its best tile and number of parts."""
        choice = Choice("tiled", "")
        tile, parts = self.products.tile_and_parts(
            choice, size, most_rows=_HIGHEST_TILE, most_parts=UNLIMITED, patch_reads=patch_reads
        )
        return self.products.blocks.cycles(tile, parts, size, patch_reads=patch_reads) / CYCLES_PER_NS

    def _choose(self, size: ConvolutionSize, possible: Collection[str]) -> Choice:
        if size.columns <= _TILED_CHANNELS:
            return Choice("plain", f"hardware GPU, {counted(size.columns, 'output channel')} per group")
        return Choice("tiled", "hardware GPU: tiles in workgroup memory")

    def depthwise_pixels(self, size: ConvolutionSize, step: int, possible: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """Return the pixels with the shortest time."""
        bytes_per_ns = self.rates.cores * CACHED_BYTES_PER_NS
        times = DepthwiseTimes(cores=self.rates.cores, bytes_per_ns=bytes_per_ns, loads_ns=LOADS_NS)
        return times.pixels(size, step, possible)

    def writes_out_taps(self, taps: int, pixels: int) -> bool:
        """Return whether the products are few enough."""
        return taps * pixels <= MOST_WRITTEN_PRODUCTS


_SHARING_NS = 300.0
"""Time in which the invocations of a workgroup combine their values: five or six barriers."""

_RESIDENT_INVOCATIONS = 1024
"""Invocations of a core that wait for loads at the same time. Estimated: those that 64 registers each allow."""

_COLUMN_LANES = (32, 64)
"""Invocations that share the rows of four columns. A workgroup of 256 then reads 128 or 64 bytes of each row: lines of a cache,
or halves."""

_MOST_COLUMN_PARTS = 128
"""The maximum number of parts of the rows of columns. One workgroup combines them, whose invocations load a few each."""


@dataclass(frozen=True, kw_only=True)
class HardwareRows(RowCosts):
    """Costs of rows on a GPU.

    Attributes:
        rates: the rates of the GPU.
    """

    rates: DeviceRates

    def _sharing(self, variants: Collection[str]) -> str:
        return "workgroup"

    def _choose(self, variants: Collection[str], rows: int, length: int) -> Choice:
        return Choice("workgroup", "hardware adapter")

    def parts(self, workgroups: int, items: int, lanes: int) -> int:
        """Return the number of parts for about 256 workgroups, with at least 128 items per invocation. Estimated."""
        return min(-(-256 // workgroups), -(-items // lanes) // 128)

    def shared_columns(self, quads: int, length: int) -> SharedColumns | None:
        """Return the division with the shortest time. Reductions of columns wait for loads most of the time."""
        best, best_ns = None, self._loading_ns(quads, length)
        for lanes in _COLUMN_LANES:
            parts = 1
            while parts <= _MOST_COLUMN_PARTS and (parts == 1 or parts * lanes * self.loads < 2 * length):
                workgroups = -(-quads * lanes // SHARING_INVOCATIONS) * parts
                ns = _SHARING_NS + self._loading_ns(workgroups * SHARING_INVOCATIONS, -(-length // (lanes * parts)))
                if parts > 1:
                    ns += DEPENDENT_DISPATCH_NS + _SHARING_NS + LOADS_NS
                if ns < best_ns:
                    best, best_ns = SharedColumns(lanes=lanes, parts=parts), ns
                parts *= 2
        return best

    def _loading_ns(self, invocations: int, items: int) -> float:
        """Return the time in which invocations load a number of items each."""
        rounds = max(1.0, invocations / (self.rates.cores * _RESIDENT_INVOCATIONS))
        return rounds * -(-items // self.loads) * LOADS_NS

    def reads_again(self, held: int, rows: int) -> bool:
        """Return False: a kernel stores the items of a row from its registers."""
        return False

    def normalizes_sums(self, rows: int, length: int, parts: int) -> bool:
        """Return whether workgroups of one row each lose less time than a dispatch takes. Few long rows leave cores idle."""
        row_bytes = 4 * parts * length
        rows_ns = -(-rows // self.rates.cores) * row_bytes / CORE_BYTES_PER_NS
        return length >= self.short_row and rows_ns - rows * row_bytes / self.rates.bytes_per_ns < DEPENDENT_DISPATCH_NS


@dataclass(frozen=True, kw_only=True)
class HardwarePooling(PoolingCosts):
    """Costs of pooling on a GPU."""

    def _choose(self, variants: Collection[str]) -> Choice:
        return Choice("workgroup", "large windows")


@dataclass(frozen=True, kw_only=True)
class HardwareAttention(AttentionCosts):
    """Costs of attention on a GPU."""

    def choose(self, possible: Collection[str], rows: int, keys: int, columns: int) -> Choice:
        """Return the kernel of tiles in workgroup memory, or the one for few rows, if the heads allow."""
        if "tiled" not in possible:
            return Choice("plain", "heads that are wide or not whole quads")
        if rows <= DECODE_ROWS:
            return Choice("decode", f"hardware GPU, {counted(rows, 'row')} for each head of keys")
        return Choice("tiled", "hardware GPU: tiles in workgroup memory")

    def plain_rows(self, rows: int) -> int:
        """Return one: there are registers for one row."""
        return 1


def costs_of(caps: Caps) -> Costs:
    """Return the costs of a GPU. `architectures.py` has the figures in which architectures differ."""
    architecture = architecture_of(caps)
    cores = cores_of(caps)
    rates = DeviceRates(cores=cores, integrated=caps.adapter_type == "IntegratedGPU")
    products = HardwareProducts(
        lanes=caps.subgroup_size,
        subgroup=_SUBGROUP_TIMES,
        blocks=BlockTimes(
            cores=cores,
            multiply_adds=architecture.multiply_adds,
            local_rate_bytes=architecture.local_rate_bytes,
            shared_rate_bytes=SHARED_BYTES_PER_CYCLE,
            passed_rate_bytes=rates.passed_bytes_per_ns / CYCLES_PER_NS,
            registers=architecture.register_bytes // 4,
            local_bytes=architecture.local_bytes,
        ),
        most_results=architecture.most_results,
        divides_sums=True,
        gemv_rows=MOST_ROWS,  # Assumed. A tile would compute 32 rows to keep these.
        integer_rows=MOST_ROWS,  # assumed
        kind="unknown adapter, taken for hardware" if caps.adapter_type == "Unknown" else "hardware GPU",
    )
    return Costs(
        passes=_PASSES,
        launches=_LAUNCHES,
        products=products,
        convolutions=HardwareConvolutions(
            products=products,
            rates=rates,
            # Estimated: a part is to have work for all cores, and to stay in the cache that they share.
            winograd_part_bytes=1 << 24,
            most_winograd_parts=UNLIMITED,
            most_local_bytes=caps.limit("max-compute-workgroup-storage-size"),
            written_width=7,  # assumed
            # Eight pixels of two rows take 200 registers.
            wide_taps=UNLIMITED,
            taps_in_texture=False,
            sums_over_pixels=True,
        ),
        # Assumed, but for these. `few_elements`: a core reads as many elements of 4 bytes in the time of a dispatch that
        # combines the results of others. `loads`: four quads take 16 registers. `range_loads`: the invocations of the only
        # workgroup have the most registers. `many_results` is estimated: a GPU has more invocations to keep busy.
        rows=HardwareRows(
            short_row=32,
            many_rows=64,
            combines_by_subgroups=True,
            few_elements=int(CORE_BYTES_PER_NS * 3 * DEPENDENT_DISPATCH_NS / 4),
            loads=4,
            range_loads=8,
            rates=rates,
        ),
        pooling=HardwarePooling(many_results=4 * 16384, shared_window=32, most_written=25),
        attention=HardwareAttention(
            # Estimated: two workgroups of two subgroups on each core.
            busy_workgroups=2 * cores,
            # Assumed: these four.
            busy_units=8,
            shortest_part=256,
            decode_keys=256,
            long_keys=512,
            subgroup_barriers=False,
            gradient_by_products=False,
            most_kept_bytes=0,
        ),
        recurrent=HardwareRecurrent(
            rates=rates,
            most_kept_weights=1536,  # assumed
            keeps_without_subgroups=False,
            subgroup_rows=4,  # assumed
            most_step_iterations=PORTABLE_ITERATIONS // 2,  # assumed
            # AMD's compiler takes some 40 registers besides. A core of RDNA 2, of NVIDIA's, and of Apple's has 128, 128 and 104
            # for each of 512 invocations.
            sequence_invocations=min(512, caps.limit("max-compute-invocations-per-workgroup")),
            sequence_registers=64,
            # FXC, a compiler of D3D12, may refuse barriers behind a branch on workgroup memory. Metal was not tried.
            side_by_side=architecture.runs_side_by_side and caps.backend == "Vulkan",
            most_local_bytes=caps.limit("max-compute-workgroup-storage-size"),
        ),
        scatter=_SCATTER,
        sharing=_SHARING,
        runtime=replace(_RUNTIME, unbounded_loops=_takes_unbounded_loops(caps)),
    )


def _takes_unbounded_loops(caps: Caps) -> bool:
    """Return True for NVIDIA's own driver, on which the tests passed. Mesa's drivers share a front end that makes a mistake."""
    return caps.vendor == "NVIDIA" and caps.backend == "Vulkan" and "mesa" not in caps.driver.lower()
