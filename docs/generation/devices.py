"""The devices that an operator runs on, and the features that its kernels use: the golden graphs of operators, planned."""

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

LEAST = "webgpu-default"
"""The record without features and with WebGPU's default limits."""

RECORDS = (LEAST, "amd", "lavapipe")
"""Records of which at least one has each feature that kernels use."""

_BY_DATA_TYPE = frozenset(element.feature for element in ELEMENTS.values())
"""Features that follow from data types. Kernels emulate them on devices without the feature."""


@cache
def kernels_with_features(operator: str) -> Mapping[str, list[str]]:
    """Return the features that kernels of an operator use if the device has them, with the templates of these kernels.

    Raises:
        NotSupportedError, OperationError: the operator does not run on every WebGPU device.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for name in RECORDS:
        context, planning = planning_context(record(name))
        plan_model(context, f"operator/{operator}", graphs())
        for plan in planning.plans:
            if isinstance(plan, Exception):
                raise plan
            for dispatch in plan.dispatches:
                for feature in set(dispatch.spec.features) - _BY_DATA_TYPE:
                    found[feature].add(dispatch.spec.template)
    return {feature: sorted(templates) for feature, templates in sorted(found.items())}
