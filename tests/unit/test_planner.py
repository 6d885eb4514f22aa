from __future__ import annotations

import json
import struct
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.random_graphs.graphs import graphs
from tests.support import Sketch
from tests.targets import DEFAULT_TARGET
from tests.unit.plans import DEVICES, caps_of, check_plan
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.errors import OperationError, OutOfMemoryError
from webnn_wgpu.costs import Target
from webnn_wgpu.passes import run_passes
from webnn_wgpu.plan import make_plan, planner

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array, Graph

X = np.arange(8, dtype=np.float32)


def with_limit(caps: Caps, **limits: int) -> Caps:
    changed = dict(caps.limits) | {name.replace("_", "-"): value for name, value in limits.items()}
    return replace(caps, limits=tuple(changed.items()))


@settings(max_examples=150)
@given(drawn=graphs(), device=st.sampled_from(DEVICES), passes=st.booleans())
def test_plans_of_any_graph_are_sound(drawn: tuple[Graph, dict[str, Array]], device: str, passes: bool) -> None:
    graph, _ = drawn
    caps = caps_of(device)
    if passes:
        graph, _ = run_passes(graph, Target.of(caps_of(device)))
    plan = make_plan(graph, Target.of(caps))
    check_plan(plan, caps, rendered=True)
    assert plan.inputs == {n: graph.type(v) for n, v in graph.inputs.items()}
    assert plan.outputs == {n: graph.type(v) for n, v in graph.outputs.items()}


def bound(plan_graph: Graph) -> list[dict[str, str]]:
    plan = make_plan(plan_graph, DEFAULT_TARGET)
    check_plan(plan, Caps())
    return [{b.name: str(r) for b, r in zip(d.spec.bindings, d.bindings, strict=True)} for d in plan.dispatches]


# --------------------------------------------------------------------------------------------------------- views, copies


def test_views_cost_nothing() -> None:
    s = Sketch()
    y = s.apply("exp", s.apply("reshape", s.input(X), new_shape=[2, 4]))
    flat = s.apply("reshape", s.apply("identity", y), new_shape=[8])
    assert bound(s.graph(s.apply("neg", flat))) == [
        {"input0": "input 0", "output": "slot 0"},
        {"input0": "slot 0", "output": "output 0"},
    ]


def test_a_view_of_a_result_is_written_to_the_output_at_once() -> None:
    s = Sketch()
    y = s.apply("exp", s.input(X))
    assert bound(s.graph(s.apply("reshape", y, new_shape=[2, 4]))) == [{"input0": "input 0", "output": "output 0"}]


@pytest.mark.parametrize("kind", ["input", "view of input", "constant", "twice", "view and itself"])
def test_outputs_that_are_something_else_already_are_copied(kind: str) -> None:
    s = Sketch()
    x, c = s.input(X), s.constant(X)
    y = s.apply("exp", x)
    view = s.apply("reshape", y, new_shape=[2, 4])
    outputs = {
        "input": [x],
        "view of input": [s.apply("reshape", x, new_shape=[4, 2])],
        "constant": [c],
        "twice": [y, y],
        "view and itself": [y, view],
    }[kind]
    found = bound(s.graph(*outputs))[-1]
    source = {"input": "input 0", "view of input": "input 0", "constant": "constant 0"}.get(kind, "output 0")
    assert found == {"input": source, "output": f"output {len(outputs) - 1}"}


def test_an_output_may_be_read_again() -> None:
    s = Sketch()
    y = s.apply("exp", s.input(X))
    assert bound(s.graph(y, s.apply("neg", y))) == [
        {"input0": "input 0", "output": "output 0"},
        {"input0": "output 0", "output": "output 1"},
    ]


def test_outputs_that_nobody_reads_still_have_a_place() -> None:
    s = Sketch()
    parts = s.apply_all("split", [s.input(X)], splits=4)
    assert [d["output"] for d in bound(s.graph(parts[2]))] == ["slot 0", "slot 0", "output 0", "slot 0"]


