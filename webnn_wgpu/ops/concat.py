"""Concatenation along one dimension."""

from __future__ import annotations

import math
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING

import numpy as np

from ..core.data_types import DATA_TYPES
from ..kernels.element import QUAD
from ..kernels.spec import Binding, Interval, KernelCall, KernelTemplate, Operand, Temp, UniformType
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef
from ._def import Operand as OperandDef
from ._quads import quad_launch, quad_work
from ._strided_copy import STRIDED, copy_call
from ._units import WORD_BYTES, units_of
from .gradients import movement as movement_gradients
from .interfaces.bounds import EXACT
from .interfaces.cost import MOVED
from .interfaces.documentation import MOVEMENT, Documentation
from .interfaces.family import Family
from .interfaces.layout import ChannelsLast, Layout, moved
from .interfaces.movement import Movement, Part
from .strided import MAX_PARTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..costs import Target
    from ..ir.graph import Array, Attrs, Graph, Node
    from ..ir.types import TensorType

CONCATENATION = KernelTemplate("concat", ("inputs", "quad"))

MAX_INPUTS = 7
"""Inputs of one kernel: WebGPU guarantees eight storage buffers, and one is the output."""


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    count = len(call.inputs)
    call.require(
        1 <= count <= MAX_PARTS,
        f"inputs must hold 1 to {MAX_PARTS} operands",
        got=f"{count} operands",
        allowed=f"1..{MAX_PARTS}",
    )
    first = call.input()
    axis = call.axis(call.attrs["axis"], first.rank)
    for i in range(1, count):
        other = call.input(i)
        got = f"inputs[0] {first}, inputs[{i}] {other}"
        call.require(
            other.data_type == first.data_type,
            "all inputs must have the same data type",
            got=got,
            allowed=first.data_type,
        )
        call.require(
            other.rank == first.rank,
            "Incompatible shapes: all inputs must have the same rank",
            got=got,
            allowed=f"rank {first.rank}",
        )
        call.require(
            other.shape[:axis] == first.shape[:axis] and other.shape[axis + 1 :] == first.shape[axis + 1 :],
            f"Incompatible shapes: all dimensions except axis {axis} must be equal",
            got=got,
        )
    size = sum(call.input(i).shape[axis] for i in range(count))
    return (call.output(first.data_type, (*first.shape[:axis], size, *first.shape[axis + 1 :])),)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    return [np.concatenate([a for a in arrays if a is not None], axis=attrs["axis"])]


