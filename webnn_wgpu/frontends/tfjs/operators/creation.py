"""Operators that make tensors of numbers."""

from __future__ import annotations

import math

import numpy as np

from ...common.held import HELD
from ..call import TfjsCall
from ._registry import INT32, Result, lowers


@lowers("Fill", empty=True)
def fill(call: TfjsCall) -> Result:
    """One number many times."""
    value = call.tensor(1)
    if value.array is not None and value.size == 1:
        return call.filled(tuple(call.sizes(0)), value.array.reshape(-1)[0].item(), value.dtype)
    return call.build.expand(call.reshape(call.operand(1), []), call.sizes(0))


@lowers("Zeros", "Ones", empty=True)
def constants(call: TfjsCall) -> Result:
    """Zeros or ones."""
    dtype = call.dtype("T", "dtype") or np.dtype(np.float32)
    return call.filled(tuple(call.sizes(0)), float(call.node.op == "Ones"), dtype)


@lowers("ZerosLike", "OnesLike", empty=True, folds=False)
def constants_like(call: TfjsCall) -> Result:
    """Zeros or ones in the shape of another tensor."""
    return call.filled(call.tensor(0).shape, float(call.node.op == "OnesLike"), call.tensor(0).dtype)


@lowers("Range", empty=True, folds=False)
def range_(call: TfjsCall) -> Result:
    """Numbers of equal distance."""
    start, stop, step = (call.number(i) for i in range(3))
    if not step or not math.isfinite((stop - start) / step) or (stop - start) / step > 1 << 24:
        call.fail(f"numbers from {start} to {stop} in steps of {step}")
    return call.known(np.asarray(np.arange(start, stop, step), call.tensor(0).dtype))


@lowers("LinSpace", empty=True, folds=False)
def lin_space(call: TfjsCall) -> Result:
    """A number of numbers of equal distance."""
    start, stop, count = float(call.number(0)), float(call.number(1)), int(call.number(2))
    if not 0 < count <= 1 << 24:
        call.fail(f"{count} numbers")
    return call.known(np.linspace(start, stop, count, dtype=np.float32))


@lowers("OneHot")
def one_hot(call: TfjsCall) -> Result:
    """A number in the place of another, and one everywhere else."""
    depth = int(call.number(1))
    if not 0 < depth <= 1 << 24:
        call.fail(f"a depth of {depth}")
    indices = call.cast(call.operand(0), "int32")
    axis = call.axis(call.integer("axis", -1), len(indices.shape) + 1)
    wide = call.reshape(indices, [*indices.shape[:axis], 1, *indices.shape[axis:]])
    lanes = np.arange(depth, dtype=np.int32).reshape([depth if d == axis else 1 for d in range(len(wide.shape))])
    on, off = call.operand(2), call.operand(3)
    if call.dtype("T") is not None:
        on, off = (call.cast(o, HELD[call.dtype("T") or INT32]) for o in (on, off))
    return call.build.where(call.build.equal(wide, call.constant(lanes, "int32")), call.reshape(on, []), call.reshape(off, []))
