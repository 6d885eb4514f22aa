"""Checks of kernel calls: those that the device cannot run, and those that no correct lowering creates."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from ..core.call_site import made_at
from ..core.caps import Caps
from ..core.errors import OperationError, OutOfMemoryError
from ..ir.graph import Graph, Node
from ..kernels.spec import KernelCall, Operand, Packed, Window
from ..ops import OPS
from .execution_plan import Resource
from .labels import node_label

_TOO_LARGE = {
    "max-buffer-size": "a tensor is larger than the device can hold",
    "max-storage-buffer-binding-size": "a tensor is larger than the device can bind, and the operator cannot be divided "
    "into parts that fit",
}
"""The limits of the bytes of a whole value and of a binding, with the rules that errors state."""


def check_call(
    call: KernelCall,
    node: Node | None,
    label: str,
    resources: Sequence[Resource],
    caps: Caps,
    bytes_of: Callable[[Operand], int],
    type_of: Callable[[Operand], str],
) -> None:
    """Check a call.

    Args:
        call: the call.
        node: the node that it belongs to, or None for copies of outputs.
        label: the name of a call without a node.
        resources: the memory of its operands.
        caps: the device.
        bytes_of: returns the bytes of an operand that the call binds.
        type_of: returns the type of an operand for people.

    Raises:
        OperationError: the device lacks a feature that the kernel needs.
        OutOfMemoryError: an operand is larger than the device can hold or bind.
    """
    missing = [f for f in call.spec.features if f not in caps.features]
    if missing:
        raise OperationError(
            "the device lacks a feature that this operator's data types need",
            got=f"kernel {call.spec} needs {', '.join(missing)}",
            allowed=f"features {', '.join(sorted(caps.features)) or 'none'}",
            **_blamed(node, label),
        )
    for binding, operand in zip(call.spec.bindings, call.operands, strict=True):
        if binding.is_texture:
            continue
        for (name, rule), part in zip(_TOO_LARGE.items(), (_whole(operand), operand), strict=True):
            if (size := bytes_of(part)) > caps.limit(name):
                raise OutOfMemoryError(
                    rule,
                    got=f"{binding.name} {type_of(operand)}, {size} bytes",
                    allowed=f"{name} {caps.limit(name)} bytes",
                    **_blamed(node, label),
                )
    _check_bindings(call, label, resources, caps.limit("max-storage-buffers-per-shader-stage"))


def _check_bindings(call: KernelCall, label: str, resources: Sequence[Resource], most: int) -> None:
    buffers = [b for b in call.spec.bindings if not b.is_texture]
    assert len(buffers) <= most, f"{call.spec} binds {len(buffers)} buffers; the device allows {most}"
    bound = list(zip(call.spec.bindings, resources, strict=True))
    read = {(r.kind, r.key) for b, r in bound if b.access == "read"}
    written = sorted((r.kind, r.key, r.offset_bytes, r.offset_bytes + r.size_bytes) for b, r in bound if b.access == "write")
    assert read.isdisjoint(place[:2] for place in written), f"{label}: a buffer is read and written in one dispatch"
    apart = all(a[:2] != b[:2] or a[3] <= b[2] for a, b in itertools.pairwise(written))
    assert apart, f"{label}: a range of a buffer is written through two bindings"


def _blamed(node: Node | None, label: str) -> dict[str, str]:
    """Return the parts of an error about a node: the operator, the label and the hint.

    A fused node has the operator that gave it its label.
    """
    if node is None:
        return {"operator": "build", "label": label}
    body = node.attrs.get("body")
    members = body.nodes if isinstance(body, Graph) else (node,)
    member = next((m for m in members if m.label == node.label), members[0])
    hint = made_at(o.site for o in node.origins)
    return {"operator": OPS[member.op].python_name, "label": node_label(node), "hint": hint}


def _whole(operand: Operand) -> Operand:
    """Return the value or packed constant that an operand is, or is a part of."""
    if isinstance(operand, Window):
        return Packed(operand.value, operand.packing) if operand.packing else operand.value
    return operand
