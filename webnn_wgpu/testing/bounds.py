"""How far a device may be from the reference: per operator, from its stated tolerance or from the sizes of what it adds up.

Every bound is for one operator whose operands are those that the device had, so no errors accumulate.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from webnn_wgpu.core.data_types import FLOATS, cast_number
from webnn_wgpu.ir.graph import Array, Graph, Node
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._def import OpDef
from webnn_wgpu.reference.interpreter import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

EPSILON = 2.0**-23
"""Relative distance of neighbours in float32: any rounding costs half as much."""

SMALLEST = 2.0**-126
"""Smallest normal float32. WGSL lets devices take smaller numbers for zero."""

ORDINARY = 1e18
"""Sums of products of finite numbers up to this cannot overflow on the way, in whatever order they are made."""

DIVERGED = 1e3
"""States beyond this are those of a network that diverges, as some do whose gates are not bounded: so do roundings."""

LIMITED = ("linear", "hardSigmoid", "resample2d", "batchNormalization")
"""Operators whose tolerance is stated for sums that do not cancel; where they do, it is for the sizes of the terms."""


def is_bounded(op: str) -> bool:
    """Return whether there are bounds for an operator: for all but fused ones, whose bounds are those of their parts."""
    return op in _BOUNDS or OPS[op].tolerance is not None or OPS[op].lower is None


def evaluated(op: OpDef, operands: Sequence[Array | None], node: Node, types: Sequence[TensorType]) -> list[Array]:
    """Return what the reference makes of some operands."""
    assert op.reference is not None
    with np.errstate(all="ignore"):
        return list(op.reference(operands, node.attrs, tuple(types)))


def bounds(
    graph: Graph, node: Node, operands: Sequence[Array | None], expected: Sequence[Array], *, patches: bool = False
) -> list[Array] | None:
    """Return for every output how far each element may be off; None where the node's operands are beyond any promise.

    Args:
        graph: the graph of the node.
        node: the node.
        operands: what it was given.
        expected: what the reference makes of that.
        patches: whether a convolution goes by Winograd's transforms, in which each element of a patch has part in all others:
            its bound is that of the largest, times the sizes of the transforms.
    """
    with np.errstate(all="ignore"):
        body = node.attrs.get("body")
        if isinstance(body, Graph):
            return _of_body(body, operands, patches=patches)
        found = _bounds(graph, node, operands, expected)
        return [np.full(b.shape, 9 * np.max(b)) for b in found] if patches and found else found


def _bounds(graph: Graph, node: Node, operands: Sequence[Array | None], expected: Sequence[Array]) -> list[Array] | None:
    op = OPS[node.op]
    # Shapes and indices have no say in sizes; only floats have roundings.
    if str(expected[0].dtype) not in FLOATS:
        step = node.op == "resample2d" and node.attrs["mode"] == "linear"
        return [np.full(e.shape, float(step)) for e in expected]
    if op.tolerance is not None and node.op not in LIMITED:
        return [_steps(e, op.tolerance) for e in expected]
    finite = [a[np.isfinite(a)] for a in operands if a is not None]
    large = any(np.any(np.abs(a.astype(np.float64)) > ORDINARY) for a in finite)
    if large and node.op.removeprefix("x.") not in _CONDITIONED:
        return None
    types = [graph.type(o).with_data_type("float32") for o in node.outputs]
    found = _BOUNDS[node.op](op, node, operands, types, expected)
    if found is None:
        return None
    return [_rounded(e, np.asarray(b, np.float64)) for e, b in zip(expected, found, strict=True)]


def _of_body(body: Graph, operands: Sequence[Array | None], *, patches: bool) -> list[Array] | None:
    """Return the bounds of a fused node: what each operator may be off itself, and what comes of what its operands may be."""
    values: dict[int, Array] = {v: a for name, v in body.inputs.items() if (a := operands[int(name)]) is not None}
    off: dict[int, Array] = {}
    for i, node in enumerate(body.nodes):
        given = [None if v is None else values[v] for v in node.inputs]
        made = evaluate(body, node, given)
        own = bounds(body, node, given, made, patches=patches and i == 0)
        if own is None:
            return None
        moved = {at: off[value] for at, value in enumerate(node.inputs) if value is not None and value in off}
        for at, by in moved.items():
            own = [b + r for b, r in zip(own, _reached(body, node, given, made, at, by), strict=True)]
        if moved or node.op == "mul":
            # What is off together may be rounded the other way; and a driver may keep a product exact for the sum behind it.
            own = [b + _spacing(m) if m.dtype.kind == "f" else b for b, m in zip(own, made, strict=True)]
        values.update(zip(node.outputs, made, strict=True))
        off.update(zip(node.outputs, own, strict=True))
    return [off[value] for value in body.outputs.values()]


def _reached(
    body: Graph, node: Node, operands: Sequence[Array | None], made: Sequence[Array], at: int, off: Array
) -> list[Array]:
    """Return how far an element-wise operator's results move where one operand is off by so much, up or down."""
    reached = [np.zeros(m.shape) for m in made]
    x = operands[at]
    assert x is not None
    for sign in (-1, 1):
        moved = list(operands)
        moved[at] = np.asarray(x.astype(np.float64) + sign * off, x.dtype)
        for i, (m, e) in enumerate(zip(evaluate(body, node, moved), made, strict=True)):
            same = (m == e) | (np.isnan(m) & np.isnan(e))
            distance = np.where(same, 0, np.abs(m.astype(np.float64) - e.astype(np.float64)))
            reached[i] = np.maximum(reached[i], np.where(np.isnan(distance), np.inf, distance))
    return reached


