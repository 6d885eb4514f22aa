"""Calls of every operator on tensors whose sizes are no multiples of what kernels read and write at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.kernels.operators import Call, Shape, indices
from tests.support import random_array
from webnn_wgpu.core.data_types import DATA_TYPES
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops.wgsl_op import OwnKernel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webnn_wgpu.ir.graph import Array

ODD, QUADS = (3, 7), (4, 5)
"""A shape of an odd number of elements, and one of whole quads that fill no 32 bytes of 8-, 16- and 32-bit types."""

INDEX_TYPES = ("int32", "uint32", "int64")

PRODUCTS: tuple[tuple[str, Shape, Shape], ...] = (
    ("odd", (3, 5), (5, 7)),
    ("row", (1, 9), (9, 5)),
    ("batch", (3, 3, 5), (3, 5, 3)),
    ("long", (5, 70), (70, 9)),
)

REDUCTIONS = [op.name for op in OPS.values() if op.name.startswith("reduce")]


def _typed(name: str, what: str, inputs: Sequence[Any], attrs: dict[str, Any] | None = None) -> Iterator[Call]:
    """Yield a call for each data type that the operator's first operand may have."""
    for data_type in OPS[name].operands[0].data_types:
        yield Call(name, f"{what}-{data_type}", inputs, attrs or {}, data_type)


def _elementwise() -> Iterator[Call]:
    special = ("cast", "where", "quantizeLinear", "dequantizeLinear")
    for op in OPS.values():
        if op.elementwise is None or op.internal or op.name in special:
            continue
        count = sum(operand.required for operand in op.operands)
        for shape in (ODD, QUADS):
            yield from _typed(op.name, f"{shape[0]}x{shape[1]}", [shape] * count)
        if count > 1:
            yield from _typed(op.name, "row", [ODD, (7,)])
    for given in DATA_TYPES:
        for wanted in DATA_TYPES:
            yield Call("cast", f"{given}-to-{wanted}", [ODD], {"data_type": wanted}, given)
        for shape in (ODD, QUADS):
            yield Call("where", f"{shape[0]}x{shape[1]}-{given}", [_bools(shape), shape, shape], {}, given)
    yield from _quantizations()


def _bools(shape: Shape) -> Array:
    return np.random.default_rng(2).integers(0, 2, shape).astype(np.uint8)


def _quantizations() -> Iterator[Call]:
    rng = np.random.default_rng(5)
    for scaled in ("float32", "float16"):
        for quantized in ("uint8", "int8", "uint32", "int32"):
            for what, blocks in (("tensor", (1, 1)), ("row", (1, 7)), ("each", ODD)):
                scale = (rng.random(blocks) + 0.5).astype(scaled)
                zero = np.ones(blocks, quantized)
                x = random_array(rng, scaled, ODD)
                yield Call("quantizeLinear", f"{what}-{scaled}-{quantized}", [x, scale, zero])
                x = rng.integers(0, 9, ODD).astype(quantized)
                yield Call("dequantizeLinear", f"{what}-{scaled}-{quantized}", [x, scale, zero])
        import ml_dtypes

        for packed in (ml_dtypes.int4, ml_dtypes.uint4):
            x, zero = (rng.integers(0, 8, shape).astype(packed) for shape in (ODD, (1, 7)))
            scale = (rng.random((1, 7)) + 0.5).astype(scaled)
            name = f"{scaled}-{np.dtype(packed)}"
            yield Call("dequantizeLinear", name, [x, scale, zero], constants=frozenset((0, 2)))