def _lower(low: Lowering) -> list[KernelCall]:
    output, axis = low.output(), int(low.attrs["axis"])
    outer, inner = math.prod(output.shape[:axis]), math.prod(output.shape[axis + 1 :])
    count = len(low.node.inputs)
    if count == 1:
        return [copy_call(low.value(0), output, low.node.outputs[0], low.target)]
    lengths = [low.input(i).shape[axis] * inner for i in range(count)]
    runs = list(lengths)
    if outer == 1:
        # The last run ends the buffer: its last quad may be filled up from the input's padding into the output's.
        quad = QUAD * WORD_BYTES // DATA_TYPES[output.data_type].size_bytes
        runs[-1] = -(-runs[-1] // quad) * quad
    units = units_of(output.data_type, runs)
    if units.quad:
        return _windows(low, outer, units.lengths)
    assert not low.placed
    units = units_of(output.data_type, lengths)
    return _tree(low, outer, units.element, units.lengths)


def _windows(low: Lowering, outer: int, lengths: Sequence[int]) -> list[KernelCall]:
    """Return calls that each fill their own columns of the output. `lengths` are in quads of words."""
    row, starts = sum(lengths), [0, *accumulate(lengths)]
    calls: list[KernelCall] = []
    first = 0
    while first < len(lengths):
        group = list(takewhile(lambda i: i not in low.placed, range(first, min(first + MAX_INPUTS, len(lengths)))))
        if group:
            operands: list[Operand] = [low.value(i) for i in group]
            window = row, starts[first]
            runs = [lengths[i] for i in group]
            calls.append(_call("bits32", operands, runs, low.node.outputs[0], outer, low.target, window))
        first += len(group) or 1
    return calls


def _parts(graph: Graph, node: Node) -> Sequence[Part]:
    """Return the columns of the output that the operands are, or runs where they follow each other, if all are whole quads."""
    output, axis = graph.type(node.outputs[0]), int(node.attrs["axis"])
    types = [graph.type(value) for value in node.operands]
    columns = axis == output.rank - 1
    lengths = [t.shape[-1] if columns else t.num_elements for t in types]
    if not (columns or math.prod(output.shape[:axis]) == 1) or len(types) == 1 or not units_of(output.data_type, lengths).quad:
        return ()
    rows = [output.shape[-1] if columns else t.shape[-1] for t in types]
    return [Part(node.outputs[0], start, row) for start, row in zip(accumulate([0, *lengths[:-1]]), rows, strict=True)]


def _tree(low: Lowering, outer: int, element: str, lengths: Sequence[int]) -> list[KernelCall]:
    """Return calls that join neighbors until one is left.

    A call writes the whole of its result, so that no quad, and for narrow types no word, has two writers.
    """
    size = int(element.removeprefix("bits")) // 8
    parts: list[tuple[Operand, int]] = [(low.value(i), n) for i, n in enumerate(lengths)]
    calls: list[KernelCall] = []
    while len(parts) > 1:
        joined: list[tuple[Operand, int]] = []
        for first in range(0, len(parts), MAX_INPUTS):
            group = parts[first : first + MAX_INPUTS]
            if len(group) == 1:
                joined += group
                continue
            length = sum(n for _, n in group)
            result: Operand = low.node.outputs[0]
            if len(group) < len(parts):
                result = Temp(f"joined {len(calls)}", outer * length * size)
            calls.append(_call(element, [v for v, _ in group], [n for _, n in group], result, outer, low.target, None))
            joined.append((result, length))
        parts = joined
    return calls


def _call(
    element: str,
    operands: Sequence[Operand],
    lengths: Sequence[int],
    result: Operand,
    outer: int,
    target: Target,
    window: tuple[int, int] | None,
) -> KernelCall:
    """Return the call that joins `operands`. `window` is the length of an output row and the start in it, in quads."""
    width, quad = sum(lengths), window is not None
    launch, grid = quad_launch(outer * width * (QUAD if quad else 1), target)
    fields: list[tuple[str, UniformType, int]] = [*launch, ("width", "u32", width)]
    if window is not None:
        fields.extend((("row", "u32", window[0]), ("start", "u32", window[1])))
    fields.extend((f"length_{k}", "u32", n) for k, n in enumerate(lengths))
    spec = CONCATENATION.spec(
        [
            *(Binding(name=f"input{k}", access="read", element=element, quad=quad) for k in range(len(operands))),
            Binding(name="output", access="write", element=element, quad=True),
        ],
        [(name, type_) for name, type_, _ in fields],
        inputs=len(operands),
        quad=quad,
    )
    reason = "whole quads" if quad else f"runs of {element}"
    unit = QUAD if quad else 1
    row, start = window or (width, 0)
    starts = [0, *accumulate(lengths)]

    def reach(first: int, end: int) -> list[Interval]:
        (top, left), (bottom, right) = divmod(first // unit, width), divmod((end - 1) // unit, width)
        runs: list[Interval] = []
        for k, length in enumerate(lengths):
            low, high = (max(0, min(length, c - starts[k])) for c in (left, right + 1))
            runs.append(((top * length + low) * unit, (bottom * length + high) * unit))
        return [*runs, ((top * row + start + left) * unit, (bottom * row + start + right + 1) * unit)]

    work = quad_work(outer * width * unit, target, reach, range(len(operands)))
    return KernelCall(
        spec=spec, operands=(*operands, result), uniforms=tuple(v for _, _, v in fields), grid=grid, reason=reason, work=work
    )


CONCAT = OpDef(
    name="concat",
    operands=(OperandDef(name="inputs", min_rank=1, variadic=True),),
    infer=_infer,
    reference=_reference,
    lower=_lower,
    attrs=(Attr("axis", "uint"),),
    templates=(CONCATENATION, STRIDED),
    spec="#api-mlgraphbuilder-concat",
    family=Family.MOVEMENT,
    without=("elementwise", "epilogue", "precision"),
    movement=Movement(parts=_parts),
    layout=Layout(lambda attrs, shape: ChannelsLast(moved(attrs, len(shape), axes=("axis",))), led_by="any", others="moved"),
    cost=MOVED,
    bounds=EXACT,
    copies=True,
    documentation=Documentation(
        group=MOVEMENT,
        summary="Join operands along a dimension.",
        arguments={
            "inputs": (
                "One or more operands of one data type and of rank 1 or more. Their shapes may differ along `axis` only."
            ),
            "axis": "The dimension.",
        },
        returns="An operand with their data type. The sizes along `axis` add up.",
        raises="There is no operand, the data types or shapes differ, the axis is not a dimension",
        example="""
            >>> b.concat([x, y], 0).shape
            (4, 3)
        """,
    ),
    gradient=movement_gradients.concat,
)

OPS = (CONCAT,)
