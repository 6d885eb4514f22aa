"""`ExecutionPlan`: everything the runtime needs to run a graph, as plain data that can be printed and dumped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal

from ..core.wording import counted
from ..ir.graph import Array, Graph, Origin
from ..ir.types import TensorType
from ..kernels.element import padded_bytes
from ..kernels.spec import KernelSpec, Packing
from ..ops._def import Part

MIB = 1024 * 1024


@dataclass(frozen=True)
class Slot:
    """One buffer of intermediate results, used by several values in turn."""

    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class Intermediate:
    """The allocation and lifetime of a value that is neither a graph input or output nor a constant.

    Attributes:
        value: the number of the value in the graph after its passes. Of values that replace each other, it is the first one.
            Scratch memory has numbers beyond the graph's.
        slot: the number of the slot.
        offset_bytes, size_bytes: its range of the slot.
        first, last: the numbers of the first and last dispatch that use it.
    """

    value: int
    slot: int
    offset_bytes: int
    size_bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class ConstantUse:
    """A constant in the form one or more kernels want: the value, and how it is packed (None: its own bytes)."""

    value: int
    type: TensorType
    packing: Packing | None


@dataclass(frozen=True)
class Resource:
    """The resource of a binding: a graph input or output by name, a slot or a constant by number, or a part of one."""

    kind: Literal["input", "output", "slot", "constant"]
    key: str | int
    offset_bytes: int
    size_bytes: int

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


@dataclass(frozen=True, kw_only=True)
class PlannedDispatch:
    """One dispatch.

    Attributes:
        spec: the kernel.
        bindings: the resource of each binding.
        uniform_offset, uniform_size: the range of its uniforms in the plan's uniform data, in bytes. The size is 0 without
            uniforms.
        grid: the number of workgroups in x, y, z.
        label: the unique name of the dispatch for errors, traces and GPU debuggers.
        reason: the reason for the choice of the kernel.
        origins: the operators of the source graph that it computes.
        node: the position in the plan's graph of the node that it computes, at least in part. None for a copy to an output.
        operations: the arithmetic operations of that node, which its dispatches share. None if they are unknown.
        touched_bytes: the bytes that it reads and writes, each counted once.
        steps: the operators of each expression step of a fused kernel.
    """

    spec: KernelSpec
    bindings: tuple[Resource, ...]
    uniform_offset: int
    uniform_size: int
    grid: tuple[int, int, int]
    label: str
    reason: str
    origins: tuple[Origin, ...]
    node: int | None
    operations: int | None = None
    touched_bytes: int = 0
    steps: tuple[tuple[Origin, ...], ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class ExecutionPlan:
    """A compiled graph before its resources exist on the device.

    Attributes:
        inputs, outputs: the graph's interface, name -> type.
        slots: the buffers of intermediate values.
        constants: the constants by use.
        dispatches: the dispatches in order. All run in one compute pass.
        uniforms: the uniform data of all dispatches.
        unshared_bytes: the total size of the intermediate values if each had a buffer of its own.
        arrays: the arrays of the constants by value id.
        aliases: the outputs that share the memory of an input -> that input.
        graph: the optimized graph.
        places: the allocation of each value during its lifetime, except constants. A view has the allocation of its source.
        parts: the values that are columns of another value instead.
        intermediates: the values in the slots, in the order of their producers.
    """

    inputs: Mapping[str, TensorType]
    outputs: Mapping[str, TensorType]
    slots: tuple[Slot, ...]
    constants: tuple[ConstantUse, ...]
    dispatches: tuple[PlannedDispatch, ...]
    uniforms: bytes
    unshared_bytes: int
    arrays: Mapping[int, Array] = field(repr=False)
    aliases: Mapping[str, str]
    graph: Graph = field(repr=False)
    places: Mapping[int, Resource] = field(repr=False)
    parts: Mapping[int, Part] = field(default_factory=dict[int, Part], repr=False)
    intermediates: tuple[Intermediate, ...] = ()

    @property
    def slot_bytes(self) -> int:
        """Bytes of all slots."""
        return sum(slot.size_bytes for slot in self.slots)

    @property
    def constant_bytes(self) -> int:
        """Bytes of all constants before packing."""
        return sum(c.type.size_bytes for c in self.constants)

    @property
    def total_bytes(self) -> int:
        """Bytes of slots, constants, uniforms, inputs and outputs together."""
        own = [t for name, t in self.outputs.items() if name not in self.aliases]
        ends = sum(t.size_bytes for t in (*self.inputs.values(), *own))
        return self.slot_bytes + self.constant_bytes + len(self.uniforms) + ends

    def read_back(self) -> tuple[dict[str, int], int]:
        """Return the offset of each output in the staging buffer, and the size of that buffer in bytes."""
        ends = [0, *accumulate(padded_bytes(type_.size_bytes) for type_ in self.outputs.values())]
        return dict(zip(self.outputs, ends, strict=False)), ends[-1]

    def live_bytes(self) -> list[int]:
        """Return the bytes of the intermediate values that are needed at each dispatch, its own results included."""
        changes = [0] * (len(self.dispatches) + 1)
        for each in self.intermediates:
            changes[each.first] += each.size_bytes
            changes[each.last + 1] -= each.size_bytes
        return list(accumulate(changes))[:-1]

    def summary(self) -> str:
        """Return one line: slots, bytes with and without sharing, dispatches."""
        dispatches = counted(len(self.dispatches), "dispatch", "dispatches")
        return (
            f"{counted(len(self.slots), 'slot')}, {self.slot_bytes / MIB:.1f} MiB"
            f" (unshared {self.unshared_bytes / MIB:.1f} MiB), {dispatches}, 1 pass"
        )

    def __str__(self) -> str:
        lines = [self.summary()]
        for i, d in enumerate(self.dispatches):
            bound = ", ".join(f"{b.name}={r}" for b, r in zip(d.spec.bindings, d.bindings, strict=True))
            lines.append(f"{i:4} {d.label}: {d.spec} {d.grid} [{bound}] - {d.reason}")
        return "\n".join(lines)

    def to_json(self) -> str:
        """Return the plan as JSON text, constants' contents and template parameters' inner structure left out."""
        return json.dumps(self.record(), indent=2)

    def record(self) -> dict[str, Any]:
        """Return the content of `to_json`."""
        return {
            "summary": self.summary(),
            "inputs": {n: str(t) for n, t in self.inputs.items()},
            "outputs": {n: str(t) for n, t in self.outputs.items()},
            "aliases": dict(self.aliases),
            "slots": [s.size_bytes for s in self.slots],
            "constants": [
                {"value": c.value, "type": str(c.type), "packing": repr(c.packing) if c.packing else None}
                for c in self.constants
            ],
            "uniform_bytes": len(self.uniforms),
            "total_bytes": self.total_bytes,
            "dispatches": [
                {
                    "label": d.label,
                    "kernel": str(d.spec),
                    "template": d.spec.template,
                    "params": {k: repr(v) for k, v in d.spec.params},
                    "bindings": {
                        b.name: {"kind": r.kind, "key": r.key, "size_bytes": r.size_bytes, "access": b.access}
                        for b, r in zip(d.spec.bindings, d.bindings, strict=True)
                    },
                    "grid": list(d.grid),
                    "reason": d.reason,
                    "origins": [{"node": o.node, "label": o.label} for o in d.origins],
                }
                for d in self.dispatches
            ],
        }
