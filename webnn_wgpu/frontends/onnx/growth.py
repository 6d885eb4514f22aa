"""What in a model depends on how many rows its caches have.

A model with caches is lowered for two numbers of rows, and what comes out differently depends on them: shapes and positions,
masks that are made of them, scores. What follows from the caches' elements stays on the device, with as many rows as the
caches may ever have. The rest is small, and the host computes it anew for each run: a `Split` says what is whose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_ir
from onnx.reference import ReferenceEvaluator

from webnn_wgpu import MLContext, NotSupportedError

from . import host
from .caches import ATTENTION, Cache
from .lowering import Feed, Lowering, Placed
from .module import Module
from .tensors import Shape, Tensor, ValueNeeded
from .types import Array, DType

ALONG_KEYS = frozenset((
    *("Abs", "Add", "And", "Cast", "Clip", "Div", "Equal", "Exp", "Expand", "Greater", "GreaterOrEqual", "Identity", "IsNaN"),
    *("Less", "LessOrEqual", "MatMul", "Mul", "Neg", "Not", "Or", "Pow", "Reshape", "Slice", "Softmax", "Split", "Sqrt"),
    *("Squeeze", "Sub", "Tanh", "Transpose", "Unsqueeze", "Where"),
))  # fmt: skip
"""Operators that may read what has a row for each key: what they make of rows that are not filled stays there."""

BOUNDED = frozenset((("", "Softmax"), *ATTENTION))
"""Operators whose sums go over keys."""

NOMINAL = frozenset((("Reshape", 1), ("Expand", 1), ("Slice", 2)))
"""Inputs that only say how large a result is: whatever has all rows keeps all."""

Values = Mapping[onnx_ir.Value, Array]


@dataclass(frozen=True)
class Probe:
    """A lowering for caches of `rows` rows, made to look at shapes and at what is known."""

    rows: int
    lowering: Lowering

    @classmethod
    def of(
        cls,
        module: Module,
        context: MLContext,
        nodes: Sequence[onnx_ir.Node],
        outputs: Sequence[onnx_ir.Value],
        feeds: Mapping[onnx_ir.Value, Feed],
        rows: int,
    ) -> Probe:
        """Lower a model; nothing is compiled."""
        lowering = Lowering(module, context, feeds, {}, ())
        try:
            lowered = lowering.run(nodes, outputs)
        except ValueNeeded as wait:
            raise _refusal(module, f"a shape depends on the elements of '{wait.values[0].name}'") from None
        for node in (*lowered.host, *lowered.rest):
            raise module.refusal(node, "it needs the host, and caches of keys and values stay on the device")
        for value in lowered.guards:
            raise _refusal(module, f"a shape or an option depends on the elements of '{value.name}'")
        return cls(rows, lowering)

    def __getitem__(self, value: onnx_ir.Value) -> Tensor:
        tensor = self.lowering.found(value)
        assert tensor is not None, value.name
        return tensor


@dataclass
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
        few, full: what it looks like with few rows, and with as many as leave room for one run.
    """

    def __init__(
        self,
        module: Module,
        nodes: Sequence[onnx_ir.Node],
        outputs: Sequence[onnx_ir.Value],
        inputs: Mapping[onnx_ir.Value, tuple[int, ...]],
        caches: Sequence[Cache],
        few: Probe,
        full: Probe,
    ) -> None:
        self._module, self._inputs, self._few, self._full = module, inputs, few, full
        self._updates = {c.present.producer() for c in caches}
        self._cached = {c.past for c in caches}
        """Values that follow from the caches' elements."""
        self._hosted: dict[onnx_ir.Node, None] = {}
        count = full[caches[0].present].shape[caches[0].axis] - full.rows
        self.split = Split([], {}, {}, frozenset(), count)
        bounded: set[onnx_ir.Node] = set()
        for node in nodes:
            self._place(node, bounded)
        self.split.bounded = frozenset(bounded)
        self._feed(outputs)
        self._evaluation = _Evaluation(module, self._needed(nodes), self.split)

    def values(self, feeds: Values, rows: int) -> dict[onnx_ir.Value, Array]:
        """Return `Split.fed` for caches of so many rows, each with its shape for these."""
        known = {**feeds, **self.split.fixed}
        for node in self._evaluation.shapes:
            shape = self.shape(_given(node), rows)
            known[node.outputs[0]] = np.array(shape if node.op_type == "Shape" else int(np.prod(shape)), np.int64)
            known[node.outputs[0]] = _part_of_shape(node, known[node.outputs[0]])
        return self._evaluation.run(known)

    def shape(self, value: onnx_ir.Value, rows: int) -> Shape:
        """Return a value's shape for caches of so many rows."""
        few, full = self._few[value].shape, self._full[value].shape
        step = self._full.rows - self._few.rows
        return tuple(a + (b - a) * (rows - self._few.rows) // step for a, b in zip(few, full, strict=True))

    def placed(self) -> tuple[Placed, ...]:
        """Return where the nodes are evaluated that the device does not run."""
        note = "computed anew for each run: it depends on how many rows are cached"
        return tuple(Placed(n.name or n.outputs[0].name or "", n.op_type, "folded", note) for n in self._hosted)

    # whose is it --------------------------------------------------------------------------------------------------

    def _place(self, node: onnx_ir.Node, bounded: set[onnx_ir.Node]) -> None:
        uses = tuple(self._module.uses(node))
        outputs = [o for o in node.outputs if o.name and self._few.lowering.found(o) is not None]
        asks_for_shape = node.op_type in ("Shape", "Size") and not node.domain
        if not asks_for_shape and self._cached.intersection(uses):
            self._along_keys(node, bounded)
            self._cached.update(o for o in outputs if o.name)
            self.split.device.append(node)
        elif all(self._known(o) for o in outputs):
            self.split.fixed.update({o: array for o in outputs if (array := self._full[o].array) is not None})
        elif any(self._differs(o) for o in outputs) or any(self._on_host(v) and self._grows(v) for v in uses):
            self._hosted[node] = None
        else:
            self.split.device.append(node)

    def _along_keys(self, node: onnx_ir.Node, bounded: set[onnx_ir.Node]) -> None:
        """Check a node that reads what follows from caches."""
        operator = (node.domain, node.op_type)
        given = [v for v in node.inputs if v in self._cached and self._grows(v)]
        if not given:
            return
        if node in self._updates or operator in ATTENTION:
            bounded.update((node,) if operator in BOUNDED else ())
            return
        if node.domain or node.op_type not in ALONG_KEYS:
            raise self._module.refusal(node, "what it makes of cached keys cannot be told from what it makes of room for more")
        if operator in BOUNDED:
            shape, grown = self._full[given[0]].shape, self._growing_axes(given[0])
            axis = node.attributes["axis"].as_int() % len(shape) if "axis" in node.attributes else len(shape) - 1
            if grown != [len(shape) - 1]:
                raise self._module.refusal(node, f"its sums over cached keys are not along the last of {len(shape)} dimensions")
            bounded.update((node,) if axis in grown else ())

    def _growing_axes(self, value: onnx_ir.Value) -> list[int]:
        pairs = zip(self._few[value].shape, self._full[value].shape, strict=True)
        return [i for i, (a, b) in enumerate(pairs) if a != b]

    def _grows(self, value: onnx_ir.Value) -> bool:
        return bool(self._growing_axes(value))

    def _known(self, value: onnx_ir.Value) -> bool:
        few, full = self._few[value].array, self._full[value].array
        return few is not None and full is not None and not self._differs(value)

    def _differs(self, value: onnx_ir.Value) -> bool:
        few, full = self._few[value], self._full[value]
        if few.shape != full.shape or (few.array is None) != (full.array is None):
            return True
        return few.array is not None and full.array is not None and few.array.tobytes() != full.array.tobytes()

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
                if sizes and all((node.op_type, i) in NOMINAL for i in sizes) and self._full[value].array is not None:
                    nominal.add(value)
                else:
                    fed[value] = None
        self.split.fed = {v: (self._full[v].shape, self._full[v].dtype) for v in fed}
        for value in nominal.difference(fed):
            array = self._full[value].array
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
            if node is None or value in self._cached:
                raise _refusal(self._module, f"a mask or position depends on the elements of '{value.name}'")
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

    def __init__(self, module: Module, nodes: Sequence[onnx_ir.Node], split: Split) -> None:
        self.shapes = [n for n in nodes if n.op_type in ("Shape", "Size") and not n.domain]
        self._module, self._fed = module, split.fed
        inner = [n for n in nodes if n not in self.shapes]
        made = {o for n in inner for o in n.outputs}
        self._wanted = [v for v in split.fed if v in made]
        self._given = list(dict.fromkeys(v for n in inner for v in n.inputs if v is not None and v not in made))
        self._evaluator: ReferenceEvaluator | None = None
        if inner:
            graph = onnx.GraphProto(name="host", node=[onnx_ir.to_proto(n) for n in inner])
            graph.input.extend(onnx.ValueInfoProto(name=v.name) for v in self._given)
            graph.output.extend(onnx.ValueInfoProto(name=v.name) for v in self._wanted)
            versions: dict[str, Any] = {n.domain: module.version(n) for n in inner}
            self._evaluator = ReferenceEvaluator(graph, opsets=versions)

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


def _part_of_shape(node: onnx_ir.Node, shape: Array) -> Array:
    """Return the dimensions that Shape's attributes ask for."""
    if node.op_type == "Size":
        return shape
    start, end = (node.attributes[n].as_int() if n in node.attributes else None for n in ("start", "end"))
    return shape[start:end]


def _refusal(module: Module, reason: str) -> NotSupportedError:
    return NotSupportedError(f"{module.name}: {reason}; its caches cannot stay on the device", operator="load")


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
