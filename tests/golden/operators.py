"""The golden graphs of operators: calls of each, as data that the package of any revision can plan."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.checks.calls import ALIASES, BASES, Activation, Operand, t
from tests.golden.graphs import packed
from tests.kernels.operators import Call, calls
from webnn_wgpu.core.names import snake_case
from webnn_wgpu.ops import OPS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webnn_wgpu.ops._def import OpDef

INTERNAL = (
    *("columnSums", "fused", "integerProduct", "quantizeDequantize", "quantizeCentered", "transposedMatmul"),
    *("geluSlope", "attentionWeights", "weightsGradient", "filterGradient", "gruStack", "lstmStack", "normalizedMatmul"),
    *("projectedMatmul", "transposes", "productPair"),
)
"""Operators that no program can call. Passes make nodes of them, in the golden plans of other models."""

_X, _ROW, _INT = t("float32[2, 12]"), t("float32[12]"), t("int32[2, 12]")


def _element_wise(op: OpDef) -> Mapping[str, Any]:
    """Return a call with the default options, whose second operand broadcasts."""
    shapes = zip(op.operands, ("[2, 12]", "[12]"), strict=False)
    return {operand.name: t(operand.data_types[0] + shape) for operand, shape in shapes}


EXTENSIONS: dict[str, Mapping[str, Any]] = {
    **{op.name: _element_wise(op) for op in OPS.values() if op.extension and op.elementwise is not None},
    "x.attention": {
        "query": t("float32[1, 4, 20, 16]"),
        "key": t("float32[1, 4, 40, 16]"),
        "value": t("float32[1, 4, 40, 16]"),
        "mask": t("float32[1, 1, 20, 40]"),
        "scale": 0.25,
    },
    "x.attention_gradient": {
        "gradient": t("float32[1, 4, 20, 16]"),
        "query": t("float32[1, 4, 20, 16]"),
        "key": t("float32[1, 2, 40, 16]"),
        "value": t("float32[1, 2, 40, 16]"),
        "mask": t("float32[1, 1, 20, 40]"),
        "causal": True,
    },
    "x.bitcast": {"input": _X, "data_type": "int32"},
    "x.cache_update": {"cache": t("float32[1, 4, 32, 8]"), "new": t("float32[1, 4, 3, 8]"), "position": t("int32[1]")},
    "x.cumulative_product": {"input": _X, "axis": 1, "exclusive": True, "reversed": True},
    "x.gather_block_quantized": {
        "input": t("uint8[50, 32]"),
        "indices": t("int32[2, 3]"),
        "scales": t("float32[50, 4]"),
        "zero_points": t("uint8[50, 2]"),
        "block_size": 16,
    },
    "x.grid_sample": {"input": t("float32[1, 3, 8, 9]"), "grid": t("float32[1, 5, 4, 2]"), "mode": "cubic"},
    "x.log_softmax": {"input": _X, "axis": 1},
    "x.matmul_nbits": {
        "a": t("float32[5, 64]"),
        "b": t("uint8[24, 2, 16]"),
        "scales": t("float32[24, 2]"),
        "zero_points": t("uint8[24, 1]"),
        "bias": t("float32[24]"),
    },
    "x.normalization_gradient": {
        "gradient": t("float32[2, 6, 36]"),
        "input": t("float32[2, 6, 36]"),
        "scale": t("float32[36]"),
        "axes": [2],
        "products": True,
    },
    "x.quantization_parameters": {"input": _X},
    "x.random_bits": {"key": t("uint32[2]"), "shape": [5, 7]},
    "x.rms_normalization": {"input": _X, "scale": _ROW},
    "x.rotary_embedding": {
        "input": t("float32[1, 4, 6, 16]"),
        "cos": t("float32[32, 8]"),
        "sin": t("float32[32, 8]"),
        "positions": t("int32[1, 6]"),
    },
    "x.round_float8": {"input": _X, "format": "e5m2", "saturate": False},
    "x.scatter_elements": {
        "input": t("float32[8, 5]"),
        "indices": t("int32[3, 5]"),
        "updates": t("float32[3, 5]"),
        "reduction": "add",
    },
    "x.scatter_nd": {
        "input": t("float32[8, 5]"),
        "indices": t("int32[3, 1]"),
        "updates": t("float32[3, 5]"),
        "reduction": "max",
    },
    "x.top_k": {"input": t("float32[3, 100]"), "k": 7},
    "x.weighted_gather": {"input": t("float32[8, 5]"), "indices": t("int32[4, 3]"), "weights": t("float32[4, 3]")},
    "x.wrap_integer": {"input": _INT, "bits": 4},
}
"""Calls of extension operators, by Python names. Operators with calls in `tests.kernels.operators` need no entry, and
element-wise ones need an entry only for other options.
"""

CALLS = BASES | EXTENSIONS
"""Small calls of operators."""


def _attention(heads: int, queries: int, keys: int, size: int, data_type: str = "float32", **more: Any) -> Mapping[str, Any]:
    kv_heads = more.pop("kv_heads", heads)
    key = t(f"{data_type}[1, {kv_heads}, {keys}, {size}]")
    return {"query": t(f"{data_type}[1, {heads}, {queries}, {size}]"), "key": key, "value": key, **more}


LARGER = (
    ("matmul", {"a": t("float32[512, 512]"), "b": t("float32[512, 512]")}),  # tiles of middle size on GPUs
    ("matmul", {"a": t("float32[4, 32]"), "b": t("float32[32, 128]")}),  # few rows
    ("matmul", {"a": t("float32[1, 128]"), "b": t("float32[128, 128]")}),  # a row in narrow tiles
    ("x.attention", _attention(12, 128, 128, 32, mask=t("uint8[1, 1, 1, 128]"))),  # MiniLM
    ("x.attention", _attention(3, 197, 197, 64)),  # ViT-tiny
    ("x.attention", _attention(12, 1024, 1024, 64, causal=True)),  # GPT-2
    ("x.attention", _attention(12, 512, 512, 64, "float16", mask=t("float16[12, 512, 512]"))),
    ("x.attention", _attention(8, 1024, 1024, 96)),
    ("x.attention", _attention(32, 1, 2048, 128, "float16", kv_heads=8)),  # Llama
    ("x.attention_gradient", {"gradient": t("float32[1, 8, 1024, 64]"), **_attention(8, 1024, 1024, 64, causal=True)}),
    (
        "x.attention_gradient",
        {"gradient": t("float16[1, 32, 256, 128]"), **_attention(32, 256, 256, 128, "float16", kv_heads=8)},
    ),
    ("x.quantization_parameters", {"input": t("float32[300000]")}),
    ("matmul", {"a": t("float32[128, 384]"), "b": t("float32[384, 384]")}),  # MiniLM
    ("matmul", {"a": t("float32[16, 2048, 512]"), "b": t("float32[16, 512, 64]")}),
)
"""Calls on tensors as large as those of models, for which devices get other kernels than for small ones."""

_OWN_KERNEL = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
    if (at.x < arrayLength(&y)) { y[at.x] = 2.0 * x[at.x]; }
}
"""

