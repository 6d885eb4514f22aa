"""Every operator on tensors that are larger than a small binding: which calls, with which of their tensors large."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.support import random_array
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._attrs import REQUIRED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webnn_wgpu.ir.graph import Array

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """One call of an operator.

    Attributes:
        name: the operator.
        what: what is large, for people; with the name it is unique.
        inputs: shapes of the operands, or the operands themselves; None for absent ones.
        attrs: arguments and options.
        data_type: of the operands given by shape, unless their declaration allows only others.
        constants: positions of operands that are constants.
        limit: bytes of a binding.
    """

    name: str
    what: str
    inputs: Sequence[Shape | Array | None]
    attrs: dict[str, Any] = field(default_factory=dict[str, Any])
    data_type: str = "float32"
    constants: frozenset[int] = frozenset()
    limit: int = 1024

    def __str__(self) -> str:
        return f"{self.name}-{self.what}"

    def arrays(self) -> list[Array | None]:
        """Return the operands."""
        rng = np.random.default_rng(0)
        op = OPS[self.name]
        found: list[Array | None] = []
        for i, given in enumerate(self.inputs):
            if not isinstance(given, tuple):
                found.append(given)
                continue
            types = op.operands[0 if op.variadic else i].data_types
            data_type = self.data_type if self.data_type in types else types[0]
            array = random_array(rng, data_type, given, 1.0)
            found.append(np.abs(array) if self.name in _POSITIVE and array.dtype.kind == "f" else array)
        return found


_POSITIVE = ("log", "sqrt", "pow", "reduceLogSum", "batchNormalization")
"""Operators whose results would mostly be NaN for negative numbers."""


def indices(high: int, shape: Shape, data_type: str = "int32") -> Array:
    """Return indices, some of them negative and some out of range."""
    return np.random.default_rng(1).integers(-high - 1, high + 2, shape).astype(data_type)


def _elementwise() -> Iterator[Call]:
    for op in OPS.values():
        if op.elementwise is None or op.internal or op.name in ("quantizeLinear", "dequantizeLinear"):
            continue
        attrs = {"data_type": "float16"} if op.name == "cast" else {}
        without = [a.name for a in op.attrs if a.default is REQUIRED and a.name not in attrs]
        assert not without, f"{op.name}: give {', '.join(without)} a default: tests call rows without options"
        operands = [o for o in op.operands if o.required]
        limit = 512 if op.operands[0].data_types == ("uint8",) else 1024
        yield Call(op.name, "all", [(3, 211)] * len(operands), attrs, limit=limit)
        for i in range(len(operands) if len(operands) > 1 else 0):
            if (op.name, i) != ("prelu", 0):
                shapes = [(1, 1) if d == i else (3, 211) for d in range(len(operands))]
                yield Call(op.name, f"all-but-{i}", shapes, attrs, limit=limit)


_CONVOLUTIONS: tuple[tuple[str, Shape, Shape, dict[str, Any]], ...] = (
    # Shapes as nchw and oihw.
    ("batch", (7, 4, 6, 6), (4, 4, 3, 3), {"padding": [1, 1, 1, 1]}),
    ("image", (1, 4, 30, 9), (5, 4, 3, 3), {"padding": [1, 1, 1, 1]}),
    ("image-of-odd-channels", (2, 3, 30, 7), (5, 3, 3, 2), {"strides": [2, 1], "dilations": [1, 2]}),
    ("filter", (1, 8, 4, 4), (24, 8, 3, 3), {}),
    ("filter-of-groups", (1, 32, 4, 4), (32, 4, 3, 3), {"groups": 8}),
    ("groups", (3, 32, 6, 6), (32, 8, 2, 2), {"groups": 4}),
    ("depthwise", (3, 8, 12, 12), (8, 1, 3, 3), {"groups": 8, "padding": [1, 1, 1, 1]}),
    ("depthwise-filter", (1, 32, 10, 10), (32, 1, 9, 9), {"groups": 32}),
    ("pointwise", (2, 12, 12, 12), (20, 12, 1, 1), {}),
    ("channels", (1, 300, 3, 3), (4, 300, 1, 1), {"strides": [2, 2]}),
    ("pointwise-channels", (1, 600, 2, 2), (4, 600, 1, 1), {}),
    ("winograd", (1, 32, 18, 18), (32, 32, 3, 3), {}),
)


def _convolutions() -> Iterator[Call]:
    for what, x, weights, attrs in _CONVOLUTIONS:
        for layout in ("nchw", "nhwc"):
            n, c, h, w = x
            shape = x if layout == "nchw" else (n, h, w, c)
            for constants in (frozenset[int](), frozenset({1})):
                name = f"{what}-{layout}" + ("-constant" if constants else "")
                limit = 4096 if what in ("winograd", "depthwise-filter") else 2048
                inputs = [shape, weights, (weights[0],)]
                yield Call("conv2d", name, inputs, attrs | {"input_layout": layout}, constants=constants, limit=limit)
                if what != "winograd":
                    groups = attrs.get("groups", 1)
                    taps = (c, weights[0] // groups, *weights[2:])
                    inputs = [shape, taps, (weights[0],)]
                    yield Call(
                        "convTranspose2d", name, inputs, attrs | {"input_layout": layout}, constants=constants, limit=limit
                    )


def _pools() -> Iterator[Call]:
    window = {"window_dimensions": [3, 2], "padding": [1, 0, 0, 1], "strides": [2, 1]}
    for name in ("averagePool2d", "l2Pool2d", "maxPool2d"):
        for layout in ("nchw", "nhwc"):
            for what, (n, c, h, w), attrs in (
                ("batch", (9, 4, 6, 6), window),
                ("image", (1, 5, 40, 9), window),
                ("image-of-quads", (2, 4, 40, 9), window),
                ("global", (2, 5, 30, 30), {}),
                ("large-window", (2, 4, 30, 9), {"window_dimensions": [8, 8]}),
            ):
                shape = (n, c, h, w) if layout == "nchw" else (n, h, w, c)
                limit = 4096 if what == "large-window" else 2048
                yield Call(name, f"{what}-{layout}", [shape], attrs | {"layout": layout}, limit=limit)


def _resamplings() -> Iterator[Call]:
    for mode in ("nearest-neighbor", "linear"):
        for data_type in ("float32", "uint8"):
            for axes, shape in (([2, 3], (3, 5, 9, 8)), ([1, 2], (3, 9, 8, 5)), ([1, 2], (3, 9, 8, 8)), ([0, 1], (9, 8, 3, 5))):
                for scales in ([1.5, 2.0], [0.5, 3.0]):
                    number = f"{axes[0]}-{shape[3]}-{scales[0]}"
                    attrs = {"mode": mode, "axes": axes, "scales": scales}
                    limit = 1024 if data_type == "float32" else 512
                    yield Call("resample2d", f"{mode}-{data_type}-{number}", [shape], attrs, data_type, limit=limit)


def _recurrent() -> Iterator[Call]:
    for name, gates in (("gru", 3), ("lstm", 4)):
        states = 1 if name == "gru" else 2
        vectors = 2 if name == "gru" else 3
        for what, steps, batch, inputs, hidden in (
            ("steps", 9, 3, 5, 8),
            ("odd-steps", 9, 3, 5, 7),
            ("inputs", 2, 2, 70, 4),
            ("hidden", 3, 2, 4, 24),
            ("odd-hidden", 3, 2, 4, 23),
        ):
            for direction in ("forward", "backward", "both"):
                d = 2 if direction == "both" else 1
                attrs = {"steps": steps, "hidden_size": hidden, "direction": direction, "return_sequence": True}
                weights = [(d, gates * hidden, inputs), (d, gates * hidden, hidden)]
                shapes = [(steps, batch, inputs), *weights, *[(d, gates * hidden)] * 2]
                shapes += [(d, 3 * hidden)] * (vectors - 2) + [(d, batch, hidden)] * states
                limit = 2048 if "hidden" in what else 1024
                yield Call(name, f"{what}-{direction}", shapes, attrs, limit=limit)
                if name == "gru":
                    yield Call(name, f"{what}-{direction}-reset-before", shapes, attrs | {"reset_after": False}, limit=limit)
        for what, batch, inputs, hidden in (("inputs", 3, 90, 4), ("hidden", 2, 4, 24), ("batch", 40, 5, 5)):
            shapes = [(batch, inputs), (gates * hidden, inputs), (gates * hidden, hidden), *[(batch, hidden)] * states]
            shapes += [(gates * hidden,)] * 2 + [(3 * hidden,)] * (vectors - 2)
            yield Call(f"{name}Cell", what, shapes, {"hidden_size": hidden}, limit=2048 if what == "hidden" else 1024)


def _scatters() -> Iterator[Call]:
    for data_type in ("float32", "uint8", "int64"):
        for what, table, count in (("table", (60, 9), 4), ("updates", (6, 9), 90), ("all", (60, 9), 70), ("rows", (50, 8), 60)):
            updates = (count, table[1])
            given = [table, indices(table[0], updates), updates]
            limit = 256 if data_type == "uint8" else 1024
            yield Call("scatterElements", f"{what}-{data_type}", given, {"axis": 0}, data_type, limit=limit)
            yield Call(
                "scatterND", f"{what}-{data_type}", [table, indices(table[0], (count, 1)), updates], {}, data_type, limit=limit
            )
            given = [table, indices(9, (count * 5, 2)), (count * 5,)]
            yield Call("scatterND", f"{what}-elements-{data_type}", given, {}, data_type, limit=limit)


def _movers() -> Iterator[Call]:
    yield Call("x.bitcast", "all", [(31, 41)], {"data_type": "int32"}, limit=512)
    for data_type in ("float32", "uint8", "float16"):

        def call(
            name: str, what: str, inputs: Sequence[Shape | Array | None], data_type: str = data_type, **attrs: Any
        ) -> Call:
            return Call(name, f"{what}-{data_type}", inputs, attrs, data_type, limit=512)

        yield call("reshape", "all", [(31, 41)], new_shape=[41, 31])
        yield call("identity", "all", [(31, 41)])
        yield call("transpose", "all", [(31, 41)])
        yield call("slice", "all", [(31, 41)], starts=[1, 2], sizes=[29, 38])
        yield call("split", "all", [(31, 41)], splits=[3, 20, 18], axis=1)
        yield call("expand", "output", [(1, 41)], new_shape=[31, 41])
        yield call("tile", "all", [(31, 41)], repetitions=[2, 1])
        yield call("reverse", "all", [(31, 41)])
        yield call("concat", "all", [(31, 41), (31, 3)], axis=1)
        yield call("pad", "all", [(31, 41)], beginning_padding=[1, 2], ending_padding=[3, 4])
        yield call("triangular", "all", [(31, 41)])
        yield call("gather", "table", [(90, 13), indices(90, (5,))])
        yield call("gather", "all", [(90, 13), indices(90, (300,))])
        yield call("gatherElements", "all", [(90, 13), indices(90, (70, 13))])
        yield call("gatherND", "all", [(90, 13), indices(13, (800, 2))])


def _rows() -> Iterator[Call]:
    for op in OPS.values():
        if op.name.startswith("reduce"):
            for axis in (0, 1):
                yield Call(op.name, f"rows-{axis}", [(40, 41)], {"axes": [axis]})
            yield Call(op.name, "one-row", [(1300,)])
            yield Call(op.name, "many-rows", [(1100, 5)], {"axes": [1]})
    for name in ("argMax", "argMin"):
        yield Call(name, "rows-0", [(40, 41)], {"axis": 0})
        yield Call(name, "rows-1", [(40, 41)], {"axis": 1})
        yield Call(name, "one-row", [(1300,)], {"axis": 0})
        yield Call(name, "many-rows", [(1100, 5)], {"axis": 1})
    for shape, axis in (
        ((40, 41), 0),
        ((40, 41), 1),
        ((40, 40), 0),
        ((40, 40), 1),
        ((1300,), 0),
        ((3, 401), 1),
        ((401, 3), 0),
        ((1100, 5), 1),
    ):
        what = f"{'x'.join(map(str, shape))}-{axis}"
        yield Call("softmax", what, [shape], {"axis": axis})
        yield Call("x.log_softmax", what, [shape], {"axis": axis})
        for data_type in ("float32", "int64", "float16"):
            for exclusive, backward in ((False, False), (True, True)):
                attrs = {"axis": axis, "exclusive": exclusive, "reversed": backward}
                yield Call("cumulativeSum", f"{what}-{data_type}-{exclusive}", [shape], attrs, data_type)
        attrs = {"axis": axis, "exclusive": False, "reversed": False}
        yield Call("x.cumulative_product", what, [shape], attrs, "int32")
    yield Call("layerNormalization", "rows", [(40, 41), (41,), (41,)], {"axes": [1]})
    yield Call("layerNormalization", "many-rows", [(1100, 5), (5,), (5,)], {"axes": [1]})
    yield Call("instanceNormalization", "many-images", [(550, 2, 2, 2), (2,), (2,)])
    yield Call("layerNormalization", "one-row", [(1300,), None, None], {"axes": [0]})
    yield Call("instanceNormalization", "nchw", [(2, 3, 20, 17), (3,), (3,)])
    yield Call("instanceNormalization", "nhwc", [(2, 20, 17, 3), (3,), (3,)], {"layout": "nhwc"})
    yield Call("batchNormalization", "all", [(5, 30, 17), (30,), (30,), (30,), (30,)], {"axis": 1})
    yield Call("batchNormalization", "parameters", [(5, 300), (300,), (300,), (300,), (300,)], {"axis": 1})
    yield Call("batchNormalization", "outer-parameters", [(300, 5), (300,), (300,), (300,), (300,)], {"axis": 0})


def _products() -> Iterator[Call]:
    for constants in (frozenset[int](), frozenset({1})):
        suffix = "-constant" if constants else ""
        for what, a, b in (
            ("rows", (90, 20), (20, 24)),
            ("columns", (3, 16), (16, 300)),
            ("sums", (2, 600), (600, 3)),
            ("all-sums", (40, 600), (600, 50)),
            ("matrices", (5, 40, 12), (5, 12, 28)),
            ("sums-of-matrices", (3, 2, 600), (3, 600, 5)),
        ):
            yield Call("matmul", what + suffix, [a, b], constants=constants, limit=2048)
            if len(a) == 2:
                yield Call("gemm", what + suffix, [a, b, (b[1],)], {"alpha": 0.5}, constants=constants, limit=2048)
                attrs = {"a_transpose": True, "b_transpose": True, "beta": 2.0}
                shapes = [a[::-1], b[::-1], (a[0], b[1])]
                yield Call("gemm", f"{what}-transposed{suffix}", shapes, attrs, constants=constants, limit=2048)


def _extensions() -> Iterator[Call]:
    for columns in (4, 5):
        taps = [indices(9, (7, 3)), (7, 3)]
        yield Call("x.weighted_gather", f"rows-of-{columns}", [(40, 9, columns), *taps], {"axis": 1})
    grid = np.random.default_rng(5).uniform(-1.2, 1.2, (9, 2, 3, 2)).astype(np.float32)
    yield Call("x.grid_sample", "images", [(9, 16, 3, 4), grid], {"mode": "cubic"})
    yield Call("x.random_bits", "all", [np.uint32([1, 2])], {"shape": [31, 41]})
    for rows, columns in ((40, 40), (1100, 4)):
        what, x = f"{rows}x{columns}", (rows, columns)
        yield Call("x.rms_normalization", what, [x, (columns,)], {"axes": [1]})
        yield Call("x.normalization_gradient", what, [x, x, (columns,), None], {"axes": [1], "products": True})
    yield Call("x.rotary_embedding", "heads", [(3, 5, 7, 8), (7, 4), (7, 4), None])


def _quantizations() -> Iterator[Call]:
    for blocks in ((1, 1), (40, 1), (1, 42), (8, 14), (40, 42)):
        what = f"{blocks[0]}x{blocks[1]}"
        zero = np.full(blocks, 3, np.int8)
        yield Call("quantizeLinear", what, [(40, 42), np.full(blocks, 0.1, np.float32), zero])
        for data_type in ("int8", "int32", "uint8"):
            x = random_array(np.random.default_rng(3), data_type, (40, 42))
            scale = np.random.default_rng(4).random(blocks, np.float32)
            yield Call("dequantizeLinear", f"{what}-{data_type}", [x, scale, zero.astype(data_type)])


def calls() -> list[Call]:
    """Return calls of every operator of the specification, and of the extensions whose kernels can be divided."""
    groups = (
        _elementwise, _quantizations, _movers, _scatters, _rows, _products, _convolutions, _pools, _resamplings, _recurrent,
        _extensions
    )  # fmt: skip
    found = [call for group in groups for call in group()]
    missing = {op.name for op in OPS.values() if not op.internal and not op.extension} - {call.name for call in found}
    assert not missing, f"there is no call of {', '.join(sorted(missing))}: add one to tests/kernels/operators.py"
    assert len({str(c) for c in found}) == len(found)
    return found
