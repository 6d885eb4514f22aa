"""Small graph models, whose results are those of TensorFlow.js: `tests/data/tfjs/graphs.json` has them.

    python -m tests.tfjs.graphs DIR

writes the models to a folder, for a program of TensorFlow.js that makes the results anew.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

DTYPES = {"float32": "DT_FLOAT", "int32": "DT_INT32", "bool": "DT_BOOL"}

Fill = Callable[["Writer"], Any]


def text(value: str) -> dict[str, Any]:
    return {"s": base64.b64encode(value.encode()).decode()}


def attribute(value: Any) -> dict[str, Any]:
    """Return a value as an attribute of GraphDef."""
    if isinstance(value, dict):
        return value
    if isinstance(value, bool):
        return {"b": value}
    if isinstance(value, int):
        return {"i": str(value)}
    if isinstance(value, float):
        return {"f": value}
    if isinstance(value, str):
        return {"type": value} if value.startswith("DT_") else text(value)
    if all(isinstance(v, str) for v in value) and value:
        return {"list": {"s": [text(v)["s"] for v in value]}}
    return {"list": {"i": [str(v) for v in value]}}


class Writer:
    """Writes a graph model: nodes, functions and weights."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.functions: list[dict[str, Any]] = []
        self.weights: list[dict[str, Any]] = []
        self.data = b""
        self.inputs: dict[str, np.ndarray] = {}
        self.document: dict[str, Any] = {}

    def node(self, op: str, *inputs: str, name: str = "", nodes: list[dict[str, Any]] | None = None, **attributes: Any) -> str:
        """Append a node and return its name."""
        where = self.nodes if nodes is None else nodes
        name = name or f"{op}_{len(where)}"
        where.append({"name": name, "op": op, "input": list(inputs), "attr": {k: attribute(v) for k, v in attributes.items()}})
        return name

    def input(self, value: Any, dtype: str = "float32", shape: Sequence[int] | None = None) -> str:
        """Append an input with the value of the test."""
        array = np.asarray(value, dtype)
        sizes = [{"size": str(d)} for d in (array.shape if shape is None else shape)]
        name = self.node("Placeholder", name=f"x{len(self.inputs)}", dtype=DTYPES[dtype], shape={"shape": {"dim": sizes}})
        self.inputs[name] = array
        return name

    def constant(
        self,
        value: Any,
        dtype: str = "float32",
        nodes: list[dict[str, Any]] | None = None,
        quantization: Mapping[str, Any] | None = None,
    ) -> str:
        """Append a constant."""
        array = np.asarray(value, dtype if not quantization else quantization["dtype"])
        name = self.node("Const", name=f"const_{len(self.weights)}", nodes=nodes, dtype=DTYPES[dtype])
        entry: dict[str, Any] = {"name": name, "shape": list(array.shape), "dtype": dtype}
        self.weights.append(entry | ({"quantization": dict(quantization)} if quantization else {}))
        self.data += array.tobytes()
        return name

    def function(self, name: str, arguments: int, fill: Callable[..., Sequence[str]]) -> dict[str, Any]:
        """Append a function, and return the attribute that names it."""
        nodes: list[dict[str, Any]] = []
        names = [f"arg{i}" for i in range(arguments)]
        results = fill(nodes, *names)
        self.functions.append(
            {
                "signature": {
                    "name": name,
                    "inputArg": [{"name": n, "type": "DT_FLOAT"} for n in names],
                    "outputArg": [{"name": f"out{i}", "type": "DT_FLOAT"} for i in range(len(results))],
                },
                "nodeDef": nodes,
                "ret": {f"out{i}": r for i, r in enumerate(results)},
            }
        )
        return {"func": {"name": name}}

    def finish(self, outputs: Sequence[str]) -> dict[str, Any]:
        """Return model.json."""
        self.document |= {
            "format": "graph-model",
            "modelTopology": {
                "node": self.nodes,
                "library": {"function": self.functions},
                "versions": {"producer": 1},
            },
            "weightsManifest": [{"paths": ["weights.bin"], "weights": self.weights}],
            "signature": {
                "inputs": {n: {"name": f"{n}:0"} for n in self.inputs},
                "outputs": {f"out_{i}": {"name": o} for i, o in enumerate(outputs)},
            },
        }
        return self.document


