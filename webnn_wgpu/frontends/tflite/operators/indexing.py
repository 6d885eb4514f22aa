"""Operators that read or write elements by their positions, and choices between elements."""

from __future__ import annotations

import math

import numpy as np

from webnn_wgpu import MLOperand

from ..call import TfliteCall
from ..tensors import TfliteTensor
from ._registry import Result, lowers

INDICES = ("int32", "uint32", "int64")


def indices_of(call: TfliteCall, index: int) -> MLOperand:
    """Return an input of positions in a type that WebNN takes."""
    x = call.operand(index)
    return x if x.data_type in INDICES else call.cast(x, "int32")


@lowers(GATHER=8)
def gather(call: TfliteCall) -> Result:
    """The slices of given positions along a dimension, in each batch of its own."""
    shape, indices_shape = call.shape(0), call.shape(1)
    batch = int(call.option("BatchDims"))
    batch += len(indices_shape) if batch < 0 else 0
    axis = call.axis(int(call.option("Axis")), len(shape))
    x, indices = call.moved(0), indices_of(call, 1)
    if not batch:
        return call.bare(call.build.gather(x, indices, axis=axis))
    if not 0 < batch <= min(axis, len(indices_shape)) or shape[:batch] != indices_shape[:batch]:
        call.fail(f"{batch} batch dimensions of {list(shape)} and {list(indices_shape)}")
    batches, count = math.prod(shape[:batch]), shape[axis]
    outer, inner = math.prod(shape[batch:axis]), math.prod(shape[axis + 1 :])
    each = math.prod(indices_shape[batch:])
    x = call.transpose(call.reshape(x, [batches, outer, count, inner]), [0, 2, 1, 3])
    x = call.reshape(x, [batches * count, outer, inner])
    offsets = call.constant(np.arange(batches)[:, None] * count, indices.data_type)
    places = call.build.add(call.reshape(indices, [batches, each]), offsets)
    y = call.transpose(call.build.gather(x, places, axis=0), [0, 2, 1, 3])
    return call.bare(call.reshape(y, [*shape[:axis], *indices_shape[batch:], *shape[axis + 1 :]]))


@lowers(GATHER_ND=6)
def gather_nd(call: TfliteCall) -> Result:
    """The slices of given coordinates."""
    return call.bare(call.build.gather_nd(call.moved(0), indices_of(call, 1)))


@lowers(EMBEDDING_LOOKUP=5, note="quantized tables: the rows are dequantized after they are read")
def embedding_lookup(call: TfliteCall) -> Result:
    """The rows of a table."""
    table = call.tensor(1)
    indices = indices_of(call, 0)
    quantization = table.quantization
    if not table.is_quantized or quantization is None or call.output().quantization is not None:
        return call.bare(call.build.gather(call.moved(1) if not table.is_quantized else call.operand(1), indices, axis=0))
    if quantization.block_scales >= 0:
        return call.build.gather(call.real(1), indices, axis=0)
    rows = call.cast(call.build.gather(call.operand(1), indices, axis=0), "float32")
    shape = call.along(table, quantization)

    def of_rows(values: MLOperand) -> MLOperand:
        return call.build.gather(values, indices, axis=0) if shape[0] > 1 else values

    if quantization.zero_points.any():
        rows = call.build.sub(rows, of_rows(call.constant(quantization.zero_points.reshape(shape), "float32")))
    return call.build.mul(rows, of_rows(call.constant(quantization.scales.reshape(shape), "float32")))


def _full(call: TfliteCall, shape: list[int], value: float, data_type: str) -> MLOperand:
    scalar = call.constant(value, data_type)
    return call.build.expand(scalar, shape) if shape else scalar


@lowers(SCATTER_ND=1)
def scatter_nd(call: TfliteCall) -> Result:
    """Zeros with slices at given coordinates, which add up."""
    updates = call.operand(1)
    base = _full(call, call.ints(2), 0, updates.data_type)
    return call.bare(call.build.ext.scatter_nd(base, indices_of(call, 0), updates, reduction="add"))


@lowers(SPARSE_TO_DENSE=3)
def sparse_to_dense(call: TfliteCall) -> Result:
    """A default value with elements at given coordinates."""
    shape = call.ints(1)
    indices, values = indices_of(call, 0), call.operand(2)
    rank = len(indices.shape)
    if rank < 2:
        indices = call.reshape(indices, [int(indices.shape[0]) if rank else 1, 1] if len(shape) == 1 else [1, len(shape)])
    count = int(indices.shape[0])
    values = call.build.expand(values, [count]) if not values.shape else values
    base = call.build.expand(call.reshape(call.operand(3), []), shape)
    return call.bare(call.build.scatter_nd(base, indices, values))


