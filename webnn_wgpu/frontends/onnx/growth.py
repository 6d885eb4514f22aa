"""What in a model depends on how many rows its caches have.

A model with caches is lowered for two numbers of rows, and what comes out differently depends on them: shapes and positions,
masks that are made of them, scores. What follows from the caches' elements stays on the device, with as many rows as the
caches may ever have. The rest is small, and the host computes it anew for each run: a `Split` says what is whose.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_ir

from ..common.held import Shape
from ..description import Placed
from . import host
from .caches import Cache
from .keys import Keys
from .module import OnnxModule
from .probes import Probes, refusal
from .types import Array, DType

NOMINAL = frozenset((("Reshape", 1), ("Expand", 1), ("Slice", 2)))
"""Inputs that only say how large a result is: whatever has all rows keeps all."""

Values = Mapping[onnx_ir.Value, Array]


@dataclass(kw_only=True)
class Split:
    """What is whose.

    Attributes:
        device: the nodes that stay on the device.
        fixed: values that are known, whatever the number of rows.
        fed: what the host computes for each run, and inputs that grow with the caches; with the shape they have when the
            caches are full, to which they are filled up.
        bounded: nodes of the device whose sums go over keys.
        count: how many rows a run adds.
    """

    device: list[onnx_ir.Node]
    fixed: dict[onnx_ir.Value, Array]
    fed: dict[onnx_ir.Value, tuple[Shape, DType]]
    bounded: frozenset[onnx_ir.Node]
    count: int


class Growth:
    """The comparison of two probes, and the host's part of every run.

    Args:
        module: the model.
        nodes: its nodes, in topological order.
        outputs: what it returns, the caches left out.
        inputs: what it is given, the caches left out, with the dimensions that grow.
        caches: its caches.
        probes: what it looks like with few rows, and with as many as leave room for one run.
    """

    def __init__(
        self,
        module: OnnxModule,
        nodes: Sequence[onnx_ir.Node],
        outputs: Sequence[onnx_ir.Value],
        inputs: Mapping[onnx_ir.Value, tuple[int, ...]],
        caches: Sequence[Cache],
        probes: Probes,
    ) -> None:
        self._module, self._inputs, self.probes = module, inputs, probes
        self._keys = Keys(module, caches, probes)
        self._hosted: dict[onnx_ir.Node, None] = {}
        count, *others = {probes.full[c.present].shape[c.axis] - probes.full.rows for c in caches}
        if others:
            raise refusal(module, "its caches grow by different numbers of rows")
        self.split = Split(device=[], fixed={}, fed={}, bounded=frozenset(), count=count)
        for node in nodes:
            self._place(node)
        self.split.bounded = frozenset(self._keys.bounded)
        self._feed(outputs)
        self._evaluation = _Evaluation(module, self._needed(nodes), self.split)

    def values(self, feeds: Values, rows: int) -> dict[onnx_ir.Value, Array]:
        """Return `Split.fed` for caches of so many rows, each with its shape for these."""
        known = {**feeds, **self.split.fixed}
        for node in self._evaluation.shapes:
            shape = self.probes.shape(_given(node), rows)
            known[node.outputs[0]] = np.array(_asked_for(node, shape), np.int64)
        return self._evaluation.run(known)

    def placed(self) -> tuple[Placed, ...]:
        """Return where the nodes are evaluated that the device does not run."""
        note = "computed anew for each run: it depends on how many rows are cached"
        return tuple(Placed(n.name or n.outputs[0].name or "", n.op_type, "folded", note) for n in self._hosted)

    # whose is it --------------------------------------------------------------------------------------------------

    def _place(self, node: onnx_ir.Node) -> None:
        uses = tuple(self._module.uses(node))
        outputs = [o for o in node.outputs if o.name and self.probes.found(o)]
        asks_for_shape = node.op_type in ("Shape", "Size") and not node.domain
        if not asks_for_shape and self._keys.values.intersection(uses):
            self._keys.follow(node, uses, outputs)
            self.split.device.append(node)
        elif all(self.probes.fixed(o) for o in outputs):
            self.split.fixed.update({o: array for o in outputs if (array := self.probes.full[o].array) is not None})
        elif any(self.probes.differs(o) for o in outputs) or any(self._on_host(v) and self.probes.grows(v) for v in uses):
            self._hosted[node] = None
        else:
            self.split.device.append(node)

    def _on_host(self, value: onnx_ir.Value) -> bool:
        return value in self._inputs or value.producer() in self._hosted

    # between host and device --------------------------------------------------------------------------------------

    def _feed(self, outputs: Sequence[onnx_ir.Value]) -> None:
        """Find what the device is fed of the host's values."""
        nominal: set[onnx_ir.Value] = set()
        fed: dict[onnx_ir.Value, None] = dict.fromkeys(v for v in outputs if v.producer() in self._hosted)
        for node in self.split.device:
            for value in self._module.uses(node):
                if value in self.split.fixed or not (value.producer() in self._hosted or self._inputs.get(value)):
                    continue
                sizes = [i for i, v in enumerate(node.inputs) if v is value and not node.domain]
                if sizes and all((node.op_type, i) in NOMINAL for i in sizes) and self.probes.full[value].array is not None:
                    nominal.add(value)
                else:
                    fed[value] = None
        self.split.fed = {v: (self.probes.full[v].shape, self.probes.full[v].dtype) for v in fed}
        for value in nominal.difference(fed):
            array = self.probes.full[value].array
            assert array is not None
            self.split.fixed[value] = array

    def _needed(self, nodes: Sequence[onnx_ir.Node]) -> list[onnx_ir.Node]:
        """Return the nodes that the host's values need, those of the device among them that it has to repeat."""
        needed: dict[onnx_ir.Node, None] = {}
        work = [v for v in self.split.fed if v not in self._inputs]
        while work:
            value = work.pop()
            node = value.producer()
            settled = value in self.split.fixed and node not in self._hosted
            if settled or value in self._inputs or value.const_value is not None:
                continue
            if node is None or value in self._keys.values:
                raise refusal(self._module, f"a mask or position depends on the elements of '{value.name}'")
            if node in needed:
                continue
            if node.op_type in host.CONTROL | host.RANDOM:
                raise self._module.refusal(node, "a mask or position depends on it")
            needed[node] = None
            if node.op_type not in ("Shape", "Size") or node.domain:
                work.extend(self._module.uses(node))
        return [node for node in nodes if node in needed]


