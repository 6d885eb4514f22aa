"""Resampling of two dimensions: the nearest element, or linear between the two nearest along each dimension.

Positions are exact: they are fractions of integers, with quotient and remainder instead of a rounded coordinate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..core.data_types import FLOATS
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import QUAD, bits_of
from ..kernels.spec import Binding, Interval, KernelCall, KernelTemplate
from ..kernels.windows import span
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._quads import quad_launch, quad_work
from ._reduction import Field
from ._rows import to_type, wide
from ._shapes import strides_of
from ._strided_copy import STRIDED, copy_call
from ._units import units_of
from .gradients import sampling as sampling_gradients
from .interfaces.bounds import sums
from .interfaces.cost import Cost
from .interfaces.documentation import POOLING, Documentation
from .interfaces.family import Family
from .interfaces.layout import dimensions

RESAMPLE2D = KernelTemplate("resample2d", ("mode", "read", "rank", "resized", "integers", "wide"))

MODES = ("nearest-neighbor", "linear")


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x, attrs = call.input(), call.attrs
    for name in ("scales", "sizes", "axes"):
        given = attrs[name]
        if given is None:
            continue
        call.require(len(given) == 2, f"{name} must have 2 items", got=f"{name}={list(given)}", allowed="2 items")
        if name != "axes":
            got, allowed = f"{name}={list(given)}", ">= 1" if name == "sizes" else "> 0"
            call.require(all(n > 0 for n in given), f"every item of {name} must be positive", got=got, allowed=allowed)
    axes = call.axes(attrs["axes"], x.rank)
    if attrs["sizes"] is None:
        # The specification's scales are 32-bit floats.
        scales = [float(np.float32(min(s, 3e38))) for s in attrs["scales"]]
        attrs["sizes"] = tuple(math.floor(x.shape[axis] * scale) for axis, scale in zip(axes, scales, strict=True))
        call.require(
            all(attrs["sizes"]),
            "the resulting sizes must be valid dimensions",
            got=f"sizes {list(attrs['sizes'])} from scales={list(attrs['scales'])}, axes={list(axes)}, input {x}",
            allowed=">= 1",
        )
    shape = list(x.shape)
    for axis, size in zip(axes, attrs["sizes"], strict=True):
        shape[axis] = size
    return (call.output(x.data_type, shape),)


def _source(size: int, output: int) -> tuple[Array, Array, int]:
    """Return quotients and remainders of (2 * o + 1) * size / (2 * output) for every o, and the divisor, in lowest terms.

    The coordinate that output o reads is half an element less.
    """
    common = math.gcd(size, output)
    size, output = size // common, output // common
    # Below 2^63: both are below 2^31.
    quotient, remainder = np.divmod((2 * np.arange(output * common, dtype=np.int64) + 1) * size, 2 * output)
    return quotient, remainder, 2 * output


def _reference(arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
    x = arrays[0]
    assert x is not None
    floats = x.dtype.kind == "f"
    if attrs["mode"] == "nearest-neighbor":
        for axis, output in zip(attrs["axes"], attrs["sizes"], strict=True):
            quotient, remainder, _ = _source(x.shape[axis], output)
            # ceil(coordinate - 1/2): of two elements as near the one before.
            x = np.take(x, quotient - (remainder == 0), axis)
        return [x]
    result = wide(x) if floats else x.astype(np.float64)
    whole = 1.0
    for axis, output in zip(attrs["axes"], attrs["sizes"], strict=True):
        size = x.shape[axis]
        quotient, remainder, divisor = _source(size, output)
        before = remainder < divisor // 2
        low = quotient - before
        part = remainder - divisor // 2 + before * divisor
        part[(low < 0) | (low >= size - 1)] = 0
        low = np.maximum(low, 0)
        part = part.reshape([-1 if d == axis else 1 for d in range(x.ndim)])
        # An element without weight takes no part, even if it is infinite. Integers are divided once, at the end.
        lower, upper = np.take(result, low, axis), np.take(result, np.minimum(low + 1, size - 1), axis)
        with np.errstate(all="ignore"):
            if floats:
                mixed = lower * ((divisor - part) / divisor) + upper * (part / divisor)
                result = np.where(part == 0, lower, mixed)
            else:
                result = lower * (divisor - part) + upper * part
                whole *= divisor
    return [to_type(result if floats else np.rint(result / whole), outputs[0])]


@dataclass(frozen=True)
class _Dimension:
    """One dimension, or several neighboring dimensions that resampling does not change."""

    size: int
    output: int

    @property
    def resized(self) -> bool:
        return self.size != self.output

    @property
    def terms(self) -> tuple[int, int]:
        """Sizes of input and output in lowest terms."""
        common = math.gcd(self.size, self.output)
        return self.size // common, self.output // common

    @property
    def wide(self) -> bool:
        """Whether positions need products of more than 32 bits."""
        return (2 * self.output + 1) * self.terms[0] >= 2**32

    def source(self, position: int, mode: str) -> Interval:
        """Return the first and last position of the input that a position of the output is read from."""
        if not self.resized:
            return position, position
        top, bottom = self.terms
        quotient, remainder = divmod((2 * position + 1) * top, 2 * bottom)
        if mode == "nearest-neighbor":
            nearest = quotient - (remainder == 0)
            return nearest, nearest
        low = max(0, quotient - (remainder < bottom))
        return low, min(self.size - 1, low + 1)

    def fields(self, d: int, stride: int) -> list[Field]:
        """Return the uniforms of dimension d."""
        values = {"output": self.output, "stride": stride}
        if self.resized:
            top, bottom = self.terms
            values |= {"last": self.size - 1, "ratio": top, "divisor": 2 * bottom}
        return [(f"{name}_{d}", "u32", value) for name, value in values.items()]


def _merged(shape: Sequence[int], output: Sequence[int]) -> list[_Dimension]:
    """Return the dimensions. Neighboring dimensions that resampling does not change are merged."""
    dims: list[_Dimension] = []
    for n, m in zip(shape, output, strict=True):
        if n == m and dims and not dims[-1].resized:
            dims[-1] = _Dimension(dims[-1].size * n, dims[-1].size * n)
        elif (n, m) != (1, 1):
            dims.append(_Dimension(n, m))
    return dims


def _lower(low: Lowering) -> list[KernelCall]:
    x, mode = low.input(), low.attrs["mode"]
    dims = _merged(x.shape, low.output().shape)
    if not any(d.resized for d in dims):
        return [copy_call(low.value(0), x, low.node.outputs[0], low.target)]
    # The nearest element is moved bit by bit, so that every type can be on every device.
    element, quad, last = x.data_type, False, dims[-1]
    if mode == "nearest-neighbor":
        units = units_of(x.data_type, () if last.resized else (last.size,))
        element, quad = (bits_of(x.data_type), False) if last.resized else (units.element, units.quad)
        if not last.resized:
            dims[-1] = _Dimension(*units.lengths, *units.lengths)
    elif not last.resized and last.size % QUAD == 0:
        quad = True
        dims[-1] = _Dimension(last.size // QUAD, last.size // QUAD)
    read = "quad" if quad else "row" if dims[-1].output % QUAD == 0 else "strided"
    launch, grid = quad_launch(math.prod(d.output for d in dims) * (QUAD if quad else 1), low.target)
    fields: list[Field] = [*launch]
    for d, (dimension, stride) in enumerate(zip(dims, strides_of([d.size for d in dims]), strict=True)):
        fields += dimension.fields(d, stride)
    spec = RESAMPLE2D.spec(
        [
            Binding(name="input", access="read", element=element, quad=quad),
            Binding(name="output", access="write", element=element, quad=True),
        ],
        [(name, type_) for name, type_, _ in fields],
        mode=mode,
        read=read,
        rank=len(dims),
        resized=tuple(i for i, d in enumerate(dims) if d.resized),
        integers=mode == "linear" and x.data_type not in FLOATS,
        wide=any(d.wide for d in dims if d.resized),
    )
    operands = (low.value(0), low.node.outputs[0])
    # Elements per position of `dims`.
    width = QUAD if quad else 1
    outputs, strides = [d.output for d in dims], strides_of([d.size for d in dims])

    def extent(d: int, first: int, last: int) -> Interval:
        return dims[d].source(first, mode)[0] * strides[d], dims[d].source(last, mode)[1] * strides[d]

    def reach(first: int, end: int) -> list[Interval]:
        least, past = span(outputs, extent, first // width, -(-end // width))
        return [(least * width, past * width), (first, end)]

    moved = [0] if mode == "nearest-neighbor" else []
    work = quad_work(math.prod(outputs) * width, low.target, reach, moved)
    return [
        KernelCall(
            spec=spec,
            operands=operands,
            uniforms=tuple(v for *_, v in fields),
            grid=grid,
            reason=f"{mode}, read {read}",
            work=work,
        )
    ]


_SAMPLED = 7
"""Multiply-adds for each element between four others: three for the weights of the directions, four products."""


def _operations(attrs: Attrs, types: Sequence[TensorType], output: TensorType) -> int:
    return 0 if attrs["mode"] in ("nearest", "nearest-neighbor") else 2 * _SAMPLED * output.num_elements


SAMPLED = Cost(_operations)
"""The cost of operators whose `mode` says how they interpolate."""


def _rounded_apart(attrs: Attrs) -> float:
    """Return the bounds of integers: an average between two integers may be rounded to either."""
    return float(attrs["mode"] == "linear")


_BOUNDS = replace(
    # Two products, a sum and a weight that is rounded itself, along two dimensions.
    sums(lambda attrs, operands: 8, tolerance=8),
    integers=_rounded_apart,
)

OPS = (
    OpDef(
        name="resample2d",
        operands=(Operand(name="input", data_types=(*FLOATS, "uint8", "int8"), min_rank=4, max_rank=4),),
        infer=_infer,
        reference=_reference,
        lower=_lower,
        attrs=(
            Attr("mode", "enum", "nearest-neighbor", MODES),
            Attr("scales", "floats", (1.0, 1.0)),
            Attr("sizes", "uints", None),
            Attr("axes", "uints", (2, 3)),
        ),
        templates=(RESAMPLE2D, STRIDED),
        spec="#api-mlgraphbuilder-resample2d-method",
        rank_phrase="Resample2d input must be 4D",
        family=Family.OTHER,
        without=("elementwise", "epilogue", "movement", "precision"),
        layout=dimensions(axes=("axes",)),
        cost=SAMPLED,
        bounds=_BOUNDS,
        documentation=Documentation(
            group=POOLING,
            summary="Resize two dimensions.",
            arguments={
                "input": "{types}, with rank 4.",
                "mode": '"nearest-neighbor", or "linear" between the two nearest elements along each dimension.',
                "scales": (
                    "Output size divided by input size for each of `axes`, positive 32-bit floats. The size is rounded down."
                ),
                "sizes": "Output sizes for each of `axes`, in place of `scales`.",
                "axes": "Two dimensions, in any order.",
            },
            returns="An operand with the input's data type, and with its shape except for the two sizes.",
            raises=(
                "The rank is not 4, or a list has another length. A scale or size is not positive, or a scale makes a size 0. "
                "An axis is not a dimension or is repeated. The mode is unknown, the data type is not allowed"
            ),
            numerics=(
                "Output element o is read from the coordinate (o + 1/2) * input size / output size - 1/2. The coordinate "
                "is computed exactly, and moved inside the input if it lies outside. Of two equally near elements the "
                "nearest is the first. Integers are rounded to the nearest, halves to even. Shrinking does not smooth."
            ),
            example="""
                >>> b.resample2d(image, mode="linear", scales=[2, 1.5]).shape
                (1, 2, 8, 6)
            """,
        ),
        gradient=sampling_gradients.resample2d,
    ),
)
