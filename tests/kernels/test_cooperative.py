"""Recurrent networks whose workgroups run side by side, and what becomes of those whose workgroups do not."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tests.ops.test_recurrent_stack as stacks
import tests.unit.test_narrow_weights as narrow
from tests.kernels.test_interpreted import interpreted
from tests.ops.recurrent import SIDE_BY_SIDE, Sizes, attributes, operands
from tests.support import op_graph, open_profile
from tests.unit.plans import check_plan
from webnn_wgpu.costs import Choice, Target
from webnn_wgpu.costs.hardware_recurrent import HardwareRecurrent
from webnn_wgpu.ops import _recurrent_cooperative
from webnn_wgpu.passes.narrow_weights import keep_weights_narrow
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webnn_wgpu.core.caps import Caps
    from webnn_wgpu.ir.graph import Array, Graph
    from webnn_wgpu.plan import ExecutionPlan
    from webnn_wgpu.runtime.device import Device


class Together(HardwareRecurrent):
    """Costs by which workgroups compute all networks side by side."""

    def choose(self, *_: Any, **__: Any) -> Choice:
        return Choice("cooperative", "asked for")

    choose_stack = choose


class InTurns(Together):
    """Costs by which the layers of a stack take turns."""

    def choose_stack(self, *_: Any, **__: Any) -> Choice:
        return Choice("turns", "asked for")


TURNS = " in turns"
"""The end of the names of networks whose layers take turns."""

NETWORKS = {
    "lstm": ("lstm", Sizes(steps=4, batch=1, hidden=8)),
    "lstm of several rows, both directions": ("lstm", Sizes(steps=3, batch=3, hidden=6, both=True)),
    "gru of several panels": ("gru", Sizes(steps=3, batch=2, hidden=23)),
    "stack of lstm": ("lstmStack", stacks.Sizes(layers=2, steps=4, hidden=8)),
    "stack of gru": ("gruStack", stacks.Sizes(layers=3, steps=3, batch=3, hidden=7)),
    f"stack of lstm{TURNS}": ("lstmStack", stacks.Sizes(layers=2, steps=4, hidden=8)),
    f"stack of gru{TURNS}": ("gruStack", stacks.Sizes(layers=3, steps=3, batch=3, hidden=7)),
    f"stack of lstm, backward{TURNS}": ("lstmStack", stacks.Sizes(layers=3, steps=4, batch=2, hidden=8)),
}


def network(name: str) -> tuple[Graph, dict[str, Array]]:
    """Return a graph of one network, and its inputs."""
    op, sizes = NETWORKS[name]
    if isinstance(sizes, Sizes):
        given: list[Any] = list(operands(op, sizes).values())
        attrs = attributes(op, sizes)
    else:
        given = stacks.operands(op.removesuffix("Stack"), sizes)
        attrs = stacks.attributes(sizes, direction="backward" if "backward" in name else "forward")
    graph = op_graph(op, given, attrs, {1, 2})
    return graph, {key: given[int(key)] for key in graph.inputs}


def plan_of(graph: Graph, caps: Caps, without: str = "", *, turns: bool = False) -> ExecutionPlan:
    """Return the plan of a network whose workgroups run side by side, perhaps without the dispatches of some mode."""
    target = Target.of(replace(caps, **SIDE_BY_SIDE))
    recurrent = target.costs.recurrent
    together = (InTurns if turns else Together)(**{field.name: getattr(recurrent, field.name) for field in fields(recurrent)})
    plan = make_plan(graph, replace(target, costs=replace(target.costs, recurrent=together)))
    kept = [d for d in plan.dispatches if d.spec.template != "recurrent.cooperative" or d.spec.param("mode") != without]
    return replace(plan, dispatches=tuple(kept))


def assert_close(found: Mapping[str, Array], graph: Graph, feeds: dict[str, Array]) -> None:
    for key, wanted in interpret(graph, feeds).items():
        np.testing.assert_allclose(found[key], wanted, rtol=0, atol=2.0**-19 * max(1, np.abs(wanted).max()), err_msg=key)


def run_twice(device: Device, plan: ExecutionPlan, feeds: dict[str, Array]) -> list[dict[str, Array]]:
    """Return the results of two runs: the second one finds what the first one exchanged."""
    program = Program(device, plan)
    try:
        return [dict(program.start(feeds, list(plan.outputs)).result()) for _ in range(2)]
    finally:
        program.destroy()


@pytest.mark.parametrize("patience", [0, 1, 1 << 15])
@pytest.mark.parametrize("name", NETWORKS)
def test_results_do_not_depend_on_whether_workgroups_run_side_by_side(
    device: Device, name: str, patience: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_recurrent_cooperative, "_PATIENCE", patience)
    monkeypatch.setattr(_recurrent_cooperative, "_STEP_PATIENCE", 0)
    graph, feeds = network(name)
    plan = plan_of(graph, device.caps, turns=name.endswith(TURNS))
    check_plan(plan, replace(device.caps, **SIDE_BY_SIDE), rendered=True)
    modes = [d.spec.param("mode") for d in plan.dispatches if d.spec.template == "recurrent.cooperative"]
    dispatches = graph.type(graph.nodes[0].outputs[0]).shape[0] if name.endswith(TURNS) else 1
    assert modes == ["clear", *["all"] * dispatches, "alone"]
    for found in run_twice(device, plan, feeds):
        assert_close(found, graph, feeds)


@pytest.mark.parametrize("hidden", [36, 37])
@pytest.mark.parametrize("op", ["gru", "lstm"])
def test_weights_of_float16_are_read_as_they_are(device: Device, op: str, hidden: int) -> None:
    sketch, graph = narrow.network(op, hidden, narrow.Held("float16", unit=2.0**-11))
    plan = plan_of(keep_weights_narrow(graph), device.caps)
    assert {d.spec.bindings[1].element for d in plan.dispatches if len(d.spec.bindings) > 1} == {"float16"}
    for found in run_twice(device, plan, sketch.feeds):
        assert_close(found, graph, sketch.feeds)


@pytest.mark.parametrize("name", ["lstm", "stack of lstm", f"stack of lstm{TURNS}"])
def test_workgroups_that_run_side_by_side_need_no_other(device: Device, name: str) -> None:
    if device.caps.is_software and "llvmpipe" not in device.caps.device:
        pytest.skip("the adapter may run workgroups one after the other")
    # A thread for each workgroup. llvmpipe ends a loop after 65535 iterations, and a thread may wait longer for a processor.
    command = [sys.executable, "-m", __name__, name]
    run = subprocess.run(command, env=os.environ | {"LP_NUM_THREADS": "8"}, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "computed by all"


@pytest.mark.parametrize("patience", [0, 8])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_interpreter_finds_nothing(name: str, patience: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_recurrent_cooperative, "_PATIENCE", patience)
    monkeypatch.setattr(_recurrent_cooperative, "_STEP_PATIENCE", 0)
    graph, feeds = network(name)
    plan = plan_of(graph, open_profile("full").caps, turns=name.endswith(TURNS))
    assert_close(interpreted(plan, feeds, 32), graph, feeds)


def main(name: str) -> None:
    """Run a network without the workgroup that computes it alone, until all workgroups have run side by side."""
    device = open_profile("full")
    graph, feeds = network(name)
    plan = plan_of(graph, device.caps, without="alone", turns=name.endswith(TURNS))
    for _ in range(100):
        *_, found = run_twice(device, plan, feeds)
        if not any(np.isnan(array).any() for array in found.values()):
            assert_close(found, graph, feeds)
            print("computed by all")
            return


if __name__ == "__main__":
    main(sys.argv[1])
