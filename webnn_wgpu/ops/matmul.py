"""The operator matmul."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.data_types import FLOATS
from ..ir.graph import Array, Attrs, Graph, Node
from ..ir.types import TensorType
from ..kernels.element import QUAD
from ..kernels.spec import KernelCall
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._factors import Factor, heads_first, rows_first
from ._product import TEMPLATES, Triangle, product_calls
from ._rows import to_type, wide
from ._shapes import broadcast
from .gradients import products as products_gradients
from .interfaces.bounds import sums
from .interfaces.cost import Cost
from .interfaces.documentation import MATRIX, Documentation
from .interfaces.epilogue import TakesEpilogue
from .interfaces.family import Family
from .interfaces.precision import Precision


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    a, b = call.input(0), call.input(1)
    call.require(
        a.shape[-1] == b.shape[-2],
        "Incompatible shapes for matmul: the last dimension of a must equal the second last of b",
        allowed=f"b with {a.shape[-1]} rows",
    )
    batch = broadcast(a.shape[:-2], b.shape[:-2])
    if batch is None:
        raise call.fail(
            "Incompatible shapes for matmul: leading dimensions must broadcast together, each equal or 1",
            got=call.describe(),
        )
    return (call.output(a.data_type, (*batch, a.shape[-2], b.shape[-1])),)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    a, b = arrays
    assert a is not None
    assert b is not None
    with np.errstate(all="ignore"):
        return [to_type(wide(a) @ wide(b), out[0])]


def _lower(low: Lowering) -> list[KernelCall]:
    return product_calls(low, Factor.of(low, 0), Factor.of(low, 1))


def several_matrices(graph: Graph, node: Node) -> bool:
    """Return whether each matrix of the result is one of the kernel's: with one right factor their rows are taken as one's."""
    return math.prod(graph.type(node.operands[1]).shape[:-2]) > 1


def product_operations(attrs: Attrs, types: Sequence[TensorType], output: TensorType) -> int:
    """Return the operations of a product whose left factor has the summed dimension last."""
    return 2 * output.num_elements * types[0].shape[-1]


def _terms(attrs: Attrs, operands: Sequence[Array | None]) -> int:
    a = operands[0]
    assert a is not None
    return a.shape[-1]


MATMUL = OpDef(
    name="matmul",
    operands=(Operand(name="a", data_types=FLOATS, min_rank=2), Operand(name="b", data_types=FLOATS, same_as="a", min_rank=2)),
    infer=_infer,
    reference=_reference,
    lower=_lower,
    templates=TEMPLATES,
    spec="#api-mlgraphbuilder-matmul",
    family=Family.PRODUCT,
    without=("elementwise", "movement", "layout"),
    epilogue=TakesEpilogue(vectors=several_matrices, several=True),
    precision=Precision(weights=(1,)),
    cost=Cost(product_operations),
    bounds=sums(_terms),
    documentation=Documentation(
        group=MATRIX,
        summary="Matrix product over the last two dimensions. The other dimensions broadcast as in numpy.",
        arguments={
            "a": "{types}, with the shape [..., M, K].",
            "b": "The data type of `a`, with the shape [..., K, N].",
        },
        returns="An operand with their data type and the shape [..., M, N].",
        raises=(
            "A rank is below 2, the two values of K differ, the other dimensions do not broadcast, data types differ or "
            "are not allowed"
        ),
        example="""
            >>> b.matmul(x, b.transpose(y)).shape
            (2, 2)
        """,
    ),
    gradient=products_gradients.matmul,
)


def _infer_transposed(call: OpCall) -> tuple[TensorType, ...]:
    a, b = (_row_major(call.input(i), call.attrs, side) for i, side in enumerate("ab"))
    call.require(a.shape[-1] == b.shape[-2], "the sums of both factors must have the same length", got=call.describe())
    batch = broadcast(a.shape[:-2], b.shape[:-2])
    if batch is None:
        raise call.fail("leading dimensions must broadcast together", got=call.describe())
    return (call.output(a.data_type, rows_first((*batch, a.shape[-2], b.shape[-1]), call.attrs["heads"])),)


def _row_major(type_: TensorType, attrs: Attrs, side: str) -> TensorType:
    """Return the type of a factor, whose matrices are not transposed and follow each other."""
    *batch, rows, columns = heads_first(type_.shape, attrs[f"{side}_heads"])
    return TensorType(type_.data_type, (*batch, columns, rows) if attrs[f"{side}_transpose"] else (*batch, rows, columns))


def _reference_transposed(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    factors: list[Array | None] = []
    for side, array in zip("ab", arrays, strict=True):
        assert array is not None
        by_head = np.moveaxis(array, -2 - attrs[f"{side}_heads"], -2)
        factors.append(by_head.swapaxes(-1, -2) if attrs[f"{side}_transpose"] else by_head)
    (result,) = _reference(factors, attrs, out)
    return [np.moveaxis(result, -2, -2 - attrs["heads"])]


def _lower_transposed(low: Lowering) -> list[KernelCall]:
    attrs = low.attrs
    factors = [Factor.of(low, i, attrs[f"{side}_transpose"], heads=attrs[f"{side}_heads"]) for i, side in enumerate("ab")]
    triangle = Triangle(low.attrs["triangle"], low.attrs["diagonal"]) if low.attrs["triangle"] else None
    return product_calls(low, *factors, triangle=triangle, heads=attrs["heads"])


def _length(attrs: Attrs, a: Sequence[int]) -> int:
    """Return the number of terms of a sum, from the shape of the left factor."""
    return a[-2 - attrs["a_heads"] if attrs["a_transpose"] else -1]


def reads_heads(type_: TensorType) -> bool:
    """Return whether kernels read heads of a type where they are: lanes read whole quads of their rows."""
    return type_.shape[-1] % QUAD == 0


def _takes_vectors(graph: Graph, node: Node) -> bool:
    return not node.attrs["heads"] and several_matrices(graph, node)


def _terms_transposed(attrs: Attrs, operands: Sequence[Array | None]) -> int:
    a = operands[0]
    assert a is not None
    return _length(attrs, a.shape)


TRANSPOSED_MATMUL = OpDef(
    name="transposedMatmul",
    operands=MATMUL.operands,
    infer=_infer_transposed,
    reference=_reference_transposed,
    lower=_lower_transposed,
    attrs=(
        *(Attr(name, "bool", False) for name in ("a_transpose", "b_transpose")),
        *(Attr(name, "int", 0) for name in ("a_heads", "b_heads", "heads")),
        Attr("triangle", "enum", "", ("", "left", "result")),
        Attr("diagonal", "int", 0),
    ),
    templates=TEMPLATES,
    family=Family.PRODUCT,
    without=("elementwise", "movement", "layout", "gradient"),
    epilogue=TakesEpilogue(vectors=_takes_vectors, several=True),
    precision=Precision(weights=(1,)),
    cost=Cost(lambda attrs, types, output: 2 * output.num_elements * _length(attrs, types[0].shape)),
    bounds=sums(_terms_transposed),
    internal=True,
)
"""The matrix product over the last two dimensions of factors that are stored transposed, which only passes make.

The matrices of the last `a_heads`, `b_heads` and `heads` leading dimensions of a factor or the result lie beside each other in
rows: [..., rows, *heads, columns].

With a `triangle`, elements whose column exceeds their row by more than `diagonal` are 0 in the left factor as it is stored, or
may be 0 instead of the product in the result. Kernels may skip them.
"""

OPS = (MATMUL, TRANSPOSED_MATMUL)
