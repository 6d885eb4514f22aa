"""The kernels whose translations are tested: of the golden models, and of each variant of each operator, for all records."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.golden.catalog import graphs, names
from tests.golden.models import plan_model
from tests.golden.planning import planning_context
from tests.golden.records import RECORDS, record
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.errors import WebNNError
from webnn_wgpu.costs import Choice, Target
from webnn_wgpu.kernels.select import unspelled
from webnn_wgpu.kernels.templates import render
from webnn_wgpu.kernels.tuning import Tuning
from webnn_wgpu.ops import OPS
from webnn_wgpu.plan import make_plan
from webnn_wgpu.plan.forced import forceable

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Graph

NATIVE_ONLY = ("shader-int64", "subgroup-barrier")
"""Features of wgpu that no browser has. Their kernels have counterparts without them, which every device may get."""

IN_BROWSERS = "@browser"
"""Marks the records of devices as browsers show them: without `NATIVE_ONLY`."""

# The records in which a browser's device differs most: a software adapter, and a GPU with all features.
DEVICES = (*RECORDS, f"lavapipe{IN_BROWSERS}", f"nvidia{IN_BROWSERS}")


@dataclass(frozen=True)
class Text:
    """The WGSL of a kernel.

    Attributes:
        wgsl: the text.
        kernel: its template and parameters.
        model: the golden model that it is from.
        device: the device that it is for, one of `DEVICES`.
        features: the features of WebGPU that it declares.
    """

    wgsl: str
    kernel: str
    model: str
    device: str
    features: frozenset[str]

    @property
    def in_browsers(self) -> bool:
        """Whether browsers have all that it needs."""
        return not self.features & set(NATIVE_ONLY)

    def __str__(self) -> str:
        return f"{self.kernel} of {self.model} for {self.device}"


def caps_of(device: str) -> Caps:
    """Return the capabilities of one of `DEVICES`."""
    name, browser, _ = device.partition(IN_BROWSERS)
    caps = Caps.from_json(record(name))
    return replace(caps, features=caps.features - set(NATIVE_ONLY)) if browser else caps


def tasks(share: int | None, shares: int) -> list[tuple[str, str]]:
    """Return pairs of model and device: a share of them, 1 to `shares`, or all for None."""
    found = [(model, device) for device in DEVICES for model in names()]
    return [t for t in found if share is None or zlib.crc32("@".join(t).encode()) % shares == share - 1]


def texts(chosen: Collection[tuple[str, str]]) -> dict[str, Text]:
    """Return the distinct kernels of models for devices, by their WGSL."""
    found: dict[str, Text] = {}
    for model, device in chosen:
        for plan in _plans(model, caps_of(device)):
            for dispatch in plan.dispatches:
                wgsl = render(dispatch.spec)
                if wgsl not in found:
                    features = frozenset(dispatch.spec.features)
                    found[wgsl] = Text(wgsl, str(dispatch.spec), model, device, features)
    return found


def _plans(model: str, caps: Caps) -> Iterator[Any]:
    """Yield the plans of a model's graphs: as the device would get them, and with each variant that is possible."""
    context, planning = planning_context(caps.to_json())
    plan_model(context, model, graphs())
    for plan in planning.plans:
        if isinstance(plan, Exception):  # the device cannot run the graph, which the golden plans record
            continue
        yield plan
        if model.startswith("operator/"):
            yield from _variants(plan.graph, Target.of(caps))


@dataclass(frozen=True)
class Turn(Tuning):
    """Tuning that takes the variant of some number for each operator, and notes the largest number of variants."""

    number: int = 0
    most: list[int] = field(default_factory=lambda: [0])

    def choice(self, operator: str, candidates: Collection[str]) -> Choice | None:
        """Return the variant."""
        spelled = list(candidates)
        self.most[0] = max(self.most[0], len(spelled))
        if not spelled:
            return None
        variant, tile = unspelled(spelled[self.number % len(spelled)])
        return Choice(variant, "its turn", tile)


def _variants(graph: Graph, target: Target) -> Iterator[Any]:
    number, most = 0, 1
    while number < most:
        turn = Turn("", "", number=number)
        yield make_plan(graph, target, {}, turn)
        most = max(most, turn.most[0])
        number += 1
    for node in graph.nodes:
        for name, variant in _forceable(node.op):
            try:
                yield make_plan(graph, target, {name: variant}, None)
            except WebNNError:  # the variant needs other sizes, or features that the device lacks
                continue


@cache
def _forceable(operator: str) -> tuple[tuple[str, str], ...]:
    """Return what can be forced for an operator: its own variants, and those of the templates that compute it."""
    known = forceable()
    families = {template.family for template in OPS[operator].templates}
    return tuple((name, variant) for name in {operator, *families} if name in known for variant in known[name])
