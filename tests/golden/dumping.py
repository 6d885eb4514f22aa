"""Golden plans as data: what `ExecutionPlan.to_json` tells, the rest that decides what runs, and the WGSL of every kernel."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import TYPE_CHECKING, Any

from tests.golden.models import plan_model
from tests.golden.planning import planning_context
from tests.golden.records import record
from webnn_wgpu.kernels.templates import render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.golden.models import Graphs

_FORMATS = {"u32": "I", "i32": "i", "f32": "f"}


def dump(model: str, device: str, graphs: Graphs) -> dict[str, Any]:
    """Return the golden plans of a model for a recorded device.

    Args:
        model: its name.
        device: name of the record.
        graphs: the graphs of models that are graphs.

    Returns:
        `plans`, a list: of each plan what `plan_record` returns, or `{"error": text}` where the device cannot run the graph.
        `kernels`: WGSL by the key that the dispatches name it by.
    """
    context, planning = planning_context(record(device))
    plan_model(context, model, graphs)
    return dump_plans(planning.plans)


def dump_plans(plans: Sequence[Any]) -> dict[str, Any]:
    """Return plans as `dump` does; an exception stands for a plan that there is not."""
    kernels: dict[str, str] = {}
    return {"plans": [_record(each, kernels) for each in plans], "kernels": dict(sorted(kernels.items()))}


def _record(plan: Any, kernels: dict[str, str]) -> dict[str, Any]:
    if isinstance(plan, Exception):
        return {"error": f"{type(plan).__name__}: {plan}"}
    return plan_record(plan, kernels)


def plan_record(plan: Any, kernels: dict[str, str]) -> dict[str, Any]:
    """Return a plan as data, and add its kernels to `kernels`.

    It is the plan's `to_json` and of every dispatch besides the key of its WGSL, the values of its uniforms and the offsets of
    its bindings. `constants` gets a digest of the bytes of each.
    """
    # Plans of older revisions have no `record`.
    found: dict[str, Any] = plan.record() if hasattr(plan, "record") else json.loads(plan.to_json())
    for shown, dispatch in zip(found["dispatches"], plan.dispatches, strict=True):
        wgsl = render(dispatch.spec)
        shown["wgsl"] = digest(wgsl)
        kernels[shown["wgsl"]] = wgsl
        shown["uniforms"] = _uniforms(plan, dispatch)
        for binding, resource in zip(shown["bindings"].values(), dispatch.bindings, strict=True):
            binding["offset_bytes"] = resource.offset_bytes
    for shown, use in zip(found["constants"], plan.constants, strict=True):
        shown["bytes"] = hashlib.blake2b(plan.arrays[use.value].tobytes(), digest_size=6).hexdigest()
    return found


def _uniforms(plan: Any, dispatch: Any) -> dict[str, float]:
    fields = dispatch.spec.uniforms
    data = plan.uniforms[dispatch.uniform_offset : dispatch.uniform_offset + dispatch.uniform_size]
    values = struct.unpack_from("<" + "".join(_FORMATS[kind] for _, kind in fields), data)
    # JSON has no infinities and no NaN.
    return {name: v if v - v == 0 else repr(v) for (name, _), v in zip(fields, values, strict=True)}


def digest(text: str) -> str:
    """Return a short name of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def digest_of(dumped: dict[str, Any]) -> str:
    """Return a short digest of golden plans: of all but the contents of constants, in whose last digits machines differ."""
    plans = [
        {**plan, "constants": [{**c, "bytes": ""} for c in plan["constants"]]} if "constants" in plan else plan
        for plan in dumped["plans"]
    ]
    return digest(json.dumps(plans, sort_keys=True))
