"""Calls of every differentiable operator: those of the catalog of operators with small tensors, and further options."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.kernels.operators import Call, calls, indices
from webnn_wgpu.ops import OPS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webnn_wgpu.ir.graph import Array

_INSIDE = ("x.acos", "x.asin", "x.atanh")
"""Operators of numbers between -1 and 1."""

STRAIGHT_THROUGH = ("x.round_bfloat16", "x.round_float8")
"""Operators whose gradient is not the derivative of their steps."""

_LARGEST = 20_000
"""Elements of all operands of a call. Larger calls take the reference long, and their options occur in others too."""


_MOST_STEPS = 3


def _further() -> Iterator[Call]:
    yield Call("cast", "float", [(3, 4)], {"data_type": "float16"})
    yield Call("clamp", "bounds", [(5, 40)], {"min_value": -0.5, "max_value": 0.25})
    yield Call("slice", "strides", [(7, 5, 9)], {"starts": [1, 0, 2], "sizes": [6, 3, 7], "strides": [2, 1, 3]})
    yield Call(
        "slice",
        "rank-8",
        [(2, 1, 2, 1, 2, 1, 2, 9)],
        {"starts": [0] * 8, "sizes": [2, 1] * 3 + [2, 9], "strides": [1] * 7 + [4]},
    )
    yield Call("tile", "all-axes", [(2, 3, 1, 4)], {"repetitions": [3, 1, 4, 2]})
    yield Call("split", "one", [(6, 4)], {"splits": 1, "axis": 0})
    yield Call("expand", "rank", [(3, 1)], {"new_shape": [2, 3, 5]})
    yield Call("reverse", "axis", [(3, 4, 2)], {"axes": [1]})
    yield Call("transpose", "cycle", [(3, 4, 2)], {"permutation": [2, 0, 1]})
    for mode in ("edge", "reflection", "symmetric", "constant"):
        yield Call("pad", mode, [(4, 1, 5)], {"beginning_padding": [2, 0, 3], "ending_padding": [3, 0, 1], "mode": mode})
    yield Call("pad", "repeated", [(2, 3)], {"beginning_padding": [5, 0], "ending_padding": [4, 7], "mode": "symmetric"})
    for upper in (True, False):
        yield Call("triangular", f"upper-{upper}", [(2, 4, 5)], {"upper": upper, "diagonal": 1})
    for axis in (0, 1, 2):
        yield Call("gather", f"axis-{axis}", [(4, 5, 3), indices(3, (2, 3))], {"axis": axis})
    yield Call("gather", "scalar", [(4, 5), np.array(2, np.int32)], {"axis": 1})
    yield Call(
        "gatherElements",
        "one-of-each",
        [(4, 5, 3), np.int32([[[4, -1, 0]], [[1, -5, 2]], [[0, 0, 3]], [[-2, 9, -9]]])],
        {"axis": 1},
    )
    yield Call("gatherElements", "axis-1", [(4, 5), indices(5, (4, 9))], {"axis": 1})
    for reduction in ("none", "add", "mul", "max", "min"):
        options = {"reduction": reduction}
        yield Call("x.scatter_elements", reduction, [(6, 5), indices(6, (9, 5)), (9, 5)], {"axis": -2, **options})
        yield Call("x.scatter_nd", reduction, [(6, 5), indices(6, (9, 1)), (9, 5)], options)
        yield Call("x.scatter_nd", f"{reduction}-elements", [(6, 5), indices(5, (9, 2)), (9,)], options)
    yield Call("x.top_k", "largest", [(4, 9)], {"k": 3, "axis": 0})
    yield Call("x.top_k", "smallest", [(4, 9)], {"k": 5, "axis": -1, "largest": False})
    yield Call("x.cache_update", "one-position", [(2, 3, 8, 4), (2, 3, 3, 4), np.array([6], np.int32)])
    yield Call("x.cache_update", "positions", [(2, 3, 8, 4), (2, 3, 3, 4), np.array([-1, 4], np.int32)])
    yield Call("x.cache_update", "axis-0", [(8, 4), (3, 4), np.array(2, np.int32)], {"axis": 0})
    yield from _reductions()
    yield from _normalizations()
    yield from _convolutions()
    yield from _pools()
    yield from _products()
    yield from _extensions()


def _reductions() -> Iterator[Call]:
    for op in OPS.values():
        if op.name.startswith("reduce"):
            for axes in ([], [0, 2], [1], None):
                keep = axes == [1]
                yield Call(op.name, f"axes-{axes}", [(3, 4, 2)], {"axes": axes, "keep_dimensions": keep})
            yield Call(op.name, "scalar", [()])
    for exclusive in (True, False):
        for backward in (True, False):
            options = {"axis": 1, "exclusive": exclusive, "reversed": backward}
            yield Call("cumulativeSum", f"options-{exclusive}-{backward}", [(3, 4, 2)], options)
            yield Call("x.cumulative_product", f"options-{exclusive}-{backward}", [(3, 4, 2)], options)


def _normalizations() -> Iterator[Call]:
    for name in ("layerNormalization", "x.rms_normalization"):
        bias = [] if name.startswith("x.") else [(5, 3)]
        yield Call(name, "axes-2-0", [(3, 4, 5), (5, 3), *bias], {"axes": [2, 0], "epsilon": 0.1})
        yield Call(name, "no-axes", [(3, 4), (), *([()] if bias else [])], {"axes": []})
        yield Call(name, "input-alone", [(3, 4, 5), None, *([None] if bias else [])], {"axes": [1]})
    for options, scale in (
        ({"axes": [2], "products": True}, (5,)),
        ({"axes": [0, 2], "centered": False}, (4, 1)),
        ({"axes": []}, None),
    ):
        shapes = [(3, 4, 5), (3, 4, 5), scale]
        yield Call("x.normalization_gradient", f"axes-{options['axes']}", shapes, options | {"epsilon": 0.1})
    yield Call("x.normalization_gradient", "addend", [(3, 4), (3, 4), None, (3, 4)], {"axes": [1], "epsilon": 0.1})
    yield Call("layerNormalization", "bias-alone", [(3, 4, 5), None, (5,)], {"axes": [2]})
    for layout, shape in (("nchw", (2, 3, 4, 5)), ("nhwc", (2, 4, 5, 3))):
        yield Call("instanceNormalization", f"no-scale-{layout}", [shape, None, (3,)], {"layout": layout})
    for given in ([None, None], [(4,), None], [None, (4,)], [(4,), (4,)]):
        what = "-".join("absent" if shape is None else "given" for shape in given)
        yield Call("batchNormalization", what, [(3, 4, 2), (4,), (4,), *given], {"axis": 1, "epsilon": 0.01})


def _convolutions() -> Iterator[Call]:
    geometries: tuple[dict[str, Any], ...] = (
        {"padding": [1, 2, 0, 1], "strides": [2, 3], "dilations": [1, 2]},
        {"padding": [0, 0, 3, 3], "strides": [3, 1], "dilations": [2, 1], "groups": 2},
    )
    sizes = {"n": 2, "c": 4, "h": 9, "w": 11}
    for number, attrs in enumerate(geometries):
        for layout in ("nchw", "nhwc"):
            for name, orders in (("conv2d", ("oihw", "hwio", "ohwi", "ihwo")), ("convTranspose2d", ("iohw", "hwoi", "ohwi"))):
                for order in orders:
                    groups = attrs.get("groups", 1)
                    taps = {
                        "o": 6 // (groups if name != "conv2d" else 1),
                        "i": 4 // (groups if name == "conv2d" else 1),
                        "h": 3,
                        "w": 2,
                    }
                    shapes = [tuple(sizes[d] for d in layout), tuple(taps[d] for d in order), (6,)]
                    options = attrs | {"input_layout": layout, "filter_layout": order}
                    yield Call(name, f"{number}-{layout}-{order}", shapes, options)
    options = {"strides": [2, 3], "output_padding": [1, 2], "padding": [1, 1, 0, 1]}
    yield Call("convTranspose2d", "output-padding", [(1, 2, 4, 3), (2, 3, 3, 3)], options)


def _pools() -> Iterator[Call]:
    for name in ("averagePool2d", "l2Pool2d", "maxPool2d"):
        for layout, shape in (("nchw", (2, 3, 9, 7)), ("nhwc", (2, 9, 7, 3))):
            for rounding in ("floor", "ceil"):
                options = {"padding": [1, 2, 0, 0], "output_shape_rounding": rounding, "layout": layout}
                apart = {"window_dimensions": [3, 2], "strides": [2, 3], "dilations": [2, 1]}
                yield Call(name, f"{rounding}-{layout}", [shape], options | apart)
                # Windows that overlap in one dimension and leave elements out in the other.
                yield Call(
                    name, f"{rounding}-{layout}-near", [shape], options | {"window_dimensions": [4, 2], "strides": [2, 3]}
                )
            yield Call(name, f"whole-{layout}", [shape], {"layout": layout})
        yield Call(name, "one-element", [(1, 2, 4, 4)], {"window_dimensions": [1, 1], "strides": [2, 2]})


def _products() -> Iterator[Call]:
    yield Call("matmul", "broadcast", [(2, 1, 3, 4), (5, 4, 2)])
    for a in (True, False):
        for b in (True, False):
            shapes = [(4, 3) if a else (3, 4), (5, 4) if b else (4, 5)]
            for c in ([], [(5,)], [()], [(3, 1)]):
                options = {"a_transpose": a, "b_transpose": b, "alpha": 0.5, "beta": 2.0}
                yield Call("gemm", f"{a}-{b}-{c}", [*shapes, *c], options)


def _extensions() -> Iterator[Call]:
    packed = np.random.default_rng(2).integers(0, 256, (6, 2, 16)).astype(np.uint8)
    for zeros in (None, np.full((6, 1), 0x79, np.uint8), (6, 2)):
        what = "no" if zeros is None else "packed" if isinstance(zeros, np.ndarray) else "float"
        yield Call("x.matmul_nbits", f"{what}-zero-points", [(3, 50), packed, (6, 2), zeros, (6,)])
    yield Call("x.weighted_gather", "axis-1", [(3, 5, 2), indices(5, (4, 3)), (4, 3)], {"axis": 1})
    for scale in ((1, 1), (2, 1), (4, 6), (2, 3)):
        x, zero = np.arange(24, dtype=np.int8).reshape(4, 6), np.full(scale, 3, np.int8)
        yield Call("dequantizeLinear", f"blocks-{scale}", [x, scale, zero])
    for interleaved in (True, False):
        options = {"interleaved": interleaved, "heads": 2}
        places = np.array([[3, 0, -1]], np.int32)
        yield Call("x.rotary_embedding", f"rank-3-{interleaved}", [(2, 3, 16), (5, 4), (5, 4), places], options)
        yield Call("x.rotary_embedding", f"rank-4-{interleaved}", [(2, 2, 3, 12), (3, 4), (3, 4)], options | {"rotary_dim": 8})
    for mode, padding in itertools.product(("linear", "cubic", "nearest"), ("zeros", "border", "reflection")):
        for align in (True, False):
            options = {"mode": mode, "padding_mode": padding, "align_corners": align}
            yield Call("x.grid_sample", f"{mode}-{padding}-{align}", [(2, 2, 4, 3), (2, 3, 5, 2)], options)
    yield Call("x.grid_sample", "volume", [(1, 2, 3, 2, 4), (1, 2, 2, 3, 3)], {"padding_mode": "reflection"})
    query, key = (2, 4, 3, 8), (2, 2, 5, 8)
    length = np.array([2, 5], np.int32)
    mask = (np.random.default_rng(1).random((2, 4, 3, 5)) > 0.4).astype(np.uint8)
    yield Call("x.attention", "plain", [(2, 4, 3, 8), (2, 4, 5, 8), (2, 4, 5, 6)])
    yield Call("x.attention", "groups", [query, key, key, (1, 4, 1, 5)], {"softcap": 2.0})
    yield Call("x.attention", "causal", [query, key, key, mask], {"causal": True, "offset": 0})
    yield Call("x.attention", "unseen", [query, key, key, mask[:, :1]], {"causal": True, "offset": -1})
    yield Call("x.attention", "window", [query, key, key], {"left": 1, "right": 0})
    yield Call("x.attention", "length", [query, key, key, (3, 5), length], {"causal": True, "left": 2})
    yield Call("x.attention", "length-and-offset", [query, key, key, None, length], {"right": 1, "offset": 1})
    yield Call("x.attention", "rank-3", [(2, 3, 32), (2, 5, 16), (2, 5, 16)], {"heads": 4, "kv_heads": 2})
    yield Call("x.attention_gradient", "groups", [query, query, key, key, (1, 4, 1, 5)], {"softcap": 2.0})
    yield Call("x.attention_gradient", "unseen", [query, query, key, key, mask[:, :1]], {"causal": True, "offset": -1})
    shapes = [(2, 3, 24), (2, 3, 32), (2, 5, 16), (2, 5, 12), None, length]
    yield Call("x.attention_gradient", "rank-3", shapes, {"heads": 4, "kv_heads": 2, "left": 2})
    activations = {"activations": [("tanh", {}), ("softsign", {})]}
    yield Call("gru", "absent-operands", [(3, 2, 4), (1, 9, 4), (1, 9, 3)], {"steps": 3, "hidden_size": 3, "layout": "rzn"})
    shapes = [(2, 4), (9, 4), (9, 3), (2, 3), None, (9,)]
    yield Call("gruCell", "activations", shapes, {"hidden_size": 3, "reset_after": False, **activations})
    yield Call("lstm", "absent-operands", [(3, 2, 4), (1, 12, 4), (1, 12, 3)], {"steps": 3, "hidden_size": 3, "layout": "ifgo"})


def gradient_calls() -> Sequence[Call]:
    """Return the calls whose gradients are compared with central differences."""
    found: list[Call] = []
    for call in (*calls(), *_further()):
        op = OPS[call.name]
        unconstant = not call.constants and call.data_type == "float32"
        size = sum(array.size for array in operands_of(call) if array is not None)
        if (
            op.gradient is not None
            and call.name not in STRAIGHT_THROUGH
            and unconstant
            and size <= _LARGEST
            and call.attrs.get("data_type") != "int32"
        ):
            found.append(call)
    return found


def operands_of(call: Call) -> list[Array | None]:
    """Return the operands of a call, within the range of its operator. Random numbers are away from corners."""
    arrays = call.arrays()
    if call.name in _INSIDE:
        return [None if array is None else 0.9 * np.tanh(array) for array in arrays]
    if call.name == "x.acosh":
        return [None if array is None else 1.5 + np.abs(array) for array in arrays]
    if call.name in ("x.mod", "x.fmod"):
        # Small divisors have many steps.
        return [arrays[0], *(None if array is None else 1 + np.abs(array) for array in arrays[1:])]
    return arrays


def padded(call: Call) -> Call:
    """Return a call with all optional operands."""
    op = OPS[call.name]
    missing = 0 if op.variadic else len(op.operands) - len(call.inputs)
    return replace(call, inputs=[*call.inputs, *[None] * missing])
