"""Softmax along one dimension."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.data_types import FLOATS
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.expression import Formula
from ..kernels.spec import Binding, KernelCall, KernelTemplate
from ._attrs import Attr
from ._def import Call, Lowering, OpDef, Operand
from ._elementwise import ELEMENTWISE
from ._reduction import VARIANTS, choose_variant, row_call, rows_fit, view_rows
from ._rows import to_type, wide
from ._steps import Steps
from .reduce import REDUCE

SOFTMAX = KernelTemplate("softmax", ("variant", "rows"), VARIANTS)


def _infer(call: Call) -> tuple[TensorType, ...]:
    x, axis = call.input(), call.attrs["axis"]
    if axis is None:
        # The 2024 form has no axis and takes matrices alone.
        call.require(x.rank == 2, "axis is required unless rank(input) is 2", allowed=f"axis 0..{x.rank - 1}")
        axis = 1
    call.attrs["axis"] = call.axis(axis, x.rank)
    return (x,)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
    x = arrays[0]
    assert x is not None
    with np.errstate(all="ignore"):
        e = wide(x)
        e = np.exp(e - e.max(axis=attrs["axis"], keepdims=True))
        return [to_type(e / e.sum(axis=attrs["axis"], keepdims=True), outputs[0])]


def _lower(low: Lowering) -> list[KernelCall]:
    x = low.input()
    view = view_rows(x.shape, (low.attrs["axis"],))
    if not rows_fit(view, x.data_type, low.caps):
        return _in_steps(low)
    quads = view.items_are_quads
    variant = choose_variant(low, view, passes=3, quads=quads)
    shape = variant.shape(view, quads=quads).holding(view.items(quads).size)
    resources = [
        (Binding("input", "read", x.data_type, quad=quads), low.value(0)),
        (Binding("output", "write", x.data_type, quad=quads), low.node.outputs[0]),
    ]
    return [row_call(SOFTMAX, low, view, variant, shape, resources)]


def _in_steps(low: Lowering) -> list[KernelCall]:
    steps = Steps(low, (low.attrs["axis"],))
    x = steps.operand(0)
    exponentials = steps.formula(Formula("exp_f32({0} - {1})", ("exp",)), x, steps.total("max", x))
    steps.formula(Formula("{0} / {1}"), exponentials, steps.total("sum", exponentials), result=True)
    return steps.calls


OPS = (
    OpDef(
        "softmax",
        (Operand("input", FLOATS, min_rank=1),),
        _infer,
        _reference,
        _lower,
        attrs=(Attr("axis", "uint", None),),
        templates=(SOFTMAX, REDUCE, ELEMENTWISE),
        spec="#api-mlgraphbuilder-softmax-method",
    ),
)
