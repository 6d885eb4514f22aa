"""Extension operator: weighted sums of gathered elements along a dimension, the step that linear resamplings are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.data_types import FLOATS
from ..costs import PORTABLE_ITERATIONS
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import QUAD
from ..kernels.spec import Binding, Interval, KernelCall, KernelTemplate
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._places import INDEX_TYPES, clamped_indices, index_binding
from ._quads import quad_launch, quad_work
from ._rows import to_type, wide
from .gradients import sampling as sampling_gradients
from .interfaces.bounds import CONDITIONED
from .interfaces.cost import PER_TAKEN
from .interfaces.documentation import SAMPLING_EXTENSIONS, Documentation
from .interfaces.family import Family

WEIGHTED_GATHER = KernelTemplate("weighted_gather", ("quad",))

_MOST_TAPS = PORTABLE_ITERATIONS // QUAD
"""The maximum number of elements in a sum, on every device. An invocation computes four sums."""


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x, indices, weights = (call.input(i) for i in range(3))
    axis = call.axis(call.attrs["axis"], x.rank)
    call.require(weights.shape == indices.shape, "Incompatible shapes: weights must have the shape of indices")
    call.require(indices.shape[1] <= _MOST_TAPS, "too many elements in a sum", allowed=f"indices[n, 1..{_MOST_TAPS}]")
    return (call.output(x.data_type, (*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :])),)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, indices, weights = arrays
    assert x is not None
    assert indices is not None
    assert weights is not None
    axis = attrs["axis"]
    places = clamped_indices(indices, x.shape[axis])
    total = np.zeros(out[0].shape)
    spread = (-1,) + (1,) * (x.ndim - axis - 1)
    with np.errstate(all="ignore"):
        for tap in range(indices.shape[1]):
            weight = weights[:, tap].astype(np.float64).reshape(spread)
            total = np.where(weight == 0, total, total + weight * np.take(wide(x), places[:, tap], axis))
    return [to_type(total, out[0])]


def _lower(low: Lowering) -> list[KernelCall]:
    x, indices, output = low.input(), low.input(1), low.output()
    axis: int = low.attrs["axis"]
    length, taps = indices.shape
    size, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
    quad = inner % QUAD == 0
    iterations = taps * (1 if quad else QUAD)
    launch, grid = quad_launch(output.num_elements, low.target, iterations)
    own = {"inner": inner // QUAD if quad else inner, "length": length, "size": size, "taps": taps}
    fields = [*launch, *((name, "u32", value) for name, value in own.items())]
    spec = WEIGHTED_GATHER.spec(
        [
            Binding(name="input", access="read", element=x.data_type, quad=quad),
            index_binding(indices.data_type),
            Binding(name="weights", access="read"),
            Binding(name="output", access="write", element=output.data_type, quad=True),
        ],
        [(name, "u32") for name, *_ in fields],
        quad=quad,
    )
    operands = (*(low.value(i) for i in range(3)), low.node.outputs[0])

    def reach(first: int, end: int) -> list[Interval | None]:
        outer = first // (length * inner), -(-end // (length * inner))
        return [(outer[0] * size * inner, outer[1] * size * inner), None, None, (first, end)]

    work = quad_work(output.num_elements, low.target, reach, iterations=iterations)
    return [
        KernelCall(
            spec=spec,
            operands=operands,
            uniforms=tuple(v for *_, v in fields),
            grid=grid,
            reason=f"{taps} elements per sum",
            work=work,
        )
    ]


OPS = (
    OpDef(
        name="x.weighted_gather",
        operands=(
            Operand(name="input", data_types=FLOATS, min_rank=1),
            Operand(name="indices", data_types=INDEX_TYPES, min_rank=2, max_rank=2),
            Operand(name="weights", data_types=("float32",), min_rank=2, max_rank=2),
        ),
        infer=_infer,
        reference=_reference,
        lower=_lower,
        attrs=(Attr("axis", "uint", 0),),
        templates=(WEIGHTED_GATHER,),
        family=Family.OTHER,
        without=("elementwise", "epilogue", "movement", "layout", "precision"),
        cost=PER_TAKEN,
        bounds=CONDITIONED,
        documentation=Documentation(
            group=SAMPLING_EXTENSIONS,
            summary=(
                "Weighted sums of elements: output[..., o, ...] = sum over t of weights[o, t] input[..., indices[o, t], ...]."
            ),
            arguments={
                "input": "{types}, with rank 1 to 8.",
                "indices": (
                    "{types}, with the shape [new size, elements per sum] and at most 15000 elements. Negative indices "
                    "count from the end of the dimension, and are then clamped to it."
                ),
                "weights": "{types}, with the shape of `indices`.",
                "axis": "The dimension.",
            },
            returns="An operand with the input's data type and shape, and with the new size along `axis`.",
            raises="Shapes or data types do not fit",
            numerics="Sums are in float32 and in the order of the indices. Elements of weight 0 do not count, even NaN.",
            example="""
                >>> pairs = b.constant(np.int32([[0, 1], [1, 2]]))
                >>> b.ext.weighted_gather(x, pairs, b.constant(np.full((2, 2), 0.5, np.float32)), axis=1).shape
                (2, 2)
            """,
        ),
        gradient=sampling_gradients.WEIGHTED_GATHER,
    ),
)