def _numbers(*shape: int, seed: int = 1, low: float = -2, high: float = 2) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


UNARY = (
    "Abs Acos Asin Atan Atanh Ceil Cos Cosh Elu Erf Exp Expm1 Floor IsFinite IsInf IsNan LeakyRelu Neg Relu Relu6 Round Selu "
    "Sigmoid Sign Sin Sinh Softplus Square Tan Tanh Asinh ZerosLike OnesLike StopGradient Softmax LogSoftmax Shape Rank Size"
).split()
POSITIVE = "Log Log1p Rsqrt Sqrt Reciprocal Acosh".split()
BINARY = "Add AddV2 Sub Mul RealDiv Div DivNoNan FloorDiv Maximum Minimum SquaredDifference FloorMod Mod BiasAdd Atan2".split()
COMPARED = "Equal NotEqual Greater GreaterEqual Less LessEqual".split()
REDUCED = "Max Mean Min Sum Prod EuclideanNorm".split()


def elementwise(w: Writer) -> list[str]:
    small, above = w.input(_numbers(2, 3, low=-0.9, high=0.9)), w.input(_numbers(2, 3, low=1.1, high=3))
    found = [w.node(op, small, T="DT_FLOAT") for op in UNARY] + [w.node(op, above) for op in POSITIVE]
    row = w.constant(_numbers(3, seed=2))
    found += [w.node(op, above, row) for op in BINARY if op != "Pow"]
    found += [w.node("Pow", above, row), w.node("Prelu", small, w.constant([0.1, 0.2, 0.3]))]
    found += [w.node(op, small, w.constant([0.1, 0, 0.3])) for op in COMPARED]
    return [*found, w.node("ClipByValue", small, w.constant(-0.5), w.constant(0.25)), w.node("AddN", small, above, small)]


def integers(w: Writer) -> list[str]:
    a, b = w.input([[7, -7, 5], [-5, 9, 0]], "int32"), w.constant([2, 3, -4], "int32")
    found = [w.node(op, a, b) for op in ("Add", "Sub", "Mul", "Maximum", "Minimum", "FloorDiv", "FloorMod")]
    found += [w.node(op, a, b) for op in COMPARED] + [w.node("Abs", a), w.node("Neg", a), w.node("Square", a)]
    found += [w.node("Cast", a, DstT="DT_FLOAT"), w.node("Cast", a, DstT="DT_BOOL"), w.node("Sum", a, w.constant([1], "int32"))]
    flag = w.node("Greater", a, b)
    found += [w.node("LogicalNot", flag), w.node("LogicalAnd", flag, w.node("Less", a, w.constant(8, "int32")))]
    found += [
        w.node("SelectV2", flag, a, b),
        w.node("All", flag, w.constant([1], "int32")),
        w.node("Any", flag, w.constant([0], "int32")),
    ]
    return [*found, w.node("OneHot", a, w.constant(6, "int32"), w.constant(2.0), w.constant(-1.0), T="DT_FLOAT", axis=-1)]


def reductions(w: Writer) -> list[str]:
    x = w.input(_numbers(2, 3, 4))
    one, two = w.constant([1], "int32"), w.constant([0, 2], "int32")
    found = [w.node(op, x, a, keep_dims=k) for op in REDUCED for a, k in ((one, False), (two, True))]
    axis = w.constant(2, "int32")
    found += [w.node("ArgMax", x, axis), w.node("ArgMin", x, axis)]
    found += [w.node("Cumsum", x, axis, exclusive=e, reverse=r) for e in (False, True) for r in (False, True)]
    found.append(w.node("Cumprod", x, axis, exclusive=False, reverse=False))
    top = w.node("TopKV2", x, w.constant(2, "int32"), sorted=True)
    return [*found, top, f"{top}:1"]