def _movers() -> Iterator[Call]:
    for shape in (ODD, QUADS):
        rows, columns = shape
        what = f"{rows}x{columns}"

        def call(name: str, inputs: Sequence[Any], *suffix: str, what: str = what, **attrs: Any) -> Iterator[Call]:
            return _typed(name, "-".join((what, *suffix)), inputs, attrs)

        yield from call("reshape", [shape], new_shape=[columns, rows])
        yield from call("identity", [shape])
        yield from call("transpose", [shape])
        yield from call("slice", [shape], starts=[1, 0], sizes=[rows - 1, columns])
        yield from call("slice", [shape], "strided", starts=[0, 1], sizes=[rows, columns - 1], strides=[1, 2])
        yield from call("split", [shape], splits=[1, rows - 1])
        yield from call("split", [shape], "columns", splits=[2, columns - 2], axis=1)
        yield from call("expand", [(1, columns)], new_shape=[rows, columns])
        yield from call("expand", [()], "scalar", new_shape=[rows, columns])
        yield from call("tile", [shape], repetitions=[1, 3])
        yield from call("reverse", [shape])
        yield from call("concat", [shape, (rows, 2)], axis=1)
        yield from call("concat", [shape, (2, columns)], "rows", axis=0)
        for mode in ("constant", "edge", "reflection"):
            yield from call("pad", [shape], mode, beginning_padding=[1, 0], ending_padding=[0, 2], mode=mode)
        yield from call("triangular", [shape])
        for given in DATA_TYPES:
            for wanted in DATA_TYPES:
                if DATA_TYPES[given].bits == DATA_TYPES[wanted].bits:
                    yield Call("x.bitcast", f"{what}-{given}-as-{wanted}", [shape], {"data_type": wanted}, given)
    for index_type in INDEX_TYPES:
        for data_type in DATA_TYPES if index_type == "int32" else ("float32", "uint8"):

            def pick(name: str, inputs: Sequence[Any], t: str = data_type, i: str = index_type, **attrs: Any) -> Call:
                what = "-".join((t, i, "x".join(map(str, inputs[1].shape)), *(str(v) for v in attrs.values())))
                return Call(name, what, inputs, attrs, t)

            some, grid = _indices(3, (3,), index_type), _indices(3, (2, 7), index_type)
            yield pick("gather", [ODD, some])
            yield pick("gather", [ODD, some], axis=1)
            yield pick("gatherElements", [ODD, grid], axis=0)
            yield pick("gatherND", [ODD, _indices(3, (5, 2), index_type)])
            yield pick("gatherND", [ODD, _indices(3, (5, 1), index_type)])
            yield pick("scatterElements", [ODD, grid, (2, 7)], axis=0)
            yield pick("scatterND", [ODD, _indices(3, (5, 2), index_type), (5,)])
            for reduction in ("none", "add", "max"):
                yield pick("x.scatter_elements", [ODD, grid, (2, 7)], axis=0, reduction=reduction)
                yield pick("x.scatter_nd", [ODD, _indices(3, (5, 2), index_type), (5,)], reduction=reduction)
    for data_type in DATA_TYPES:
        position = np.ones((), np.int32)
        yield Call("x.cache_update", f"words-{data_type}", [(3, 4), (1, 4), position], {"axis": 0}, data_type)
        if DATA_TYPES[data_type].size_bytes >= 4:
            yield Call("x.cache_update", f"odd-{data_type}", [ODD, (2, 7), position], {"axis": 0}, data_type)

    yield Call("x.random_bits", "words", [np.uint32([1, 2])], {"shape": list(ODD)})


def _indices(high: int, shape: Shape, data_type: str) -> Array:
    return np.abs(indices(high, shape)).astype(data_type)


def _rows() -> Iterator[Call]:
    for name in REDUCTIONS:
        for axis in (0, 1):
            yield from _typed(name, f"axis{axis}", [ODD], {"axes": [axis]})
        yield from _typed(name, "all", [ODD])
        yield from _typed(name, "long", [(5, 131)], {"axes": [1]})
    for name in ("argMax", "argMin"):
        for axis in (0, 1):
            for wanted in ("int32", "int64"):
                yield from _typed(name, f"axis{axis}-{wanted}", [ODD], {"axis": axis, "output_data_type": wanted})
        yield from _typed(name, "long", [(5, 131)], {"axis": 1})
    for name in ("softmax", "x.log_softmax"):
        for axis in (0, 1):
            yield from _typed(name, f"axis{axis}", [ODD], {"axis": axis})
        yield from _typed(name, "long", [(5, 131)], {"axis": 1})
    for name in ("cumulativeSum", "x.cumulative_product"):
        for axis in (0, 1):
            attrs = {"axis": axis, "exclusive": bool(axis), "reversed": bool(axis)}
            yield from _typed(name, f"axis{axis}", [ODD], attrs)
        yield from _typed(name, "long", [(5, 131)], {"axis": 1, "exclusive": False, "reversed": False})
    yield from _typed("layerNormalization", "rows", [ODD, (7,), (7,)], {"axes": [1]})
    yield from _typed("layerNormalization", "long", [(5, 131), None, None], {"axes": [1]})
    yield from _typed("x.rms_normalization", "rows", [ODD, (7,)], {"axes": [1]})
    yield from _typed("x.rms_normalization", "long", [(5, 131), None], {"axes": [1]})
    for layout, shape in (("nchw", (1, 3, 3, 5)), ("nhwc", (1, 3, 5, 3))):
        yield from _typed("instanceNormalization", layout, [shape, (3,), (3,)], {"layout": layout})
    for axis in (0, 1):
        n = ODD[axis]
        yield from _typed("batchNormalization", f"axis{axis}", [ODD, (n,), (n,), (n,), (n,)], {"axis": axis})
    for axis in (0, 1):
        for kind in ("int32", "int64"):
            yield from _typed("x.top_k", f"axis{axis}-{kind}", [ODD], {"k": 3, "axis": axis, "indices_data_type": kind})
    yield Call("x.quantization_parameters", "row", [(21,)])
    yield Call("x.quantization_parameters", "long", [(5, 131)])