_OWN = {
    "source": _OWN_KERNEL,
    "inputs": [t("float32[100]")],
    "output_shapes": [100],
    "output_types": "float32",
    "workgroups": 2,
}


def _network(name: str, what: str, batch: int, hidden: int, attrs: Mapping[str, Any], data_type: str = "float32") -> Call:
    """Return a call of lstm or gru with all operands that are given to every network of its kind."""
    columns = hidden * (4 if name == "lstm" else 3)
    shapes = [(3, batch, 16), (1, columns, 16), (1, columns, hidden), (1, columns), (1, columns)]
    absent = [None] * (3 if name == "lstm" else 1)
    return Call(name, what, [*shapes, *absent], {"steps": 3, "hidden_size": hidden} | attrs, data_type)


NETWORKS = (
    _network("lstm", "all-weights-held", 1, 64, {"return_sequence": True}),
    _network("lstm", "some-weights-held", 1, 256, {"return_sequence": True}),
    _network("lstm", "several-rows", 40, 256, {}),
    _network("lstm", "a-dispatch-per-step", 1, 512, {}),
    _network("gru", "some-weights-held", 2, 256, {}),
    _network("gru", "some-halves-held", 2, 256, {}, "float16"),
    _network("gru", "two-phases", 2, 160, {"reset_after": False}),
    _network("gru", "two-phases-of-several-rows", 40, 160, {"reset_after": False}),
)
"""Recurrent networks as large as models have them: GPUs get other forms of the kernels for them than for small ones."""

