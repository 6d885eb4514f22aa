"""A context that plans graphs for a recorded device, and opens none.

This module runs against the package of other revisions too. It therefore goes by the path that programs take,
`MLContext` and `MLGraphBuilder.plan`, and adapts what it must to older and newer signatures in one place.
"""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import webnn_wgpu as wn
from webnn_wgpu.api import backend
from webnn_wgpu.core.caps import Caps

if TYPE_CHECKING:
    from collections.abc import Collection


class PlanningBackend(backend.ReferenceBackend):
    """Plans graphs for a recorded device. What it compiles runs on the numpy reference.

    Attributes:
        plans: every plan in the order in which they were made; an exception where the device cannot run the graph.
    """

    def __init__(self, record: str) -> None:
        super().__init__()
        self.caps = Caps.from_json(record)
        self.accelerated = self.caps.adapter_type != "CPU"
        self.description = self.caps.device or "recorded device"
        device: Any = SimpleNamespace(
            lock=threading.RLock(), caps=self.caps, users=0, description=self.description, gpu=None, close=lambda: None
        )
        device.target = _target_of(self.caps)
        # Without tuning: what was measured on the machine at hand must not decide.
        self._planner = backend.DeviceBackend(device, None)
        self.plans: list[Any] = []

    def plan(self, graph: Any, disabled_passes: Collection[str], tuning: Any) -> Any:
        """Plan a graph as a context on the recorded device would."""
        try:
            found = self._planner.plan(graph, disabled_passes, None)
        except Exception as error:
            self.plans.append(error)
            raise
        self.plans.append(found[0])
        return found

    def compile(self, graph: Any, disabled_passes: Collection[str], progress: Any, tuning: Any) -> Any:
        """Plan a graph, and return the reference to run it."""
        plan, reports = self.plan(graph, disabled_passes, tuning)
        return backend.ReferenceExecutable(plan.graph), plan, reports


def _target_of(caps: Caps) -> Any:
    """Return the target of a device; None for revisions that know of none."""
    try:
        from webnn_wgpu.costs import Target
    except ImportError:
        return None
    return Target.of(caps)


def planning_context(record: str) -> tuple[wn.MLContext, PlanningBackend]:
    """Return a context on a recorded device, and its backend, which collects the plans."""
    planning = PlanningBackend(record)
    return wn.MLContext(planning), planning