def shapes(w: Writer) -> list[str]:
    x = w.input(_numbers(2, 3, 4), shape=[-1, 3, 4])

    def n(*numbers: int) -> str:
        return w.constant(list(numbers), "int32")

    zero, one = w.constant(0, "int32"), w.constant(1, "int32")
    found = [
        w.node("Reshape", x, n(4, -1)),
        w.node("ExpandDims", x, w.constant(-1, "int32")),
        w.node("Squeeze", w.node("ExpandDims", x, one), squeeze_dims=[1]),
        w.node("Transpose", x, n(2, 0, 1)),
        w.node("ConcatV2", x, x, one),
        w.node("Pack", x, x, axis=1),
        w.node("Tile", x, n(1, 2, 1)),
        w.node("ReverseV2", x, n(0, 2)),
        w.node("Slice", x, n(0, 1, 1), n(-1, 2, 2)),
        w.node("StridedSlice", x, n(0, 2, 0), n(2, 0, 4), n(1, -1, 2)),
        w.node("StridedSlice", x, n(1, 0), n(2, 2), n(1, 1), shrink_axis_mask=1, begin_mask=2),
        w.node("StridedSlice", x, n(0, 0, 1), n(0, 0, 3), n(1, 1, 1), ellipsis_mask=1, new_axis_mask=2),
        w.node("Pad", x, w.constant([[0, 1], [2, 0], [1, 1]], "int32")),
        w.node("PadV2", x, w.constant([[0, 1], [2, 0], [1, 1]], "int32"), w.constant(3.5)),
        w.node("MirrorPad", x, w.constant([[0, 0], [1, 2], [1, 1]], "int32"), mode="reflect"),
        w.node("GatherV2", x, n(2, 0), one),
        w.node("GatherV2", x, w.constant([[2, 0], [1, 1]], "int32"), one, batch_dims=1),
        w.node("GatherNd", x, w.constant([[1, 2], [0, 0]], "int32")),
        w.node("ScatterNd", w.constant([[3], [0], [3]], "int32"), w.constant(_numbers(3, 2)), n(5, 2)),
        # TensorFlow.js writes into the first input.
        w.node("TensorScatterUpdate", w.node("Neg", x), w.constant([[1]], "int32"), w.constant(_numbers(1, 3, 4, seed=5))),
        w.node("BroadcastTo", w.constant(_numbers(1, 4)), n(3, 4)),
        w.node("Fill", w.node("Shape", x), w.constant(2.5)),
        w.node("Range", zero, w.constant(7, "int32"), w.constant(2, "int32"), Tidx="DT_INT32"),
        w.node("LinSpace", w.constant(0.0), w.constant(1.0), w.constant(5, "int32")),
    ]
    split = w.node("Split", w.constant(2, "int32"), x, num_split=2)
    parts = w.node("SplitV", x, n(1, 2), one)
    rows = w.node("Unpack", x, axis=0, num=2)
    return [*found, split, f"{split}:1", parts, f"{parts}:1", rows, f"{rows}:1"]


