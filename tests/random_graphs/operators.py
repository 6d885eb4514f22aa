"""How to draw a call of an operator: its operands among a drawing's values, and its options. One function per family."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from webnn_wgpu.core.data_types import DATA_TYPES, FLOATS
from webnn_wgpu.ops import OPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.random_graphs.drawing import Drawing
    from webnn_wgpu.ops._attrs import Attr

SCALARS = {"alpha": (0.25, 1.0, -0.5, 0.0, -0.0), "beta": (0.0, -0.0, 0.5, -1.5), "steepness": (1.0, 0.5, 2.0)}
"""Values of options. Options of other names get multiples of their default."""

SMALL = 512
"""Most elements of what an operator makes larger."""


def scalars(option: Attr) -> tuple[float, ...]:
    """Return values of an option of an element-wise operator."""
    return SCALARS.get(option.name, (option.default, 2 * option.default, 0.5 * option.default))


def elementwise(d: Drawing, name: str) -> None:
    op, s = OPS[name], d.source
    operands = [d.operand(op.operands[0].data_types)]
    for operand in op.operands[1:]:
        types = (d.type(operands[-1]).data_type,) if operand.same_as else operand.data_types
        operands.append(d.broadcast(types, operands))
    attrs: dict[str, Any] = {a.name: s.choice(scalars(a)) for a in op.attrs if a.kind == "float" and s.chance(2)}
    if name == "cast":
        attrs["data_type"] = s.choice(tuple(DATA_TYPES))
    if name == "clamp":
        attrs = {"min_value": s.choice((None, -1, 0.5)), "max_value": s.choice((None, 2, 1e9))}
    d.apply(name, *operands, **attrs)


# Operators that move elements -----------------------------------------------------------------------------------------


def reshape(d: Drawing, name: str) -> None:
    x = d.operand(tuple(DATA_TYPES))
    count, s = d.type(x).num_elements, d.source
    first = s.divisor(count)
    shapes = [(count,), (first, count // first), (count // first, 1, first)]
    if d.type(x).rank < 8:
        shapes += [(1, *d.shape(x)), (*d.shape(x), 1)]
    d.apply(name, x, new_shape=s.choice(shapes))


def identity(d: Drawing, name: str) -> None:
    d.apply(name, d.operand(tuple(DATA_TYPES)))


def bitcast(d: Drawing, name: str) -> None:
    x = d.operand(tuple(DATA_TYPES))
    bits = DATA_TYPES[d.type(x).data_type].bits
    d.apply(name, x, data_type=d.source.choice([t for t, found in DATA_TYPES.items() if found.bits == bits]))


def transpose(d: Drawing, name: str) -> None:
    x = d.operand(tuple(DATA_TYPES), min_rank=0 if d.source.chance(8) else 2)
    d.apply(name, x, permutation=None if d.source.chance(4) else d.source.permutation(range(d.type(x).rank)))


def slice_(d: Drawing, name: str) -> None:
    x, s = d.operand(tuple(DATA_TYPES)), d.source
    starts = [s.integer(0, n - 1) if s.chance(2) else 0 for n in d.shape(x)]
    sizes = [s.integer(1, n - i) if s.chance(2) else n - i for n, i in zip(d.shape(x), starts, strict=True)]
    strides = [s.choice((1, 1, 2, 3)) for _ in starts] if s.chance(2) else None
    d.apply(name, x, starts=starts, sizes=sizes, strides=strides)


def split(d: Drawing, name: str) -> None:
    x, s = d.operand(tuple(DATA_TYPES), min_rank=1), d.source
    axis = s.integer(0, d.type(x).rank - 1)
    size = d.shape(x)[axis]
    if s.chance(2):
        d.apply(name, x, splits=s.divisor(size), axis=axis)
        return
    at = s.integer(1, size)
    d.apply(name, x, splits=[at, size - at] if at < size else [size], axis=axis)


def expand(d: Drawing, name: str) -> None:
    x, s = d.operand(tuple(DATA_TYPES), most=SMALL, fits=lambda shape: 1 in shape or not shape), d.source
    larger = [s.choice((1, 2, 4)) if n == 1 else n for n in d.shape(x)]
    lead = [s.choice((2, 3))] if len(larger) < 4 and s.chance(2) else []
    d.apply(name, x, new_shape=[*lead, *larger])


def tile(d: Drawing, name: str) -> None:
    x, s = d.operand(tuple(DATA_TYPES), most=SMALL), d.source
    d.apply(name, x, repetitions=[s.choice((1, 2, 3)) if i < 2 else 1 for i, _ in enumerate(d.shape(x))])


def reverse(d: Drawing, name: str) -> None:
    x = d.operand(tuple(DATA_TYPES))
    axes = d.source.permutation(d.source.subset(range(d.type(x).rank)))
    d.apply(name, x, axes=None if d.source.chance(4) else axes)


def concat(d: Drawing, name: str) -> None:
    s = d.source
    x = d.operand(tuple(DATA_TYPES), min_rank=1)
    axis = s.integer(0, d.type(x).rank - 1)
    parts = [x]
    for _ in range(s.choice((1, 1, 2, 3, 9)) if d.type(x).num_elements <= SMALL else 1):
        shape = list(d.shape(x))
        shape[axis] = s.choice((shape[axis], 1, 3))
        parts.append(d.like(d.type(x).data_type, shape))
    d.apply(name, *s.permutation(parts), axis=axis)


def pad(d: Drawing, name: str) -> None:
    x, s = d.operand(tuple(DATA_TYPES), most=SMALL), d.source
    mode = s.choice(("constant", "edge", "reflection", "symmetric"))
    most = [min(3, n - 1 if mode == "reflection" else 2 * n) if i < 4 else 0 for i, n in enumerate(d.shape(x))]
    begins, ends = ([s.integer(0, m) if s.chance(2) else 0 for m in most] for _ in range(2))
    value = {"value": s.choice((0, 1.5, -3, math.inf, math.nan))} if mode == "constant" else {}
    d.apply(name, x, beginning_padding=begins, ending_padding=ends, mode=mode, **value)


def triangular(d: Drawing, name: str) -> None:
    d.apply(name, d.operand(tuple(DATA_TYPES), min_rank=2), upper=d.source.chance(2), diagonal=d.source.integer(-3, 3))


# Indices --------------------------------------------------------------------------------------------------------------


def gather(d: Drawing, name: str) -> None:
    x, s = d.operand(tuple(DATA_TYPES), min_rank=1, max_rank=5, most=SMALL), d.source
    axis = s.integer(0, d.type(x).rank - 1)
    indices = d.index(s.choice(((), (1,), (3,), (4,), (2, 2))), d.shape(x)[axis])
    d.apply(name, x, indices, axis=axis)


def along_axis(d: Drawing, name: str) -> None:
    """gatherElements and scatterElements."""
    x, s = d.operand(tuple(DATA_TYPES), min_rank=1), d.source
    axis = s.integer(0, d.type(x).rank - 1)
    shape = list(d.shape(x))
    shape[axis] = s.choice((shape[axis], 1, 2, 4))
    operands = [x, d.index(shape, d.shape(x)[axis])]
    if name == "scatterElements":
        operands.append(d.like(d.type(x).data_type, shape))
    d.apply(name, *operands, axis=axis)


def at_coordinates(d: Drawing, name: str) -> None:
    """gatherND and scatterND."""
    x, s = d.operand(tuple(DATA_TYPES), min_rank=1, max_rank=5, most=SMALL), d.source
    count = s.integer(1, d.type(x).rank)
    lead = s.choice(((), (1,), (3,), (4,), (2, 2)))
    operands = [x, d.index((*lead, count), min(d.shape(x)[:count]))]
    if name == "scatterND":
        operands.append(d.like(d.type(x).data_type, (*lead, *d.shape(x)[count:])))
    d.apply(name, *operands)


def cache_update(d: Drawing, name: str) -> None:
    s = d.source

    def axes(cache: int) -> list[int]:
        """The dimensions whose rows are whole words."""
        found = d.type(cache)
        sizes = [math.prod(found.shape[axis + 1 :]) * DATA_TYPES[found.data_type].size_bytes for axis in range(found.rank)]
        return [axis for axis, size in enumerate(sizes) if size % 4 == 0]

    cache = d.operand(tuple(DATA_TYPES), min_rank=1)
    if not axes(cache):
        cache = d.operand([t for t, found in DATA_TYPES.items() if found.size_bytes >= 4], min_rank=1)
    shape, axis = d.shape(cache), s.choice(axes(cache))
    new = d.like(d.type(cache).data_type, (*shape[:axis], s.integer(1, shape[axis]), *shape[axis + 1 :]))
    places = s.choice(((), (1,), (shape[0] if axis else 1,)))
    positions = [s.integer(-2, shape[axis]) for _ in range(math.prod(places))]
    d.apply(name, cache, new, d.given(np.array(positions, np.int32).reshape(places)), axis=axis)


# Rows -----------------------------------------------------------------------------------------------------------------


def reduction(d: Drawing, name: str) -> None:
    s = d.source
    x = d.operand(OPS[name].operands[0].data_types, tame=name not in ("reduceMax", "reduceMin") and not s.chance(8))
    axes = s.permutation(s.subset(range(d.type(x).rank)))
    d.apply(name, x, axes=None if s.chance(6) else axes, keep_dimensions=s.chance(2))


def arg(d: Drawing, name: str) -> None:
    s = d.source
    x = d.operand(tuple(DATA_TYPES), min_rank=1)
    attrs: dict[str, Any] = {"axis": s.integer(0, d.type(x).rank - 1)}
    if s.chance(3):
        attrs = {"axes": s.subset(range(d.type(x).rank))}
    if s.chance(2):
        attrs["output_data_type"] = s.choice(("int32", "int64"))
    d.apply(name, x, keep_dimensions=s.chance(2), select_last_index=s.chance(2), **attrs)


def cumulative_sum(d: Drawing, name: str) -> None:
    s = d.source
    x = d.operand(OPS[name].operands[0].data_types, min_rank=1, tame=not s.chance(8))
    d.apply(name, x, axis=s.integer(0, d.type(x).rank - 1), exclusive=s.chance(2), reversed=s.chance(2))


def softmax(d: Drawing, name: str) -> None:
    x = d.operand(FLOATS, min_rank=1, tame=not d.source.chance(8))
    d.apply(name, x, axis=d.source.integer(0, d.type(x).rank - 1))


def quantization(d: Drawing, name: str) -> None:
    s = d.source
    if name == "quantizeLinear":
        x = d.operand(FLOATS)
        data_type, quantized = d.type(x).data_type, s.choice(("uint8", "int8", "int32", "uint32"))
    else:
        data_type = s.choice([t for t in d.data_types if t in FLOATS] or ["float32"])
        if s.chance(4):
            _dequantize_packed(d, data_type)
            return
        x = d.operand(("uint8", "int8", "uint32", "int32"))
        quantized = d.type(x).data_type
    blocks = _blocks(d, d.shape(x))
    d.apply(name, x, d.new(data_type, blocks, "positive"), d.like(quantized, blocks))


def _dequantize_packed(d: Drawing, data_type: str) -> None:
    """Dequantize a constant of 4-bit integers: a scale that is an input keeps it from being folded."""
    import ml_dtypes

    s = d.source
    shape = d.random_shape(max_rank=3)
    blocks = _blocks(d, shape)
    packed, low = s.choice(((ml_dtypes.int4, -8), (ml_dtypes.uint4, 0)))
    x, zero_point = (d.given(s.generator().integers(low, low + 16, n).astype(packed), constant=True) for n in (shape, blocks))
    d.apply("dequantizeLinear", x, d.new(data_type, blocks, "positive", constant=False), zero_point)


def _blocks(d: Drawing, shape: tuple[int, ...]) -> list[int]:
    """Return the shape of scale and zero point: per tensor, per axis, or in blocks."""
    s = d.source
    kept = s.integer(0, len(shape) - 1) if shape else 0
    whole = [n if i == kept else 1 for i, n in enumerate(shape)]
    return s.choice(([1 for _ in shape], whole, [s.divisor(n) for n in shape]))


REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Product", "Sum", "SumSquare")

OPERATORS: dict[str, Callable[[Drawing, str], None]] = {
    **{op.name: elementwise for op in OPS.values() if op.elementwise is not None and not op.internal},
    "reshape": reshape,
    "identity": identity,
    "x.bitcast": bitcast,
    "transpose": transpose,
    "slice": slice_,
    "split": split,
    "expand": expand,
    "tile": tile,
    "reverse": reverse,
    "concat": concat,
    "pad": pad,
    "triangular": triangular,
    "gather": gather,
    "gatherElements": along_axis,
    "scatterElements": along_axis,
    "gatherND": at_coordinates,
    "scatterND": at_coordinates,
    "x.cache_update": cache_update,
    **{f"reduce{name}": reduction for name in REDUCTIONS},
    "argMax": arg,
    "argMin": arg,
    "cumulativeSum": cumulative_sum,
    **dict.fromkeys(("softmax", "x.log_softmax"), softmax),
    "quantizeLinear": quantization,
    "dequantizeLinear": quantization,
}
