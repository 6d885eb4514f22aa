"""Softmax along one dimension, and its logarithm."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ..core.data_types import FLOATS
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.expression import formula
from ..kernels.spec import Binding, KernelCall, KernelTemplate
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._elementwise import ELEMENTWISE
from ._reduction import VARIANTS, choose_variant, row_call, rows_fit, view_rows
from ._rows import to_type, wide
from ._steps import StepCalls
from .gradients import reductions as reductions_gradients
from .interfaces.bounds import EPSILON, SMALLEST, Bounds, ReferenceResults
from .interfaces.cost import per_element
from .interfaces.documentation import MATRIX, NORMALIZATION_EXTENSIONS, Documentation, Method
from .interfaces.family import Family
from .interfaces.layout import dimensions
from .reduce import REDUCE

SOFTMAX_OPERATIONS = 5
"""Operations for each element: the maximum, a difference, an exponential function, a sum and a quotient."""

SOFTMAX = KernelTemplate("softmax", ("variant", "rows", "logarithm"), VARIANTS)


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x, axis = call.input(), call.attrs["axis"]
    if axis is None:
        # The 2024 form has no axis and takes matrices alone.
        call.require(x.rank == 2, "axis is required unless rank(input) is 2", allowed=f"axis 0..{x.rank - 1}")
        axis = 1
    call.attrs["axis"] = call.axis(axis, x.rank)
    return (x,)


def _reference(
    arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...], *, logarithm: bool
) -> list[Array]:
    x = arrays[0]
    assert x is not None
    axis = attrs["axis"]
    with np.errstate(all="ignore"):
        near = wide(x)
        near = near - near.max(axis=axis, keepdims=True)
        e = np.exp(near)
        total = e.sum(axis=axis, keepdims=True)
        return [to_type(near - np.log(total) if logarithm else e / total, outputs[0])]


def _lower(low: Lowering, *, logarithm: bool) -> list[KernelCall]:
    x = low.input()
    view = view_rows(x.shape, (low.attrs["axis"],))
    if not rows_fit(view, x.data_type, low.caps):
        return _in_steps(low, logarithm=logarithm)
    quads = view.items_are_quads
    variant = choose_variant(low, view, passes=3, quads=quads)
    shape = variant.shape(view, quads=quads).holding(view.items(quads).size)
    resources = [
        (Binding(name="input", access="read", element=x.data_type, quad=quads), low.value(0)),
        (Binding(name="output", access="write", element=x.data_type, quad=quads), low.node.outputs[0]),
    ]
    return [row_call(SOFTMAX, low, view, variant, shape, resources, logarithm=logarithm)]


def _in_steps(low: Lowering, *, logarithm: bool) -> list[KernelCall]:
    steps = StepCalls(low, (low.attrs["axis"],))
    x = steps.operand(0)
    largest = steps.total("max", x)
    exponentials = steps.formula(formula("exp_f32(x - largest)", ("x", "largest")), x, largest)
    total = steps.total("sum", exponentials)
    if logarithm:
        steps.formula(formula("(x - largest) - log_f32(total)", ("x", "largest", "total")), x, largest, total, result=0)
    else:
        steps.formula(formula("exponential / total", ("exponential", "total")), exponentials, total, result=0)
    return steps.calls


def _bounds(found: ReferenceResults) -> list[Array]:
    x = found.operand()
    finite = x[np.isfinite(x)].astype(np.float64)
    spread = float(np.ptp(finite)) if finite.size else 0.0
    count = x.shape[found.node.attrs["axis"]]
    return [np.nan_to_num(EPSILON * (count + 8 + spread) * found.expected[0].astype(np.float64)) + SMALLEST]


def _logarithm_bounds(found: ReferenceResults) -> list[Array]:
    # A relative error of the sum is an absolute error of its logarithm. x - max, the logarithm and the result are rounded.
    size = np.abs(np.nan_to_num(found.expected[0].astype(np.float64), posinf=0, neginf=0))
    return [EPSILON * (found.operand().shape[found.node.attrs["axis"]] + 8 + 3 * size)]


def _op(name: str, axis: Attr, documentation: Documentation, *, logarithm: bool, spec: str = "") -> OpDef:
    return OpDef(
        name=name,
        operands=(Operand(name="input", data_types=FLOATS, min_rank=1),),
        infer=_infer,
        reference=partial(_reference, logarithm=logarithm),
        lower=partial(_lower, logarithm=logarithm),
        attrs=(axis,),
        templates=(SOFTMAX, REDUCE, ELEMENTWISE),
        spec=spec,
        family=Family.NORMALIZATION,
        without=("elementwise", "epilogue", "movement", "precision"),
        layout=dimensions(axes=("axis",)),
        cost=per_element(SOFTMAX_OPERATIONS),
        bounds=Bounds(allowed=_logarithm_bounds if logarithm else _bounds),
        gradient=reductions_gradients.log_softmax if logarithm else reductions_gradients.softmax,
        documentation=documentation,
    )


_SOFTMAX = Documentation(
    group=MATRIX,
    summary="exp(x - max) / sum(exp(x - max)) along a dimension.",
    arguments={
        "input": (
            "{types}, with rank 1 or more. Without it the method returns an MLActivation, which can be applied to 2-D results "
            "only."
        ),
        "axis": "The dimension, counted from 0. It may be left out for a 2-D input, where it is 1.",
    },
    returns="An operand with the input's data type and shape. Without `input`, an MLActivation.",
    raises="The axis is not a dimension of the input or is left out, the data type is not allowed",
    numerics="Exponentials do not overflow. All of a row is NaN if it holds NaN or infinity, or only -infinity.",
    example="""
        >>> b.softmax(x, 1).shape
        (2, 3)
    """,
    method=Method(activation=True, optional=("axis",), through="_softmax"),
)

_LOG_SOFTMAX = Documentation(
    group=NORMALIZATION_EXTENSIONS,
    summary="The logarithm of softmax: `x - max - log(sum(exp(x - max)))` along a dimension.",
    arguments={
        "input": "{types}, with rank 1 or more.",
        "axis": "The dimension, counted from 0.",
    },
    returns="An operand with the input's data type and shape.",
    raises="The axis is not a dimension of the input, the data type is not allowed",
    numerics=(
        "The result is finite even if softmax is too small for a number. All of a row is NaN if it holds NaN or infinity, or "
        "only -infinity."
    ),
    example="""
        >>> b.ext.log_softmax(x, 1)
        MLOperand(float32[2, 3])
    """,
)


OPS = (
    _op("softmax", Attr("axis", "uint", None), _SOFTMAX, logarithm=False, spec="#api-mlgraphbuilder-softmax-method"),
    _op("x.log_softmax", Attr("axis", "uint"), _LOG_SOFTMAX, logarithm=True),
)
