"""Kernels for GPUs in the forms that larger tensors get: the interpreter finds nothing, with subgroups of any size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.kernels.operators import Call
from tests.kernels.test_interpreted import assert_alike, feeds_of, graph_of, hardware, interpreted
from webnn_wgpu.costs import Target
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.plan import ExecutionPlan

RANDOM = np.random.default_rng(11)
SEEN = (RANDOM.random((1, 1, 1, 70)) < 0.7).astype(np.float32)
WORDS = [RANDOM.integers(0, 256, (40, 4, 16), np.uint8), RANDOM.random((40, 4), np.float32), None, None]
BYTES = RANDOM.integers(-128, 128, (128, 40)).astype(np.float32)


def _attention(
    what: str, queries: tuple[int, ...], keys: tuple[int, ...], data_type: str = "float32", **attrs: Any
) -> tuple[Call, str]:
    mask = attrs.pop("mask", None)
    return Call("x.attention", what, [queries, keys, keys, mask, None], attrs, data_type), "attention.tiled"


def _network(name: str, what: str, rows: int, hidden: int, data_type: str = "float32") -> tuple[Call, str]:
    columns = hidden * (4 if name == "lstm" else 3)
    shapes = [(2, rows, 6), (1, columns, 6), (1, columns, hidden), (1, columns), (1, columns)]
    attrs = {"steps": 2, "hidden_size": hidden, "return_sequence": True}
    return Call(name, what, [*shapes, *[None] * (3 if name == "lstm" else 1)], attrs, data_type), "recurrent.sequence"


def _stack(name: str, what: str, rows: int, hidden: int, data_type: str = "float32") -> tuple[Call, str]:
    columns = hidden * (4 if name == "lstmStack" else 3)
    shapes = [
        (3, rows, 6),
        (1, columns, 6),
        (3, columns, hidden),
        (2, columns + hidden * (columns // hidden == 3)),
        (1, columns),
    ]
    attrs = {"steps": 3, "hidden_size": hidden, "return_sequence": True}
    states = [(2, rows, hidden)] * (2 if name == "lstmStack" else 1)
    return Call(name, what, [*shapes, *states], attrs, data_type), "recurrent_stack"


def _words(what: str, rows: int) -> tuple[Call, str]:
    call = Call("x.matmul_nbits", what, [(rows, 128), *WORDS], {"bits": 4}, constants=frozenset({1, 2}))
    return call, "matmul_nbits.gemv"


NHWC = {"input_layout": "nhwc", "filter_layout": "ohwi"}

CALLS: dict[str, tuple[Call, str]] = {
    "64x64": _attention("one-mask", (1, 2, 70, 32), (1, 2, 70, 32), mask=SEEN),
    "32x64": _attention("causal", (1, 2, 10, 64), (1, 1, 90, 64), causal=True),
    "16x128": _attention("halves", (1, 1, 9, 36), (1, 1, 150, 36), "float16"),
    "6x256": _attention("few-rows", (1, 1, 9, 12), (1, 1, 130, 12), causal=True),
    "row of taps": (
        Call(
            "conv2d", "row", [(1, 3, 4, 32), (16, 2, 2, 32), None], NHWC | {"padding": (1, 1, 1, 1)}, constants=frozenset({1})
        ),
        "conv2d.tiled",
    ),
    "taps of a shorter slice": (
        Call("conv2d", "rest", [(1, 5, 6, 20), (16, 3, 3, 20), None], NHWC | {"strides": (2, 2)}, constants=frozenset({1})),
        "conv2d.tiled",
    ),
    "taps of few channels": (
        Call("conv2d", "cut", [(2, 3, 7, 6), (16, 3, 3, 3), None], {"padding": (1, 1, 1, 1)}, constants=frozenset({1})),
        "conv2d.tiled",
    ),
    "shorter slice": (Call("matmul", "rest", [(9, 100), (100, 20)]), "matmul.tiled"),
    "decode": (
        Call("x.attention", "groups", [(1, 4, 1, 64), *[(1, 2, 600, 64)] * 2, None, None], {}, "float16"),
        "attention.combine",
    ),
    "long softmax": (Call("softmax", "long", [(2, 5001)], {"axis": 1}), "softmax"),
    "layer": (Call("layerNormalization", "halves", [(3, 384), (384,), (384,)], {"axes": (1,)}, "float16"), "normalization"),
    "long layer": (Call("layerNormalization", "long", [(2, 9001), (9001,), (9001,)], {"axes": (1,)}), "normalization"),
    "sum": (Call("reduceSum", "integers", [(3, 3000)], {"axes": (1,)}, "int32"), "reduce"),
    "least": (Call("argMin", "rows", [(3, 700)], {"axis": 1}), "arg"),
    "range": (Call("x.quantization_parameters", "odd", [(3, 1701)]), "quantization_range"),
    "lstm": _network("lstm", "some-weights-held", 1, 100),
    "gru": _network("gru", "halves-of-several-rows", 3, 100, "float16"),
    "stack of lstm": _stack("lstmStack", "a-row", 1, 12),
    "stack of gru": _stack("gruStack", "halves-of-several-rows", 3, 7, "float16"),
    "row": (Call("matmul", "row", [(1, 300), (300, 72)]), "matmul.gemv"),
    "short row": (Call("matmul", "short", [(1, 70), (70, 22)]), "matmul.gemv"),
    "rows of halves": (Call("matmul", "rows", [(5, 256), (256, 48)], {}, "float16", constants=frozenset({1})), "matmul.gemv"),
    "row of words": _words("row", 1),
    "rows of words": _words("rows", 6),
    "bytes": (
        Call("integerProduct", "rows", [(3, 128), BYTES, np.int8([5])], {}, "int8", constants=frozenset({1})),
        "integer_product",
    ),
}
"""Calls, and the template of their last kernel. Those of attention are named by their tile."""


def plan_of(name: str) -> ExecutionPlan:
    """Return the plan for a GPU that a single workgroup of attention keeps busy, so that small tensors get large tiles.

    The tile for few rows is taken where two workgroups keep it busy.
    """
    target = Target.of(hardware(32))
    attention = replace(target.costs.attention, busy_workgroups=2 if name == "6x256" else 1)
    return make_plan(graph_of(CALLS[name][0]), replace(target, costs=replace(target.costs, attention=attention)))


@pytest.mark.parametrize("name", CALLS)
def test_calls_get_the_kernels_that_they_are_meant_for(name: str) -> None:
    call, template = CALLS[name]
    spec = plan_of(name).dispatches[-1].spec
    assert spec.template == template
    if template == "attention.tiled":
        assert str(spec.param("tile")) == name
    elif template == "conv2d.tiled":
        found = {"row": ("row", ""), "rest": ("whole", "start"), "cut": ("cut", "end")}
        assert (spec.param("taps"), spec.param("rest")) == found[call.what]
    elif template == "matmul.tiled":
        assert spec.param("rest") == "start"
    elif call.name in ("softmax", "layerNormalization", "reduceSum"):
        assert spec.variant == "workgroup"


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_found_with_subgroups_of_any_size(name: str) -> None:
    call = CALLS[name][0]
    plan, feeds = plan_of(name), feeds_of(call)
    wanted = interpret(graph_of(call), feeds)
    # Kernels without subgroup operations do the same for all sizes.
    by_subgroups = any("subgroup" in dispatch.spec.features for dispatch in plan.dispatches)
    for subgroup_size in (8, 16, 32, 64) if by_subgroups else (32,):
        for output, array in interpreted(plan, feeds, subgroup_size).items():
            assert_alike(array, wanted[output], exact=False)