def test_one_constant_is_bound_once() -> None:
    s = Sketch()
    x, c = s.input(X), s.constant(X)
    plan = make_plan(s.graph(s.apply("add", s.apply("mul", x, c), c)), DEFAULT_TARGET)
    assert len(plan.constants) == 1
    assert list(plan.arrays) == [c]
    assert plan.constant_bytes == 32


def test_a_graph_without_operators() -> None:
    s = Sketch()
    x = s.input(X)
    plan = make_plan(s.graph(x), DEFAULT_TARGET)
    check_plan(plan, Caps())
    assert plan.summary() == "0 slots, 0.0 MiB (unshared 0.0 MiB), 1 dispatch, 1 pass"
    assert plan.dispatches[0].label == "output 0"


# -------------------------------------------------------------------------------------------------------- uniforms, text


@pytest.mark.parametrize("alignment", [32, 64, 256])
def test_uniforms_are_aligned_and_packed_by_type(alignment: int) -> None:
    s = Sketch()
    y = s.apply("elu", s.apply("transpose", s.input(X.reshape(2, 4))), alpha=0.25)
    plan = make_plan(s.graph(y), Target.of(with_limit(Caps(), min_uniform_buffer_offset_alignment=alignment)))
    assert [d.uniform_offset for d in plan.dispatches] == [0, alignment]
    elu = plan.dispatches[1]
    assert elu.spec.uniforms == (("quads", "u32"), ("rounds", "u32"), ("y0_alpha", "f32"))
    assert struct.unpack_from("<IIf", plan.uniforms, elu.uniform_offset) == (2, 1, 0.25)


def test_text_and_json() -> None:
    s = Sketch()
    x = s.input(np.zeros((256, 1024), np.float32))
    y = s.apply("transpose", s.apply("exp", x, label="e"))
    plan = make_plan(s.graph(out=s.apply("relu", y)), DEFAULT_TARGET)
    assert str(plan) == "\n".join(
        (
            "2 slots, 2.0 MiB (unshared 2.0 MiB), 3 dispatches, 1 pass",
            "   0 e: elementwise[rank=0, whole_quads=False, octets=False] (1024, 1, 1) [input0=input 0, output=slot 0]"
            " - element-wise",
            "   1 transpose_1: strided[rank=0, read=tiled] (256, 1, 1) [input=slot 0, output=slot 1]"
            " - permutation [1, 0], tiles in workgroup memory",
            "   2 relu_2: elementwise[rank=0, whole_quads=False, octets=False] (1024, 1, 1) [input0=slot 1, output=output out]"
            " - element-wise",
        )
    )
    record = json.loads(plan.to_json())
    assert record["inputs"] == {"0": "float32[256, 1024]"}
    assert record["outputs"] == {"out": "float32[1024, 256]"}
    assert record["slots"] == [1048576, 1048576]
    assert record["total_bytes"] == plan.total_bytes == 4 * 1048576 + len(plan.uniforms)
    assert record["dispatches"][0]["bindings"]["input0"] == {
        "kind": "input",
        "key": "0",
        "size_bytes": 1048576,
        "access": "read",
    }
    assert record["dispatches"][0]["origins"] == [{"node": 0, "label": "e"}]


def test_fused_nodes_are_called_by_their_labels() -> None:
    s = Sketch()
    graph, _ = run_passes(s.graph(s.apply("neg", s.apply("exp", s.input(X)), label="last")), DEFAULT_TARGET)
    plan = make_plan(graph, DEFAULT_TARGET)
    assert [(d.label, d.reason) for d in plan.dispatches] == [("last", "2 element-wise operators in one kernel")]
    assert [o.node for o in plan.dispatches[0].origins] == [0, 1]


