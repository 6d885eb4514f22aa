"""Calls of the kernel that copies elements from places with other strides. It copies bits, so NaN payloads survive."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ..kernels.element import ELEMENTS, QUAD, STORAGE_ALIGNMENT_BYTES, WORD_BYTES, bits_of
from ..kernels.spec import Binding, Grid, Interval, KernelCall, KernelTemplate, UniformType, Work, grid_1d
from ..kernels.spec import Operand as KernelOperand
from ..kernels.windows import strided_span
from ._quads import quad_launch, quad_work
from ._shapes import merge_dimensions, strides_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..costs import Target
    from ..ir.types import TensorType
    from ._def import Lowering

STRIDED = KernelTemplate("strided", ("rank", "read"))


class Place(NamedTuple):
    """The memory of an operand: the value that holds it, its first element there, and its strides."""

    value: int
    start: int
    strides: tuple[int, ...]


def place_of(low: Lowering, index: int = 0) -> Place:
    """Return the memory of an operand, which may be a part of a larger value."""
    value, shape = low.value(index), low.input(index).shape
    part = low.parts.get(value)
    return Place(part.value, part.start, strides_of((*shape[:-1], part.row))) if part else Place(value, 0, strides_of(shape))


def copies_quads(base: int, dims: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether each quad of index space `dims` is a whole, aligned quad of the operand."""
    aligned = all(n % QUAD == 0 for n in (base, dims[-1], *strides[:-1]))
    return aligned and strides[-1] == 1


def strided_call(
    value: KernelOperand,
    data_type: str,
    base: int,
    dims: Sequence[int],
    strides: Sequence[int],
    output: KernelOperand,
    target: Target,
    reason: str,
) -> KernelCall:
    """Return the kernel call `output[i] = value[base + sum(coordinate(i, d) * strides[d])]` over index space `dims`."""
    num_elements = math.prod(dims)
    space, (_, own) = merge_dimensions(dims, [strides_of(dims), strides])
    tiles = _TransposeTiles.of(data_type, base, space, own, target)
    if tiles is not None:
        return tiles.call(value, output, reason)
    launch, grid = quad_launch(num_elements, target)
    fields: list[tuple[str, UniformType, int]] = list(launch)
    fields.append(("input_base", "u32", base))
    if len(space) == 1 and (own[0] == 1 or num_elements == 1) and base % QUAD == 0:
        read = "same"
    elif space[-1] % QUAD:
        read = "strided"
    else:
        read = "quad" if copies_quads(base, space, own) else "row"
        fields.append(("row_quads", "u32", space[-1] // QUAD))
    if read != "same":
        fields.extend((f"dim_{d}", "u32", n) for d, n in enumerate(space))
        fields.extend((f"input_stride_{d}", "u32", s % 2**32) for d, s in enumerate(own))
    element = bits_of(data_type)
    spec = STRIDED.spec(
        [
            Binding(name="input", access="read", element=element, quad=read in ("same", "quad")),
            Binding(name="output", access="write", element=element, quad=True),
        ],
        [(name, type_) for name, type_, _ in fields],
        rank=0 if read == "same" else len(space),
        read=read,
    )

    def reach(first: int, end: int) -> list[Interval]:
        low, past = (first, end) if read == "same" else strided_span(space, own, first, end)
        return [(base + low, base + past), (first, end)]

    work = quad_work(num_elements, target, reach, moved=[0])
    return KernelCall(
        spec=spec, operands=(value, output), uniforms=tuple(v for _, _, v in fields), grid=grid, reason=reason, work=work
    )


_TILE = 32
"""Sides of the tile that a workgroup transposes in workgroup memory, as in `shaders/ops/strided.wgsl.j2`."""


@dataclass(frozen=True, kw_only=True)
class _TransposeTiles:
    """A movement that transposes matrices, whose tiles pass through workgroup memory.

    Attributes:
        data_type: the type of the elements.
        base: where the input begins.
        space: the merged dimensions of the output.
        own: the steps of the input along them.
        turned: the dimension along which the input's elements are neighbors. It is not the innermost one.
        target: the device.
    """

    data_type: str
    base: int
    space: Sequence[int]
    own: Sequence[int]
    turned: int
    target: Target

    @classmethod
    def of(cls, data_type: str, base: int, space: Sequence[int], own: Sequence[int], target: Target) -> _TransposeTiles | None:
        """Return how a movement transposes matrices, or None where it does not, or where tiles do not pay or fit."""
        turned = next((d for d, step in enumerate(own[:-1]) if step == 1), None)
        least = target.costs.launches.least_transposed_side
        if turned is None or min(space[turned], space[-1]) < least or min(own) < 0 or own[-1] == 0:
            return None
        found = cls(data_type=data_type, base=base, space=space, own=own, turned=turned, target=target)
        size_bytes = ELEMENTS[found._element].size_bytes
        fits = max(found._touched[1] - found._touched[0], math.prod(space)) * size_bytes
        margin = target.caps.limit("min-storage-buffer-offset-alignment") + STORAGE_ALIGNMENT_BYTES
        writes = space[-1] % QUAD == 0 or size_bytes >= WORD_BYTES
        return found if writes and fits + margin <= target.caps.limit("max-storage-buffer-binding-size") else None

    @property
    def _element(self) -> str:
        return bits_of(self.data_type)

    @property
    def _touched(self) -> Interval:
        low, past = strided_span(self.space, self.own, 0, math.prod(self.space))
        return self.base + low, self.base + past

    def call(self, value: KernelOperand, output: KernelOperand, reason: str) -> KernelCall:
        """Return the kernel call."""
        space, own, turned = self.space, self.own, self.turned
        outer = [d for d in range(len(space) - 1) if d != turned]
        steps = strides_of(space)
        row_tiles, column_tiles = (-(-space[d] // _TILE) for d in (turned, -1))
        tiles = row_tiles * column_tiles * math.prod(space[d] for d in outer)
        fields: dict[str, int] = {"tiles": tiles, "row_tiles": row_tiles, "column_tiles": column_tiles}
        fields |= {"rows": space[turned], "columns": space[-1], "column_step": own[-1], "row_step": steps[turned]}
        fields["input_base"] = self.base
        for i, d in enumerate(outer):
            fields |= {f"dim_{i}": space[d], f"input_stride_{i}": own[d], f"output_stride_{i}": steps[d]}
        quads_read = all(n % QUAD == 0 for n in (self.base, space[turned], own[-1], *(own[d] for d in outer)))
        spec = STRIDED.spec(
            [
                Binding(name="input", access="read", element=self._element, quad=quads_read),
                Binding(name="output", access="write", element=self._element, quad=space[-1] % QUAD == 0),
            ],
            [(name, "u32") for name in fields],
            rank=len(outer),
            read="tiled",
        )

        def launch(units: int) -> tuple[dict[str, int], Grid]:
            return {"tiles": units}, grid_1d(units, self.target.caps)

        def reach(first: int, end: int) -> list[Interval]:
            # Tiles touch elements in all parts of the operand, so the elements of all tiles must fit a binding.
            return [self._touched, (0, math.prod(space))]

        return KernelCall(
            spec=spec,
            operands=(value, output),
            uniforms=tuple(fields.values()),
            grid=grid_1d(tiles, self.target.caps),
            reason=f"{reason}, tiles in workgroup memory",
            work=Work(tiles, launch, reach),
        )


def copy_call(value: int, value_type: TensorType, output: int, target: Target) -> KernelCall:
    """Return the kernel call that copies a value."""
    shape = value_type.shape
    return strided_call(value, value_type.data_type, 0, shape, strides_of(shape), output, target, "copy")
