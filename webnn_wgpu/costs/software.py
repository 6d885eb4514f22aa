"""Costs of software adapters, which run shaders on the processor: lavapipe (Mesa's llvmpipe) and SwiftShader.

All times are core time, measured on lavapipe of Mesa 22.3. Workgroup memory and barriers are expensive on a processor, and
so is the start of a workgroup. Lanes of a subgroup are the lanes of the processor's vectors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..core.caps import Caps
from .attention import AttentionCosts
from .block_times import BlockTimes
from .convolutions import ConvolutionCosts
from .model import PORTABLE_ITERATIONS, Costs, LaunchCosts, PassCosts, RuntimeCosts, ScatterCosts, SharingCosts
from .products import ProductCosts, SubgroupTimes
from .recurrent import RecurrentCosts, RecurrentSize
from .rows import PoolingCosts, RowCosts
from .sizes import UNLIMITED, Choice, ConvolutionSize, ProductSize

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_PASSES = PassCosts(
    channels_last_product_ns=0.01,
    channels_last_result_ns=2.0,
    transpose_element_ns=1.5,
    transpose_ns=20_000.0,
    most_joined_bytes=2 << 20,
    most_products=4,
    most_folded_growth_bytes=64 << 20,
    most_fused_steps=32,
    most_repeated_steps=0,
    reads_transposed=False,
    reads_heads=False,
    moves_reshapes=False,  # Not measured.
    merges_transposes=False,  # Not measured.
    fuses_behind_reductions=False,  # Not measured.
)

# A workgroup takes 0.1 us to start. With eight quads per invocation a copy of a large tensor runs at 10.6 instead of 8.9 GB/s.
# No order of indices makes a vector load of a transpose's reads, and workgroup memory is read in a loop over the lanes too.
# lavapipe writes uniforms that decide branches and loops into a kernel, and compiles that whenever it binds the kernel: 2.5 ms.
_LAUNCHES = LaunchCosts(
    most_iterations=PORTABLE_ITERATIONS,
    most_rounds=8,
    shared_quads=64 * 16,
    shared_rows=16,
    least_transposed_side=UNLIMITED,
    hides_uniforms=True,
)

# Drivers take up to a quarter of a second longer to compile the higher tile and those of half quads, and a twentieth of a
# second longer for the wider one. Hundreds of runs win that back, or the runs of a network with several such products. The time
# of a product corresponds to 41 GFLOP/s on a core.
_SUBGROUP_TIMES = SubgroupTimes(
    texture_ns=5.6,
    buffer_ns=15.5,
    product_ns=6.2,
    half_share=0.52,
    worth_tall=(0.1, 500_000),
    worth_halves=(0.1, 150_000),
    worth_wide=(0.03, 15_000),
    worth_large=(0.05, 100_000),
    wide_words=True,
)

_SCATTER = ScatterCosts(most_searched=2, most_comparisons=1 << 15)  # a dispatch takes some 20 us

# A driver takes a tenth of a second to compile a kernel, which a thousand runs win back.
_SHARING = SharingCosts(merges=True, worth_a_kernel_ns=100_000, certain_share=0.97)

# Mesa 22.3's llvmpipe runs kernels that bind a texture before both timestamps of their pass: of 20 ms of a matrix product, the
# timestamps tell 0.1 ms.
# Mesa 22.3 runs some loops that ask at their end once too often if wgpu does not bound them.
_RUNTIME = RuntimeCosts(
    uncached_bytes=32 << 20,
    soon_uploaded_bytes=16 << 20,
    clock_load_us=0.0,
    has_late_begins=True,
    soon_dispatches=0,
    unbounded_loops=False,
)


@dataclass(frozen=True, kw_only=True)
class SoftwareProducts(ProductCosts):
    """Costs of matrix products on a software adapter."""

    def choose(self, size: ProductSize, possible: Collection[str]) -> Choice:
        """Return the kernel in the registers of a subgroup if possible."""
        if "subgroup" in possible:
            return Choice("subgroup", f"software adapter with subgroups of {self.lanes}")
        return Choice("plain", "software adapter without subgroups: sums in registers")


_TRANSFORMED_NS = 2.5
"""Time that Winograd's transforms take for each of the 16 numbers of a patch and channel."""

_WORTH_ROUNDING = 0.95
"""The share of the time that Winograd's algorithm must not exceed: its results are less exact, and take memory of their own."""


