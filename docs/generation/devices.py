"""The devices that an operator runs on, its kernels there, and their features: the golden graphs of operators, planned."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING

from tests.golden.catalog import graphs
from tests.golden.models import plan_model
from tests.golden.planning import planning_context
from tests.golden.records import record
from webnn_wgpu.kernels.element import ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webnn_wgpu.plan.execution_plan import PlannedDispatch

RECORDS = {"webgpu-default": "WebGPU's default limits", "amd": "hardware GPU", "lavapipe": "software adapter"}
"""Records of which at least one has each feature that kernels use, and the names of their devices."""

_BY_DATA_TYPE = frozenset(element.feature for element in ELEMENTS.values())
"""Features that follow from data types. Kernels emulate them on devices without the feature."""


@cache
def _dispatches(operator: str) -> tuple[tuple[str, PlannedDispatch], ...]:
    """Return the device and each dispatch of an operator's graphs.

    Raises:
        NotSupportedError, OperationError: the operator does not run on every WebGPU device.
    """
    found: list[tuple[str, PlannedDispatch]] = []
    for name, device in RECORDS.items():
        context, planning = planning_context(record(name))
        plan_model(context, f"operator/{operator}", graphs())
        for plan in planning.plans:
            if isinstance(plan, Exception):
                raise plan
            found += ((device, dispatch) for dispatch in plan.dispatches)
    return tuple(found)


def kernels_with_features(operator: str) -> Mapping[str, list[str]]:
    """Return the features that kernels of an operator use if the device has them, with the templates of these kernels."""
    found: dict[str, set[str]] = defaultdict(set)
    for _, dispatch in _dispatches(operator):
        for feature in set(dispatch.spec.features) - _BY_DATA_TYPE:
            found[feature].add(dispatch.spec.template)
    return {feature: sorted(templates) for feature, templates in sorted(found.items())}


def choices(operator: str) -> list[tuple[str, str, str]]:
    """Return the kernel, the device and the reason of each choice that the operator's graphs show, once for each kernel."""
    found: dict[tuple[str, str], str] = {}
    for device, dispatch in _dispatches(operator):
        spec = dispatch.spec
        _, _, form = spec.template.partition(".")
        kernel = f"{spec.template} ({spec.variant})" if spec.variant not in ("", form) else spec.template
        found.setdefault((kernel, device), dispatch.reason)
    return [(kernel, device, reason) for (kernel, device), reason in found.items()]
