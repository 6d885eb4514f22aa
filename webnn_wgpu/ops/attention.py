"""Attention: softmax(scale q k' + mask) v for every head, without a matrix of scores in memory.

Kernels process the keys block by block and rescale their sums whenever they compute a larger score. Sources: T. Dao et al.,
FlashAttention, 2022, and M. Milakov, N. Gimelshein, Online normalizer calculation for softmax, 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.data_types import FLOATS
from ..core.errors import OperationError
from ..costs import Choice
from ..costs.attention import DECODE_KEYS, DECODE_ROWS, AttentionTile
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels import select
from ..kernels.element import QUAD
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Temp, grid_1d
from . import _attention_documentation as _documentation
from ._attention_operands import (
    ATTRS,
    MASK_AND_LENGTH,
    UNBOUNDED,
    HeadsTensor,
    QueryKeyValue,
    bind_scores,
    check_operands,
    number_of_scores,
    weights_of,
    window_of,
)
from ._def import Lowering, OpCall, OpDef, Operand
from ._product_kernel import ProductKernel, factor_buffer
from ._rows import to_type
from ._shapes import broadcast_strides
from .gradients import attention as attention_gradients
from .interfaces.bounds import CONDITIONED
from .interfaces.cost import Cost
from .interfaces.family import Family
from .softmax import SOFTMAX_OPERATIONS

_PARAMS = {
    "subgroup": ("lanes", "rows", "key_quads", "quads", "whole"),
    "queries": ("lanes", "keys", "quads", "whole"),
    "tiled": ("tile", "one_mask", "full_slices"),
    "decode": ("rows", "own_keys", "own_values", "steps"),
    "plain": ("rows", "quads"),
}
VARIANTS = tuple(_PARAMS)
"""The kernels. Each is a template `shaders/ops/attention.<variant>.wgsl.j2`."""

_TEMPLATES = {v: KernelTemplate(f"attention.{v}", _PARAMS[v]) for v in VARIANTS}
COMBINE = KernelTemplate("attention.combine")

_DECODE_INVOCATIONS = 256
"""Invocations of a workgroup of the `decode` kernel."""

_DECODE_LOADS = 16
"""Most quads of keys that an invocation of it loads at once."""

MOST_COLUMNS = 256
"""Widest head of values whose sums the variants other than `plain` hold in registers."""

_IN_SUBGROUPS = ("subgroup", "queries")


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    heads = check_operands(call)
    return (call.output(call.input(0).data_type, heads.result(call.input(0).rank)),)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    with np.errstate(all="ignore"):
        found = weights_of(arrays, attrs)
        result: Array = found.weights @ found.value
    shape = out[0].shape
    return [to_type(result if len(shape) == 4 else result.swapaxes(1, 2).reshape(shape), out[0])]


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """How the work of a node is divided.

    Attributes:
        rows: the number of rows of a unit.
        part_keys: the number of keys of a unit.
        quads: the number of quads of columns in registers, for kernels without a tile.
        own_keys: the number of keys that an invocation of the `decode` kernel holds at once.
        tile: the tile of the `tiled` kernel.
    """

    variant: str
    reason: str
    rows: int
    part_keys: int
    quads: int = 0
    own_keys: int = 0
    tile: AttentionTile | None = None


class _Lowering:
    """The calls of one node while they are put together."""

    def __init__(self, low: Lowering) -> None:
        self.low = low
        self.costs = low.target.costs.attention
        self.heads = QueryKeyValue.of(low)
        self.q, self.k, self.v = self.heads.q, self.heads.k, self.heads.v
        self.o = HeadsTensor.of(low.output().shape, low.attrs["heads"])
        self.group = self.q.heads // self.k.heads
        self.rows = self.group * self.q.length
        self.in_quads = self.q.size % QUAD == 0 and self.v.size % QUAD == 0

    def calls(self) -> list[KernelCall]:
        plan = self._plan()
        parts = max(1, -(-self.k.length // plan.part_keys))
        tiles = -(-self.rows // plan.rows)
        units = parts * tiles * self.k.heads * self.q.batch
        kernel = ProductKernel()
        for index, (name, heads) in enumerate((("query", self.q), ("key", self.k), ("value", self.v))):
            in_subgroup, element = plan.variant in _IN_SUBGROUPS, self.low.input(index).data_type
            binding = factor_buffer(self.low, name, element, in_subgroup=in_subgroup, quad=self.in_quads)
            kernel.bind(binding, self.low.value(index))
            x = name[0]
            kernel.uniforms(**dict(zip((f"{x}_batch", f"{x}_head", f"{x}_row"), heads.strides, strict=True)))
        kernel.uniforms(units=units, parts=parts, tiles=tiles, part_keys=plan.part_keys, rows=self.rows, heads=self.k.heads)
        kernel.uniforms(group=self.group, S=self.q.length, T=self.k.length, D=self.q.size, V=self.v.size)
        # Lanes that hold queries take the keys one by one.
        bind_scores(kernel, self.low, self.heads, quads=plan.variant != "queries")
        combine = self._bind_result(kernel, parts)
        workgroups = units
        if plan.variant == "plain":
            panels = -(-self.v.size // (QUAD * plan.quads))
            kernel.uniforms(panels=panels)
            rows = self.costs.plain_rows(self.rows)
            kernel.params["rows"] = rows
            workgroups = -(-units * panels * -(-self.rows // rows) // 64)
        if plan.variant == "tiled":
            assert plan.tile
            full_slices = self.q.size % (QUAD * plan.tile.depth) == 0
            kernel.params |= {"tile": plan.tile, "one_mask": self._has_one_mask(), "full_slices": full_slices}
        elif plan.variant == "decode":
            kernel.params |= {"rows": plan.rows, "own_keys": plan.own_keys, **self._loads_of_decode(plan.own_keys)}
        else:
            kernel.params["quads"] = plan.quads
        if plan.variant in _IN_SUBGROUPS:
            whole = not self.low.has(4) and window_of(self.low.attrs) == (UNBOUNDED, UNBOUNDED)
            kernel.params |= {"lanes": self.low.caps.subgroup_size, "whole": whole}
            if plan.variant == "queries":
                kernel.params["keys"] = self.costs.keys_at_once(self.k.length, self.low.caps.subgroup_size)
            else:
                kernel.params |= {"rows": plan.rows, "key_quads": self.costs.key_quads(plan.rows)}
            kernel.features.append("subgroup")
            if self.costs.subgroup_barriers and "subgroup-barrier" in self.low.caps.features:
                kernel.features.append("subgroup-barrier")
        reason = plan.reason + (f", keys in {parts} parts" if parts > 1 else "")
        return [kernel.call(_TEMPLATES[plan.variant], grid_1d(workgroups, self.low.caps), reason), *combine]

    def _loads_of_decode(self, own_keys: int) -> dict[str, int]:
        """Return the parameters of the `decode` kernel that say how much an invocation loads at once.

        These are `own_values`, the quads of keys whose values it sums up for each block of keys, and `steps`, the quads of a
        key that it multiplies.
        """
        shares = _DECODE_INVOCATIONS // (self.v.size // QUAD)
        quads = DECODE_KEYS // QUAD * own_keys
        steps, rest = divmod(self.q.size, 4 * QUAD)
        return {"own_values": -(-quads // shares), "steps": 0 if rest or steps * own_keys > _DECODE_LOADS else steps}

    def _bind_result(self, kernel: ProductKernel, parts: int) -> list[KernelCall]:
        """Bind the output, or scratch memory for the results of several parts, and return the call that combines these."""
        output = Binding(name="output", access="write", element=self.low.output().data_type, quad=self.v.size % QUAD == 0)
        steps = dict(zip(("o_batch", "o_head", "o_row"), self.o.strides, strict=True))
        kernel.uniforms(**steps)
        if parts == 1:
            kernel.bind(output, self.low.node.outputs[0])
            return []
        all_rows = self.q.batch * self.k.heads * self.rows
        columns = -(-self.v.size // QUAD) * QUAD
        partial = Temp("partial", parts * all_rows * columns * 4)
        stats = Temp("stats", parts * all_rows * 2 * 4)
        kernel.bind(Binding(name="partial", access="write", quad=True), partial)
        kernel.bind(Binding(name="stats", access="write"), stats)
        kernel.uniforms(batches=self.q.batch, columns=columns)
        combine = ProductKernel()
        combine.bind(Binding(name="partial", access="read", quad=True), partial)
        combine.bind(Binding(name="stats", access="read"), stats)
        combine.bind(output, self.low.node.outputs[0])
        combine.uniforms(parts=parts, all_rows=all_rows, rows=self.rows, heads=self.k.heads, group=self.group)
        combine.uniforms(S=self.q.length, V=self.v.size, columns=columns, **steps)
        grid = grid_1d(-(-all_rows * columns // QUAD // 64), self.low.caps)
        return [combine.call(COMBINE, grid, f"{parts} parts of the keys")]

    def _plan(self) -> _Plan:
        """Choose the variant and how it divides the work.

        Raises:
            OperationError: a variant is forced that the device or the sizes do not allow.
        """
        caps = self.low.caps
        fits = self.in_quads and self.v.size <= MOST_COLUMNS
        subgroups = select.supports(caps, "subgroup")
        possible = [v for v in VARIANTS if v == "plain" or (fits and (subgroups or v not in _IN_SUBGROUPS))]
        forced = self.low.forced_variant
        if forced not in (None, *possible):
            raise OperationError(
                "the forced kernel variant cannot be had",
                operator=self.low.ops[self.low.node.op].python_name,
                label=self.low.node.label,
                got=f"{forced}, subgroup size {caps.subgroup_size}, heads of {self.q.size} and {self.v.size} elements",
                allowed=", ".join(possible),
            )
        choice = self._choice(possible, forced)
        variant, reason = choice.variant, choice.reason
        if variant == "decode":
            rows = min(self.rows, DECODE_ROWS)
            columns = max(self.q.size, self.v.size)
            own_keys, part_keys = self.costs.decode_part(rows, self.k.length, self._units(rows), columns)
            return _Plan(variant=variant, reason=reason, rows=rows, part_keys=part_keys, own_keys=own_keys)
        if variant == "plain":
            quads = min(16, -(-self.v.size // QUAD))
            return _Plan(
                variant=variant,
                reason=reason,
                rows=self.rows,
                quads=quads,
                part_keys=self._part_keys(QUAD, self.q.size // QUAD + 5, self._parts(self.rows)),
            )
        if variant == "tiled":
            tile = self.costs.tile(self.rows, self.k.length, self.v.size, self.k.heads * self.q.batch)
            iterations = tile.iterations(self.q.size)
            parts = self.costs.parts_of_tiles(self._units(tile.rows), self.k.length)
            part_keys = self._part_keys(tile.keys, iterations, parts)
            return _Plan(variant=variant, reason=reason, rows=tile.rows, part_keys=part_keys, tile=tile)
        lanes = caps.subgroup_size
        quads = -(-self.v.size // (QUAD * lanes))
        if variant == "queries":
            keys = self.costs.keys_at_once(self.k.length, lanes)
            part_keys = self._part_keys(keys, self.q.size // QUAD + keys + 1, self._parts(QUAD * lanes))
            return _Plan(variant=variant, reason=reason, rows=QUAD * lanes, quads=quads, part_keys=part_keys)
        rows = self.costs.subgroup_rows(self.rows, quads)
        block = self.costs.key_quads(rows) * lanes
        part_keys = self._part_keys(block * QUAD, self.q.size // QUAD + 2 * block + 3, self._parts(rows))
        return _Plan(variant=variant, reason=reason, rows=rows, quads=quads, part_keys=part_keys)

    def _has_one_mask(self) -> bool:
        """Return whether all rows of a unit have the same mask."""
        if not self.low.has(3):
            return False
        _, head, row, _ = broadcast_strides(self.low.input(3).shape, self.heads.scores)
        return (self.group == 1 or not head) and (self.q.length == 1 or not row)

    def _units(self, rows: int) -> int:
        """Return how many units of some rows there are, if none has a part of the keys."""
        return -(-self.rows // rows) * self.k.heads * self.q.batch

    def _parts(self, rows: int) -> int:
        """Return how many parts of the keys units of some rows are to have."""
        return self.costs.parts_of_keys(self._units(rows), self.k.length)

    def _part_keys(self, block: int, iterations: int, parts: int) -> int:
        """Return how many keys one invocation takes.

        Args:
            block: keys that are taken at once.
            iterations: those of all loops together that one block takes.
            parts: how many parts of the keys there should be.
        """
        most = self.low.target.costs.launches.most_iterations // iterations * block
        most = min(most, max(block, -(-self.k.length // max(1, parts))))
        return -(-most // block) * block

    def _choice(self, possible: Sequence[str], forced: str | None) -> Choice:
        """Return the variant to take: the forced one, the one measured to be the fastest, or the best by device and sizes."""
        if forced:
            return Choice(forced, "forced")
        return self.low.measured(possible) or self.costs.choose(possible, self.rows, self.k.length, self.v.size)


def _lower(low: Lowering) -> list[KernelCall]:
    return _Lowering(low).calls()


def _operations(attrs: Attrs, types: Sequence[TensorType], output: TensorType) -> int:
    query, key = types[:2]
    products = query.num_elements + output.num_elements
    return 2 * key.shape[-2] * products + SOFTMAX_OPERATIONS * number_of_scores(attrs, query, key)


ATTENTION = OpDef(
    name="x.attention",
    operands=(
        Operand(name="query", data_types=FLOATS, min_rank=3, max_rank=4),
        Operand(name="key", same_as="query", min_rank=3, max_rank=4),
        Operand(name="value", same_as="query", min_rank=3, max_rank=4),
        *MASK_AND_LENGTH,
    ),
    infer=_infer,
    reference=_reference,
    lower=_lower,
    attrs=ATTRS,
    templates=(*_TEMPLATES.values(), COMBINE),
    family=Family.ATTENTION,
    without=("elementwise", "epilogue", "movement", "layout", "precision"),
    cost=Cost(_operations),
    bounds=CONDITIONED,
    variants=VARIANTS,
    documentation=_documentation.ATTENTION,
    gradient=attention_gradients.ATTENTION,
)

OPS = (ATTENTION,)
