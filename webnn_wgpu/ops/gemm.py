"""The operator gemm: alpha * A' * B' + beta * C, with A' and B' transposed or not. A zero alpha or beta skips nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.data_types import FLOATS, cast_number
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.spec import KernelCall
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._factors import Factor
from ._product import TEMPLATES, product_calls
from ._product_kernel import Addend
from ._rows import to_type, wide
from ._shapes import unidirectional
from .gradients import products as products_gradients
from .interfaces.bounds import sums
from .interfaces.cost import Cost
from .interfaces.documentation import MATRIX, Documentation, Method
from .interfaces.epilogue import TakesEpilogue
from .interfaces.family import Family
from .interfaces.precision import Precision


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    a, b, c = call.input(0), call.input(1), call.inputs[2]
    M, K = reversed(a.shape) if call.attrs["a_transpose"] else a.shape
    rows, N = reversed(b.shape) if call.attrs["b_transpose"] else b.shape
    flags = ", ".join(f"{n}={call.attrs[n]}" for n in ("a_transpose", "b_transpose"))
    call.require(
        K == rows,
        "Incompatible shapes for gemm: the columns of a must equal the rows of b, both once transposed",
        got=f"{call.describe()}, {flags}",
        allowed=f"b with {K} rows",
    )
    if c is not None:
        call.require(
            unidirectional(c.shape, (M, N)),
            "Incompatible shapes for gemm: c must broadcast to the result",
            allowed=f"a shape that broadcasts to [{M}, {N}]",
        )
    return (call.output(a.data_type, (M, N)),)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    a, b, c = arrays
    assert a is not None
    assert b is not None
    alpha, beta = (cast_number(attrs[n], out[0].data_type) for n in ("alpha", "beta"))
    left = wide(a.T if attrs["a_transpose"] else a)
    right = wide(b.T if attrs["b_transpose"] else b)
    with np.errstate(all="ignore"):
        result = alpha * (left @ right)
        return [to_type(result if c is None else result + beta * wide(c), out[0])]


def _lower(low: Lowering) -> list[KernelCall]:
    attrs = low.attrs
    alpha, beta = (float(cast_number(attrs[n], low.output().data_type)) for n in ("alpha", "beta"))
    a, b = Factor.of(low, 0, attrs["a_transpose"]), Factor.of(low, 1, attrs["b_transpose"])
    addend = Addend(low.value(2), low.input(2).data_type, low.input(2).shape, beta) if low.has(2) else None
    return product_calls(low, a, b, alpha=alpha, addend=addend)


def _operations(attrs: Attrs, types: Sequence[TensorType], output: TensorType) -> int:
    length = types[0].shape[0 if attrs["a_transpose"] else -1]
    return 2 * output.num_elements * length + (output.num_elements if len(types) > 2 else 0)


def _terms(attrs: Attrs, operands: Sequence[Array | None]) -> int:
    a = operands[0]
    assert a is not None
    return a.shape[-2 if attrs["a_transpose"] else -1] + 2


GEMM = OpDef(
    name="gemm",
    operands=(
        Operand(name="a", data_types=FLOATS, min_rank=2, max_rank=2),
        Operand(name="b", data_types=FLOATS, same_as="a", min_rank=2, max_rank=2),
        Operand(name="c", data_types=FLOATS, same_as="a", max_rank=2, required=False),
    ),
    infer=_infer,
    reference=_reference,
    lower=_lower,
    attrs=(
        Attr("alpha", "float", 1.0),
        Attr("beta", "float", 1.0),
        Attr("a_transpose", "bool", False),
        Attr("b_transpose", "bool", False),
    ),
    templates=TEMPLATES,
    spec="#api-mlgraphbuilder-gemm",
    family=Family.PRODUCT,
    without=("elementwise", "movement", "layout"),
    epilogue=TakesEpilogue(several=True),
    precision=Precision(weights=(1,)),
    cost=Cost(_operations),
    bounds=sums(_terms),
    documentation=Documentation(
        group=MATRIX,
        summary="`alpha * (A @ B) + beta * C`, where A and B are `a` and `b`, transposed if an option says so.",
        arguments={
            "a": "{types}, with the shape [M, K], or [K, M] with `a_transpose`.",
            "b": "The data type of `a`, with the shape [K, N], or [N, K] with `b_transpose`.",
            "c": "The data type of `a`, with a shape that broadcasts to [M, N]. A vector has one element per column.",
            "alpha": "Finite.",
            "beta": "Finite.",
            "a_transpose": "Whether `a` is transposed.",
            "b_transpose": "Whether `b` is transposed.",
        },
        returns="An operand with their data type and the shape [M, N].",
        raises=(
            "A rank is not 2, the two values of K differ, `c` does not broadcast to [M, N], data types differ or are not "
            "allowed"
        ),
        example="""
            >>> b.gemm(x, y, b_transpose=True).shape
            (2, 2)
        """,
        method=Method(pywebnn=("c", "alpha", "beta", "a_transpose", "b_transpose")),
    ),
    gradient=products_gradients.gemm,
)

OPS = (GEMM,)
