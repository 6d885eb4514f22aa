"""Cases of sums of products: matmul, gemm, convolutions."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from .drawing import FLOATS, Constant, Numbers, case, exact, rounded, shown, sum_bound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.testing import Case

MATRICES = (
    ((1, 1), (1, 1)),
    ((3, 4), (4, 5)),
    ((1, 70), (70, 9)),
    ((9, 70), (70, 1)),
    ((17, 33), (33, 18)),
    ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((3, 1, 2, 4), (2, 4, 3)),
    ((2, 1, 3, 4), (1, 5, 4, 2)),
    ((16, 64), (64, 32)),
)

GEMMS: Sequence[tuple[dict[str, Any], Sequence[int] | None]] = (
    ({}, None),
    ({"alpha": 0.5}, None),
    ({}, ()),
    ({}, (7,)),
    ({"beta": 0.25}, (1, 7)),
    ({"alpha": 2.0, "beta": -1.0}, (5, 1)),
    ({}, (5, 7)),
    ({"aTranspose": True}, (7,)),
    ({"bTranspose": True}, (7,)),
    ({"aTranspose": True, "bTranspose": True, "alpha": -0.5}, (5, 7)),
)

CONVOLUTIONS: Sequence[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = (
    ((1, 1, 5, 5), (1, 1, 3, 3), {}),
    ((1, 3, 6, 7), (4, 3, 1, 1), {}),
    ((2, 4, 6, 7), (8, 4, 3, 3), {"padding": [1, 1, 1, 1]}),
    ((1, 3, 8, 8), (5, 3, 3, 3), {"strides": [2, 2], "padding": [0, 1, 0, 1]}),
    ((1, 2, 9, 8), (3, 2, 3, 2), {"dilations": [2, 3]}),
    ((1, 4, 7, 6), (6, 2, 3, 3), {"groups": 2, "padding": [1, 0, 2, 1]}),
    ((2, 6, 7, 5), (6, 1, 3, 3), {"groups": 6, "padding": [1, 1, 1, 1]}),
    ((1, 4, 6, 6), (8, 1, 2, 2), {"groups": 4, "strides": [2, 1]}),
    ((1, 16, 9, 9), (16, 16, 3, 3), {"padding": [1, 1, 1, 1]}),
    ((1, 5, 1, 12), (4, 5, 1, 3), {"strides": [1, 2]}),
)
"""Shapes as nchw and oihw, and options."""

TRANSPOSED: Sequence[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = (
    ((1, 1, 3, 3), (1, 1, 2, 2), {}),
    ((1, 2, 4, 3), (2, 3, 3, 3), {"strides": [2, 2]}),
    ((2, 3, 4, 4), (3, 2, 3, 3), {"strides": [2, 2], "padding": [1, 1, 1, 1], "outputPadding": [1, 1]}),
    ((1, 4, 3, 5), (4, 2, 2, 3), {"groups": 2, "dilations": [2, 1]}),
    ((1, 4, 5, 4), (4, 1, 3, 3), {"groups": 4, "strides": [2, 1], "padding": [0, 1, 1, 0]}),
    ((1, 3, 4, 4), (3, 4, 1, 1), {}),
)
"""Shapes as nchw and iohw, and options."""


def cases() -> Iterator[Case]:
    """Yield the cases of all sums of products."""
    for data_type in FLOATS:
        yield from _matmul(data_type)
        yield from _gemm(data_type)
        yield from _conv2d(data_type)
        yield from _conv_transpose2d(data_type)


def _matmul(data_type: str) -> Iterator[Case]:
    for shapes, constant in itertools.product(MATRICES, (False, True)):
        numbers = Numbers("matmul", data_type, shapes)
        a, b = (numbers.draw(data_type, shape, -1, 1) for shape in shapes)
        result = exact(a) @ exact(b)
        bound = sum_bound(data_type, shapes[0][-1], abs(exact(a)) @ abs(exact(b)), result)
        what = f"{data_type} {shown(*shapes)}{' constant' if constant else ''}"
        yield case("matmul", what, {"a": a, "b": Constant(b) if constant else b}, rounded(result, data_type), bound)


def _gemm(data_type: str) -> Iterator[Case]:
    for (options, shape), constant in itertools.product(GEMMS, (False, True)):
        numbers = Numbers("gemm", data_type, options, shape)
        a = numbers.draw(data_type, (9, 5) if "aTranspose" in options else (5, 9), -1, 1)
        b = numbers.draw(data_type, (7, 9) if "bTranspose" in options else (9, 7), -1, 1)
        given: dict[str, Any] = dict(options)
        left, right = (
            (exact(a).T if "aTranspose" in options else exact(a)),
            (exact(b).T if "bTranspose" in options else exact(b)),
        )
        alpha, beta = options.get("alpha", 1.0), options.get("beta", 1.0)
        result, magnitudes = alpha * (left @ right), abs(alpha) * (abs(left) @ abs(right))
        if shape is not None:
            c = numbers.draw(data_type, shape, -1, 1)
            given["c"] = Constant(c) if constant else c
            result, magnitudes = result + beta * exact(c), magnitudes + abs(beta * exact(c))
        what = " ".join([data_type, *(f"{k}={v}" for k, v in options.items()), f"c {shape}", "constant" * constant]).strip()
        bound = sum_bound(data_type, 12, magnitudes, result)
        yield case("gemm", what, {"a": a, "b": Constant(b) if constant else b}, rounded(result, data_type), bound, **given)


LAYOUTS = (("nchw", "oihw"), ("nhwc", "ohwi"), ("nhwc", "hwio"), ("nchw", "ihwo"))
TRANSPOSED_LAYOUTS = (("nchw", "iohw"), ("nhwc", "ohwi"), ("nhwc", "hwoi"))


def _laid_out(array: Array, source: str, target: str) -> Array:
    return np.ascontiguousarray(array.transpose([source.index(letter) for letter in target]))


def _conv2d(data_type: str) -> Iterator[Case]:
    for (x_shape, shape, options), bias in itertools.product(CONVOLUTIONS, (False, True)):
        numbers = Numbers("conv2d", data_type, x_shape, shape, bias)
        x, weights = numbers.draw(data_type, x_shape, -1, 1), numbers.draw(data_type, shape, -1, 1)
        offsets = numbers.draw(data_type, (shape[0],), -1, 1) if bias else np.zeros(shape[0], data_type)
        result = _convolved(exact(x), exact(weights), options) + exact(offsets)[:, None, None]
        magnitudes = _convolved(abs(exact(x)), abs(exact(weights)), options) + abs(exact(offsets))[:, None, None]
        bound = sum_bound(data_type, int(np.prod(shape[1:])) + 1, magnitudes, result)
        for layout, filters in LAYOUTS if bias else LAYOUTS[:2]:
            what = f"{data_type} {shown(x_shape, shape)} {layout} {filters}{' bias' if bias else ''}"
            given: dict[str, Any] = {"inputLayout": layout, "filterLayout": filters, **options}
            given |= {"bias": Constant(offsets)} if bias else {}
            arguments = {"input": _laid_out(x, "nchw", layout), "filter": Constant(_laid_out(weights, "oihw", filters))}
            expected = rounded(_laid_out(result, "nchw", layout), data_type)
            yield case("conv2d", what, arguments, expected, bound, **given)


def _convolved(x: Array, weights: Array, options: dict[str, Any]) -> Array:
    (top, bottom, left, right), groups = options.get("padding", [0] * 4), options.get("groups", 1)
    (down, across), (below, beside) = options.get("strides", [1, 1]), options.get("dilations", [1, 1])
    x = np.pad(x, [(0, 0), (0, 0), (top, bottom), (left, right)])
    rows, columns = (x.shape[2 + d] - (weights.shape[2 + d] - 1) * (below, beside)[d] - 1 for d in (0, 1))
    size = (rows // down + 1, columns // across + 1)
    result = np.zeros((x.shape[0], groups, weights.shape[0] // groups, *size))
    grouped = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
    taps = weights.reshape(groups, -1, *weights.shape[1:])
    for i, j in itertools.product(range(weights.shape[2]), range(weights.shape[3])):
        part = grouped[..., i * below :: down, j * beside :: across][..., : size[0], : size[1]]
        result += np.einsum("ngchw,goc->ngohw", part, taps[..., i, j])
    return result.reshape(x.shape[0], -1, *size)


def _conv_transpose2d(data_type: str) -> Iterator[Case]:
    for (x_shape, shape, options), bias in itertools.product(TRANSPOSED, (False, True)):
        numbers, outputs = Numbers("convTranspose2d", data_type, x_shape, shape, bias), shape[1] * options.get("groups", 1)
        x, weights = numbers.draw(data_type, x_shape, -1, 1), numbers.draw(data_type, shape, -1, 1)
        offsets = numbers.draw(data_type, (outputs,), -1, 1) if bias else np.zeros(outputs, data_type)
        result = _spread(exact(x), exact(weights), options) + exact(offsets)[:, None, None]
        magnitudes = _spread(abs(exact(x)), abs(exact(weights)), options) + abs(exact(offsets))[:, None, None]
        terms = int(np.prod(shape[2:])) * shape[0] // options.get("groups", 1) + 1
        bound = sum_bound(data_type, terms, magnitudes, result)
        for layout, filters in TRANSPOSED_LAYOUTS:
            what = f"{data_type} {shown(x_shape, shape)} {layout} {filters}{' bias' if bias else ''}"
            given: dict[str, Any] = {"inputLayout": layout, "filterLayout": filters, **options}
            given |= {"bias": Constant(offsets)} if bias else {}
            arguments = {"input": _laid_out(x, "nchw", layout), "filter": Constant(_laid_out(weights, "iohw", filters))}
            expected = rounded(_laid_out(result, "nchw", layout), data_type)
            yield case("convTranspose2d", what, arguments, expected, bound, **given)


def _spread(x: Array, weights: Array, options: dict[str, Any]) -> Array:
    """Add each element times the filter to where it goes, then cut the padding off."""
    (top, bottom, left, right), groups = options.get("padding", [0] * 4), options.get("groups", 1)
    (down, across), (below, beside) = options.get("strides", [1, 1]), options.get("dilations", [1, 1])
    more = options.get("outputPadding", [0, 0])
    rows = (x.shape[2] - 1) * down + (weights.shape[2] - 1) * below + 1
    columns = (x.shape[3] - 1) * across + (weights.shape[3] - 1) * beside + 1
    whole = np.zeros((x.shape[0], groups, weights.shape[1], rows + more[0], columns + more[1]))
    grouped = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
    taps = weights.reshape(groups, -1, *weights.shape[1:])
    for i, j in itertools.product(range(weights.shape[2]), range(weights.shape[3])):
        part = np.einsum("ngchw,gco->ngohw", grouped, taps[..., i, j])
        last = (i * below + (x.shape[2] - 1) * down + 1, j * beside + (x.shape[3] - 1) * across + 1)
        whole[..., i * below : last[0] : down, j * beside : last[1] : across] += part
    whole = whole.reshape(x.shape[0], -1, *whole.shape[3:])
    return whole[..., top : whole.shape[2] - bottom, left : whole.shape[3] - right]