WINOGRAD: Mapping[str, Any] = {
    "values": [
        {"name": "0", "type": "float32", "shape": [1, 512, 32, 32]},
        {"type": "float32", "shape": [512, 512, 3, 3], "normal": 1},
    ],
    "nodes": [{"op": "conv2d", "inputs": [0, 1, None], "attrs": {"padding": [1, 1, 1, 1]}, "label": "many-channels"}],
}
"""A convolution with so many channels that GPUs compute it by Winograd's algorithm."""


def _bytes(*shape: int) -> np.ndarray[Any, Any]:
    """Return weights that were uint8 with a zero point of 143, as the float32 numbers that products multiply."""
    return np.random.default_rng(sum(shape)).integers(-143, 113, shape).astype(np.float32)


_NHWC = {"input_layout": "nhwc", "filter_layout": "ohwi"}

BYTES = (
    Call("matmul", "row-of-bytes", [(1, 64), _bytes(64, 48)], constants=frozenset({1})),
    Call("matmul", "rows-of-bytes", [(80, 64), _bytes(64, 96)], constants=frozenset({1})),
    Call("conv2d", "pixels-of-bytes", [(1, 14, 14, 64), _bytes(96, 1, 1, 64), None], _NHWC, constants=frozenset({1})),
    Call("conv2d", "taps-of-bytes", [(1, 14, 14, 16), _bytes(24, 3, 3, 16), None], _NHWC, constants=frozenset({1})),
    Call(
        "convTranspose2d",
        "phases-of-bytes",
        [(1, 14, 14, 16), _bytes(24, 3, 3, 16), None],
        {**_NHWC, "strides": [2, 2]},
        constants=frozenset({1}),
    ),
)
"""Products whose weights devices hold as bytes with a zero point."""


_SAME = {"padding": [1, 1, 1, 1]}

IMAGES = (
    Call(
        "conv2d",
        "image-of-many-pixels",
        [(1, 3, 256, 256), (32, 3, 3, 3), (32,)],
        _SAME,
        constants=frozenset({1, 2}),
    ),
    Call(
        "conv2d",
        "image-of-many-taps",
        [(1, 3, 224, 224), (64, 3, 7, 7), (64,)],
        {"padding": [3, 3, 3, 3], "strides": [2, 2]},
        constants=frozenset({1, 2}),
    ),
    Call(
        "conv2d",
        "image-of-few-pixels",
        [(1, 224, 224, 3), (32, 3, 3, 3), (32,)],
        {**_NHWC, "padding": [0, 1, 0, 1], "strides": [2, 2]},
        constants=frozenset({1, 2}),
    ),
    Call("conv2d", "image-of-many-patches", [(1, 64, 128, 128), (64, 64, 3, 3), (64,)], _SAME, constants=frozenset({1, 2})),
    Call("conv2d", "image-of-few-patches", [(1, 128, 28, 28), (128, 128, 3, 3), (128,)], _SAME, constants=frozenset({1, 2})),
)
"""First layers of U-Net, ResNet and MobileNet, for which GPUs get tiles of several sizes, and layers of 3 x 3 taps."""


@cache
def graphs() -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Return operator -> its golden graphs: small calls by Python names, and calls on larger tensors."""
    found: dict[str, list[Mapping[str, Any]]] = {name: [] for name in OPS if name not in INTERNAL}
    for name, arguments in (*CALLS.items(), *LARGER, ("wgslOp", _OWN)):
        found[ALIASES.get(name, name)].append({"method": snake_case(name), "arguments": _data(arguments)})
    for call in (*calls(), *NETWORKS, *BYTES, *IMAGES):
        found[call.name].append(_graph(call))
    found["conv2d"].append(WINOGRAD)
    return found


def _data(given: Any) -> Any:
    if isinstance(given, Operand):
        return {"type": given.type.data_type, "shape": list(given.type.shape)}
    if isinstance(given, Activation):
        return {"activation": given.kind}
    if isinstance(given, dict):
        return {name: _data(each) for name, each in given.items()}
    return [_data(each) for each in given] if isinstance(given, list) else given


def _graph(call: Call) -> Mapping[str, Any]:
    operands = dict(enumerate(call.arrays()))
    given = {i: array for i, array in operands.items() if array is not None}
    places = {i: place for place, i in enumerate(given)}
    values = [
        packed(given[i]) if i in call.constants else {"name": str(i), "type": str(given[i].dtype), "shape": [*given[i].shape]}
        for i in given
    ]
    node = {"op": call.name, "inputs": [places.get(i) for i in operands], "attrs": call.attrs, "label": call.what}
    return {"values": values, "nodes": [node]}
