"""Cases of pools and of resampling."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from .drawing import ANY, EXACT, FLOATS, Numbers, Tolerance, case, exact, rounded, shown, ulp

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.testing import Case

POOLS: Sequence[tuple[tuple[int, ...], dict[str, Any]]] = (
    ((1, 2, 5, 6), {}),
    ((2, 3, 6, 6), {"windowDimensions": [2, 2], "strides": [2, 2]}),
    ((1, 4, 7, 5), {"windowDimensions": [3, 2], "padding": [1, 1, 1, 0]}),
    ((1, 2, 9, 8), {"windowDimensions": [2, 3], "dilations": [2, 2]}),
    ((1, 3, 7, 8), {"windowDimensions": [3, 3], "strides": [2, 2], "outputShapeRounding": "ceil"}),
    ((1, 5, 8, 8), {"windowDimensions": [3, 3], "strides": [2, 3], "padding": [1, 0, 1, 1]}),
)
"""Shapes as nchw, and options."""

RESAMPLED: Sequence[tuple[tuple[int, ...], dict[str, Any]]] = (
    ((1, 2, 4, 5), {"scales": [2.0, 2.0]}),
    ((1, 2, 4, 5), {"scales": [1.5, 3.0]}),
    ((2, 1, 6, 8), {"scales": [0.5, 0.25]}),
    ((1, 2, 4, 5), {"sizes": [7, 3]}),
    ((1, 4, 5, 3), {"sizes": [3, 8], "axes": [1, 2]}),
)


def cases() -> Iterator[Case]:
    """Yield the cases of pools and of resampling."""
    for data_type in ANY:
        for name in ("averagePool2d", "l2Pool2d", "maxPool2d"):
            if data_type in FLOATS or name == "maxPool2d":
                yield from _pooled(name, data_type)
    for data_type in (*FLOATS, "uint8", "int8"):
        yield from _resampled(data_type)


def _pooled(name: str, data_type: str) -> Iterator[Case]:
    for (shape, options), layout in itertools.product(POOLS, ("nchw", "nhwc")):
        low, high = (0.25, 2) if data_type in FLOATS and name != "maxPool2d" else (-90, 90)
        x = Numbers(name, data_type, shape).draw(data_type, shape, low, high)
        result, most = _windows(name, x, options)
        order = [0, 1, 2, 3] if layout == "nchw" else [0, 2, 3, 1]
        expected = rounded(result, data_type).transpose(order)
        bound = EXACT if name == "maxPool2d" else ulp(most + 2)[data_type]
        what = " ".join([data_type, shown(shape), layout, *(f"{k}={v}" for k, v in options.items())])
        arguments = {"input": np.ascontiguousarray(x.transpose(order))}
        yield case(name, what, arguments, np.ascontiguousarray(expected), bound, layout=layout, **options)


def _windows(name: str, x: Array, options: dict[str, Any]) -> tuple[Array, int]:
    """Return the pooled values, and the number of elements of a window."""
    height, width = options.get("windowDimensions", x.shape[2:])
    (top, bottom, left, right), strides = options.get("padding", [0] * 4), options.get("strides", [1, 1])
    dilations = options.get("dilations", [1, 1])
    whole = (x.shape[2] + top + bottom, x.shape[3] + left + right)
    spans = [whole[d] - ((height, width)[d] - 1) * dilations[d] - 1 for d in (0, 1)]
    up = options.get("outputShapeRounding") == "ceil"
    size = [-(-span // stride) + 1 if up else span // stride + 1 for span, stride in zip(spans, strides, strict=True)]
    result = np.zeros((*x.shape[:2], *size), np.float64 if x.dtype.kind == "f" else x.dtype)
    for i, j in itertools.product(range(size[0]), range(size[1])):
        rows = [i * strides[0] - top + k * dilations[0] for k in range(height)]
        columns = [j * strides[1] - left + k * dilations[1] for k in range(width)]
        inside = np.ix_([r for r in rows if 0 <= r < x.shape[2]], [c for c in columns if 0 <= c < x.shape[3]])
        window = exact(x)[:, :, inside[0], inside[1]]
        if name == "maxPool2d":
            result[:, :, i, j] = window.max((2, 3))
        elif name == "averagePool2d":
            result[:, :, i, j] = window.mean((2, 3))
        else:
            result[:, :, i, j] = np.sqrt((window**2).sum((2, 3)))
    return result, height * width


def _resampled(data_type: str) -> Iterator[Case]:
    for (shape, options), mode in itertools.product(RESAMPLED, ("nearest-neighbor", "linear")):
        axes = options.get("axes", [2, 3])
        x = Numbers("resample2d", data_type, shape).draw(data_type, shape, 0.25, 100)
        sizes = options.get("sizes") or [int(shape[a] * s) for a, s in zip(axes, options["scales"], strict=True)]
        result = exact(x) if data_type in FLOATS else x.astype(np.float64)
        for axis, size in zip(axes, sizes, strict=True):
            result = _along(result, axis, size, mode)
        result = result if data_type in FLOATS else np.rint(result)
        what = " ".join([data_type, mode, shown(shape), *(f"{k}={v}" for k, v in options.items())])
        loose = ulp(84, 10)[data_type] if data_type in FLOATS else Tolerance("ULP", 1)
        bound = EXACT if mode == "nearest-neighbor" else loose
        yield case("resample2d", what, {"input": x}, rounded(result, data_type), bound, mode=mode, **options)


def _along(x: Array, axis: int, size: int, mode: str) -> Array:
    count = x.shape[axis]
    places = np.clip((np.arange(size) + 0.5) * count / size - 0.5, 0, count - 1)
    if mode == "nearest-neighbor":
        return np.take(x, np.ceil(places - 0.5).astype(int), axis)
    low = np.floor(places).astype(int)
    part = (places - low).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
    return np.take(x, low, axis) * (1 - part) + np.take(x, np.minimum(low + 1, count - 1), axis) * part