def _spacing(expected: Array) -> Array:
    finite = np.where(np.isfinite(expected), np.abs(expected), expected.dtype.type(0))
    return np.asarray(np.spacing(finite), np.float64)


def _steps(expected: Array, tolerance: float) -> Array:
    # float16 results are float32 results that are rounded once: what is off before comes out one step away at most.
    return _spacing(expected) * (min(tolerance, 1) if expected.dtype == np.float16 else tolerance)


def _rounded(expected: Array, bound: Array) -> Array:
    """Add the rounding to the output's type to what a result may be off before."""
    return bound + _spacing(expected) * (bound > 0)


# Sums: each term may be off by as many roundings as there are additions --------------------------------------------------


def _terms(node: Node, operands: Sequence[Array | None]) -> int:
    """Return how many numbers are added up in an element, at most."""
    x = operands[0]
    assert x is not None
    second = operands[1] if len(operands) > 1 else None
    attrs = node.attrs
    match node.op:
        case "matmul":
            return x.shape[-1]
        case "gemm":
            return x.shape[-2 if attrs["a_transpose"] else -1] + 2
        case "conv2d" | "convTranspose2d":
            assert second is not None
            outputs = second.shape[attrs["filter_layout"].index("o")]
            return second.size // outputs + 1
        case "cumulativeSum":
            return x.shape[attrs["axis"]]
        case "averagePool2d" | "l2Pool2d":
            return math.prod(attrs["window_dimensions"]) + 1
        case "resample2d" | "batchNormalization":
            return 8
        case _:
            axes = attrs["axes"]
            return math.prod(x.shape[a] for a in (range(x.ndim) if axes is None else axes)) + 1


def _sizes(operands: Sequence[Array | None]) -> list[Array | None]:
    """Return the operands without signs, in float32: what an operator makes of them are the sizes of its terms."""
    return [None if a is None else np.abs(a).astype(np.float32) for a in operands]


def _sum(op: OpDef, node: Node, operands: Any, types: Any, expected: Any) -> list[Array]:
    positive = {n: abs(v) if isinstance(v, float) else v for n, v in node.attrs.items()}
    assert op.reference is not None
    with np.errstate(all="ignore"):
        sizes = op.reference(_sizes(operands), positive, tuple(types))
    return [np.nan_to_num(_terms(node, operands) * EPSILON * s.astype(np.float64), nan=0, posinf=0) for s in sizes]


def _linear(op: OpDef, node: Node, operands: Any, types: Any, expected: Any) -> list[Array]:
    size = np.abs(operands[0].astype(np.float64) * node.attrs["alpha"]) + abs(node.attrs["beta"])
    return [np.nan_to_num(4 * EPSILON * size, posinf=0)]


def _batch_normalization(op: OpDef, node: Node, operands: Any, types: Any, expected: Any) -> list[Array]:
    x, mean, _, scale, bias = _sizes(operands)
    assert mean is not None
    # With the mean's sign turned round, nothing cancels.
    (sizes,) = evaluated(op, [x, -mean, operands[2].astype(np.float32), scale, bias], node, types)
    return [np.nan_to_num(_terms(node, operands) * EPSILON * np.abs(sizes.astype(np.float64)), posinf=0)]