def _lowest(data_type: str) -> float:
    return float(np.finfo(data_type).min) if data_type.startswith("float") else float(np.iinfo(data_type).min)


def _greatest(data_type: str) -> float:
    return float(np.finfo(data_type).max) if data_type.startswith("float") else float(np.iinfo(data_type).max)


SEGMENTS: dict[str, str] = {
    "UNSORTED_SEGMENT_SUM": "add",
    "UNSORTED_SEGMENT_PROD": "mul",
    "UNSORTED_SEGMENT_MAX": "max",
    "UNSORTED_SEGMENT_MIN": "min",
    "SEGMENT_SUM": "add",
}
"""Reductions of segments, and the kind of their scatter."""


@lowers(dict.fromkeys(SEGMENTS, 1))
def segments(call: TfliteCall) -> Result:
    """Reductions of the slices that have the same number. Slices with negative numbers are dropped."""
    reduction = SEGMENTS[call.node.record.name]
    data, ids = call.operand(0), call.cast(indices_of(call, 1), "int32")
    if call.node.record.name == "SEGMENT_SUM":
        known = call.ints(1)
        count = known[-1] + 1 if known else 0
    else:
        count = call.integer(2)
    rank = len(ids.shape)
    if count < 1 or call.shape(0)[:rank] != call.shape(1):
        call.fail(f"{count} segments of {list(call.shape(0))} by {list(call.shape(1))}")
    rest = list(call.shape(0)[rank:])
    total = math.prod(call.shape(1))
    start = {"add": 0.0, "mul": 1.0, "max": _lowest(data.data_type), "min": _greatest(data.data_type)}[reduction]
    # The slices with negative numbers go to one segment more, which is cut off.
    ids = call.build.where(call.build.lesser(ids, call.constant(0, "int32")), call.constant(count, "int32"), ids)
    base = _full(call, [count + 1, *rest], start, data.data_type)
    y = call.build.ext.scatter_nd(
        base,
        call.reshape(ids, [total, 1]),
        call.reshape(data, [total, *rest]),
        reduction=reduction,  # pyright: ignore[reportArgumentType]
    )
    return call.bare(call.build.slice(y, [0] * (1 + len(rest)), [count, *rest]))


@lowers(DYNAMIC_UPDATE_SLICE=6)
def update_slice(call: TfliteCall) -> Result:
    """A tensor with a part replaced, from a position on that is moved so that the part fits."""
    return dynamic_update_slice(call, call.cast(indices_of(call, 2), "int32"))


def dynamic_update_slice(call: TfliteCall, starts: MLOperand) -> Result:
    """Return input 0 with input 1 in it, from int32 coordinates on."""
    shape, part = call.shape(0), call.shape(1)
    if len(shape) != len(part) or any(p > d for p, d in zip(part, shape, strict=True)):
        call.fail(f"the part {list(part)} does not fit {list(shape)}")
    x, new = call.moved(0), call.moved(1)
    if not shape:
        return call.bare(call.build.identity(new))
    b = call.build
    room = call.constant(np.array(shape) - np.array(part), "int32")
    starts = b.max(b.min(starts, room), call.constant(np.zeros(len(shape)), "int32"))
    strides = np.array([math.prod(shape[i + 1 :]) for i in range(len(shape))])
    start = b.reduce_sum(b.mul(starts, call.constant(strides, "int32")), axes=[0])
    offsets = sum(
        np.arange(p).reshape([-1 if j == i else 1 for j in range(len(part))]) * strides[i] for i, p in enumerate(part)
    )
    places = b.add(call.constant(np.asarray(offsets).reshape(-1), "int32"), start)
    flat = b.scatter_elements(call.reshape(x, [math.prod(shape)]), places, call.reshape(new, [math.prod(part)]), axis=0)
    return call.bare(call.reshape(flat, shape))


@lowers(SELECT=4, SELECT_V2=2)
def select(call: TfliteCall) -> Result:
    """Elements of one tensor where a condition holds, else of another. A condition of rank 1 may choose rows."""
    condition, x, y = call.operand(0), call.moved(1), call.moved(2)
    if call.node.record.name == "SELECT" and len(condition.shape) == 1 and len(x.shape) > 1:
        condition = call.reshape(condition, [int(condition.shape[0]), *(1 for _ in x.shape[1:])])
    return call.bare(call.build.where(condition, x, y))