def pictures(w: Writer) -> list[str]:
    x = w.input(_numbers(2, 6, 7, 4))
    taps, deep = w.constant(_numbers(3, 2, 4, 5, seed=3)), w.constant(_numbers(3, 3, 4, 2, seed=4))
    bias, crops = w.constant(_numbers(5, seed=5)), w.constant([[0, 1], [1, 0]], "int32")
    common: dict[str, Any] = {"data_format": "NHWC", "dilations": [1, 1, 1, 1]}
    fused = {**common, "fused_ops": ["BiasAdd", "Relu6"]}
    wide = {"data_format": "NHWC", "dilations": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}
    two = {"strides": [1, 2, 2, 1], "ksize": [1, 3, 2, 1], "data_format": "NHWC"}
    return [
        w.node("Conv2D", x, taps, strides=[1, 2, 1, 1], padding="SAME", **common),
        w.node("Conv2D", x, taps, **wide),
        w.node("_FusedConv2D", x, taps, bias, strides=[1, 1, 1, 1], padding="VALID", num_args=1, **fused),
        w.node("DepthwiseConv2dNative", x, deep, strides=[1, 2, 2, 1], padding="SAME", **common),
        w.node("MaxPool", x, padding="SAME", **two),
        w.node("AvgPool", x, padding="SAME", **two),
        w.node("AvgPool", x, padding="VALID", **two),
        w.node("ResizeBilinear", x, w.constant([9, 5], "int32"), align_corners=False, half_pixel_centers=False),
        w.node("ResizeBilinear", x, w.constant([9, 5], "int32"), align_corners=True, half_pixel_centers=False),
        w.node("ResizeBilinear", x, w.constant([9, 5], "int32"), align_corners=False, half_pixel_centers=True),
        w.node("ResizeNearestNeighbor", x, w.constant([9, 5], "int32"), align_corners=False, half_pixel_centers=True),
        w.node(
            "CropAndResize", x, w.constant([[0.1, 0.2, 0.9, 0.7], [-0.2, 0, 0.5, 1.1]]), w.constant([1, 0], "int32"),
            w.constant([3, 4], "int32"), method="bilinear", extrapolation_value=0.5,
        ),
        w.node("DepthToSpace", x, block_size=2, data_format="NHWC"),
        w.node("SpaceToBatchND", x, w.constant([2, 2], "int32"), w.constant([[0, 0], [0, 1]], "int32")),
        w.node("BatchToSpaceND", w.constant(_numbers(4, 2, 3, 1)), w.constant([2, 2], "int32"), crops),
        w.node(
            "FusedBatchNormV3", x, *(w.constant(_numbers(4, seed=6 + i, low=0.5, high=2)) for i in range(4)),
            epsilon=0.01, data_format="NHWC",
        ),
        w.node("Conv2DBackpropInput", w.constant([2, 12, 14, 3], "int32"), w.constant(_numbers(3, 3, 3, 4, seed=9)), x,
               strides=[1, 2, 2, 1], padding="SAME", data_format="NHWC"),
        w.node("LRN", x, depth_radius=1, bias=1.0, alpha=0.5, beta=0.75),
    ]  # fmt: skip


def products(w: Writer) -> list[str]:
    a, b, c = w.input(_numbers(3, 4)), w.constant(_numbers(4, 5, seed=2)), w.constant(_numbers(2, 4, 3, seed=3))
    return [
        w.node("MatMul", a, b, transpose_a=False, transpose_b=False),
        w.node("_FusedMatMul", a, b, w.constant(_numbers(5)), fused_ops=["BiasAdd", "Relu"], num_args=1),
        w.node("BatchMatMulV2", c, w.constant(_numbers(2, 3, 4, seed=4)), adj_x=False, adj_y=False),
        w.node("BatchMatMulV2", c, c, adj_x=True, adj_y=False),
        w.node("Einsum", c, b, equation="bij,ik->bjk", N=2),
    ]


def quantized(w: Writer) -> list[str]:
    x = w.input(_numbers(2, 3))
    w8 = w.constant([[0, 7, 255], [1, 2, 3], [9, 8, 7]], "float32", quantization={"dtype": "uint8", "scale": 0.01, "min": -1.0})
    w16 = w.constant([0, 65535, 300], "float32", quantization={"dtype": "uint16", "scale": 0.001, "min": -3.0})
    f16 = w.constant([0.5, -1.25, 3], "float32", quantization={"dtype": "float16"})
    return [w.node("MatMul", x, w8), w.node("Add", x, w16), w.node("Mul", x, f16)]


def selected(w: Writer) -> list[str]:
    x = w.input(_numbers(3, 4))
    where = w.node("Where", w.node("Greater", x, w.constant(0.0)))
    found = [where, w.node("GatherNd", x, where)]
    boxes = w.constant([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3], [0, 0, 0.9, 1]])
    scores = w.input([0.9, 0.8, 0.7, 0.95])
    kept = w.node("NonMaxSuppressionV3", boxes, scores, w.constant(3, "int32"), w.constant(0.5), w.constant(0.1))
    unique = w.node("Unique", w.input([3, 1, 3, 2, 1], "int32"))
    return [*found, kept, w.node("GatherV2", boxes, kept, w.constant(0, "int32")), unique, f"{unique}:1"]


def condition(w: Writer) -> list[str]:
    x, flag = w.input(_numbers(2, 3)), w.input(True, "bool")
    up = w.function("up", 1, lambda nodes, a: [w.node("Exp", a, nodes=nodes) + ":y:0"])
    down = w.function("down", 1, lambda nodes, a: [w.node("Neg", a, nodes=nodes) + ":y:0"])
    known = w.node("Less", w.constant(1.0), w.constant(2.0))
    return [
        w.node("If", flag, x, then_branch=up, else_branch=down),
        w.node("StatelessIf", known, x, then_branch=down, else_branch=up),
    ]


