"""Cases of operators along axes: reductions, positions of extremes, running sums, softmax, normalizations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .drawing import ANY, EXACT, FLOATS, WIDE, Constant, Numbers, Tolerance, atol, case, exact, rounded, shown, ulp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.testing import Case

AXES: Sequence[tuple[tuple[int, ...], Sequence[int] | None]] = (
    ((24,), None),
    ((3, 8), [0]),
    ((3, 8), [1]),
    ((2, 3, 4), [1]),
    ((2, 3, 4), [2, 0]),
    ((2, 3, 4, 2), [3, 1]),
    ((2, 2, 3, 2, 2), None),
    ((5, 70), [1]),
)

NORMALIZED = atol(2e-5, 2.0**-8)
"""Normalized values are small; statistics are computed in float32."""


def _log_sum_exp(x: Array, axis: Any, keepdims: bool) -> Array:
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


REDUCTIONS: Mapping[str, tuple[Callable[..., Any], Sequence[str], Callable[[int], float]]] = {
    "reduceL1": (lambda x, **k: np.sum(np.abs(x), **k), (*FLOATS, *WIDE), lambda n: n),
    "reduceL2": (lambda x, **k: np.sqrt(np.sum(x * x, **k)), FLOATS, lambda n: 2 * n + 1),
    "reduceLogSum": (lambda x, **k: np.log(np.sum(x, **k)), FLOATS, lambda n: n + 18),
    "reduceLogSumExp": (_log_sum_exp, FLOATS, lambda n: 2 * n + 18),
    "reduceMax": (np.max, ANY, lambda n: 0),
    "reduceMean": (np.mean, FLOATS, lambda n: n + 2),
    "reduceMin": (np.min, ANY, lambda n: 0),
    "reduceProduct": (np.prod, (*FLOATS, *WIDE), lambda n: n),
    "reduceSum": (np.sum, (*FLOATS, *WIDE), lambda n: n),
    "reduceSumSquare": (lambda x, **k: np.sum(x * x, **k), (*FLOATS, *WIDE), lambda n: 2 * n),
}
"""Name -> function, data types, and the tolerance in ULP for n reduced elements."""


def cases() -> Iterator[Case]:
    """Yield the cases of all operators along axes."""
    yield from _reductions()
    yield from _positions()
    yield from _running_sums()
    yield from _softmax()
    yield from _normalizations()


def _reductions() -> Iterator[Case]:
    for name, (formula, data_types, tolerance) in REDUCTIONS.items():
        for data_type in data_types:
            for number, (shape, axes) in enumerate(AXES):
                over = tuple(axes) if axes is not None else tuple(range(len(shape)))
                count = int(np.prod([shape[axis] for axis in over]))
                # Positive floats, near 1: sums that cancel and products that leave the range have no meaningful ULP.
                numbers = Numbers(name, data_type, shape, axes)
                low, high = (0.8, 1.2) if data_type in FLOATS else (-9, 9)
                x = numbers.draw(data_type, shape, low, high) if name not in ("reduceMax", "reduceMin") else None
                x = numbers.whole_range(data_type, shape) if x is None else x
                keep = number % 2 == 1
                with np.errstate(over="ignore"):
                    # numpy would widen sums of 32-bit integers; here they wrap.
                    wide = {} if data_type in FLOATS or name in ("reduceMax", "reduceMin") else {"dtype": x.dtype}
                    result = rounded(formula(exact(x), axis=over, keepdims=keep, **wide), data_type)
                options = {"keepDimensions": keep} | ({"axes": list(axes)} if axes is not None else {})
                what = f"{data_type} {shown(shape)} axes {axes}"
                bound = Tolerance("ULP", tolerance(count)) if data_type in FLOATS else EXACT
                yield case(name, what, {"input": x}, result, bound, **options)


def _positions() -> Iterator[Case]:
    for name, formula in (("argMax", np.argmax), ("argMin", np.argmin)):
        for data_type in ANY:
            for shape, axis in (((9,), 0), ((3, 8), 1), ((3, 8), 0), ((2, 5, 4), 1), ((3, 300), 1)):
                x = Numbers(name, data_type, shape).draw(data_type, shape, -3, 3)
                x = np.rint(x) if data_type in FLOATS else x  # with ties, of which the first counts
                output = "int64" if axis == 0 else "int32"
                result = formula(x, axis=axis, keepdims=axis == 1).astype(output)
                options = {"keepDimensions": axis == 1, "outputDataType": output}
                what = f"{data_type} {shown(shape)} axis {axis}"
                yield case(name, what, {"input": x, "axis": axis}, result, EXACT, **options)


def _running_sums() -> Iterator[Case]:
    for data_type in (*FLOATS, *WIDE):
        for shape, axis in (((9,), 0), ((3, 8), 1), ((3, 8), 0), ((2, 5, 4), 1)):
            for exclusive in (False, True):
                for reverse in (False, True):
                    x = Numbers("cumulativeSum", data_type, shape).draw(data_type, shape, 0.5, 9)
                    ordered = np.flip(exact(x), axis) if reverse else exact(x)
                    sums = np.cumsum(ordered, axis, dtype=ordered.dtype)
                    sums = sums - ordered if exclusive else sums
                    result = rounded(np.flip(sums, axis) if reverse else sums, data_type)
                    what = f"{data_type} {shown(shape)} axis {axis} exclusive={exclusive} reversed={reverse}"
                    options = {"exclusive": exclusive, "reversed": reverse}
                    arguments = {"input": x, "axis": axis}
                    yield case("cumulativeSum", what, arguments, result, ulp(shape[axis])[data_type], **options)


def _softmax() -> Iterator[Case]:
    for data_type in FLOATS:
        for shape in ((6,), (1,), (3, 8), (2, 5, 4), (2, 3, 4, 5), (3, 130)):
            for axis in range(len(shape)):
                x = Numbers("softmax", shape, axis).draw(data_type, shape, -3, 3)
                powers = np.exp(exact(x))
                result = rounded(powers / np.sum(powers, axis=axis, keepdims=True), data_type)
                bound = ulp(3 * shape[axis] + 3)[data_type]
                yield case("softmax", f"{data_type} {shown(shape)} axis {axis}", {"input": x, "axis": axis}, result, bound)


def _normalizations() -> Iterator[Case]:
    for data_type in FLOATS:
        for shape, axis in (((4, 3), 1), ((2, 3, 4), 1), ((2, 3, 4, 5), 1), ((2, 4, 5, 3), 3), ((3, 7), 0)):
            for given in ((), ("scale",), ("scale", "bias")):
                yield _batch_normalization(data_type, shape, axis, given)
        for layout in ("nchw", "nhwc"):
            for shape in ((1, 3, 4, 5), (2, 2, 3, 3)):
                for given in ((), ("bias",), ("scale", "bias")):
                    yield _instance_normalization(data_type, shape, layout, given)
        for shape, axes in (((4, 6), [1]), ((2, 3, 4), [1, 2]), ((2, 3, 4), [2, 1]), ((2, 3, 40), [2]), ((2, 3, 4, 5), [1])):
            for given in ((), ("scale",), ("scale", "bias")):
                yield _layer_normalization(data_type, shape, axes, given)


def _batch_normalization(data_type: str, shape: Sequence[int], axis: int, given: Sequence[str]) -> Case:
    numbers, size = Numbers("batchNormalization", data_type, shape, axis, given), shape[axis]
    x, mean = numbers.draw(data_type, shape), numbers.draw(data_type, (size,))
    variance = numbers.draw(data_type, (size,), 0.5, 2)
    options = {name: Constant(numbers.draw(data_type, (size,))) for name in given}
    spread = [size if d == axis else 1 for d in range(len(shape))]
    m, v = (exact(a).reshape(spread) for a in (mean, variance))
    result = (exact(x) - m) / np.sqrt(v + 0.25)
    result = result * exact(options["scale"].array).reshape(spread) if "scale" in given else result
    result = result + exact(options["bias"].array).reshape(spread) if "bias" in given else result
    what = f"{data_type} {shown(shape)} axis {axis} {' '.join(given)}".strip()
    arguments = {"input": x, "mean": Constant(mean), "variance": Constant(variance)}
    bound = atol(2e-5, 2.0**-6)[data_type]
    return case("batchNormalization", what, arguments, rounded(result, data_type), bound, axis=axis, epsilon=0.25, **options)


def _centered(x: Array, axes: Sequence[int], epsilon: float) -> Array:
    over = tuple(axes)
    mean = x.mean(over, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(over, keepdims=True) + epsilon)


def _instance_normalization(data_type: str, shape: Sequence[int], layout: str, given: Sequence[str]) -> Case:
    numbers = Numbers("instanceNormalization", data_type, shape, layout, given)
    channel = 1 if layout == "nchw" else 3
    x = numbers.draw(data_type, shape)
    options: dict[str, Any] = {name: numbers.draw(data_type, (shape[channel],), 0.5, 2) for name in given}
    spread = [shape[channel] if d == channel else 1 for d in range(4)]
    result = _centered(exact(x), [2, 3] if layout == "nchw" else [1, 2], 0.125)
    result = result * exact(options["scale"]).reshape(spread) if "scale" in given else result
    result = result + exact(options["bias"]).reshape(spread) if "bias" in given else result
    what = f"{data_type} {shown(shape)} {layout} {' '.join(given)}".strip()
    options |= {"layout": layout, "epsilon": 0.125}
    return case("instanceNormalization", what, {"input": x}, rounded(result, data_type), NORMALIZED[data_type], **options)


def _layer_normalization(data_type: str, shape: Sequence[int], axes: Sequence[int], given: Sequence[str]) -> Case:
    numbers = Numbers("layerNormalization", data_type, shape, axes, given)
    x = numbers.draw(data_type, shape)
    sizes = [shape[axis] for axis in axes]
    options: dict[str, Any] = {name: numbers.draw(data_type, sizes, 0.5, 2) for name in given}
    spread = [shape[d] if d in axes else 1 for d in range(len(shape))]

    def placed(parameter: Array) -> Array:
        # Dimensions of scale and bias follow the order of the axes.
        return exact(parameter).transpose(np.argsort(axes)).reshape(spread)

    result = _centered(exact(x), axes, 0.125)
    result = result * placed(options["scale"]) if "scale" in given else result
    result = result + placed(options["bias"]) if "bias" in given else result
    what = f"{data_type} {shown(shape)} axes {axes} {' '.join(given)}".strip()
    options |= {"axes": list(axes), "epsilon": 0.125}
    return case("layerNormalization", what, {"input": x}, rounded(result, data_type), NORMALIZED[data_type], **options)