# -------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("fused", [False, True])
def test_missing_features_are_named(fused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # What no correct lowering makes: a kernel that nothing adapts to the device.
    monkeypatch.setattr(planner, "emulated", lambda spec, caps: spec)  # pyright: ignore[reportUnknownLambdaType]
    s = Sketch()
    y = s.apply("neg", s.input(X.astype("float16")), label="minus")
    if fused:
        y = s.apply("abs", y)
    graph, _ = run_passes(s.graph(y), DEFAULT_TARGET)
    with pytest.raises(OperationError) as raised:
        make_plan(graph, Target.of(Caps(features=frozenset(["subgroup"]))))
    assert str(raised.value) == (
        "neg('minus'): the device lacks a feature that this operator's data types need; "
        "got kernel elementwise[rank=0, whole_quads=False, octets=False] needs shader-f16; allowed: features subgroup"
    )
    assert (raised.value.operator, raised.value.label) == ("neg", "minus")


@pytest.mark.parametrize(("inner", "needed"), [("float16", False), ("int64", True)])
def test_a_type_only_inside_a_chain_needs_its_feature_if_wgsl_computes_in_it(inner: str, needed: bool) -> None:
    s = Sketch()
    middle = s.apply("cast", s.input(np.arange(4, dtype=np.int32)), data_type=inner)
    graph, _ = run_passes(s.graph(s.apply("cast", s.apply("abs", middle), data_type="int8")), DEFAULT_TARGET)
    for features in (frozenset[str](), frozenset(["shader-f16", "shader-int64"])):
        plan = make_plan(graph, Target.of(Caps(features=features)))
        check_plan(plan, Caps(features=features), rendered=True)
        assert plan.dispatches[0].spec.features == (("shader-int64",) if features and needed else ())


def test_data_movement_is_the_same_on_every_device() -> None:
    s = Sketch()
    for data_type in ("float16", "int64", "uint64"):
        s.apply("transpose", s.input(X.astype(data_type)))
    graph = s.graph(1, 3, 5)
    native = Caps(features=frozenset(["shader-f16", "shader-int64"]))
    assert make_plan(graph, DEFAULT_TARGET).dispatches == make_plan(graph, Target.of(native)).dispatches


# --------------------------------------------------------------------------------------------------------------- windows


def test_large_tensors_are_computed_in_windows() -> None:
    s = Sketch()
    x = s.input(np.zeros((40, 128), np.float32))
    y = s.apply("cast", s.apply("add", x, s.input(np.zeros((1, 128), np.float32))), data_type="uint8")
    caps = with_limit(Caps(), max_storage_buffer_binding_size=4096)
    plan = make_plan(s.graph(y), Target.of(caps))
    check_plan(plan, caps)
    windows = [[(r.offset_bytes, r.size_bytes) for r in d.bindings] for d in plan.dispatches]
    # 1024 float32 at a time; the bias is small and bound whole; casting reads 4 bytes for each it writes.
    assert windows[0] == [(0, 4096), (0, 512), (0, 4096)]
    assert windows[4] == [(16384, 4096), (0, 512), (16384, 4096)]
    assert windows[9] == [(16384, 4096), (4096, 1024)]
    assert len(windows) == 10
    dispatch = plan.dispatches[4]
    values = struct.unpack_from(f"<{len(dispatch.spec.uniforms)}I", plan.uniforms, dispatch.uniform_offset)
    uniforms = dict(zip((name for name, _ in dispatch.spec.uniforms), values, strict=True))
    # Windows and units of work are counted in quads.
    assert uniforms == {
        "quads": 256, "rounds": 1, "input1_quads": 32, "input0_first": 1024, "output_first": 1024, "first_unit": 1024
    }  # fmt: skip
    assert len({d.spec for d in plan.dispatches}) == 2


def test_what_cannot_be_bound_is_refused() -> None:
    s = Sketch()
    x = s.input(np.zeros((40, 128), np.float32))
    graph = s.graph(s.apply("argMax", x, axes=[0, 1], label="find"))
    with pytest.raises(OutOfMemoryError) as raised:
        make_plan(graph, Target.of(with_limit(Caps(), max_storage_buffer_binding_size=4096)))
    assert str(raised.value) == (
        "arg_max('find'): a tensor is larger than the device can bind, and the operator cannot be divided into parts that fit; "
        "got input float32[40, 128], 20480 bytes; allowed: max-storage-buffer-binding-size 4096 bytes"
    )
    assert raised.value.name == "UnknownError"
