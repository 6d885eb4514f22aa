"""What a model tells of itself: its inputs and outputs, where its nodes run, and what memory it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from webnn_wgpu.api.graph import ExecutionPlan, PassReport

from .dims import Dimension

NAMED = 3
"""Most nodes of one operator and reason that a summary names."""


@dataclass(frozen=True)
class Placed:
    """Where a node runs.

    Attributes:
        name: the node's name, or that of its first output.
        op: its operator, with the domain where that is not ai.onnx.
        where: "device", "host", or "folded" where it was evaluated when the graph was compiled.
        note: why, if it does not run on the device.
    """

    name: str
    op: str
    where: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.op} {self.name!r}" + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True)
class ValueInfo:
    """An input or output of a model.

    Attributes:
        name: its name.
        shape: sizes; a string is a symbolic dimension, None an unknown one. The whole is None where the rank is unknown.
        dtype: its type, as a numpy dtype; void where the type of an output is not known.
    """

    name: str
    shape: tuple[Dimension, ...] | None
    dtype: np.dtype[Any]

    def __str__(self) -> str:
        sizes = "?" if self.shape is None else ", ".join("?" if d is None else str(d) for d in self.shape)
        return f"{self.name}: {'?' if self.dtype == np.dtype(np.void) else self.dtype}[{sizes}]"


class Placement(tuple[Placed, ...]):
    """Where each node of a model runs, as a tuple of `Placed`."""

    __slots__ = ()

    def __str__(self) -> str:
        """Return the summary, and a line for each node."""
        return "\n".join([self.summary(), *map(str, self)])

    def on(self, where: str) -> list[Placed]:
        """Return the nodes at a place: "device", "host" or "folded"."""
        return [p for p in self if p.where == where]

    def summary(self) -> str:
        """Return one line: how many nodes run where, and which on the host."""
        if not self:
            return "no nodes are placed. The first run compiles a model with symbolic dimensions"
        counts = Counter(p.where for p in self)
        text = counted_places(counts)
        text += "".join(f", {counts[where]} {where}" for where in ("unsupported", "later") if counts[where])
        groups: dict[tuple[str, str], list[str]] = {}
        for placed in self.on("host"):
            groups.setdefault((placed.op, placed.note), []).append(f"'{placed.name}'")
        if groups:
            text += "; on the host: " + ", ".join(
                f"{op} {', '.join(names[:NAMED])}{f' and {len(names) - NAMED} more' if len(names) > NAMED else ''} ({note})"
                for (op, note), names in groups.items()
            )
        return text


def beyond_host(note: str, obstacle: str) -> str:
    """Return the reason why neither the device nor the host can run a node.

    Args:
        note: the reason of the device, or "". It may contain that of the host.
        obstacle: the reason of the host.
    """
    if not note:
        return obstacle
    return note if obstacle in note else f"{note}; on the host: {obstacle}"


def counted_places(counts: Mapping[str, int]) -> str:
    """Return how many nodes run on the device, run on the host and are evaluated beforehand."""
    nodes = "node" if counts["device"] == 1 else "nodes"
    return f"{counts['device']} {nodes} on the device, {counts['host']} on the host, {counts['folded']} evaluated beforehand"


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes that a model takes on the device, while all its graphs are there.

    Attributes:
        weights: constants, before kernels that want them otherwise arrange them anew.
        slots: intermediate results; values that are never needed at once share a slot.
        unshared: what intermediate results would take without sharing.
        ends: inputs and outputs of the graphs, and the buffers that outputs are read back through.
        largest: the largest single tensor.
    """

    weights: int = 0
    slots: int = 0
    unshared: int = 0
    ends: int = 0
    largest: int = 0

    @staticmethod
    def of(plan: ExecutionPlan) -> Memory:
        """Return what the graph of a plan takes."""
        ends = [t.size_bytes for t in (*plan.inputs.values(), *plan.outputs.values())]
        back = sum(t.size_bytes for t in plan.outputs.values())
        sizes = [*ends, *(s.size_bytes for s in plan.slots), *(c.type.size_bytes for c in plan.constants)]
        return Memory(
            weights=plan.constant_bytes,
            slots=plan.slot_bytes,
            unshared=plan.unshared_bytes,
            ends=sum(ends) + back,
            largest=max(sizes),
        )

    @property
    def peak(self) -> int:
        """Everything together."""
        return self.weights + self.slots + self.ends

    def __add__(self, other: Memory) -> Memory:
        return Memory(
            weights=self.weights + other.weights,
            slots=self.slots + other.slots,
            unshared=self.unshared + other.unshared,
            ends=self.ends + other.ends,
            largest=max(self.largest, other.largest),
        )


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """What `analyze` found.

    Attributes:
        name: what messages call the model.
        inputs, outputs: its interface.
        shapes: the shapes that everything here holds for, by name of the input.
        opsets: versions of the operator sets, by domain; of a WebNN graph the version of the format.
        operators: how many nodes of each operator there are, nodes within graphs of nodes included. A folder for browsers has
            kernels instead: how many dispatches of each.
        parameters, parameter_bytes: elements and bytes of the initializers. None and packed bytes of a folder for browsers.
        placement: where each node would run. "unsupported" are nodes that cannot run; "later" those about which nothing can be
            said before the model runs, since shapes depend on results of the host.
        graphs: number of WebNN graphs.
        dispatches: number of kernels that one run starts.
        memory: what the graphs take; None on the numpy reference.
        problem: why the model cannot be compiled for this device; "" if it can.
        passes: what each optimization pass did to each graph.
        partitions: of a TFLite model, the numbers of the nodes of the main subgraph that run on the device, without a node of
            the host between them.
    """

    name: str
    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    shapes: Mapping[str, tuple[int, ...]]
    opsets: Mapping[str, int]
    operators: Mapping[str, int]
    parameters: int | None
    parameter_bytes: int
    placement: Placement
    graphs: int
    dispatches: int
    memory: Memory | None
    problem: str
    passes: tuple[tuple[PassReport, ...], ...]
    partitions: tuple[tuple[int, ...], ...] = ()