def _products() -> Iterator[Call]:
    for constants in (frozenset[int](), frozenset({1})):
        for what, a, b in (
            ("odd", (3, 5), (5, 7)),
            ("row", (1, 9), (9, 5)),
            ("batch", (3, 3, 5), (3, 5, 3)),
            ("long", (5, 70), (70, 9)),
        ):
            for data_type in ("float32", "float16"):
                name = f"{what}-{data_type}{'-constant' if constants else ''}"
                yield Call("matmul", name, [a, b], {}, data_type, constants)
                if len(a) == 2:
                    yield Call("gemm", name, [a, b, (b[1],)], {"alpha": 0.5}, data_type, constants)
                    turned = {"a_transpose": True, "b_transpose": True}
                    yield Call("gemm", f"{name}-turned", [a[::-1], b[::-1], (a[0], b[1])], turned, data_type, constants)
    rng = np.random.default_rng(6)
    for data_type in ("float32", "float16"):
        for what, rows, depth, columns in (("row", 1, 33, 5), ("rows", 3, 33, 7)):
            blocks = -(-depth // 16)
            scales = rng.random((columns, blocks)).astype(data_type)
            packed = rng.integers(0, 256, (columns, blocks, 8), np.uint8)
            zeros = rng.integers(0, 256, (columns, -(-blocks // 2)), np.uint8)
            for constants in (frozenset[int](), frozenset({1, 2, 3})):
                name = f"{what}-{data_type}{'-constant' if constants else ''}"
                given = [(rows, depth), packed, scales, zeros, (columns,)]
                yield Call("x.matmul_nbits", name, given, {"bits": 4, "block_size": 16}, data_type, constants)
        table, scales = rng.integers(0, 256, (5, 9), np.uint8), rng.random((5, 2)).astype(data_type)
        zeros = rng.integers(0, 256, (5, 1), np.uint8)
        for index_type in INDEX_TYPES:
            given = [table, _indices(4, (3,), index_type), scales, zeros]
            yield Call("x.gather_block_quantized", f"{data_type}-{index_type}", given, {"bits": 4, "block_size": 16})
        query, keys = (1, 3, 5, 7), (1, 3, 9, 7)
        for what, q, k, attrs in (
            ("heads", query, keys, {}),
            ("causal", query, (1, 3, 5, 7), {"causal": True}),
            ("decode", (1, 3, 1, 7), keys, {}),
        ):
            values = (*k[:3], 5)
            yield Call("x.attention", f"{what}-{data_type}", [q, k, values, None, None], attrs, data_type)
            gradient = (*q[:3], 5)
            yield Call("x.attention_gradient", f"{what}-{data_type}", [gradient, q, k, values, None, None], attrs, data_type)
        given = [(3, 5, 7), (3, 5, 7), (7,), (3, 5, 7)]
        yield Call("x.normalization_gradient", f"rows-{data_type}", given, {"axes": [2], "products": True}, data_type)
        for interleaved in (False, True):
            angles = rng.random((5, 3)).astype(data_type)
            given = [(1, 3, 5, 6), angles, angles, None]
            yield Call("x.rotary_embedding", f"{data_type}-{interleaved}", given, {"interleaved": interleaved}, data_type)


def _images() -> Iterator[Call]:
    for layout in ("nchw", "nhwc"):

        def laid(n: int, c: int, h: int, w: int, layout: str = layout) -> Shape:
            return (n, c, h, w) if layout == "nchw" else (n, h, w, c)

        for data_type in ("float32", "float16"):
            for constants in (frozenset[int](), frozenset({1})):
                suffix = f"{layout}-{data_type}{'-constant' if constants else ''}"
                for what, x, weights, attrs in (
                    ("plain", (1, 3, 5, 7), (5, 3, 3, 3), {"padding": [1, 1, 1, 1]}),
                    ("depthwise", (1, 5, 5, 7), (5, 1, 3, 3), {"groups": 5}),
                    ("groups", (1, 6, 5, 5), (9, 2, 2, 2), {"groups": 3}),
                    ("pointwise", (1, 5, 3, 5), (3, 5, 1, 1), {}),
                    ("winograd", (1, 32, 9, 9), (33, 32, 3, 3), {}),
                ):
                    options = attrs | {"input_layout": layout}
                    given = [laid(*x), weights, (weights[0],)]
                    yield Call("conv2d", f"{what}-{suffix}", given, options, data_type, constants)
                    if what == "winograd":
                        continue
                    groups = attrs.get("groups", 1)
                    taps = (x[1], weights[0] // groups, *weights[2:])
                    given = [laid(*x), taps, (weights[0],)]
                    yield Call("convTranspose2d", f"{what}-{suffix}", given, options, data_type, constants)
        for name in ("averagePool2d", "l2Pool2d", "maxPool2d"):
            window = {"window_dimensions": [3, 2], "padding": [1, 0, 0, 1], "layout": layout}
            yield from _typed(name, f"window-{layout}", [laid(1, 3, 5, 7)], window)
            yield from _typed(name, f"whole-{layout}", [laid(1, 3, 5, 7)], {"layout": layout})
    for mode in ("nearest-neighbor", "linear"):
        for axes, shape in (([2, 3], (1, 3, 5, 3)), ([1, 2], (1, 3, 5, 3)), ([1, 2], (1, 3, 5, 4))):
            attrs = {"mode": mode, "axes": axes, "scales": [1.5, 2.0]}
            yield from _typed("resample2d", f"{mode}-{axes[0]}-{shape[3]}", [shape], attrs)
    grid = np.random.default_rng(7).uniform(-1.2, 1.2, (1, 3, 5, 2)).astype(np.float32)
    for mode in ("linear", "nearest", "cubic"):
        for data_type in ("float32", "float16"):
            yield Call(
                "x.grid_sample", f"{mode}-{data_type}", [(1, 3, 3, 5), grid.astype(data_type)], {"mode": mode}, data_type
            )
    taps = _indices(6, (3, 2), "int64")
    for data_type in ("float32", "float16"):
        weights = np.random.default_rng(8).random((3, 2), np.float32)
        yield Call("x.weighted_gather", data_type, [ODD, taps, weights], {"axis": 1}, data_type)


def _recurrent() -> Iterator[Call]:
    for name, gates in (("gru", 3), ("lstm", 4)):
        states, vectors = (1, 2) if name == "gru" else (2, 3)
        for data_type in ("float32", "float16"):
            for hidden in (3, 4):
                for direction in ("forward", "both"):
                    d = 2 if direction == "both" else 1
                    attrs = {"steps": 3, "hidden_size": hidden, "direction": direction, "return_sequence": True}
                    shapes = [(3, 3, 5), (d, gates * hidden, 5), (d, gates * hidden, hidden), *[(d, gates * hidden)] * 2]
                    shapes += [(d, 3 * hidden)] * (vectors - 2) + [(d, 3, hidden)] * states
                    yield Call(name, f"{hidden}-{direction}-{data_type}", shapes, attrs, data_type)
                shapes = [(3, 5), (gates * hidden, 5), (gates * hidden, hidden), *[(3, hidden)] * states]
                shapes += [(gates * hidden,)] * 2 + [(3 * hidden,)] * (vectors - 2)
                yield Call(f"{name}Cell", f"{hidden}-{data_type}", shapes, {"hidden_size": hidden}, data_type)


OWN = """
@group(0) @binding(0) var<storage, read> x: array<{word}>;
@group(0) @binding(1) var<storage, read_write> y: array<{word}>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
    if (id.x < arrayLength(&x)) {{ y[id.x] = x[id.x] ^ {word}(1u); }}
}}
"""
"""A kernel of a program's own, which writes whole words whatever its data type."""


def _own_kernels() -> Iterator[Call]:
    for data_type in DATA_TYPES:
        kernel = OwnKernel(
            label="own", source=OWN.format(word="u32"), given=(), outputs=(TensorType(data_type, ODD),), workgroups=(1, 1, 1)
        )
        yield Call("wgslOp", data_type, [random_array(np.random.default_rng(9), data_type, ODD)], {"kernel": kernel})


def calls() -> dict[str, list[Call]]:
    """Return calls of every operator that programs reach, by operator."""
    groups = (_elementwise, _movers, _rows, _products, _images, _recurrent, _own_kernels)
    found: dict[str, list[Call]] = {}
    for call in (call for group in groups for call in group()):
        found.setdefault(call.name, []).append(call)
    reached = {op.name for op in OPS.values() if not op.internal}
    reached |= {"wgslOp"}
    assert found.keys() == reached, f"without a call in this module, or with one too many: {sorted(found.keys() ^ reached)}"
    for name, of_operator in found.items():
        assert len({str(call) for call in of_operator}) == len(of_operator), name
    return found