# Other operators ------------------------------------------------------------------------------------------------------


def _relative(node: Node, operands: Any, expected: Any) -> list[Array]:
    """What is rounded once for each term, and does not cancel."""
    return [np.nan_to_num((_terms(node, operands) + 4) * EPSILON * np.abs(e.astype(np.float64)), posinf=0) for e in expected]


def _roots(op: OpDef, node: Node, operands: Any, types: Any, expected: Any) -> list[Array]:
    """Roots of sums of squares, of which squares of numbers below 1e-19 vanish."""
    lost = _terms(node, operands) * SMALLEST
    vanished = (lost / np.maximum(np.nan_to_num(e.astype(np.float64), posinf=np.inf), np.sqrt(lost)) for e in expected)
    return [bound + more for bound, more in zip(_relative(node, operands, expected), vanished, strict=True)]


def _product(op: OpDef, node: Node, operands: Any, types: Any, expected: Any) -> list[Array] | None:
    size: Array = np.nan_to_num(np.abs(operands[0].astype(np.float64)), nan=1, posinf=1)
    largest = np.maximum(size, 1).prod()
    smallest = np.where((size == 0) | (size > 1), 1, size).prod()
    # Products of some of the factors must neither overflow nor vanish, whichever are multiplied first.
    if largest > 1e37 or smallest < 1e-37:
        return None
    return _relative(node, operands, expected)


def sign_unsure(node: Node, operands: Any, types: Any) -> Array:
    """Return which sums that reduceLogSum takes the logarithms of may be negative or not, as roundings decide."""
    return np.asarray(_cancelled(node, operands, types) >= 1)


def _cancelled(node: Node, operands: Any, types: Any) -> Array:
    """Return how far sums may be off, as a part of themselves."""
    totals = evaluated(OPS["reduceSum"], [operands[0].astype(np.float32)], node, types)[0].astype(np.float64)
    sizes = evaluated(OPS["reduceSum"], _sizes(operands), node, types)[0].astype(np.float64)
    with np.errstate(all="ignore"):
        return np.asarray(_terms(node, operands) * EPSILON * sizes / np.abs(totals))


def _log_sum(op: OpDef, node: Node, operands: Any, types: Any, expected: Any) -> list[Array]:
    off = _cancelled(node, operands, types)
    # A sum that is nothing but roundings has no logarithm to speak of.
    return [np.where(off > 0.25, np.inf, np.nan_to_num(2 * off, posinf=0)) + 4 * _spacing(expected[0].astype(np.float32))]


def _log_sum_exp(op: OpDef, node: Node, operands: Any, types: Any, expected: Any) -> list[Array]:
    largest = np.max(np.abs(operands[0][np.isfinite(operands[0])]), initial=0)
    return [np.full(expected[0].shape, EPSILON * (_terms(node, operands) + 8 + 2 * float(largest)))]


def _softmax(op: OpDef, node: Node, operands: Any, types: Any, expected: Any) -> list[Array]:
    x = operands[0]
    finite = x[np.isfinite(x)].astype(np.float64)
    spread = float(np.ptp(finite)) if finite.size else 0.0
    count = x.shape[node.attrs["axis"]]
    return [np.nan_to_num(EPSILON * (count + 8 + spread) * expected[0].astype(np.float64)) + SMALLEST]


def _log_softmax(op: OpDef, node: Node, operands: Any, types: Any, expected: Any) -> list[Array]:
    # What the sum is off relatively, its logarithm is off absolutely; x - max, the logarithm and the result are rounded.
    size = np.abs(np.nan_to_num(expected[0].astype(np.float64), posinf=0, neginf=0))
    return [EPSILON * (operands[0].shape[node.attrs["axis"]] + 8 + 3 * size)]


