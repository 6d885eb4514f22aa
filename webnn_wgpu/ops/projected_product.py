"""Product of the channels of two images with a matrix, which passes make of two 1 x 1 convolutions that are added up.

A residual block that changes the size of its image ends with such a sum. One convolution is the last of the block. The other
one, its projection shortcut, reads the block's input. (He et al., Deep Residual Learning for Image Recognition, 2015.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.data_types import FLOATS
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import QUAD
from ..kernels.spec import KernelCall
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._factors import Factor
from ._product import PROJECTING, Projection, tiled_product_calls
from ._rows import to_type, wide
from .interfaces.bounds import sums
from .interfaces.cost import Cost
from .interfaces.epilogue import TakesEpilogue
from .interfaces.family import Family
from .interfaces.precision import Precision

CHANNELS = QUAD
"""Both images have a multiple of so many channels."""


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    a, image, b = (call.input(i) for i in range(3))
    strides = call.attrs["strides"]
    call.require(len(strides) == 2 and min(strides) > 0, "strides must be two positive numbers", got=str(list(strides)))
    images, *extent, _ = image.shape
    got, steps = call.describe(), a.shape[-1] + image.shape[-1]
    read = (images, *(-(-n // step) for n, step in zip(extent, strides, strict=True)))
    call.require(a.shape[:-1] == read, "the image must have a pixel for each of a", got=got, allowed=f"{list(read)}")
    call.require(
        a.shape[-1] % CHANNELS == image.shape[-1] % CHANNELS == 0, f"channels must be multiples of {CHANNELS}", got=got
    )
    call.require(b.shape[0] == steps, "b must have a row for each channel of both", got=got, allowed=f"{steps} rows")
    return (call.output(a.data_type, (*a.shape[:-1], b.shape[1])),)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    a, image, b = arrays
    assert a is not None
    assert image is not None
    assert b is not None
    down, right = attrs["strides"]
    with np.errstate(all="ignore"):
        return [to_type(np.concatenate([wide(a), wide(image[:, ::down, ::right])], axis=-1) @ wide(b), out[0])]


def _lower(low: Lowering) -> list[KernelCall]:
    a, image = low.input(0), low.input(1)
    projection = Projection(
        value=low.value(1),
        channels=image.shape[-1],
        input=(image.shape[1], image.shape[2]),
        output=(a.shape[1], a.shape[2]),
        strides=low.attrs["strides"],
    )
    b = Factor.of(low, 2)
    rows = Factor(low.value(0), a.data_type, (math.prod(a.shape[:-1]), b.rows))
    return tiled_product_calls(low, rows, b, projection)


def _operations(attrs: Attrs, types: Sequence[TensorType], output: TensorType) -> int:
    return 2 * output.num_elements * types[2].shape[0]


def _terms(attrs: Attrs, operands: Sequence[Array | None]) -> int:
    b = operands[2]
    assert b is not None
    return b.shape[0]


PROJECTED_MATMUL = OpDef(
    name="projectedMatmul",
    operands=(
        Operand(name="a", data_types=FLOATS, min_rank=4, max_rank=4),
        Operand(name="image", data_types=FLOATS, same_as="a", min_rank=4, max_rank=4),
        Operand(name="b", data_types=FLOATS, same_as="a", min_rank=2, max_rank=2),
    ),
    infer=_infer,
    reference=_reference,
    lower=_lower,
    attrs=(Attr("strides", "uints", (1, 1)),),
    templates=PROJECTING,
    family=Family.PRODUCT,
    without=("elementwise", "movement", "layout", "gradient"),
    epilogue=TakesEpilogue(several=True),
    precision=Precision(weights=(2,)),
    cost=Cost(_operations),
    bounds=sums(_terms),
    internal=True,
)
"""For each pixel, the channels of `a` and behind them those of `image`, times the matrix `b`.

Both images have their channels last. `image` has `strides` pixels down and to the right for each pixel of `a`, and the first of
them counts.
"""

OPS = (PROJECTED_MATMUL,)