def _while(w: Writer, start: str, limit: str, x: str, name: str) -> str:
    cond = w.function(f"{name}_cond", 3, lambda nodes, i, n, a: [w.node("Less", i, n, nodes=nodes) + ":z:0"])

    def body(nodes: list[dict[str, Any]], i: str, n: str, a: str) -> list[str]:
        one = w.constant(1, "int32", nodes=nodes)
        half = w.constant(0.5, nodes=nodes)
        next_i = w.node("AddV2", i, f"{one}:output:0", nodes=nodes)
        scaled = w.node("Mul", a, f"{half}:output:0", nodes=nodes)
        added = w.node("AddV2", f"{scaled}:z:0", f"{half}:output:0", nodes=nodes)
        return [f"{next_i}:z:0", n, f"{added}:z:0"]

    return w.node("StatelessWhile", start, limit, x, cond=cond, body=w.function(f"{name}_body", 3, body))


def loops(w: Writer) -> list[str]:
    x, count = w.input(_numbers(2, 3)), w.input(4, "int32")
    known = _while(w, w.constant(0, "int32"), w.constant(3, "int32"), x, "known")
    open_ = _while(w, w.constant(0, "int32"), count, x, "open")
    return [f"{known}:2", f"{open_}:2", open_]


def _frame(w: Writer, count: str, x: str, name: str) -> tuple[str, str]:
    """Write a loop of TensorFlow's first version: x = x * 0.5 + 1, `count` times."""
    frame: dict[str, Any] = {"frame_name": name}
    i0 = w.node("Enter", w.constant(0, "int32"), name=f"{name}/enter_i", is_constant=False, **frame)
    x0 = w.node("Enter", x, name=f"{name}/enter_x", is_constant=False, **frame)
    limit = w.node("Enter", count, name=f"{name}/enter_n", is_constant=True, **frame)
    mi = w.node("Merge", i0, f"{name}/next_i", name=f"{name}/merge_i")
    mx = w.node("Merge", x0, f"{name}/next_x", name=f"{name}/merge_x")
    pred = w.node("LoopCond", w.node("Less", mi, limit, name=f"{name}/less"), name=f"{name}/cond")
    si, sx = w.node("Switch", mi, pred, name=f"{name}/switch_i"), w.node("Switch", mx, pred, name=f"{name}/switch_x")
    one = w.constant(1, "int32")
    ei = w.node("Enter", one, name=f"{name}/enter_one", is_constant=True, **frame)
    w.node("NextIteration", w.node("Add", f"{si}:1", ei, name=f"{name}/add_i"), name=f"{name}/next_i")
    scale = w.node("Enter", w.constant(0.5), name=f"{name}/enter_scale", is_constant=True, **frame)
    half = w.node("Mul", f"{sx}:1", scale, name=f"{name}/mul")
    w.node("NextIteration", w.node("Add", half, scale, name=f"{name}/add_x"), name=f"{name}/next_x")
    return w.node("Exit", sx, name=f"{name}/exit_x"), w.node("Exit", si, name=f"{name}/exit_i")


def frames(w: Writer) -> list[str]:
    x, count = w.input(_numbers(2, 3)), w.input(3, "int32")
    known, turns = _frame(w, w.constant(4, "int32"), x, "known")
    open_, _ = _frame(w, count, x, "open")
    return [known, turns, open_]


def switches(w: Writer) -> list[str]:
    x, flag = w.input(_numbers(2, 3)), w.input(False, "bool")
    both = w.node("Switch", x, flag)
    merged = w.node("Merge", w.node("Neg", both), w.node("Exp", f"{both}:1"))
    return [merged]


