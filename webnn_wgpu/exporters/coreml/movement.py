"""Operators that move elements as operations of MIL."""

from __future__ import annotations

import numpy as np

from .call import CoreCall, Var, cast, mb, writes

MOST_DIMENSIONS = 5
"""The highest rank of a tensor."""


@writes("reshape", "squeeze", "unsqueeze")
def _reshape(call: CoreCall) -> Var:
    if call.shape == tuple(call.x.shape):
        return mb.identity(x=call.x)
    return mb.reshape(x=call.x, shape=call.shape) if call.shape else mb.squeeze(x=call.x)


@writes("transpose")
def _transpose(call: CoreCall) -> Var:
    return mb.transpose(x=call.x, perm=list(call.attrs["permutation"]))


@writes("slice")
def _slice(call: CoreCall) -> Var:
    starts, sizes, strides = (list(call.attrs[n]) for n in ("starts", "sizes", "strides"))
    ends = [start + size for start, size in zip(starts, sizes, strict=True)]
    return mb.slice_by_index(x=call.x, begin=starts, end=ends, stride=strides)


@writes("reverse")
def _reverse(call: CoreCall) -> Var:
    axes = list(call.attrs["axes"])
    return mb.reverse(x=call.x, axes=axes) if axes else mb.identity(x=call.x)


@writes("split")
def _split(call: CoreCall) -> list[Var]:
    axis = call.attrs["axis"]
    if len(call.results) == 1:
        return [mb.identity(x=call.x)]
    return list(mb.split(x=call.x, split_sizes=[shape[axis] for _, shape in call.results], axis=axis))


@writes("concat")
def _concat(call: CoreCall) -> Var:
    return mb.concat(values=list(call.operands), axis=call.attrs["axis"])


@writes("tile")
def _tile(call: CoreCall) -> Var:
    return mb.tile(x=call.x, reps=list(call.attrs["repetitions"]))


@writes("pad")
def _pad(call: CoreCall) -> Var:
    begin, end, mode = (call.attrs[n] for n in ("beginning_padding", "ending_padding", "mode"))
    if mode == "constant":
        amounts = [n for pair in zip(begin, end, strict=True) for n in pair]
        padded = mb.pad(
            x=call.x if call.is_float else cast(call.x, "fp32"),
            pad=amounts,
            mode="constant",
            constant_val=call.number(call.attrs["value"]) if call.is_float else np.float32(call.attrs["value"]),
        )
        return padded if call.is_float else cast(padded, "int32")
    x = call.x
    for axis, (before, after) in enumerate(zip(begin, end, strict=True)):
        size: int = x.shape[axis]
        places = np.arange(-int(before), size + int(after))
        if mode == "edge":
            places = places.clip(0, size - 1)
        else:
            places = np.abs(places)
            places = np.where(places >= size, 2 * (size - 1) - places, places)
        if before or after:
            x = mb.gather(x=x, indices=places.astype(np.int32), axis=axis)
    return mb.identity(x=x) if x is call.x else x


@writes("triangular")
def _triangular(call: CoreCall) -> Var:
    ones = np.ones(call.shape[-2:], np.bool_)
    diagonal = call.attrs["diagonal"]
    mask = np.triu(ones, diagonal) if call.attrs["upper"] else np.tril(ones, diagonal)
    kept = np.ascontiguousarray(np.broadcast_to(mask, call.shape))
    zeros = np.zeros(call.shape, call.number(0).dtype)
    return mb.select(cond=kept, a=call.x, b=zeros)


def _indices(call: CoreCall, size: int) -> Var:
    """Return indices in range: clamped, and counted from the beginning."""
    array = call.arrays[1]
    if array is not None:
        found = np.clip(array.astype(np.int64), -size, size - 1)
        return np.where(found < 0, found + size, found).astype(np.int32)
    clamped = mb.maximum(x=mb.minimum(x=call.operands[1], y=np.int32(size - 1)), y=np.int32(-size))
    return mb.add(x=clamped, y=mb.mul(x=cast(mb.less(x=clamped, y=np.int32(0)), "int32"), y=np.int32(size)))


def _nd_indices(call: CoreCall) -> Var:
    """Return vectors of indices in range."""
    indices = call.operands[1]
    sizes = np.array(call.x.shape[: indices.shape[-1]], np.int32)
    clamped = mb.maximum(x=mb.minimum(x=indices, y=sizes - 1), y=-sizes)
    return mb.add(x=clamped, y=mb.mul(x=cast(mb.less(x=clamped, y=np.int32(0)), "int32"), y=sizes))


@writes("gather")
def _gather(call: CoreCall) -> Var:
    axis = call.attrs["axis"]
    return mb.gather(x=call.x, indices=_indices(call, call.x.shape[axis]), axis=axis, validate_indices=False)


@writes("gatherElements")
def _gather_elements(call: CoreCall) -> Var:
    axis = call.attrs["axis"]
    return mb.gather_along_axis(x=call.x, indices=_indices(call, call.x.shape[axis]), axis=axis, validate_indices=False)


@writes("gatherND")
def _gather_nd(call: CoreCall) -> Var:
    return mb.gather_nd(x=call.x, indices=_nd_indices(call), validate_indices=False)


@writes("scatterElements")
def _scatter_elements(call: CoreCall) -> Var:
    axis = call.attrs["axis"]
    indices = _indices(call, call.x.shape[axis])
    return mb.scatter_along_axis(
        data=call.x, indices=indices, updates=call.operands[2], axis=axis, mode="update", validate_indices=False
    )


@writes("scatterND")
def _scatter_nd(call: CoreCall) -> Var:
    return mb.scatter_nd(
        data=call.x, indices=_nd_indices(call), updates=call.operands[2], mode="update", validate_indices=False
    )
