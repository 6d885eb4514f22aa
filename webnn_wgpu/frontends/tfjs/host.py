"""Operators that the host evaluates: results whose shape depends on elements, and transforms of few numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..common.calls import OnHost
from ..common.held import Array
from .call import NodeFacts
from .tensors import TfjsNode


class HostCall(NodeFacts):
    """A node and the arrays of its inputs."""

    def __init__(self, node: TfjsNode, arrays: Sequence[Array]) -> None:
        super().__init__(node)
        self.arrays = arrays

    def array(self, index: int) -> Array:
        """Return an input."""
        if index >= len(self.arrays):
            raise OnHost(f"input {index} is missing")
        return self.arrays[index]

    def number(self, index: int, default: float = 0.0) -> Any:
        """Return an input of one element."""
        if index >= len(self.arrays):
            return default
        array = self.arrays[index]
        if array.size != 1:
            raise OnHost(f"input {index} has {array.size} elements")
        return array.reshape(-1)[0].item()


def evaluate(node: TfjsNode, arrays: Sequence[Array]) -> list[Array]:
    """Return the results of a node.

    Raises:
        OnHost: the host cannot evaluate it either.
    """
    function = EVALUATED.get(node.op)
    if function is None:
        raise OnHost("neither the device nor the host has this operator")
    try:
        results = function(HostCall(node, arrays))
    except (ValueError, TypeError, IndexError, OverflowError, MemoryError) as error:
        raise OnHost(f"{type(error).__name__}: {error}") from error
    return results[: len(node.outputs)]


def _where(call: HostCall) -> list[Array]:
    return [np.argwhere(call.array(0)).astype(np.int32)]


def _suppressed(call: HostCall) -> list[Array]:
    """Return boxes of the best scores that do not overlap, as TensorFlow.js's non_max_suppression_impl."""
    boxes, scores = call.array(0).astype(np.float32), call.array(1).astype(np.float32)
    most, overlap = int(call.number(2)), float(call.number(3, 0.5))
    least, sigma = float(call.number(4, -np.inf)), float(call.number(5, 0.0))
    soft = call.node.op == "NonMaxSuppressionV5"
    if boxes.ndim != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise OnHost(f"boxes {boxes.shape} and scores {scores.shape}")
    low = np.minimum(boxes[:, :2], boxes[:, 2:])
    high = np.maximum(boxes[:, :2], boxes[:, 2:])
    areas = np.prod(high - low, 1)
    scale = -0.5 / sigma if soft and sigma > 0 else 0.0
    waiting = sorted(((float(s), i, 0) for i, s in enumerate(scores) if s > least), key=lambda c: (c[0], -c[1]))
    chosen: list[int] = []
    values: list[float] = []
    while len(chosen) < most and waiting:
        score, index, begin = waiting.pop()
        if score < least:
            break
        original, ignored = score, False
        for j in range(len(chosen) - 1, begin - 1, -1):
            other = chosen[j]
            if areas[index] <= 0 or areas[other] <= 0:
                share = 0.0
            else:
                sides = np.maximum(np.minimum(high[index], high[other]) - np.maximum(low[index], low[other]), 0)
                both = float(sides[0] * sides[1])
                share = both / float(areas[index] + areas[other] - both)
            if share >= overlap:
                ignored = True
                break
            score *= float(np.exp(scale * share * share)) if share <= overlap else 0.0
            if score <= least:
                break
        begin = len(chosen)
        if ignored:
            continue
        if score == original:
            chosen.append(index)
            values.append(score)
        elif score > least:
            entry = (score, index, begin)
            at = next((k for k, c in enumerate(waiting) if (c[0], -c[1]) > (score, -index)), len(waiting))
            waiting.insert(at, entry)
    valid = len(chosen)
    if call.flag("pad_to_max_output_size"):
        chosen += [0] * (most - valid)
    indices = np.array(chosen, np.int32)
    if soft:
        return [indices, np.array(values, np.float32), np.array(valid, np.int32)]
    return [indices, np.array(valid, np.int32)]