def arrays(w: Writer) -> list[str]:
    x = w.input(_numbers(3, 2))
    three = w.constant(3, "int32")
    row: dict[str, Any] = {"element_shape": {"shape": {"dim": [{"size": "2"}]}}, "dtype": "DT_FLOAT"}
    array = w.node("TensorArrayV3", three, **row, dynamic_size=False,
                   clear_after_read=True, identical_element_shapes=True, tensor_array_name="a")  # fmt: skip
    flow = w.node("TensorArrayScatterV3", array, w.constant([0, 1, 2], "int32"), x, f"{array}:1", T="DT_FLOAT")
    read = w.node("TensorArrayReadV3", array, w.constant(1, "int32"), flow, dtype="DT_FLOAT")
    found = w.node("TensorArrayGatherV3", array, w.constant([2, 0], "int32"), flow, dtype="DT_FLOAT",
                   element_shape={"shape": {"dim": [{"size": "2"}]}})  # fmt: skip
    return [read, found, w.node("TensorArraySizeV3", array, flow)]


def lists(w: Writer) -> list[str]:
    """A list that a loop fills, stacked, with a number of rounds that is known and one that is not."""
    x, count = w.input(_numbers(4, 2)), w.input(4, "int32")
    found: list[str] = []
    for name, limit in (("k", w.constant(4, "int32")), ("o", count)):
        reserved = w.node("TensorListReserve", w.constant([2], "int32"), w.constant(4, "int32"), element_dtype="DT_FLOAT")
        source = w.node("TensorListFromTensor", x, w.constant([2], "int32"), element_dtype="DT_FLOAT")

        def cond(nodes: list[dict[str, Any]], i: str, n: str, out: str, src: str) -> list[str]:
            return [w.node("Less", i, n, nodes=nodes) + ":z:0"]

        def body(nodes: list[dict[str, Any]], i: str, n: str, out: str, src: str) -> list[str]:
            shape = w.constant([2], "int32", nodes=nodes)
            one = w.constant(1, "int32", nodes=nodes)
            item = w.node("TensorListGetItem", src, i, f"{shape}:output:0", nodes=nodes, element_dtype="DT_FLOAT")
            new = w.node("Exp", f"{item}:item:0", nodes=nodes)
            after = w.node("TensorListSetItem", out, i, f"{new}:y:0", nodes=nodes, element_dtype="DT_FLOAT")
            return [w.node("AddV2", i, f"{one}:output:0", nodes=nodes) + ":z:0", n, f"{after}:output_handle:0", src]

        zero = w.constant(0, "int32")
        loop = w.node(
            "While", zero, limit, reserved, source, cond=w.function(f"{name}c", 4, cond), body=w.function(f"{name}b", 4, body)
        )
        found.append(w.node("TensorListStack", f"{loop}:2", w.constant([2], "int32"), element_dtype="DT_FLOAT", num_elements=4))
    return found


def tables(w: Writer) -> list[str]:
    x = w.input([3, 1, 9], "int32")
    keys, values = w.constant([1, 2, 3], "int32"), w.constant([10.0, 20, 30])
    w.node("HashTableV2", name="table", key_dtype="DT_INT32", value_dtype="DT_FLOAT", shared_name="t")
    names = {keys, values}
    moved = [n for n in w.nodes if n["name"] in names or n["name"] == "table"]
    w.document["modelInitializer"] = {
        "node": [*moved, {"name": "init", "op": "LookupTableImportV2", "input": ["table", keys, values], "attr": {}}],
        "versions": {"producer": 1},
    }
    w.nodes = [n for n in w.nodes if n["name"] not in names]
    return [w.node("LookupTableFindV2", "table", x, w.constant(-1.0))]


GRAPHS: Mapping[str, Callable[[Writer], list[str]]] = {
    f.__name__: f
    for f in (
        elementwise, integers, reductions, shapes, pictures, products, quantized, selected, condition, loops, frames, switches,
        arrays, lists, tables,
    )
}  # fmt: skip
"""The graphs by name."""


def write(name: str, folder: Path) -> Writer:
    """Write a graph model to a folder."""
    writer = Writer()
    document = writer.finish(GRAPHS[name](writer))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.json").write_text(json.dumps(document))
    (folder / "weights.bin").write_bytes(writer.data)
    return writer


if __name__ == "__main__":
    for each in GRAPHS:
        target = Path(sys.argv[1]) / each
        written = write(each, target)
        inputs = {
            n: {"shape": a.shape, "dtype": str(a.dtype), "data": a.reshape(-1).tolist()} for n, a in written.inputs.items()
        }
        (target / "inputs.json").write_text(json.dumps(inputs))