@dataclass(frozen=True, kw_only=True)
class SoftwareConvolutions(ConvolutionCosts):
    """Costs of convolutions on a software adapter.

    Attributes:
        winograd_channels: input and output channels from which on Winograd's transforms are worth their memory traffic, if the
            products are not in subgroups.
        winograd_patches: patches of 2 x 2 output pixels from which on its products are large enough to be fast, likewise.
    """

    winograd_channels: int
    winograd_patches: int

    def _winograd(self, size: ConvolutionSize, possible: Collection[str]) -> str:
        patches = size.images * math.prod(size.patches)
        if "implicit" in possible:
            products = self.products.subgroup_nanoseconds(size.winograd_product, texture=True)
            transforms = _TRANSFORMED_NS * 16 * patches * (size.depth + size.columns)
            pays = products + transforms < _WORTH_ROUNDING * self.products.subgroup_nanoseconds(size.product, texture=True)
        else:
            pays = min(size.depth, size.columns) >= self.winograd_channels and patches >= self.winograd_patches
        return "winograd" if pays else ""

    def _choose(self, size: ConvolutionSize, possible: Collection[str]) -> Choice:
        if "implicit" in possible:
            return Choice("implicit", f"software adapter with subgroups of {self.products.lanes}")
        return Choice("plain", "software adapter without subgroups: sums in registers")

    def depthwise_pixels(self, size: ConvolutionSize, step: int, possible: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """Return the most pixels, which share most loads."""
        return possible[0]

    def writes_out_taps(self, taps: int, pixels: int) -> bool:
        """Return whether there are 9 taps at most.

        A loop over rows takes hardly longer, and 5 x 5 taps take half the time to compile with it.
        """
        return taps <= 9


@dataclass(frozen=True, kw_only=True)
class SoftwareRows(RowCosts):
    """Costs of rows on a software adapter."""

    def _sharing(self, variants: Collection[str]) -> str:
        return "subgroup" if "subgroup" in variants else "workgroup"

    def _choose(self, variants: Collection[str], rows: int, length: int) -> Choice:
        if "subgroup" in variants:
            return Choice("subgroup", "CPU adapter with subgroups")
        # Without subgroups a barrier costs as much as some 30 loads: only worth it where there are too few rows to fill the
        # vector lanes.
        if rows < 16 and length >= 512:
            return Choice("workgroup", "few long rows")
        return Choice("plain", "CPU adapter without subgroups")

    def parts(self, workgroups: int, items: int, lanes: int) -> int:
        """Return the parts that keep the processor busy, each long enough to be worth another dispatch."""
        # A few workgroups keep it busy, and another call takes 50 us: as long as nearly 2000 loads of a vector of lanes.
        return min(-(-8 // workgroups), items // (2048 if lanes == 1 else 8 * 2048))

    def shared_columns(self, quads: int, length: int) -> None:
        """Return None: barriers cost more than is gained, and parts of rows are for several threads."""

    def reads_again(self, held: int, rows: int) -> bool:
        """Return whether more than 6 items are held for less than 1024 rows.

        Each store from registers is a copy of the text that makes it. With many rows, the shorter time of a run exceeds the
        compile time of all the copies.
        """
        return held > 6 and rows < 1024

    def normalizes_sums(self, rows: int, length: int, parts: int) -> bool:
        """Return False: workgroups do not divide sums here."""
        return False


@dataclass(frozen=True, kw_only=True)
class SoftwarePooling(PoolingCosts):
    """Costs of pooling on a software adapter."""

    def _choose(self, variants: Collection[str]) -> Choice:
        if "subgroup" in variants:
            return Choice("subgroup", "large windows, CPU adapter with subgroups")
        if "plain" in variants:
            return Choice("plain", "CPU adapter without subgroups")
        return Choice("workgroup", "large windows")


_FEW_KEYS = 128
"""Keys up to which the `queries` kernel, which takes longer to compile, does not pay."""

_MANY_ROWS_COLUMNS = 96
"""Widest head of values for which the `queries` kernel, which sums up many rows, does not take too long to compile."""


@dataclass(frozen=True, kw_only=True)
class SoftwareAttention(AttentionCosts):
    """Costs of attention on a software adapter.

    Attributes:
        lanes: invocations of a subgroup.
    """

    lanes: int

    def choose(self, possible: Collection[str], rows: int, keys: int, columns: int) -> Choice:
        """Return a kernel in subgroups if the device has them: `queries` for many rows."""
        if "subgroup" in possible:
            # Tiles of `queries` have four rows to a lane: with half as many and more they are worth it.
            many = rows > 2 * self.lanes and keys > _FEW_KEYS and columns <= _MANY_ROWS_COLUMNS
            kind = f"software adapter with subgroups of {self.lanes}"
            return Choice("queries", f"{kind}, {rows} rows") if many else Choice("subgroup", kind)
        return Choice(
            "plain", "software adapter without subgroups" if "tiled" in possible else "heads that are not whole quads"
        )

    def plain_rows(self, rows: int) -> int:
        """Return four: they share each load of keys and values."""
        return 4 if rows >= 4 else 1


_KEPT_STEPS = 16
"""Steps from which on the `persistent` kernel pays: it loads the weights at an eighth of the speed of using them."""

_SUBGROUP_WEIGHTS = 640_000
"""Recurrent weights of a direction up to which one workgroup makes all steps. It takes 10 ns for 32 of them, so that several
workgroups can save no more than a dispatch costs that wakes several threads.
"""

_SEVERAL_WORKGROUPS = 5
"""The factor of the maximum number of weights if there are several workgroups in any case, for directions or batch rows."""


@dataclass(frozen=True, kw_only=True)
class SoftwareRecurrent(RecurrentCosts):
    """Costs of recurrent networks on a software adapter."""

    def choose(self, size: RecurrentSize, *, several: bool, in_way: Mapping[str, str]) -> Choice:
        """Return a kernel that keeps the weights, or one in subgroups, where that is possible."""
        steps, weights = size.steps, size.weights
        no_subgroup = in_way.get("subgroup_sequence")
        if steps >= _KEPT_STEPS and not in_way.get("persistent"):
            return Choice("persistent", f"software adapter, {steps} steps: the weights are loaded once for all of them")
        if not no_subgroup:
            kind = f"software adapter, {weights} recurrent weights"
            if steps == 1 or weights > _SUBGROUP_WEIGHTS * (_SEVERAL_WORKGROUPS if several else 1):
                return Choice("subgroup_steps", f"{kind}: each step is spread over its cores")
            return Choice("subgroup_sequence", f"{kind}: threads are not woken in each step")
        if steps == 1:
            return Choice("steps", "a single step")
        if in_way.get("sequence"):
            return Choice("steps", in_way["sequence"])
        # For 16 to 256 units `sequence` wins by a quarter for 16 units and one batch row, else `steps`, which reads each weight
        # once for several rows, by up to five times.
        return Choice("steps", f"software adapter, {no_subgroup}: each weight is read once for several batch rows")

    def shares_of_sums(self, invocations: int) -> int:
        """Return one: each weight is reused for more rows instead."""
        return 1


def costs_of(caps: Caps) -> Costs:
    """Return the costs of a software adapter."""
    products = SoftwareProducts(
        lanes=caps.subgroup_size,
        subgroup=_SUBGROUP_TIMES,
        gemv_rows=4,
        integer_rows=0,
        # The tiled kernel is not chosen, but it may be forced.
        blocks=BlockTimes(
            cores=1,
            multiply_adds=8,
            local_rate_bytes=32,
            shared_rate_bytes=32,
            passed_rate_bytes=32,
            registers=1 << 16,
            local_bytes=1 << 16,
        ),
        most_results=64,
        # A second dispatch saves no time on a few cores.
        divides_sums=False,
    )
    return Costs(
        # Lanes of subgroups read whole quads of either factor, in rows or in columns, wherever the rows are.
        passes=replace(_PASSES, reads_transposed=caps.subgroup_size > 0, reads_heads=caps.subgroup_size > 0),
        launches=_LAUNCHES,
        products=products,
        convolutions=SoftwareConvolutions(
            products=products,
            winograd_channels=32,
            winograd_patches=64,
            # The intermediate results of a part stay in a core's cache. Threads wait for each other at the end of each part.
            winograd_part_bytes=1 << 19,
            most_winograd_parts=3,
            most_local_bytes=caps.limit("max-compute-workgroup-storage-size"),
            # A loop over taps in a row takes twice the time.
            written_width=7,
            wide_taps=7,
            taps_in_texture=True,
            sums_over_pixels=False,
        ),
        # For a second kernel the range of elements takes as long as some ten thousand loads.
        rows=SoftwareRows(
            short_row=32,
            many_rows=64,
            combines_by_subgroups=False,
            few_elements=1 << 16,
            loads=1,
            range_loads=0,
        ),
        pooling=SoftwarePooling(many_results=4 * 256, shared_window=32, most_written=9),
        attention=SoftwareAttention(
            lanes=caps.subgroup_size,
            busy_units=8,
            busy_workgroups=8,
            shortest_part=256,
            decode_keys=256,
            long_keys=512,
            subgroup_barriers=True,
            # A step of a transformer of 4 layers takes 0.60 s of CPU time instead of 0.81 s.
            gradient_by_products=True,
            most_kept_bytes=16 << 20,
        ),
        recurrent=SoftwareRecurrent(
            # That many take a third of a second to compile, about a second without subgroups. They halve the time of 384 units
            # of lstm and 512 of gru. Those of 512 units of lstm no longer fit a core's cache.
            most_kept_weights=1536,
            keeps_without_subgroups=True,
            subgroup_rows=4,
            # Mesa counts up to a third more iterations than the loops have, because its compiler transforms them. Half leaves a
            # margin.
            most_step_iterations=PORTABLE_ITERATIONS // 2,
            # Few, as each barrier costs by their number.
            sequence_invocations=64,
            # What lives across a barrier is kept in memory, not in registers.
            sequence_registers=0,
        ),
        scatter=_SCATTER,
        sharing=_SHARING,
        runtime=_RUNTIME,
    )
