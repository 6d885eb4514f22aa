"""The kernels that a device gets: of models and of the golden graphs, from their plans for a record of the device."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import webnn_wgpu as wn
from tests.golden.catalog import graphs, names
from tests.golden.models import plan_model
from tests.golden.planning import planning_context
from tests.golden.records import record
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.inspection.kernels import _workgroup_size
from webnn_wgpu.kernels.templates import render

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

RECORD = "amd"
"""The record whose limits and features the plans are made for."""


@dataclass(frozen=True, kw_only=True)
class Dispatch:
    """One dispatch of a plan.

    Attributes:
        model: the model's name.
        label: the operators that it computes, for people.
        kernel: the kernel's template and parameters.
        wgsl: the kernel's text.
        workgroups: how many there are.
        invocations: of a workgroup.
        node: which of the plan's nodes it computes, or a part of it.
        operations: arithmetic operations of that node, by definition of its operator; 0 where that is not known.
    """

    model: str
    label: str
    kernel: str
    wgsl: str
    workgroups: int
    invocations: int
    node: tuple[int, int | None]
    operations: int

    @property
    def template(self) -> str:
        """The kernel's template."""
        return self.kernel.partition("[")[0]

    def subgroups(self, size: int) -> int:
        """Return how many subgroups of some size it runs."""
        return self.workgroups * -(-self.invocations // size)


def caps_of(adapter: Mapping[str, Any], subgroup: int) -> Caps:
    """Return the record of a GPU of AMD's with the features and the name of an adapter, and a size of subgroups."""
    features: Sequence[str] = adapter["features"]
    caps = Caps.from_json(record(RECORD))
    size = subgroup if "subgroup" in features else 0
    return replace(caps, features=frozenset(features) & caps.features, subgroup_size=size, device=adapter["device"])


def dispatches(models: Sequence[str], caps: Caps) -> Iterator[Dispatch]:
    """Yield the dispatches of models' plans for a device.

    Args:
        models: names of golden models, or paths of ONNX files.
        caps: the device.
    """
    for model in models:
        context, planning = planning_context(caps.to_json())
        if model.endswith(".onnx"):
            wn.load_onnx(model, context, fallback="host", tuning=False).destroy()
        else:
            plan_model(context, model, graphs())
        name = Path(model).stem if model.endswith(".onnx") else model
        for number, plan in enumerate(planning.plans):
            if not isinstance(plan, Exception):
                yield from _of_plan(name, number, plan)


def golden_models() -> list[str]:
    """Return the names of the golden models."""
    return names()


def _of_plan(model: str, number: int, plan: Any) -> Iterator[Dispatch]:
    for dispatch in plan.dispatches:
        wgsl = render(dispatch.spec)
        x, y, z = dispatch.grid
        yield Dispatch(
            model=model,
            label=dispatch.label,
            kernel=str(dispatch.spec),
            wgsl=wgsl,
            workgroups=x * y * z,
            invocations=_invocations(wgsl),
            node=(number, dispatch.node),
            operations=dispatch.operations or 0,
        )


@cache
def _invocations(wgsl: str) -> int:
    size = _workgroup_size(wgsl)
    assert size
    return math.prod(size)
