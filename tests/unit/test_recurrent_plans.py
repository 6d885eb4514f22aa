"""Which kernels gru and lstm take on the recorded devices, and how many dispatches that is."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.golden.planning import planning_context
from tests.ops.layers import Network
from tests.ops.recurrent import GATES, Sizes, attributes, operands
from tests.support import op_graph
from tests.targets import DEFAULT_TARGET
from tests.unit.plans import DEVICES, caps_of, check_plan
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.data_types import DATA_TYPES
from webnn_wgpu.costs import Target
from webnn_wgpu.kernels.packing import PersistentTexture, UnitTexture
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._recurrent import SUBGROUP_VARIANTS, VARIANTS, choose
from webnn_wgpu.ops._recurrent_network import Sizes as NetworkSizes
from webnn_wgpu.passes import run_passes
from webnn_wgpu.plan import make_plan

if TYPE_CHECKING:
    from webnn_wgpu.plan import ExecutionPlan


GPU = Target.of(caps_of("nvidia"))
APART = Target.of(replace(caps_of("nvidia"), backend="D3D12"))
"""The same GPU where workgroups may not wait for each other."""
INTEL = Target.of(caps_of("intel"))
SIDE_BY_SIDE = ("nvidia", "amd", "intel", "qualcomm")
"""Devices whose workgroups run side by side."""
NOT_TOGETHER = {"cooperative": "not asked for"}
HARDWARE = [device for device in DEVICES if device != "lavapipe"]


def planned(device: str, name: str, sizes: Sizes, variant: str = "") -> ExecutionPlan:
    given = list(operands(name, sizes).values())
    graph = op_graph(name, given, attributes(name, sizes), {1, 2})
    plan = make_plan(graph, Target.of(caps_of(device)), {name: variant} if variant else None)
    check_plan(plan, caps_of(device), rendered=True)
    return plan


def templates(plan: ExecutionPlan) -> list[str]:
    return [d.spec.template for d in plan.dispatches if "recurrent" in d.spec.template]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["gru", "lstm"])
def test_plans_hold_on_every_device(device: str, name: str) -> None:
    for hidden in (7, 64):
        for both in (False, True):
            sizes = Sizes(steps=4, hidden=hidden, both=both)
            variants = [v for v in VARIANTS if v != "cooperative"] if device == "lavapipe" else ["sequence", "steps"]
            for variant in variants + ["cooperative"] * (device in SIDE_BY_SIDE):
                planned(device, name, sizes, variant)
            planned(device, f"{name}Cell", sizes)


@pytest.mark.parametrize("name", ["gru", "lstm", "gruCell", "lstmCell"])
def test_bindings_fit_whatever_is_absent(name: str) -> None:
    optional = [o.name for o in OPS[name].operands if not o.required]
    for steps, variant in itertools.product((1, 3), ("sequence", "steps")):
        for count in range(len(optional) + 1):
            for absent in itertools.combinations(optional, count):
                sizes = Sizes(steps=steps, hidden=4)
                for changed in ({}, {"reset_after": False}) if "gru" in name else ({},):
                    given = list(operands(name, sizes, absent=absent).values())
                    graph = op_graph(name, given, attributes(name, sizes) | changed, {1, 2})
                    check_plan(make_plan(graph, DEFAULT_TARGET, {name: variant}), Caps())


@pytest.mark.parametrize("device", DEVICES)
def test_networks_of_128_units_have_few_dispatches_on_hardware(device: str) -> None:
    plan = planned(device, "lstm", Sizes(steps=100, hidden=128))
    found = templates(plan)
    if device == "lavapipe":
        assert found == ["recurrent.persistent"]
    elif device in SIDE_BY_SIDE:
        # One clears what workgroups exchange, and one computes the steps again if they did not run side by side.
        assert found == ["recurrent.cooperative"] * 3
    else:
        assert found == ["recurrent.sequence"]
    assert all(d.reason for d in plan.dispatches)


def test_large_networks_are_spread_over_the_device() -> None:
    plan = planned("nvidia", "gru", Sizes(steps=5, hidden=512))
    assert templates(plan) == ["recurrent.steps"] * 5
    (reason,) = {d.reason for d in plan.dispatches if d.spec.template == "recurrent.steps"}
    assert reason == "786432 recurrent weights, about 55 us a step in one dispatch, 9 us in a dispatch per step"


def test_both_directions_share_the_dispatch_of_a_step() -> None:
    one, both = (planned("nvidia", "lstm", Sizes(steps=5, hidden=512, both=both)) for both in (False, True))
    assert templates(one) == templates(both) == ["recurrent.steps"] * 5


@pytest.mark.parametrize("device", HARDWARE)
def test_two_layers_of_64_units_are_four_dispatches_on_hardware(device: str) -> None:
    context, planning = planning_context(caps_of(device).to_json())
    builder = wn.MLGraphBuilder(context)
    value = builder.input("x", {"data_type": "float32", "shape": [100, 1, 64]})
    rng = np.random.default_rng(0)
    for _ in range(2):
        shapes = ((1, 256, 64), (1, 256, 64), (1, 256))
        weight, recurrent, bias = (builder.constant(rng.standard_normal(shape, np.float32)) for shape in shapes)
        *_, sequence = builder.lstm(value, weight, recurrent, 100, 64, bias=bias, return_sequence=True)
        value = builder.reshape(sequence, [100, 1, 64])
    builder.build({"y": value})
    (plan,) = planning.plans
    assert len(plan.dispatches) == 4
    assert templates(plan) == ["recurrent.sequence"] * 2


@pytest.mark.parametrize(
    ("name", "data_type", "most"),
    [("lstm", "float32", 136), ("gru", "float32", 160), ("lstm", "float16", 196), ("gru", "float16", 228)],
)
def test_a_gpu_makes_all_steps_in_one_dispatch_up_to_a_size(name: str, data_type: str, most: int) -> None:
    for hidden, expected in ((most, "sequence"), (most + 4, "steps")):
        sizes = NetworkSizes(D=1, S=100, B=1, H=hidden, N=GATES[name] * hidden)
        element_bytes = DATA_TYPES[data_type].size_bytes
        choice = choose(Target.of(caps_of("nvidia")), sizes, NOT_TOGETHER, element_bytes=element_bytes)
        assert choice.variant == expected


def test_no_dispatch_takes_so_long_that_drivers_end_it() -> None:
    for steps, expected in ((30_000, "sequence"), (300_000, "steps")):
        choice = choose(Target.of(caps_of("nvidia")), NetworkSizes(D=1, S=steps, B=1, H=128, N=512), NOT_TOGETHER)
        assert choice.variant == expected
    assert choice.reason == "one dispatch would take about 1.5 s, and drivers end long ones"


def test_workgroups_run_side_by_side_only_if_one_of_them_could_do_all_in_time() -> None:
    for steps, expected in ((1000, "cooperative"), (10_000, "steps")):
        assert choose(GPU, NetworkSizes(D=1, S=steps, B=1, H=256, N=1024)).variant == expected


def test_workgroups_take_several_batch_rows_where_one_each_would_read_too_much() -> None:
    recurrent = Target.of(Caps(adapter_type="DiscreteGPU")).costs.recurrent
    assert [recurrent.sequence_rows(1, rows) for rows in (1, 35, 36, 64, 100)] == [1, 1, 2, 2, 4]
    assert [recurrent.sequence_rows(2, rows) for rows in (17, 18, 36)] == [1, 2, 4]
    assert Target.of(Caps(adapter_type="CPU")).costs.recurrent.sequence_rows(2, 64) == 1
    for batch, workgroups in ((8, 8), (100, 25)):
        plan = planned("nvidia", "lstm", Sizes(steps=3, batch=batch, hidden=128))
        assert plan.dispatches[-1].grid == (workgroups, 1, 1)


def test_a_reset_before_the_product_takes_two_dispatches_a_step() -> None:
    sizes = Sizes(steps=4, hidden=512)
    graph = op_graph("gru", list(operands("gru", sizes).values()), attributes("gru", sizes, reset_after=False), {1, 2})
    assert templates(make_plan(graph, Target.of(caps_of("nvidia")))) == ["recurrent.steps"] * 8
    bare = list(operands("gru", sizes, absent=("initialHiddenState",)).values())
    graph = op_graph("gru", bare, attributes("gru", sizes, reset_after=False), {1, 2})
    # Nothing is multiplied in the first step.
    assert templates(make_plan(graph, Target.of(caps_of("nvidia")))) == ["recurrent.steps"] * 7


def test_a_single_step_is_spread_over_the_device() -> None:
    plan = planned("nvidia", "lstm", Sizes(steps=1, hidden=16))
    assert templates(plan) == ["recurrent.steps"]
    assert plan.dispatches[-1].reason == "a single step"


def test_states_take_two_places_however_many_steps() -> None:
    few, many = (planned("nvidia", "lstm", Sizes(steps=n, batch=1, hidden=512)) for n in (4, 12))
    assert len(few.slots) == len(many.slots)


def test_software_adapters_take_one_workgroup_for_all_steps_unless_much_can_be_shared() -> None:
    target = Target.of(Caps(adapter_type="CPU"))
    for steps, batch, hidden, directions, expected in (
        (1, 1, 64, 1, "subgroup_steps"),
        (2, 1, 256, 1, "subgroup_sequence"),
        (16, 1, 256, 1, "persistent"),
        (9, 1, 512, 1, "subgroup_steps"),
        (9, 1, 512, 2, "subgroup_sequence"),
        (9, 4, 512, 1, "subgroup_steps"),
        (9, 5, 512, 1, "subgroup_sequence"),
        (9, 5, 1024, 2, "subgroup_steps"),
    ):
        sizes = NetworkSizes(D=directions, S=steps, B=batch, H=hidden, N=4 * hidden)
        assert choose(target, sizes).variant == expected
        without = choose(target, sizes, dict.fromkeys(SUBGROUP_VARIANTS, "no subgroups")).variant
        assert without == ("persistent" if expected == "persistent" else "steps")


def test_software_adapters_keep_weights_without_subgroups() -> None:
    full, sizes = caps_of("lavapipe"), Sizes(steps=20, hidden=128)
    caps = replace(full, features=full.features - {"subgroup"}, subgroup_size=0)
    for name in ("lstm", "gru"):
        plan = make_plan(op_graph(name, list(operands(name, sizes).values()), attributes(name, sizes), {1, 2}), Target.of(caps))
        check_plan(plan, caps, rendered=True)
        assert templates(plan) == ["recurrent.persistent"]
        assert not plan.dispatches[-1].spec.features


@pytest.mark.parametrize(("gates", "hidden"), [(3, 70), (4, 32), (3, 5)])
def test_weights_that_invocations_keep(gates: int, hidden: int) -> None:
    packing = PersistentTexture(lanes=8, gates=gates, hidden=hidden)
    assert packing.texture
    weights = np.random.default_rng(0).standard_normal((2, gates * hidden, hidden)).astype(np.float32)
    texels = packing.pack(weights)
    assert texels.shape == (2 * packing.rows, packing.width, 4)
    last = hidden - 1
    for direction, gate, unit, k in ((0, 0, 0, 0), (1, gates - 1, last, last), (1, 1, last, 2), (0, 2, 3, last)):
        texel = texels[direction * packing.rows + unit // 8, (k // 4 * gates + gate) * 8 + unit % 8]
        assert texel[k % 4] == weights[direction, gate * hidden + unit, k]
    assert np.count_nonzero(texels) == np.count_nonzero(weights)


@pytest.mark.parametrize(("gates", "hidden", "width"), [(3, 70, 10**6), (4, 32, 256), (3, 70, 2 * 3 * 4 * 4 * 4)])
def test_weights_in_a_texture(gates: int, hidden: int, width: int) -> None:
    packing = UnitTexture(lanes=4, gates=gates, hidden=hidden, width=width)
    assert packing.texture
    weights = np.random.default_rng(0).standard_normal((2, gates * hidden, hidden)).astype(np.float32)
    texels = packing.pack(weights)
    assert texels.shape == (2 * packing.panels * packing.wraps, packing.wrap_units * gates * 4, 4)
    assert texels.shape[1] <= width
    for direction, gate, unit, k in ((0, 0, 0, 0), (1, gates - 1, hidden - 1, hidden - 1), (1, 1, 19, 30), (0, 2, 17, 5)):
        panel, lane, own = unit // 16, unit % 16 // 4, unit % 4
        row = (direction * packing.panels + panel) * packing.wraps + k // packing.wrap_units
        column = (k % packing.wrap_units * gates + gate) * 4 + lane
        assert texels[row, column, own] == weights[direction, gate * hidden + unit, k]
    assert np.count_nonzero(texels) == np.count_nonzero(weights)


@pytest.mark.parametrize(
    ("device", "lstm", "gru"),
    [
        # The product of the inputs, and three dispatches whose workgroups run side by side.
        *((device, 4, 4) for device in ("nvidia", "amd")),
        # The cores of a small GPU hold the weights of one layer at a time: a dispatch for each, and a product between them.
        *((device, 6, 6) for device in ("intel", "qualcomm")),
        ("webgpu-default", 102, 102),
        # Small GPUs read the larger weights of lstm more slowly than they start dispatches.
        ("apple", 202, 102),
        ("lavapipe", 4, 4),
    ],
)
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_two_layers_of_256_units_have_few_dispatches_on_large_gpus(device: str, lstm: int, gru: int, kind: str) -> None:
    caps = caps_of(device)
    graph, _ = run_passes(Network(kind, steps=100, hidden=256).layer().layer().graph(), Target.of(caps))
    plan = make_plan(graph, Target.of(caps))
    check_plan(plan, caps, rendered=True)
    assert len(plan.dispatches) == {"lstm": lstm, "gru": gru}[kind]
    assert all(d.reason for d in plan.dispatches)
    if len(plan.dispatches) == 102:
        # All waves are runs of one kernel.
        assert len({d.spec for d in plan.dispatches}) == 2


@pytest.mark.parametrize(("batch", "local_bytes", "turns"), [(1, 16384, True), (2, 32768, True), (2, 16384, False)])
def test_layers_take_turns_if_one_workgroup_could_compute_them_all(batch: int, local_bytes: int, turns: bool) -> None:
    # The states of both layers and two batch rows do not fit 16 KiB of workgroup memory with the sums.
    most = {"max-compute-workgroup-storage-size": local_bytes, "max-compute-invocations-per-workgroup": 256}
    caps = caps_of("nvidia")
    caps = replace(caps, device="NVIDIA H100", limits=tuple((name, most.get(name, value)) for name, value in caps.limits))
    graph, _ = run_passes(Network(steps=100, batch=batch, hidden=512).layer().layer().graph(), Target.of(caps))
    plan = make_plan(graph, Target.of(caps))
    check_plan(plan, caps, rendered=True)
    assert any("turn" in dict(d.spec.params) for d in plan.dispatches) == turns


def test_the_reason_states_the_estimates() -> None:
    for target, template, estimates in (
        (GPU, "recurrent.cooperative", "about 261 us in workgroups side by side, 520 us one after the other"),
        (INTEL, "recurrent.cooperative", "about 512 us, a dispatch for each layer, 1601 us in common ones"),
        (APART, "recurrent_stack", "about 704 us in 101 common dispatches, 928 us one after the other"),
    ):
        graph, _ = run_passes(Network(steps=100, hidden=256).layer().layer().graph(), target)
        reason = next(d.reason for d in make_plan(graph, target).dispatches if d.spec.template == template)
        assert reason == f"2 layers of 262144 recurrent weights, {estimates}"


def test_a_wave_fills_more_cores_with_as_many_states_as_two_steps_need() -> None:
    few, many = (
        make_plan(run_passes(Network(steps=n, hidden=256).layer().layer().layer().graph(), APART)[0], APART) for n in (4, 12)
    )
    assert len(few.slots) == len(many.slots)
    assert {d.grid for d in many.dispatches if d.spec.template == "recurrent_stack"} == {(48, 1, 1)}
