"""Plans for hardware do not depend on the probed subgroup size: a driver may run each kernel with another size.

`tests/kernels/test_interpreted.py` runs the kernels of such plans with subgroups of 8, 16, 32 and 64.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.golden.catalog import graphs, names
from tests.golden.models import plan_model
from tests.golden.planning import planning_context
from tests.rotation import first_of
from tests.unit.plans import DEVICES, caps_of

if TYPE_CHECKING:
    from webnn_wgpu.core.caps import Caps

SIZES = (4, 8, 16, 32, 64, 128)
"""The sizes that WebGPU allows."""

GROUPING = [device for device in DEVICES if "subgroup" in caps_of(device).features]


def kernels(caps: Caps, model: str) -> list[Any]:
    """Return what a device runs for a model: kernels, uniforms, grids and packings of constants."""
    context, planning = planning_context(caps.to_json())
    plan_model(context, model, graphs())
    return [
        str(plan)
        if isinstance(plan, Exception)
        else ([(d.spec, d.grid) for d in plan.dispatches], plan.uniforms, [c.packing for c in plan.constants])
        for plan in planning.plans
    ]


@pytest.mark.parametrize("device", first_of(["nvidia", "intel"]))
@pytest.mark.parametrize("model", [name for name in names() if not name.startswith("pattern/")])
def test_plans_for_hardware_are_the_same_for_the_smallest_and_the_largest_size(model: str, device: str) -> None:
    smallest, largest = (kernels(replace(caps_of(device), subgroup_size=size), model) for size in (SIZES[0], SIZES[-1]))
    assert smallest == largest


@pytest.mark.parametrize("device", first_of(device for device in GROUPING if not caps_of(device).is_software))
def test_plans_of_networks_for_hardware_are_the_same_for_all_sizes(device: str) -> None:
    for model in ("example/bert", "operator/lstm"):
        found = [kernels(replace(caps_of(device), subgroup_size=size), model) for size in SIZES]
        assert all(each == found[0] for each in found), model


def test_plans_for_software_adapters_do_depend_on_the_size() -> None:
    caps = caps_of("lavapipe")
    assert kernels(replace(caps, subgroup_size=4), "example/mlp") != kernels(replace(caps, subgroup_size=8), "example/mlp")
