"""Product of normalized rows with a matrix, which passes make of a layer or RMS normalization and the products that read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.data_types import cast_number
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.spec import KernelCall
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._factors import Factor
from ._normalization import normalized, normalized_off
from ._product import NORMALIZING, Normal, tiled_product_calls
from ._rows import to_type, wide
from ._shapes import broadcast
from .interfaces.bounds import EPSILON, Bounds, ReferenceResults
from .interfaces.cost import Cost
from .interfaces.epilogue import TakesEpilogue
from .interfaces.family import Family
from .matmul import product_operations, several_matrices

LONGEST = 1 << 14
"""The maximum number of terms of a sum. Roundings of the kernel's mean of squares might hide the variance of a longer row."""


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    a, b = call.input(0), call.input(1)
    call.require(a.shape[-1] == b.shape[-2], "the last dimension of a must equal the second last of b")
    call.require(a.shape[-1] <= LONGEST, f"sums must have at most {LONGEST} terms")
    batch = broadcast(a.shape[:-2], b.shape[:-2])
    if batch is None:
        raise call.fail("leading dimensions must broadcast together", got=call.describe())
    return (call.output("float32", (*batch, a.shape[-2], b.shape[-1])),)


def _rows(a: Array, attrs: Attrs, output: TensorType) -> Any:
    return normalized(a, (a.ndim - 1,), None, None, attrs, output, centered=attrs["centered"])


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    a, b = arrays
    assert a is not None
    assert b is not None
    with np.errstate(all="ignore"):
        return [to_type(_rows(a, attrs, out[0]) @ wide(b), out[0])]


def _lower(low: Lowering) -> list[KernelCall]:
    epsilon = float(cast_number(low.attrs["epsilon"], low.output().data_type))
    normal = Normal("layer" if low.attrs["centered"] else "rms", epsilon)
    return tiled_product_calls(low, Factor.of(low, 0), Factor.of(low, 1), normal)


def _bounds(found: ReferenceResults) -> list[Array]:
    a, b = (None if x is None else x.astype(np.float64) for x in found.operands)
    assert a is not None
    assert b is not None
    attrs = found.node.attrs
    rows, off = normalized_off(a, (a.ndim - 1,), float(cast_number(attrs["epsilon"], "float32")), centered=attrs["centered"])
    return [np.asarray((off + (a.shape[-1] + 2) * EPSILON * np.abs(rows)) @ np.abs(b))]


NORMALIZED_MATMUL = OpDef(
    name="normalizedMatmul",
    operands=(
        Operand(name="a", data_types=("float32",), min_rank=2),
        Operand(name="b", same_as="a", data_types=("float32",), min_rank=2),
    ),
    infer=_infer,
    reference=_reference,
    lower=_lower,
    attrs=(Attr("epsilon", "float", 1e-5), Attr("centered", "bool", True)),
    templates=NORMALIZING,
    family=Family.PRODUCT,
    without=("elementwise", "movement", "layout", "precision", "gradient"),
    epilogue=TakesEpilogue(vectors=several_matrices, several=True),
    cost=Cost(lambda attrs, types, output: product_operations(attrs, types, output) + 8 * types[0].num_elements),
    bounds=Bounds(allowed=_bounds),
    internal=True,
)
"""The matrix product of `a`, whose rows are normalized as layerNormalization does without scale and bias, with `b`.

Unless `centered`, the mean is taken for 0. Otherwise the columns of `b` add up to 0 but for roundings. Kernels then subtract
any number near the mean.
"""

OPS = (NORMALIZED_MATMUL,)