def _unique(call: HostCall) -> list[Array]:
    x = call.array(0)
    axis = None
    if call.node.op == "UniqueV2" and len(call.arrays) > 1 and call.array(1).size:
        axis = int(call.number(1))
    _, first, inverse = np.unique(x, return_index=True, return_inverse=True, axis=axis)
    order = np.argsort(first, kind="stable")
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    found = np.take(x, first[order], axis=axis) if axis is not None else x.reshape(-1)[first[order]]
    return [found, places[inverse.reshape(-1)].astype(np.int32)]


def _difference(call: HostCall) -> list[Array]:
    x, y = call.array(0), call.array(1)
    kept = np.flatnonzero(~np.isin(x, y))
    return [x[kept], kept.astype(np.int32)]


def _found(call: HostCall) -> list[Array]:
    keys, values, x, default = (call.array(i) for i in range(4))
    order = np.argsort(keys, kind="stable")
    at = np.clip(np.searchsorted(keys[order], x), 0, max(len(keys) - 1, 0))
    if not len(keys):
        return [np.broadcast_to(default, x.shape).copy()]
    hit = keys[order][at] == x
    return [np.where(hit, values[order][at], default).astype(values.dtype)]


def _table_size(call: HostCall) -> list[Array]:
    return [np.array(len(call.array(0)), np.int32)]


def _filled_rows(call: HostCall) -> list[Array]:
    indices, values, shape, default = (call.array(i) for i in range(4))
    rows = int(shape[0])
    if not 0 <= rows < 1 << 24:
        raise OnHost(f"{rows} rows")
    there = np.zeros(rows, bool)
    there[indices[:, 0]] = True
    empty = np.flatnonzero(~there)
    new = np.zeros((len(empty), indices.shape[1]), indices.dtype)
    new[:, 0] = empty
    whole = np.concatenate([indices, new])
    order = np.argsort(whole[:, 0], kind="stable")
    back = np.empty(len(order), np.int32)
    back[order] = np.arange(len(order), dtype=np.int32)
    filled = np.concatenate([values, np.full(len(empty), default, values.dtype)])
    return [whole[order], filled[order], ~there, back[: len(indices)]]