def _normalization(op: OpDef, node: Node, operands: Any, types: Any, expected: Any) -> list[Array]:
    x = operands[0].astype(np.float64)
    scale, bias = (None if a is None else a.astype(np.float64) for a in operands[1:])
    axes = node.attrs["axes"] if "axes" in node.attrs else {"nchw": (2, 3), "nhwc": (1, 2)}[node.attrs["layout"]]
    count = math.prod(x.shape[a] for a in axes) + 1
    d = x - x.mean(axis=tuple(axes), keepdims=True)
    variance = (d * d).mean(axis=tuple(axes), keepdims=True)
    deviation = np.sqrt(variance + cast_number(node.attrs["epsilon"], str(operands[0].dtype)))
    mean_off = count * EPSILON * np.max(np.abs(x), axis=tuple(axes), keepdims=True)
    variance_off = 2 * np.sqrt(variance) * mean_off + mean_off**2 + count * EPSILON * variance
    off = 2 * mean_off / deviation + np.abs(d / deviation) * (variance_off / (2 * deviation**2) + 4 * EPSILON)
    largest_scale = 1.0 if scale is None else float(np.max(np.abs(scale), initial=0))
    largest_bias = 0.0 if bias is None else float(np.max(np.abs(bias), initial=0))
    size = np.abs(d / deviation) * largest_scale + largest_bias
    return [off * largest_scale + 2 * EPSILON * size]


def _recurrent(op: OpDef, node: Node, operands: Any, types: Any, expected: Any) -> list[Array] | None:
    """Some roundings of the largest state, and what a few roundings of the operands lead to."""
    exact = evaluated(op, [None if a is None else a.astype(np.float32) for a in operands], node, types)
    if any(not np.all(np.abs(e) <= DIVERGED) for e in exact):
        return None
    return _conditioned(op, node, operands, types, expected, least=1.0)


def _conditioned(op: OpDef, node: Node, operands: Any, types: Any, expected: Any, least: float = 0.0) -> list[Array]:
    """Some roundings of the largest result, or of `least`, and what a few roundings of the operands lead to."""
    rng = np.random.default_rng(0)
    wide = [None if a is None else a.astype(np.float32) if str(a.dtype) in FLOATS else a for a in operands]
    moved = [a if a is None or a.dtype.kind != "f" else _moved(a, rng) for a in wide]
    found: list[Array] = []
    for m, e in zip(evaluated(op, moved, node, types), evaluated(op, wide, node, types), strict=True):
        finite = np.isfinite(m) & np.isfinite(e)
        off = np.max(np.abs(m[finite].astype(np.float64) - e[finite]), initial=0)
        found.append(np.full(e.shape, 4 * off + 2.0**-19 * float(np.max(np.abs(e[finite]), initial=least))))
    return found


def _own(op: OpDef, node: Node, operands: Any, types: Any, expected: Any) -> list[Array]:
    """Nothing is known of kernels that programs bring but what they give: some roundings of the largest result."""
    return [np.full(e.shape, 2.0**-19 * float(np.max(np.abs(e[np.isfinite(e)]), initial=0))) for e in expected]


def _moved(array: Array, rng: np.random.Generator) -> Array:
    largest = 3.4e38  # what would become infinite stays as it is
    factors = 1 + rng.choice((-1, 1), array.shape) * np.float32(8 * EPSILON)
    return np.where(np.abs(array) < largest, array * factors, array).astype(np.float32)


_SUMS = (
    *("matmul", "gemm", "conv2d", "convTranspose2d", "cumulativeSum", "averagePool2d", "resample2d"),
    *(f"reduce{name}" for name in ("Sum", "L1", "Mean", "SumSquare")),
)

_CONDITIONED = (
    *("attention", "rotary_embedding", "rms_normalization", "cumulative_product", "matmul_nbits", "gather_block_quantized"),
    *("grid_sample", "weighted_gather", "scatter_elements", "scatter_nd"),
)

_BOUNDS: dict[str, Callable[..., list[Array] | None]] = {
    **dict.fromkeys(_SUMS, _sum),
    **dict.fromkeys(("reduceL2", "l2Pool2d"), _roots),
    **dict.fromkeys(("layerNormalization", "instanceNormalization"), _normalization),
    **dict.fromkeys(("gru", "gruCell", "lstm", "lstmCell"), _recurrent),
    **dict.fromkeys(("linear", "hardSigmoid"), _linear),
    "batchNormalization": _batch_normalization,
    "reduceProduct": _product,
    "reduceLogSum": _log_sum,
    "reduceLogSumExp": _log_sum_exp,
    "softmax": _softmax,
    "x.log_softmax": _log_softmax,
    **dict.fromkeys((f"x.{name}" for name in _CONDITIONED), _conditioned),
    "wgslOp": _own,
}
