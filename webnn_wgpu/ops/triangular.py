"""The upper or lower triangle of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..kernels.element import QUAD, bits_of
from ..kernels.spec import Binding, KernelCall, KernelTemplate, UniformType
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._quads import quad_launch, quad_work
from .gradients import movement as movement_gradients
from .interfaces.bounds import EXACT
from .interfaces.cost import MOVED
from .interfaces.documentation import MOVEMENT, Documentation, Method
from .interfaces.family import Family
from .interfaces.movement import MOVES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ir.graph import Array, Attrs
    from ..ir.types import TensorType

TRIANGULAR = KernelTemplate("triangular", ("whole_quads",))


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    return (call.input(),)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x = arrays[0]
    assert x is not None
    height, width = x.shape[-2:]
    diagonal = attrs["diagonal"]
    keep = ~np.tri(height, width, diagonal - 1, bool) if attrs["upper"] else np.tri(height, width, diagonal, bool)
    return [np.where(keep, x, x.dtype.type(0))]


def _lower(low: Lowering) -> list[KernelCall]:
    x = low.input()
    height, width = x.shape[-2:]
    # Beyond these bounds nothing changes, and within them the shader's differences do not overflow.
    diagonal = max(-height, min(width, low.attrs["diagonal"]))
    # column - row <= d is row - column >= -d: one shader serves both triangles.
    sign = 1 if low.attrs["upper"] else -1
    launch, grid = quad_launch(x.num_elements, low.target)
    fields: list[tuple[str, UniformType, int]] = [
        *launch,
        ("height", "u32", height),
        ("width", "u32", width),
        ("sign", "i32", sign),
        ("bound", "i32", sign * diagonal),
    ]
    element = bits_of(x.data_type)
    spec = TRIANGULAR.spec(
        [
            Binding(name="input", access="read", element=element, quad=True),
            Binding(name="output", access="write", element=element, quad=True),
        ],
        [(name, type_) for name, type_, _ in fields],
        whole_quads=width % QUAD == 0,
    )
    reason = f"{'upper' if sign == 1 else 'lower'} triangle, diagonal {diagonal}"
    work = quad_work(x.num_elements, low.target, lambda first, end: [(first, end)] * 2)
    return [
        KernelCall(
            spec=spec,
            operands=(low.value(0), low.node.outputs[0]),
            uniforms=tuple(v for _, _, v in fields),
            grid=grid,
            reason=reason,
            work=work,
        )
    ]


OPS = (
    OpDef(
        name="triangular",
        operands=(Operand(name="input", min_rank=2),),
        infer=_infer,
        reference=_reference,
        lower=_lower,
        attrs=(Attr("upper", "bool", True), Attr("diagonal", "int", 0)),
        templates=(TRIANGULAR,),
        spec="#api-mlgraphbuilder-triangular",
        family=Family.MOVEMENT,
        without=("elementwise", "epilogue", "layout", "precision"),
        movement=MOVES,
        cost=MOVED,
        bounds=EXACT,
        documentation=Documentation(
            group=MOVEMENT,
            summary="Keep the upper or the lower triangle of the last two dimensions and set the rest to 0.",
            arguments={
                "input": "{types}, with rank 2 or more.",
                "upper": "Whether the upper triangle is kept instead of the lower one.",
                "diagonal": (
                    "The diagonal where the triangle ends: 0 is the main diagonal, and larger numbers lie further up and right."
                ),
            },
            returns="An operand with the input's data type and shape.",
            raises="The rank is below 2, the diagonal is not a 32-bit integer",
            numerics="Removed elements become exactly 0, even if they are NaN.",
            example="""
                >>> b.triangular(x, upper=False, diagonal=-1).shape
                (2, 3)
            """,
            method=Method(positional=("upper", "diagonal")),
        ),
        gradient=movement_gradients.triangular,
    ),
)
