"""The questions of passes, lowering, planner and runtime about costs. `software.py` and `hardware.py` answer them.

Larger subjects have files of their own: `products.py`, `convolutions.py`, `rows.py`, `attention.py`, `recurrent.py`. A figure
carries its unit in its name: `_ns` is nanoseconds, `_bytes` is bytes. Estimates may be compared only with estimates of the same
`Costs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .attention import AttentionCosts
    from .convolutions import ConvolutionCosts
    from .products import ProductCosts
    from .recurrent import RecurrentCosts
    from .rows import PoolingCosts, RowCosts

PORTABLE_ITERATIONS = 60_000
"""Iterations of all its loops together that an invocation may make on every known device: Mesa's llvmpipe ends loops after
65535, and reports nothing.
"""


@dataclass(frozen=True, kw_only=True)
class PassCosts:
    """Costs that decide how a graph is rewritten.

    Attributes:
        channels_last_product_ns: time that a convolution saves for each product of a result, if channels come last.
        channels_last_result_ns: time that it saves besides for each element of its result.
        transpose_element_ns: time that a transpose takes for each element.
        transpose_ns: time that a transpose takes at least.
        most_joined_bytes: weights that products of the same rows may have to be computed as one. Joining copies the weights.
        most_products: products that a product whose columns are cut may become. More of them have too little work each.
        most_folded_growth_bytes: bytes by which a folded constant may exceed its operands. Beyond that the device computes it.
        most_fused_steps: the maximum number of operators in one kernel. The compile time of longer shaders exceeds the gain.
        most_repeated_steps: the maximum number of operators on single elements that every invocation of a consumer repeats, so
            that no dispatch has to compute them before. 0 if a dispatch takes less time.
        reads_transposed: whether products read transposed factors about as fast as others, so that no transpose copies them.
        reads_heads: whether they read and write matrices that lie beside each other in rows, as attention's heads do, about as
            fast as others.
        moves_reshapes: whether reshapes that change dimensions of size 1 alone move behind element-wise operators, so that the
            convolution in front computes these.
        merges_transposes: whether transposes of results of one producer are computed in one kernel.
        fuses_behind_reductions: whether kernels of reductions and pools apply the element-wise operators behind them.
    """

    channels_last_product_ns: float
    channels_last_result_ns: float
    transpose_element_ns: float
    transpose_ns: float
    most_joined_bytes: int
    most_products: int
    most_folded_growth_bytes: int
    most_fused_steps: int
    most_repeated_steps: int
    reads_transposed: bool
    reads_heads: bool
    moves_reshapes: bool
    merges_transposes: bool
    fuses_behind_reductions: bool

    def channels_last_gain_ns(self, results: int, products: int) -> float:
        """Return the time that a convolution saves if channels come last.

        Args:
            results: elements of its result.
            products: products that are summed up to one element.
        """
        return results * (self.channels_last_result_ns + self.channels_last_product_ns * products)

    def transposing_ns(self, elements: int) -> float:
        """Return the time that the transpose of a value takes."""
        return self.transpose_ns + self.transpose_element_ns * elements


@dataclass(frozen=True, kw_only=True)
class LaunchCosts:
    """Costs that decide the amount of work of an invocation.

    Attributes:
        most_iterations: iterations of all its loops together that an invocation may make. Beyond that drivers end them.
        most_rounds: the maximum number of quads of an invocation, or of rows of a workgroup, in sequence. That pays if the
            start of a workgroup costs as much as a small amount of work.
        shared_quads: quads for each round that a kernel must have for each invocation to take several.
        shared_rows: rows for each round that a kernel must have for each workgroup to take several.
        least_transposed_side: sides of matrices from which on transposes pass through workgroup memory.
        hides_uniforms: whether the driver may compile a kernel for the values of its uniforms, which takes longer than a run.
    """

    most_iterations: int
    most_rounds: int
    shared_quads: int
    shared_rows: int
    least_transposed_side: int
    hides_uniforms: bool

    def rounds_of_quads(self, quads: int, iterations: int) -> int:
        """Return the quads of an invocation, each with a number of iterations, for a kernel that writes `quads` quads."""
        return min(self.most_rounds, -(-quads // self.shared_quads), max(1, self.most_iterations // iterations))

    def rounds_of_rows(self, rows: int, iterations: int) -> int:
        """Return the rows of a workgroup or subgroup, each with a number of iterations, for a kernel of `rows` rows."""
        return max(1, min(self.most_rounds, rows // self.shared_rows, self.most_iterations // max(1, iterations)))


@dataclass(frozen=True, kw_only=True)
class ScatterCosts:
    """Costs of scattering without reductions, where each place may search the updates or the updates vie for places.

    Attributes:
        most_searched: updates that are always searched: that takes each quad less time than two more passes over the places.
        most_comparisons: comparisons up to which a search takes less time than two more dispatches.
    """

    most_searched: int
    most_comparisons: int


@dataclass(frozen=True, kw_only=True)
class SharingCosts:
    """Costs that decide which kernels of a plan become one, so that drivers compile fewer.

    Attributes:
        merges: whether kernels that differ in their epilogues become one.
        worth_a_kernel_ns: time that products must gain by tiles of their own to be worth one more kernel.
        certain_share: the certain share of a product's estimated time. Long products move to other tiles only if they lose
            little time.
    """

    merges: bool
    worth_a_kernel_ns: float
    certain_share: float


@dataclass(frozen=True, kw_only=True)
class RuntimeCosts:
    """Costs around kernels.

    Attributes:
        uncached_bytes: bytes that no cache holds, which are copied to measure memory.
        soon_uploaded_bytes: weights that are uploaded in a few hundredths of a second.
        clock_load_us: microseconds of work before timed kernels, without which the clock of the device may fall. 0 for none.
        has_late_begins: whether the driver may take the timestamp of a pass's begin after the work of the pass.
        soon_dispatches: the minimum number of dispatches that are submitted before the host finishes the others of a run. Their
            execution takes longer than another submit. 0 if another submit does not pay.
        unbounded_loops: whether kernels run without the counters that wgpu adds to loops. The driver's compiler must not depend
            on them.
    """

    uncached_bytes: int
    soon_uploaded_bytes: int
    clock_load_us: float
    has_late_begins: bool
    soon_dispatches: int
    unbounded_loops: bool


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The costs of one device, by subject.

    Attributes:
        passes: the rewrites of a graph.
        launches: the amount of work of an invocation.
        products, convolutions, rows, pooling, attention, recurrent, scatter: the choice of kernels for operators.
        sharing: the choice of kernels that become one.
        runtime: the work around kernels.
    """

    passes: PassCosts
    launches: LaunchCosts
    products: ProductCosts
    convolutions: ConvolutionCosts
    rows: RowCosts
    pooling: PoolingCosts
    attention: AttentionCosts
    recurrent: RecurrentCosts
    scatter: ScatterCosts
    sharing: SharingCosts
    runtime: RuntimeCosts
