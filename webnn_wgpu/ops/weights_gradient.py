"""The gradient of attention's scores from that of its weights: one kernel of rows, which passes make."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.spec import Binding, KernelCall, KernelTemplate
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef
from ._def import Operand as OperandDef
from ._reduction import VARIANTS, Field, choose_variant, row_call, view_rows
from ._rows import to_type, wide
from .interfaces.bounds import EPSILON, SMALLEST, Bounds, ReferenceResults
from .interfaces.cost import per_element
from .interfaces.family import Family

_TEMPLATE = KernelTemplate("weights_gradient", ("variant", "rows"), VARIANTS)

_MOST_HELD = 8
"""Items of the weights and of their gradient that an invocation keeps in registers."""

_PASSES = 2
"""The number of times that the kernel reads a row that its registers do not hold."""


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    weights, gradient = call.input(0), call.input(1)
    call.require(gradient == weights, "gradient must have the type of weights", allowed=str(weights))
    return (weights,)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
    weights, gradient = arrays
    assert weights is not None
    assert gradient is not None
    with np.errstate(all="ignore"):
        p, f = wide(weights), wide(gradient)
        return [to_type(p * (f - (p * f).sum(axis=-1, keepdims=True)) * attrs["scale"], outputs[0])]


def _lower(low: Lowering) -> list[KernelCall]:
    x = low.input()
    view = view_rows(x.shape, (x.rank - 1,))
    quads = view.items_are_quads
    variant = choose_variant(low, view, passes=_PASSES, quads=quads)
    items, shape = view.items(quads), variant.shape(view, quads=quads)
    if items.size <= _MOST_HELD * shape.lanes:
        shape = shape.holding(items.size)
    fields: list[Field] = [("scale", "f32", low.attrs["scale"])]
    resources: list[tuple[Binding, int]] = [
        (Binding(name="input", access="read", quad=quads), low.value(0)),
        (Binding(name="gradient", access="read", quad=quads), low.value(1)),
        (Binding(name="output", access="write", quad=quads), low.node.outputs[0]),
    ]
    shape = shape.in_octets(low, view, resources)
    return [row_call(_TEMPLATE, low, view, variant, shape, resources, fields, passes=_PASSES)]


def _bounds(found: ReferenceResults) -> list[Array]:
    weights, gradient = (np.abs(found.operand(i).astype(np.float64)) for i in range(2))
    relative = EPSILON * (weights.shape[-1] + 8)
    sizes = abs(found.node.attrs["scale"]) * weights * (gradient + (weights * gradient).sum(axis=-1, keepdims=True))
    return [np.nan_to_num(relative * sizes) + SMALLEST]


WEIGHTS_GRADIENT = OpDef(
    name="weightsGradient",
    operands=(
        OperandDef(name="weights", data_types=("float32",), min_rank=1),
        OperandDef(name="gradient", data_types=("float32",), min_rank=1),
    ),
    infer=_infer,
    reference=_reference,
    lower=_lower,
    attrs=(Attr("scale", "float", 1.0),),
    templates=(_TEMPLATE,),
    family=Family.ATTENTION,
    without=("elementwise", "epilogue", "movement", "layout", "precision", "gradient"),
    cost=per_element(5),
    bounds=Bounds(allowed=_bounds),
    internal=True,
)
"""The gradient of scores, `scale` times, from weights that are their softmax and from the gradient of these."""

OPS = (WEIGHTS_GRADIENT,)
