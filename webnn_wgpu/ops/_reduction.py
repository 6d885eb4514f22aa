"""Rows of tensors and the choice of the invocations that work on a row, shared by all operators that reduce.

A *row* is the set of elements that a kernel reduces to one result: those that differ only in their coordinates along the
reduced dimensions. Its elements need not be neighbors. The shader side is `shaders/lib/rows.wgsl.j2`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, replace

from ..core.caps import Caps
from ..core.data_types import MAX_DIMENSION
from ..core.errors import OperationError
from ..core.wording import counted
from ..costs import Choice, Target
from ..kernels.element import ELEMENTS, QUAD, padded_bytes
from ..kernels.spec import (
    Binding,
    Grid,
    Interval,
    KernelCall,
    KernelTemplate,
    Operand,
    Reach,
    Temp,
    UniformType,
    Work,
    grid_1d,
)
from ..kernels.windows import strided_span
from ._def import Lowering
from ._quads import OCTET, in_wide_words, reads_octets
from ._shapes import merge_dimensions, strides_of
from ._strided_copy import strided_call

Field = tuple[str, UniformType, int | float]
"""A uniform: name, type, value."""

PLAIN_WORKGROUP = 64
"""Invocations per workgroup of kernels with one invocation per row, as in `shaders/lib/rows.wgsl.j2`."""

MOST_HELD = 16
"""The maximum number of items that an invocation keeps in registers. It reads longer rows once per pass."""

LOWEST = {
    "i32": "-2147483647i - 1i",
    "u32": "0u",
    "i64": "-9223372036854775807li - 1li",
    "u64": "0lu",
    "i64x2": "i64x2(0u, 0x80000000u)",
    "u64x2": "u64x2(0u, 0u)",
}
"""The lowest value of the WGSL integer types, and of pairs of words."""

HIGHEST = {
    "i32": "2147483647i",
    "u32": "4294967295u",
    "i64": "9223372036854775807li",
    "u64": "18446744073709551615lu",
    "i64x2": "i64x2(0xffffffffu, 0x7fffffffu)",
    "u64x2": "u64x2(0xffffffffu, 0xffffffffu)",
}
"""The highest value of the same."""


@dataclass(frozen=True)
class Axis:
    """Merged dimensions that an index runs through, and the steps of the input and of a parameter along them."""

    dims: tuple[int, ...]
    strides: tuple[int, ...]
    parameter_strides: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of positions."""
        return math.prod(self.dims)

    @property
    def reach(self) -> int:
        """How far the last position lies behind the first, in elements."""
        return sum((n - 1) * s for n, s in zip(self.dims, self.strides, strict=True))

    @property
    def in_quads(self) -> bool:
        """Whether four consecutive, aligned positions are always four consecutive, aligned elements."""
        return self.in_runs(QUAD)

    def in_runs(self, length: int) -> bool:
        """Return whether so many consecutive, aligned positions are always consecutive, aligned elements."""
        return self.strides[-1] == 1 and self.dims[-1] % length == 0 and all(s % length == 0 for s in self.strides[:-1])

    @property
    def parameter_in_quads(self) -> bool:
        """Whether the same holds for the parameter's elements."""
        return self.parameter_in_runs(QUAD)

    def parameter_in_runs(self, length: int) -> bool:
        """Return whether so many positions are always consecutive, aligned elements of the parameter."""
        return self.parameter_strides[-1] == 1 and all(s % length == 0 for s in self.parameter_strides[:-1])

    def by_quads(self) -> Axis:
        """Return the axis that counts quads of elements instead of elements."""
        return Axis(
            (*self.dims[:-1], self.dims[-1] // QUAD),
            (*self.strides[:-1], QUAD),
            (*self.parameter_strides[:-1], QUAD * self.parameter_strides[-1]),
        )

    def fields(self, name: str) -> list[Field]:
        """Return the uniforms that `walk` in `shaders/lib/rows.wgsl.j2` reads for the input."""
        return _numbered(f"{name}_dim", self.dims) + _numbered(f"{name}_stride", self.strides)

    def parameter_fields(self, name: str) -> list[Field]:
        """Return the uniforms that it reads besides for the parameter."""
        return _numbered(f"{name}_parameter_stride", self.parameter_strides)


def _numbered(name: str, values: Sequence[int]) -> list[Field]:
    return [(f"{name}_{d}", "u32", n) for d, n in enumerate(values)]


@dataclass(frozen=True)
class RowView:
    """A tensor as rows. `kept` enumerates the rows, `reduced` enumerates the elements of a row.

    If `columns` is true, neighbors in memory belong to different rows.
    """

    kept: Axis
    reduced: Axis
    columns: bool

    @property
    def items_are_quads(self) -> bool:
        """Whether every row consists of aligned quads of neighboring elements."""
        return self.reduced.in_quads and all(s % QUAD == 0 for s in self.kept.strides)

    @property
    def rows_are_quads(self) -> bool:
        """Whether elements of four consecutive rows always form an aligned quad."""
        return self.kept.in_quads and all(s % QUAD == 0 for s in self.reduced.strides)

    def touched(self, first: int, end: int) -> Interval:
        """Return the elements of rows first..end-1, as an interval."""
        low, high = strided_span(self.kept.dims, self.kept.strides, first, end)
        return low, high + self.reduced.reach

    @property
    def reach_of_four(self) -> int:
        """The maximum number of elements that four neighboring rows span."""
        # A step from one row to the next is the same wherever it carries over into the same dimension.
        carries = [math.prod(self.kept.dims[d:]) for d in range(len(self.kept.dims) + 1)]
        spans = [self.touched(max(0, n - k), min(self.kept.size, n - k + QUAD)) for n in carries for k in range(QUAD)]
        return max(past - low for low, past in spans)

    def items(self, quads: bool) -> Axis:
        """Return the axis that enumerates the items of a row: quads of elements, or single elements."""
        return self.reduced.by_quads() if quads else self.reduced


def view_rows(shape: Sequence[int], axes: Sequence[int], parameter_strides: Sequence[int] | None = None) -> RowView:
    """Return a tensor of `shape` as the rows along `axes` (ascending), in row-major order of both kinds of dimensions.

    Args:
        shape: the tensor's shape.
        axes: the reduced dimensions.
        parameter_strides: the strides of a parameter (scale, bias) along every dimension of the tensor, or None.

    >>> view = view_rows((2, 3, 4, 5), (2, 3))
    >>> view.kept.dims, view.kept.strides, view.reduced.dims, view.reduced.strides
    ((6,), (20,), (20,), (1,))
    """
    strides = strides_of(shape)
    parameter = [0] * len(shape) if parameter_strides is None else parameter_strides

    def axis(dims: Sequence[int]) -> Axis:
        merged, (own, its) = merge_dimensions(
            [shape[d] for d in dims], [[strides[d] for d in dims], [parameter[d] for d in dims]]
        )
        return Axis(merged, own, its)

    kept = [d for d in range(len(shape)) if d not in axes]
    innermost = next((d for d in reversed(range(len(shape))) if shape[d] > 1), None)
    return RowView(axis(kept), axis(axes), innermost is not None and innermost not in axes)


def reduced_shape(shape: Sequence[int], axes: Sequence[int], keep_dimensions: bool) -> tuple[int, ...]:
    """Return the shape after reducing `axes`, which are left out or kept with size 1.

    >>> reduced_shape((2, 3, 4), (0, 2), False), reduced_shape((2, 3, 4), (0, 2), True)
    ((3,), (1, 3, 1))
    """
    if keep_dimensions:
        return tuple(1 if d in axes else n for d, n in enumerate(shape))
    return tuple(n for d, n in enumerate(shape) if d not in axes)


@dataclass(frozen=True, kw_only=True)
class RowShape:
    """The template parameters of a kernel that works on rows.

    Attributes:
        lanes: the number of invocations that share a row, 1 in the plain variant.
        quads: whether the kernel reads a row in quads.
        kept_rank, reduced_rank: the number of dimensions that address a row, and an item of it.
        held: the number of items that each invocation keeps in registers. 0 means that it reads them again for every pass.
        ragged: whether the last of the held items is beyond the row's end for some lanes.
        octets: whether each invocation holds pairs of neighboring quads, which the kernel reads and stores at once.
    """

    lanes: int
    quads: bool = False
    kept_rank: int = 1
    reduced_rank: int = 1
    held: int = 0
    ragged: bool = False
    octets: bool = False

    def holding(self, items: int) -> RowShape:
        """Return the shape with the rows' items held in registers, if they are few enough."""
        held = -(-items // self.lanes)
        return replace(self, held=held, ragged=items % self.lanes != 0) if held <= MOST_HELD else self

    def in_octets(self, low: Lowering, view: RowView, resources: Sequence[tuple[Binding, int]]) -> RowShape:
        """Return the shape for pairs of quads, if rows and the parameters of items consist of these and are held in registers.

        Args:
            low: the node.
            view: the rows.
            resources: the bindings with their values.
        """
        bound = {binding.name: low.graph.type(value) for binding, value in resources if _in_octets(binding)}
        runs = view.reduced.in_runs(OCTET) and all(s % OCTET == 0 for s in view.kept.strides)
        if not _OF_ITEMS.isdisjoint(bound):
            runs = runs and view.reduced.parameter_in_runs(OCTET)
        held = self.quads and self.lanes > 1 and self.held > 0 and self.held % 2 == 0 and not self.ragged
        return replace(self, octets=held and runs and reads_octets(bound.values(), low.target))


@dataclass(frozen=True)
class Variant:
    """The invocations that work on a row, and the reason of the choice.

    Attributes:
        name: `subgroup` or `workgroup`, which share a row among their invocations, or `plain`, with one invocation per row.
        lanes: the number of invocations that share a row.
        reason: the reason of the choice, in words.
        by_subgroups: whether the subgroups of a workgroup, of any size, combine values before workgroup memory does.
        columns: whether a workgroup works on neighboring columns, and invocations of one column share its rows.
    """

    name: str
    lanes: int
    reason: str
    by_subgroups: bool = False
    columns: bool = False

    @property
    def features(self) -> tuple[str, ...]:
        """The device features the variant needs."""
        return ("subgroup",) if self.name == "subgroup" or self.by_subgroups else ()

    def shape(self, view: RowView, *, quads: bool) -> RowShape:
        """Return the shape of kernels that work on a view in this way, its rows read in quads or not."""
        return RowShape(lanes=self.lanes, quads=quads, kept_rank=len(view.kept.dims), reduced_rank=len(view.reduced.dims))


VARIANTS = ("plain", "subgroup", "workgroup")
"""The kernel variants. One invocation, the lanes of a subgroup, or a workgroup reduce a row."""


def choose_variant(low: Lowering, view: RowView, *, subgroups: bool = True, passes: int = 0, quads: bool = False) -> Variant:
    """Return the variant that reduces rows.

    Args:
        low: the node.
        view: the rows.
        subgroups: whether subgroup operations accept the types of the kernel's values.
        passes: the number of times that the kernel reads a row. 0 means that long rows are cut into parts.
        quads: whether the kernel reads a row in quads.

    Raises:
        OperationError: the forced variant does not exist, the device cannot run it, or rows are too long.
    """
    rows, length = view.kept.size, view.reduced.size
    most_items = MAX_DIMENSION
    if passes:
        # In blocks of 32.
        iterations = low.target.costs.launches.most_iterations
        most_items = min(most_items, iterations // (passes * 34) * 32 * (QUAD if quads else 1))

    def choose(variants: Collection[str]) -> Choice:
        choice = low.target.costs.rows.choose(variants, rows, length, columns=view.columns)
        return replace(choice, reason=f"{choice.reason} ({counted(rows, 'row')} of {length})")

    return variant_of(low, length, choose, subgroups=subgroups, most_items=most_items)


def variant_of(
    low: Lowering,
    length: int,
    choose: Callable[[Collection[str]], Choice],
    *,
    subgroups: bool = True,
    most_items: int = MAX_DIMENSION,
) -> Variant:
    """Return the forced variant, or else the one that measured fastest, or else the choice of `choose`.

    Args:
        low: the node.
        length: the number of elements of a row.
        choose: returns one of the available variants, with the reason.
        subgroups: whether subgroup operations accept the types of the kernel's values.
        most_items: the maximum number of elements of a row that one invocation can reduce.

    Raises:
        OperationError: the forced variant does not exist, the device cannot run it, or rows are too long.
    """
    caps = low.caps
    lanes = {"plain": 1, "workgroup": workgroup_lanes(length, caps)}
    if subgroups and caps.subgroup_size and "subgroup" in caps.features:
        lanes["subgroup"] = caps.subgroup_size
    lanes = {name: n for name, n in lanes.items() if -(-length // n) <= most_items}
    forced = low.forced_variant
    if forced not in (None, *lanes) or not lanes:
        raise OperationError(
            "the forced kernel variant cannot be had" if lanes else "too many elements are reduced to one for this device",
            operator=low.ops[low.node.op].python_name,
            label=low.node.label,
            got=f"{low.node.op}={forced}" if lanes else f"{length} elements",
            allowed=", ".join(sorted(lanes)) or f"{most_items} per invocation",
        )
    choice = Choice(forced, "forced") if forced is not None else low.measured(lanes) or choose(lanes)
    by_subgroups = choice.variant == "workgroup" and "subgroup" in lanes and low.target.costs.rows.combines_by_subgroups
    return Variant(choice.variant, lanes[choice.variant], choice.reason, by_subgroups)


def workgroup_lanes(length: int, caps: Caps) -> int:
    """Return the number of invocations of a workgroup that share a row of so many elements."""
    lanes = min(256, max(32, 1 << (max(1, length // 16) - 1).bit_length()))
    return min(lanes, caps.limit("max-compute-invocations-per-workgroup"))


def row_launch(
    shape: RowShape, rows: int, target: Target, count: str = "rows", iterations: int = 1
) -> tuple[list[Field], Grid]:
    """Return the uniforms `count` and `rounds` and the grid of a kernel whose main is `main` of `rows.wgsl.j2`.

    `rounds` is how many rows a subgroup or workgroup takes, one after the other: parameters can be kept from one row to the
    next. `iterations` are those of an invocation's loops over a row.
    """
    rounds = target.costs.launches.rounds_of_rows(rows, iterations) if shape.lanes > 1 else 1
    per_workgroup = PLAIN_WORKGROUP if shape.lanes == 1 else rounds
    return [(count, "u32", rows), ("rounds", "u32", rounds)], grid_1d(-(-rows // per_workgroup), target.caps)


def row_work(shape: RowShape, rows: int, target: Target, reach: Reach, count: str = "rows", iterations: int = 1) -> Work:
    """Return the unit of work of a kernel with the main function of `rows.wgsl.j2`. The arguments are those of `row_launch`.

    `reach` returns the elements of each operand that rows first..end-1 touch.
    """

    def launch(units: int) -> tuple[dict[str, int], Grid]:
        fields, grid = row_launch(shape, units, target, count, iterations)
        return {name: int(value) for name, _, value in fields}, grid

    return Work(rows, launch, reach)


def rows_fit(view: RowView, element: str, caps: Caps, *, four: bool = False) -> bool:
    """Return whether a device can bind a row, or four, with all that lies between their elements, or the whole tensor."""
    size, limit = ELEMENTS[element].size_bytes, caps.limit("max-storage-buffer-binding-size")
    # With half a binding to spare, calls that go along the rows are few.
    reach = view.reach_of_four if four else view.reduced.reach + 1
    return padded_bytes(view.kept.size * view.reduced.size * size) <= limit or reach * size <= limit // 2


def side_by_side(view: RowView, value: Operand, element: str, target: Target, key: str) -> tuple[Temp, KernelCall]:
    """Return scratch memory in which every row of a tensor lies in one piece, and the call that copies them there."""
    dims, strides = (*view.kept.dims, *view.reduced.dims), (*view.kept.strides, *view.reduced.strides)
    temp = Temp(key, math.prod(dims) * ELEMENTS[element].size_bytes)
    return temp, strided_call(value, element, 0, dims, strides, temp, target, "rows side by side")


_OF_ROWS: tuple[str, ...] = ("input", "gradient", "output", "products", "weights")
"""The bindings of kernels of rows that have the rows' elements."""

_OF_ITEMS = frozenset({"scale", "bias"})
"""The bindings of parameters, which kernels read in quads if the items of a row own them."""


def _in_octets(binding: Binding) -> bool:
    """Return whether kernels read or store a binding in pairs of quads, if they do so at all."""
    return binding.quad and (binding.name in _OF_ROWS or binding.name in _OF_ITEMS or binding.name == "addend")


def row_call(
    template: KernelTemplate,
    low: Lowering,
    view: RowView,
    variant: Variant,
    shape: RowShape,
    resources: Sequence[tuple[Binding, Operand]],
    fields: Sequence[Field] = (),
    one_result: bool = False,
    passes: int = 3,
    **params: Hashable,
) -> KernelCall:
    """Return the call of a kernel that computes one result, or one row of results, from every row.

    Args:
        template: the kernel. It has the parameters `variant` and `rows` besides `params`.
        low: the node.
        view: the rows.
        variant: the invocations that work on a row.
        shape: the parameters by which the kernel reads the rows.
        resources: the bindings with their values.
        fields: the uniforms besides those that describe the rows.
        one_result: whether `output` has one element per row. All other operands in `_OF_ROWS` have rows like `input`.
        passes: the maximum number of times that the kernel reads a row.
        params: the template's other parameters.
    """
    items = view.items(shape.quads)
    iterations = 0 if shape.held else passes * (items.size // shape.lanes * 34 // 32 + 2)
    launch, grid = row_launch(shape, view.kept.size, low.target, iterations=iterations)
    if shape.octets:
        resources = [(replace(binding, words=4) if _in_octets(binding) else binding, value) for binding, value in resources]
    fields = [*launch, ("items", "u32", items.size), *view.kept.fields("kept"), *items.fields("reduced"), *fields]
    spec = template.spec(
        in_wide_words((binding for binding, _ in resources), low.target),
        [(name, type_) for name, type_, _ in fields],
        features=variant.features,
        variant=variant.name,
        rows=shape,
        **params,
    )

    def reach(first: int, end: int) -> list[Interval | None]:
        of_rows = dict.fromkeys(_OF_ROWS, view.touched(first, end))
        if one_result:
            of_rows["output"] = first, end
        return [of_rows.get(binding.name) for binding, _ in resources]

    # Pairs of quads are read where all operands fit a binding: parts of larger ones may be bound in other words.
    work = None if shape.octets else row_work(shape, view.kept.size, low.target, reach, iterations=iterations)
    return KernelCall(
        spec=spec,
        operands=tuple(v for _, v in resources),
        uniforms=tuple(v for *_, v in fields),
        grid=grid,
        reason=variant.reason,
        work=work,
    )