def _reshaped(call: HostCall) -> list[Array]:
    indices, shape, target = call.array(0), call.array(1).astype(np.int64), call.array(2).astype(np.int64)
    total = int(np.prod(shape))
    known = int(np.prod(target[target != -1]))
    target = np.where(target == -1, total // max(known, 1), target)
    if int(np.prod(target)) != total or (shape < 0).any():
        raise OnHost(f"the shape {target.tolist()} for {total} elements")
    flat = np.ravel_multi_index(tuple(indices.T), tuple(shape)) if len(indices) else np.zeros(0, np.int64)
    new = np.stack(np.unravel_index(flat, tuple(target)), 1) if len(indices) else np.zeros((0, len(target)), np.int64)
    return [new.astype(np.int32), target.astype(np.int32)]


def _transform(call: HostCall) -> list[Array]:
    x, op = call.array(0), call.node.op
    if op in ("FFT", "IFFT"):
        return [(np.fft.fft if op == "FFT" else np.fft.ifft)(x).astype(np.complex64)]
    length = int(np.asarray(call.array(1)).reshape(-1)[0]) if len(call.arrays) > 1 else None
    if length is not None and not 0 < length < 1 << 24:
        raise OnHost(f"a transform of {length} numbers")
    if op == "RFFT":
        return [np.fft.rfft(x, length).astype(np.complex64)]
    return [np.fft.irfft(x, length).astype(np.float32)]


def _complex(call: HostCall) -> list[Array]:
    return [(call.array(0) + 1j * call.array(1)).astype(np.complex64)]


def _projected(call: HostCall) -> list[Array]:
    """Return pictures through projective transforms, as TensorFlow.js's transform."""
    x, transforms = call.array(0), call.array(1).astype(np.float64)
    sizes = [int(v) for v in call.array(2).reshape(-1)]
    fill = float(call.number(3, 0.0))
    n, h, w, c = x.shape
    if len(sizes) != 2 or not all(0 < d < 1 << 15 for d in sizes):
        raise OnHost(f"pictures of {sizes}")
    mode = call.text("fill_mode", "CONSTANT").upper()
    linear = call.text("interpolation", "NEAREST").upper() == "BILINEAR"
    y, xs = np.meshgrid(np.arange(sizes[0]), np.arange(sizes[1]), indexing="ij")
    out = np.empty((n, *sizes, c), np.float32)
    for b in range(n):
        t = transforms[b if len(transforms) > 1 else 0]
        k = t[6] * xs + t[7] * y + 1
        with np.errstate(divide="ignore", invalid="ignore"):
            px, py = (t[0] * xs + t[1] * y + t[2]) / k, (t[3] * xs + t[4] * y + t[5]) / k
        px, py = _folded(px, w, mode), _folded(py, h, mode)

        def at(row: Array, column: Array, picture: Array = x[b]) -> Array:
            good = (row >= 0) & (row < h) & (column >= 0) & (column < w)
            r, q = np.clip(row, 0, h - 1).astype(np.int64), np.clip(column, 0, w - 1).astype(np.int64)
            return np.where(good[..., None], picture[r, q], fill)

        if linear:
            fy, fx = np.floor(py), np.floor(px)
            low = at(fy, fx) * (fx + 1 - px)[..., None] + at(fy, fx + 1) * (px - fx)[..., None]
            high = at(fy + 1, fx) * (fx + 1 - px)[..., None] + at(fy + 1, fx + 1) * (px - fx)[..., None]
            value = low * (fy + 1 - py)[..., None] + high * (py - fy)[..., None]
        else:
            value = at(np.floor(py + 0.5), np.floor(px + 0.5))
        out[b] = np.where((k == 0)[..., None], fill, value)
    return [out]


def _folded(places: Array, size: int, mode: str) -> Array:
    """Return places outside of a picture as places inside, by the mode of filling."""
    places = np.nan_to_num(places, nan=-1, posinf=size, neginf=-1)
    if mode == "REFLECT":
        period = 2 * size
        inside = np.mod(places, period) if size > 1 else np.zeros_like(places)
        return np.clip(np.where(inside >= size, period - inside - 1, inside), 0, size - 1)
    if mode == "WRAP":
        return np.clip(np.mod(places, size) if size > 1 else np.zeros_like(places), 0, size - 1)
    return np.clip(places, 0, size - 1) if mode == "NEAREST" else places


EVALUATED: Mapping[str, Callable[[HostCall], list[Array]]] = {
    "Where": _where,
    "NonMaxSuppressionV2": _suppressed,
    "NonMaxSuppressionV3": _suppressed,
    "NonMaxSuppressionV4": _suppressed,
    "NonMaxSuppressionV5": _suppressed,
    "Unique": _unique,
    "UniqueV2": _unique,
    "ListDiff": _difference,
    "LookupTableFind": _found,
    "LookupTableFindV2": _found,
    "LookupTableSize": _table_size,
    "LookupTableSizeV2": _table_size,
    "SparseFillEmptyRows": _filled_rows,
    "SparseReshape": _reshaped,
    "FFT": _transform,
    "IFFT": _transform,
    "RFFT": _transform,
    "IRFFT": _transform,
    "Complex": _complex,
    "Real": lambda call: [np.ascontiguousarray(np.real(call.array(0)))],
    "Imag": lambda call: [np.ascontiguousarray(np.imag(call.array(0)))],
    "ComplexAbs": lambda call: [np.abs(call.array(0)).astype(np.float32)],
    "ImageProjectiveTransformV3": _projected,
}
"""The operators that the host evaluates, by name."""
