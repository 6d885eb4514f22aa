"""Operators that move elements as ONNX nodes."""

from __future__ import annotations

import numpy as np

from .call import OnnxCall, OnnxValue, writes

LOWEST = -(2**63)
"""The end of a slice with a negative step that reaches the first element."""


@writes("reshape", "squeeze", "unsqueeze")
def _reshape(call: OnnxCall) -> OnnxValue:
    return call.reshape(call.given[0], call.shape)


@writes("expand")
def _expand(call: OnnxCall) -> OnnxValue:
    return call.expand(call.given[0], call.shape)


@writes("transpose")
def _transpose(call: OnnxCall) -> OnnxValue:
    return call.node("Transpose", call.given[0], shape=call.shape, perm=list(call.attrs["permutation"]) or None)


@writes("slice")
def _slice(call: OnnxCall) -> OnnxValue:
    starts, sizes, strides = (call.attrs[n] for n in ("starts", "sizes", "strides"))
    operand = call.given[0]
    if not starts:
        return operand
    ends = [start + size for start, size in zip(starts, sizes, strict=True)]
    axes = range(len(starts))
    vectors = [call.ints(v, n) for v, n in ((starts, "starts"), (ends, "ends"), (axes, "axes"), (strides, "steps"))]
    return call.node("Slice", operand, *vectors, shape=call.shape)


@writes("reverse")
def _reverse(call: OnnxCall) -> OnnxValue:
    axes = call.attrs["axes"]
    operand = call.given[0]
    if not axes:
        return operand
    vectors = ([-1] * len(axes), [LOWEST] * len(axes), axes, [-1] * len(axes))
    return call.node(
        "Slice", operand, *(call.ints(v, n) for v, n in zip(vectors, ("starts", "ends", "axes", "steps"), strict=True))
    )


@writes("split")
def _split(call: OnnxCall) -> list[OnnxValue]:
    sizes = [shape[call.attrs["axis"]] for _, shape in call.results]
    return call.several("Split", [call.given[0], call.ints(sizes, "sizes")], call.results, axis=call.attrs["axis"])


@writes("concat")
def _concat(call: OnnxCall) -> OnnxValue:
    return call.node("Concat", *call.given, shape=call.shape, axis=call.attrs["axis"])


@writes("tile")
def _tile(call: OnnxCall) -> OnnxValue:
    return call.node("Tile", call.given[0], call.ints(call.attrs["repetitions"], "repeats"), shape=call.shape)


MODES = {"constant": "constant", "edge": "edge", "reflection": "reflect"}


@writes("pad")
def _pad(call: OnnxCall) -> OnnxValue:
    mode = call.attrs["mode"]
    if mode not in MODES:
        raise call.refuse(f"there is no padding '{mode}'")
    operand = call.given[0]
    amounts = [*call.attrs["beginning_padding"], *call.attrs["ending_padding"]]
    if not amounts:
        # Readers refuse a Pad of a scalar, whose amounts have no elements.
        return call.node("Identity", operand, shape=call.shape)
    value = call.scalar(call.attrs["value"], operand, "value") if mode == "constant" else None
    return call.node("Pad", operand, call.ints(amounts, "amounts"), value, shape=call.shape, mode=MODES[mode])


@writes("triangular")
def _triangular(call: OnnxCall) -> OnnxValue:
    operand = call.given[0]
    upper, diagonal = call.attrs["upper"], call.attrs["diagonal"]
    if operand.data_type in ("float32", "float16", "int32", "int64"):
        return call.node("Trilu", operand, call.constant(np.int64(diagonal), "diagonal"), upper=int(upper))
    ones = np.ones(operand.shape[-2:], np.bool_)
    mask = np.triu(ones, diagonal) if upper else np.tril(ones, diagonal)
    kind = "int64" if operand.data_type == "uint64" else operand.data_type
    kept = call.node(
        "Where",
        call.constant(mask, "mask"),
        call.cast(operand, kind),
        call.scalar(0, kind, "zero"),
        data_type=kind,
        shape=call.shape,
    )
    return call.cast(kept, operand.data_type)


def _indices(call: OnnxCall, indices: OnnxValue, size: int) -> OnnxValue:
    """Return indices in the range that WebNN clamps them to: ONNX refuses others."""
    if indices.array is not None:
        found = np.clip(indices.array.astype(np.int64), -size, size - 1)
        return (
            indices
            if np.array_equal(found, indices.array) and indices.data_type in ("int32", "int64")
            else call.constant(found, "indices")
        )
    low, high = call.scalar(-size, "int64", "lowest"), call.scalar(size - 1, "int64", "highest")
    if indices.data_type == "int32":
        low, high = call.scalar(-size, "int32", "lowest"), call.scalar(size - 1, "int32", "highest")
        return call.node("Clip", indices, low, high)
    return call.node("Clip", call.cast(indices, "int64"), low, high)


def _nd_indices(call: OnnxCall, indices: OnnxValue, shape: tuple[int, ...]) -> OnnxValue:
    """Return vectors of indices, each in the range of its dimension, as int64."""
    sizes = np.array(shape[: indices.shape[-1]], np.int64)
    if indices.array is not None:
        return call.constant(np.clip(indices.array.astype(np.int64), -sizes, sizes - 1), "indices")
    raised = call.node("Max", call.cast(indices, "int64"), call.constant(-sizes, "lowest"))
    return call.node("Min", raised, call.constant(sizes - 1, "highest"))


@writes("gather")
def _gather(call: OnnxCall) -> OnnxValue:
    operand, indices = call.given
    axis = call.attrs["axis"]
    return call.node("Gather", operand, _indices(call, indices, operand.shape[axis]), shape=call.shape, axis=axis)


@writes("gatherElements")
def _gather_elements(call: OnnxCall) -> OnnxValue:
    operand, indices = call.given
    axis = call.attrs["axis"]
    return call.node("GatherElements", operand, _indices(call, indices, operand.shape[axis]), shape=call.shape, axis=axis)


@writes("gatherND")
def _gather_nd(call: OnnxCall) -> OnnxValue:
    operand, indices = call.given
    return call.node("GatherND", operand, _nd_indices(call, indices, operand.shape), shape=call.shape)


@writes("scatterElements", "x.scatter_elements")
def _scatter_elements(call: OnnxCall) -> OnnxValue:
    operand, indices, updates = call.given
    axis = call.attrs["axis"]
    found = _indices(call, indices, operand.shape[axis])
    reduction = call.attrs.get("reduction", "none")
    return call.node(
        "ScatterElements", operand, found, updates, axis=axis, reduction=None if reduction == "none" else reduction
    )


@writes("scatterND", "x.scatter_nd")
def _scatter_nd(call: OnnxCall) -> OnnxValue:
    operand, indices, updates = call.given
    reduction = call.attrs.get("reduction", "none")
    found = _nd_indices(call, indices, operand.shape)
    return call.node("ScatterND", operand, found, updates, reduction=None if reduction == "none" else reduction)
