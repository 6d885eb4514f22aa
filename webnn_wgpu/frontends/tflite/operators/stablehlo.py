"""Operators of StableHLO: those that TFLite runs, and those of files that were never lowered."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from webnn_wgpu import MLOperand

from ..call import TfliteCall
from ..tensors import TfliteTensor
from ._registry import Result, lowers
from .activations import cast
from .elementwise import Binary

Unary = Callable[[TfliteCall, MLOperand], MLOperand]

UNARY: dict[str, Unary] = {
    "ABS": lambda c, x: c.build.abs(x),
    "COSINE": lambda c, x: c.build.cos(x),
    "EXPONENTIAL": lambda c, x: c.build.exp(x),
    "FLOOR": lambda c, x: c.build.floor(x),
    "LOG": lambda c, x: c.build.log(x),
    "LOGISTIC": lambda c, x: c.build.sigmoid(x),
    "NEGATE": lambda c, x: c.build.neg(x),
    "RSQRT": lambda c, x: c.build.reciprocal(c.build.sqrt(x)),
    "TANH": lambda c, x: c.build.tanh(x),
    "CBRT": lambda c, x: c.build.mul(c.build.sign(x), c.build.pow(c.build.abs(x), c.like(1 / 3, x))),
}
"""Functions of one element, without the prefix of their names."""

BINARY: dict[str, Binary] = {
    "ADD": lambda c, a, b: c.build.add(a, b),
    "SUBTRACT": lambda c, a, b: c.build.sub(a, b),
    "MULTIPLY": lambda c, a, b: c.build.mul(a, b),
    "DIVIDE": lambda c, a, b: c.build.div(a, b),
    "MAXIMUM": lambda c, a, b: c.build.max(a, b),
    "MINIMUM": lambda c, a, b: c.build.min(a, b),
    "POWER": lambda c, a, b: c.build.pow(a, b),
    "REMAINDER": lambda c, a, b: c.build.ext.fmod(a, b),
    "SHIFT_LEFT": lambda c, a, b: c.build.ext.shift_left(a, b),
}
"""Functions of two elements."""

COMPARED = ("equal", "not_equal", "greater_or_equal", "greater", "lesser_or_equal", "lesser")
"""The builder's comparisons in the order of the format's directions."""


@lowers({f"STABLEHLO_{name}": 1 for name in UNARY})
def unary(call: TfliteCall) -> Result:
    """A function of each element."""
    return UNARY[call.node.record.name.removeprefix("STABLEHLO_")](call, call.real(0))


@lowers({f"STABLEHLO_{name}": 1 for name in BINARY})
def binary(call: TfliteCall) -> Result:
    """A function of the elements of two tensors."""
    return BINARY[call.node.record.name.removeprefix("STABLEHLO_")](call, call.real(0), call.real(1))


@lowers(STABLEHLO_AND=1, STABLEHLO_OR=1)
def bits(call: TfliteCall) -> Result:
    """Logic of truth values, or of the bits of integers."""
    name = call.node.record.name.removeprefix("STABLEHLO_").lower()
    logical = call.tensor(0).dtype.kind == "b"
    method = getattr(call.build if logical else call.build.ext, f"logical_{name}" if logical else f"bitwise_{name}")
    return call.bare(method(call.operand(0), call.operand(1)))


@lowers(STABLEHLO_COMPARE=1)
def compare(call: TfliteCall) -> Result:
    """A comparison."""
    direction = int(call.option("ComparisonDirection"))
    if not 0 <= direction < len(COMPARED):
        call.fail(f"comparison {direction} is unknown")
    return getattr(call.build, COMPARED[direction])(call.real(0), call.real(1))


@lowers(STABLEHLO_CLAMP=1)
def clamp(call: TfliteCall) -> Result:
    """Elements within limits: least, elements, greatest."""
    return call.build.min(call.build.max(call.real(1), call.real(0)), call.real(2))


@lowers(STABLEHLO_SELECT=1)
def select(call: TfliteCall) -> Result:
    """Elements of one of two tensors."""
    return call.bare(call.build.where(call.operand(0), call.moved(1), call.moved(2)))


@lowers(STABLEHLO_CONVERT=1)
def convert(call: TfliteCall) -> Result:
    """The elements in another type."""
    return cast(call)


def _declared(call: TfliteCall) -> list[int]:
    shape = call.output().shape
    return list(shape) if shape is not None else call.fail("the shape of its result is unknown")


@lowers(STABLEHLO_RESHAPE=1)
def reshape(call: TfliteCall) -> Result:
    """The elements in the shape of the result."""
    return call.bare(call.reshape(call.moved(0), _declared(call)))


@lowers(STABLEHLO_TRANSPOSE=1)
def transpose(call: TfliteCall) -> Result:
    """The dimensions in another order."""
    order = call.axes([int(v) for v in call.option("Permutation", [])], call.tensor(0).rank)
    return call.bare(call.transpose(call.moved(0), order))


@lowers(STABLEHLO_CONCATENATE=1)
def concatenate(call: TfliteCall) -> Result:
    """Tensors one behind the other."""
    axis = call.axis(int(call.option("Dimension")), call.tensor(0).rank)
    return call.bare(call.build.concat([call.moved(i) for i in range(len(call))], axis))


@lowers(STABLEHLO_BROADCAST_IN_DIM=1)
def broadcast_in_dim(call: TfliteCall) -> Result:
    """The elements repeated, with dimensions at given places of the result."""
    target = _declared(call)
    places = [int(v) for v in call.option("BroadcastDimensions", [])]
    shape = [1] * len(target)
    for place, size in zip(call.axes(places, len(target)), call.shape(0), strict=True):
        shape[place] = size
    return call.bare(call.build.expand(call.reshape(call.moved(0), shape), target))


@lowers(STABLEHLO_SLICE=1)
def slice_(call: TfliteCall) -> Result:
    """A part with strides."""
    starts, limits, strides = ([int(v) for v in call.option(name, [])] for name in ("StartIndices", "LimitIndices", "Strides"))
    sizes = [e - s for s, e in zip(starts, limits, strict=True)]
    return call.bare(call.build.slice(call.moved(0), starts, sizes, strides=strides))


@lowers(STABLEHLO_IOTA=1, folds=False)
def iota(call: TfliteCall) -> Result:
    """The position along a dimension."""
    shape, dtype = _declared(call), call.output().dtype
    assert dtype is not None
    axis = call.axis(int(call.option("IotaDimension")), len(shape))
    if math.prod(shape) > 1 << 26:
        call.fail(f"{math.prod(shape)} positions")
    steps = [-1 if i == axis else 1 for i in range(len(shape))]
    return TfliteTensor.known(np.broadcast_to(np.arange(shape[axis]).reshape(steps), shape).astype(dtype))


@lowers(STABLEHLO_DOT_GENERAL=1)
def dot_general(call: TfliteCall) -> Result:
    """Products over contracted dimensions, in batches."""
    names = ("LhsBatchingDimensions", "RhsBatchingDimensions", "LhsContractingDimensions", "RhsContractingDimensions")
    batch_a, batch_b, sum_a, sum_b = ([int(v) for v in call.option(name, [])] for name in names)
    a, b = call.floats(0), call.floats(1)
    free_a = [i for i in range(len(a.shape)) if i not in batch_a + sum_a]
    free_b = [i for i in range(len(b.shape)) if i not in batch_b + sum_b]

    def product(operand: MLOperand, axes: list[int]) -> int:
        return math.prod(int(operand.shape[i]) for i in axes)

    batches, depth = product(a, batch_a), product(a, sum_a)
    left = call.reshape(call.transpose(a, [*batch_a, *free_a, *sum_a]), [batches, product(a, free_a), depth])
    right = call.reshape(call.transpose(b, [*batch_b, *sum_b, *free_b]), [batches, depth, product(b, free_b)])
    sizes = [int(a.shape[i]) for i in (*batch_a, *free_a)] + [int(b.shape[i]) for i in free_b]
    return call.reshape(call.build.matmul(left, right), sizes)


def spread(call: TfliteCall, x: MLOperand, interior: list[int], value: MLOperand) -> MLOperand:
    """Return a tensor with copies of one value between the elements along each dimension."""
    b = call.build
    for axis, count in enumerate(interior):
        size = int(x.shape[axis])
        if count < 0:
            call.fail(f"{count} elements between elements")
        if not count or size < 2:
            continue
        places = np.arange(size + (size - 1) * count)
        hit = (places % (count + 1) == 0).reshape([-1 if i == axis else 1 for i in range(len(x.shape))])
        copied = b.gather(x, call.constant(places // (count + 1), "int32"), axis=axis)
        x = b.where(call.constant(hit, "uint8"), copied, value)
    return x


@lowers(DILATE=1)
def dilate(call: TfliteCall) -> Result:
    """Copies of one value between the elements."""
    interior = [d - 1 for d in call.ints(1)]
    return call.bare(spread(call, call.moved(0), interior, call.reshape(call.operand(2), [])))


@lowers(STABLEHLO_PAD=1)
def pad(call: TfliteCall) -> Result:
    """Copies of one value before, behind and between the elements. Negative numbers cut elements off."""
    low, high, interior = (
        [int(v) for v in call.option(name, [])] for name in ("EdgePaddingLow", "EdgePaddingHigh", "InteriorPadding")
    )
    rank = call.tensor(0).rank
    if not len(low) == len(high) == len(interior) == rank:
        call.fail(f"padding {low}, {high} and {interior} of {rank} dimensions")
    return call.bare(padded(call, spread(call, call.moved(0), interior, call.reshape(call.operand(1), [])), low, high))


def padded(call: TfliteCall, x: MLOperand, low: list[int], high: list[int], index: int = 1) -> MLOperand:
    """Return a tensor with copies of an input around it, or with elements cut off."""
    b = call.build
    starts, ends = [max(-v, 0) for v in low], [max(-v, 0) for v in high]
    if any(starts) or any(ends):
        sizes = [int(d) - s - e for d, s, e in zip(x.shape, starts, ends, strict=True)]
        if min(sizes) < 1:
            call.fail(f"the padding {low} and {high} leaves no elements")
        x = b.slice(x, starts, sizes)
    before, after = [max(v, 0) for v in low], [max(v, 0) for v in high]
    if any(before) or any(after):
        value = call.reshape(call.operand(index), [1] * len(x.shape))
        for axis, (first, last) in enumerate(zip(before, after, strict=True)):
            parts = [
                b.expand(value, [count if i == axis else int(d) for i, d in enumerate(x.shape)])
                for count in (first, last)
                if count
            ]
            if first:
                x = b.concat([parts[0], x], axis)
            if last:
                x = b.concat([x, parts[-1]], axis)
    return x
