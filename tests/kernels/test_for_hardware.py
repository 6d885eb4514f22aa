"""Kernels as GPUs get them, run on a software adapter: they compute what the reference does, with subgroups and without."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.kernels.operators import Call
from tests.ops.rows import as_hardware, run_plan
from tests.support import op_graph
from webnn_wgpu.costs import Target
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.plan import ExecutionPlan
    from webnn_wgpu.runtime.device import Device

ROWS = (
    Call("softmax", "in-registers", [(5, 200)], {"axis": 1}),
    Call("softmax", "too-long-for-registers", [(3, 5001)], {"axis": 1}),
    Call("x.log_softmax", "ragged", [(3, 131)], {"axis": 1}),
    Call("layerNormalization", "rows", [(7, 384), (384,), (384,)], {"axes": (1,)}),
    Call("reduceSum", "integers", [(4, 3000)], {"axes": (1,)}, "int32"),
    Call("reduceMax", "floats", [(4, 300)], {"axes": (1,)}),
    Call("reduceProduct", "floats", [(4, 60)], {"axes": (1,)}),
    Call("argMin", "rows", [(4, 700)], {"axis": 1}),
    Call("averagePool2d", "whole-image", [(1, 8, 24, 24)]),
)

TRANSPOSES = (
    # Whole quads on both sides, on one, on none; matrices side by side; dimensions in between; less than a tile.
    ((64, 36), (1, 0)),
    ((2, 33, 20), (0, 2, 1)),
    ((2, 36, 19), (0, 2, 1)),
    ((3, 33, 17), (0, 2, 1)),
    ((36, 3, 40), (2, 1, 0)),
    ((2, 20, 3, 17, 16), (4, 0, 2, 3, 1)),
)

DEPTHWISE = {"padding": [1, 1, 1, 1], "input_layout": "nhwc", "filter_layout": "ihwo"}


def hardware(device: Device, *, subgroups: bool = True) -> Target:
    """Return the target of a GPU with the features of a device."""
    caps = as_hardware(device.caps)
    return Target.of(caps if subgroups else replace(caps, features=caps.features - {"subgroup"}))


def check(device: Device, call: Call, target: Target, *, exact: bool = False) -> ExecutionPlan:
    """Compare a call on the device with the reference; return its plan."""
    arrays = call.arrays()
    graph = op_graph(call.name, arrays, call.attrs, call.constants)
    plan = make_plan(graph, target)
    found = run_plan(device, plan, [None if i in call.constants else a for i, a in enumerate(arrays)])
    wanted = interpret(graph, {str(i): np.asarray(a) for i, a in enumerate(arrays) if a is not None})["0"]
    if exact or wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6 * float(np.abs(wanted).max()))
    return plan


@pytest.mark.parametrize("subgroups", [True, False], ids=["subgroups", "workgroups"])
@pytest.mark.parametrize("call", ROWS, ids=str)
def test_workgroups_combine_what_their_subgroups_have(device: Device, call: Call, subgroups: bool) -> None:
    last = check(device, call, hardware(device, subgroups=subgroups)).dispatches[-1].spec
    assert last.variant == "workgroup"
    assert ("subgroup" in last.features) == subgroups


@pytest.mark.parametrize("data_type", ["float32", "float16", "uint8", "int64"])
@pytest.mark.parametrize(("shape", "permutation"), TRANSPOSES)
def test_transposes_pass_through_workgroup_memory(
    device: Device, shape: tuple[int, ...], permutation: tuple[int, ...], data_type: str
) -> None:
    call = Call("transpose", "tiles", [shape], {"permutation": permutation}, data_type)
    plan = check(device, call, hardware(device), exact=True)
    # Single elements of less than a word cannot be written.
    written = data_type in ("float32", "int64") or shape[permutation[-1]] % 4 == 0
    assert plan.dispatches[0].spec.param("read") == ("tiled" if written else "strided")


def test_large_transposes_are_bound_in_parts(device: Device) -> None:
    target = hardware(device)
    limits = tuple((n, 8192 if n == "max-storage-buffer-binding-size" else v) for n, v in target.caps.limits)
    call = Call("transpose", "large", [(64, 36)])
    assert (
        check(device, call, replace(target, caps=replace(target.caps, limits=limits))).dispatches[0].spec.param("read") == "row"
    )


@pytest.mark.parametrize(("pixels", "rows"), [(80, 2), (12, 1)])
def test_depthwise_convolutions_share_reads_where_pixels_are_many(device: Device, pixels: int, rows: int) -> None:
    weights = np.random.default_rng(3).uniform(-1, 1, (1, 3, 3, 32)).astype(np.float32)
    call = Call(
        "conv2d", "depthwise", [(1, pixels, pixels, 32), weights, None], DEPTHWISE | {"groups": 32}, constants=frozenset({1})
    )
    spec = check(device, call, hardware(device)).dispatches[0].spec
    assert spec.template == "conv2d.depthwise"
    assert spec.param("rows") == rows
