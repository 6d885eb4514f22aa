"""Operators without a kernel: the output has the input's memory, with another shape or data type."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..core.data_types import ANY, DATA_TYPES, MAX_DIMENSION
from ._attrs import Attr
from ._def import OpCall, OpDef, Operand
from .gradients import elementwise as elementwise_gradients
from .gradients import movement as movement_gradients
from .interfaces.bounds import EXACT
from .interfaces.cost import MOVED
from .interfaces.documentation import BITWISE_EXTENSIONS, VIEWS, Documentation
from .interfaces.family import Family
from .interfaces.layout import ChannelsLast, Layout, moved
from .interfaces.movement import MOVES, Move, Movement, Stepped, divided, joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ir.graph import Array, Attrs
    from ..ir.types import TensorType


def _infer_reshape(call: OpCall) -> tuple[TensorType, ...]:
    x, shape = call.input(), call.attrs["new_shape"]
    for dim in shape:
        call.require(
            0 < dim <= MAX_DIMENSION,
            "every item of new_shape must be a valid dimension",
            got=f"new_shape={list(shape)}",
            allowed=f"1..{MAX_DIMENSION}",
        )
    output = call.output(x.data_type, shape)
    call.require(
        output.num_elements == x.num_elements,
        "Reshape requires same number of elements",
        got=f"new_shape={list(shape)} ({output.num_elements} elements), input {x}",
        allowed=f"a shape of {x.num_elements} elements",
    )
    return (output,)


def _same_memory(arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
    x = arrays[0]
    assert x is not None
    return [x.reshape(outputs[0].shape)]


def _infer_bitcast(call: OpCall) -> tuple[TensorType, ...]:
    x, wanted = call.input(), call.attrs["data_type"]
    same = [name for name, found in DATA_TYPES.items() if found.bits == DATA_TYPES[x.data_type].bits]
    call.require(
        wanted in same,
        "data_type must have as many bits as the input's",
        got=f"data_type={wanted!r}, input {x}",
        allowed=", ".join(same),
    )
    return (x.with_data_type(wanted),)


def _same_bits(arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
    x = arrays[0]
    assert x is not None
    return [np.ascontiguousarray(x).view(outputs[0].numpy).reshape(outputs[0].shape)]


def _follow_reshape(source: Stepped, move: Move) -> Stepped | None:
    dims = divided(joined(source.dims), move.after)
    return None if dims is None else Stepped(source.offset, dims)


def _reshaped_layout(attrs: Attrs, shape: tuple[int, ...]) -> ChannelsLast | None:
    after: tuple[int, ...] = attrs["new_shape"]
    if math.prod(shape[2:]) == 1:
        return ChannelsLast({}, result=False)
    if len(after) < 3 or shape[:2] != after[:2]:
        return None
    return ChannelsLast(moved(attrs, len(after), items=("new_shape",)))


RESHAPE = OpDef(
    name="reshape",
    operands=(Operand(name="input"),),
    infer=_infer_reshape,
    reference=_same_memory,
    lower=None,
    attrs=(Attr("new_shape", "uints"),),
    spec="#api-mlgraphbuilder-reshape-method",
    family=Family.MOVEMENT,
    without=("elementwise", "epilogue", "precision"),
    movement=Movement(follow=_follow_reshape, permutes=True),
    layout=Layout(_reshaped_layout),
    cost=MOVED,
    bounds=EXACT,
    copies=True,
    documentation=Documentation(
        group=VIEWS,
        summary="The same elements, in the same row-major order, in another shape.",
        arguments={
            "input": "{types}, with any shape.",
            "new_shape": "The output's shape, with as many elements. [] makes a scalar of one element.",
        },
        returns="An operand with the input's data type and the shape `new_shape`.",
        raises="The number of elements differs, a size is 0",
        example="""
            >>> b.reshape(x, [3, 2]).shape
            (3, 2)
        """,
    ),
    gradient=movement_gradients.reshape,
)

IDENTITY = OpDef(
    name="identity",
    operands=(Operand(name="input"),),
    infer=lambda call: (call.input(),),
    reference=_same_memory,
    lower=None,
    spec="#api-mlgraphbuilder-unary",
    family=Family.MOVEMENT,
    without=("elementwise", "epilogue", "layout", "precision"),
    movement=MOVES,
    cost=MOVED,
    bounds=EXACT,
    copies=True,
    documentation=Documentation(
        group=VIEWS,
        summary="The input itself, as the output of an operator.",
        details="An input or a constant can be an output of a graph only through this operator.",
        arguments={
            "input": "{types}, with any shape.",
        },
        returns="An operand with the input's data type and shape.",
        raises="The input is not an operand",
        example="""
            >>> b.identity(x).shape
            (2, 3)
        """,
    ),
    gradient=elementwise_gradients.SAME,
)

BITCAST = OpDef(
    name="x.bitcast",
    operands=(Operand(name="input"),),
    infer=_infer_bitcast,
    reference=_same_bits,
    lower=None,
    attrs=(Attr("data_type", "data_type"),),
    output_types=ANY,
    family=Family.MOVEMENT,
    without=("elementwise", "epilogue", "layout", "precision", "gradient"),
    movement=MOVES,
    cost=MOVED,
    bounds=EXACT,
    documentation=Documentation(
        group=BITWISE_EXTENSIONS,
        summary="The same bits, read as another data type. It costs nothing.",
        arguments={
            "input": "{types}, with any shape.",
            "data_type": "The output's data type, which must have as many bits as the input's.",
        },
        returns="An operand of data type `data_type` with the input's shape.",
        raises="The data type has another number of bits",
        example="""
            >>> b.ext.bitcast(x, "uint32")
            MLOperand(uint32[2, 3])
        """,
    ),
)

OPS = (RESHAPE, IDENTITY, BITCAST)