class _Evaluation:
    """Computes a few small values by `onnx`'s reference implementation."""

    def __init__(self, module: OnnxModule, nodes: Sequence[onnx_ir.Node], split: Split) -> None:
        self.shapes = [n for n in nodes if n.op_type in ("Shape", "Size") and not n.domain]
        self._module, self._fed = module, split.fed
        inner = [n for n in nodes if n not in self.shapes]
        made = {o for n in inner for o in n.outputs}
        self._wanted = [v for v in split.fed if v in made]
        self._given = list(dict.fromkeys(v for n in inner for v in n.inputs if v is not None and v not in made))
        self._evaluator: Any = None
        if inner:
            graph = onnx.GraphProto(name="host", node=[onnx_ir.to_proto(n) for n in inner])
            graph.input.extend(onnx.ValueInfoProto(name=v.name) for v in self._given)
            graph.output.extend(onnx.ValueInfoProto(name=v.name) for v in self._wanted)
            versions = {n.domain: module.version(n) for n in inner}
            try:
                self._evaluator = host.evaluator(graph, versions)
            except Exception as error:  # the `onnx` package has a kind of its own for every reason
                raise refusal(module, f"masks or positions cannot be computed: {type(error).__name__}: {error}") from error

    def run(self, known: Values) -> dict[onnx_ir.Value, Array]:
        found: dict[onnx_ir.Value, Any] = {v: known[v] for v in self._fed if v in known}
        if self._evaluator is not None:
            feeds = {v.name or "": known[v] if v in known else self._module.initializer(v) for v in self._given}
            with np.errstate(all="ignore"):
                results = self._evaluator.run([v.name for v in self._wanted], feeds)
            found.update(zip(self._wanted, results, strict=True))
        return {v: np.asarray(array, self._fed[v][1]) for v, array in found.items()}


def _given(node: onnx_ir.Node) -> onnx_ir.Value:
    value = node.inputs[0]
    assert value is not None
    return value


def _asked_for(node: onnx_ir.Node, shape: Shape) -> Shape | int:
    """Return what Shape or Size asks for of a shape."""
    if node.op_type == "Size":
        return math.prod(shape)
    start, end = (node.attributes[n].as_int() if n in node.attributes else None for n in ("start", "end"))
    return shape[start:end]


def resized(array: Array, axes: Iterable[int], change: int) -> Array:
    """Return an array with dimensions made longer, by repeating what is last in them, or shorter."""
    for axis in axes:
        places = np.arange(array.shape[axis] + change).clip(max=array.shape[axis] - 1)
        array = array.take(places, axis)
    return array


def filled_up(array: Array, shape: Shape) -> Array:
    """Return an array with zeros behind it in every dimension that is shorter than wanted."""
    if array.shape == shape:
        return array
    result = np.zeros(shape, array.dtype)
    result[tuple(map(slice, array.shape))] = array
    return result