@lowers(ONE_HOT=1)
def one_hot(call: TfliteCall) -> Result:
    """One value at given positions of a new dimension, another value elsewhere."""
    depth = call.integer(1)
    rank = call.tensor(0).rank
    if depth < 1:
        call.fail(f"a depth of {depth}")
    axis = call.axis(int(call.option("Axis", -1)), rank + 1)
    indices = indices_of(call, 0)
    shape = list(call.shape(0))
    shape.insert(axis, 1)
    steps = [1] * (rank + 1)
    steps[axis] = depth
    hit = call.build.equal(call.reshape(indices, shape), call.constant(np.arange(depth).reshape(steps), indices.data_type))
    on, off = (call.reshape(call.operand(i), []) for i in (2, 3))
    return call.bare(call.build.where(hit, on, off))


@lowers(TOPK_V2=3)
def top_k(call: TfliteCall) -> Result:
    """The largest elements along the last dimension and their positions. Of equal ones the first comes first."""
    k = call.integer(1)
    size = call.shape(0)[-1] if call.shape(0) else 0
    if not 1 <= k <= size:
        call.fail(f"the {k} largest of {size}")
    values, indices = call.build.ext.top_k(call.operand(0), k, indices_data_type="int32")
    found: list[MLOperand | TfliteTensor | None] = [call.bare(values), None]
    if len(call.outputs) > 1:
        dtype = call.output(1).dtype
        assert dtype is not None
        found[1] = call.bare(call.cast(indices, call.held(dtype)), 1)
    return found


@lowers(BUCKETIZE=1)
def bucketize(call: TfliteCall) -> Result:
    """The number of boundaries that are not greater than each element."""
    boundaries = np.array(call.option("Boundaries", []), np.float32)
    x = call.floats(0)
    if not boundaries.size:
        return call.cast(call.build.mul(x, call.constant(0, "float32")), "int32")
    wide = call.reshape(x, [*call.shape(0), 1])
    passed = call.build.greater_or_equal(wide, call.constant(boundaries, "float32"))
    return call.build.reduce_sum(call.cast(passed, "int32"), axes=[len(wide.shape) - 1])


@lowers(REVERSE_SEQUENCE=1)
def reverse_sequence(call: TfliteCall) -> Result:
    """The first elements along a dimension in reverse, as many as each batch's length."""
    shape = call.shape(0)
    along, batch = (call.axis(int(call.option(name)), len(shape)) for name in ("SeqDim", "BatchDim"))
    b = call.build

    def laid(values: MLOperand, axis: int) -> MLOperand:
        return call.reshape(values, [shape[axis] if i == axis else 1 for i in range(len(shape))])

    lengths = laid(call.cast(call.operand(1), "int32"), batch)
    steps = laid(call.constant(np.arange(shape[along]), "int32"), along)
    turned = b.sub(b.sub(lengths, call.constant(1, "int32")), steps)
    places = b.where(b.lesser(steps, lengths), turned, steps)
    return call.bare(b.gather_elements(call.moved(0), b.expand(places, list(shape)), axis=along))


@lowers(MATRIX_DIAG=1)
def matrix_diag(call: TfliteCall) -> Result:
    """Square matrices with the last dimension on their diagonals."""
    shape = call.shape(0)
    eye = call.constant(np.eye(shape[-1]), "uint8")
    x = call.moved(0)
    return call.bare(call.build.where(eye, call.reshape(x, [*shape[:-1], 1, shape[-1]]), call.like(0, x)))


@lowers(MATRIX_SET_DIAG=1)
def matrix_set_diag(call: TfliteCall) -> Result:
    """Matrices with other diagonals."""
    rows, columns = call.shape(0)[-2:]
    x, diagonal = call.moved(0), call.moved(1)
    if columns > diagonal.shape[-1]:
        diagonal = call.build.pad(
            diagonal, [0] * len(diagonal.shape), [*(0 for _ in diagonal.shape[1:]), columns - int(diagonal.shape[-1])]
        )
    elif diagonal.shape[-1] > columns:
        call.fail(f"a diagonal of {diagonal.shape[-1]} in {columns} columns")
    diagonal = call.reshape(diagonal, [*diagonal.shape[:-1], 1, columns])
    return call.bare(call.build.where(call.constant(np.eye(rows, columns), "uint8"), diagonal, x))
