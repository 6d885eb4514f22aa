"""One golden model for each operator: calls of it, each of which is a graph."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import webnn_wgpu as wn
from tests.checks.calls import ALIASES, BASES, Workplace, t
from tests.kernels.operators import Call, calls
from webnn_wgpu.ops import OPS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webnn_wgpu.ir.graph import Array

INTERNAL = {
    "fused": "element-wise operators of every model are fused",
    "quantizeDequantize": "passes make it of pairs in quantized models",
    "quantizeCentred": "passes make it of pairs in quantized models",
}
"""Operators that no program can call, and where the golden plans have them."""

_X, _ROW, _INT = t("float32[2, 12]"), t("float32[12]"), t("int32[2, 12]")

EXTENSIONS: dict[str, Mapping[str, Any]] = {
    **{f"x.{name}": {"input": _X} for name in "acos acosh asin asinh atan atanh cosh sinh round_bfloat16".split()},
    **{f"x.{name}": {"a": _INT, "b": t("int32[12]")} for name in "bitwise_and bitwise_or bitwise_xor".split()},
    **{f"x.{name}": {"a": _INT, "b": t("int32[12]")} for name in "shift_left shift_right".split()},
    **{f"x.{name}": {"a": _X, "b": _ROW} for name in ("fmod", "mod")},
    "x.attention": {
        "query": t("float32[1, 4, 20, 16]"),
        "key": t("float32[1, 4, 40, 16]"),
        "value": t("float32[1, 4, 40, 16]"),
        "mask": t("float32[1, 1, 20, 40]"),
        "scale": 0.25,
    },
    "x.bitcast": {"input": _X, "data_type": "int32"},
    "x.bitwise_not": {"input": _INT},
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
    "x.quantization_parameters": {"input": _X},
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
"""A call of every extension operator, by Python names."""

CALLS = BASES | EXTENSIONS
"""A small call of every operator but `wgslOp`."""

_OWN_KERNEL = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
    if (at.x < arrayLength(&y)) { y[at.x] = 2.0 * x[at.x]; }
}
"""


def plan_operator(context: wn.MLContext, name: str) -> None:
    """Plan every golden graph of an operator."""
    if name == "wgslOp":
        builder = wn.MLGraphBuilder(context)
        x = builder.input("x", {"dataType": "float32", "shape": [100]})
        plan(builder, builder.wgsl_op(_OWN_KERNEL, [x], output_shapes=[100], output_types="float32", workgroups=2))
    for called, arguments in CALLS.items():
        if ALIASES.get(called, called) == name:
            place = Workplace(context)
            methods: Any = place.builder.ext if called.startswith("x.") else place.builder
            plan(place.builder, getattr(methods, called.removeprefix("x."))(**place.values(arguments)))
    for call in calls_by_operator().get(name, ()):
        builder = wn.MLGraphBuilder(context)
        operands = [
            None if array is None else _operand(builder, i, array, constant=i in call.constants)
            for i, array in enumerate(call.arrays())
        ]
        plan(builder, builder._operator(name, operands, call.attrs, call.what))


def plan(builder: wn.MLGraphBuilder, results: Any) -> None:
    """Plan what an operator returned; the context's backend remembers the plan, or why there is none."""
    results = results if isinstance(results, list | tuple) else [results]
    with suppress(wn.WebNNError):
        builder.plan({f"output{i}": result for i, result in enumerate(results)})


@cache
def calls_by_operator() -> Mapping[str, Sequence[Call]]:
    """Return the calls on larger tensors by operator."""
    found: dict[str, list[Call]] = {}
    for call in calls():
        found.setdefault(call.name, []).append(call)
    return found


def _operand(builder: wn.MLGraphBuilder, position: int, array: Array, *, constant: bool) -> wn.MLOperand:
    if constant:
        return builder.constant(array)
    return builder.input(str(position), {"dataType": str(array.dtype), "shape": array.shape})


def operator_names() -> list[str]:
    """Return the operators that have golden graphs of their own."""
    return [name for name in OPS if name not in INTERNAL]
