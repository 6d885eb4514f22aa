"""Keras topologies: the layers of Sequential and functional models as nodes, in the order of execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

import numpy as np

from webnn_wgpu import NotSupportedError

from ..common.held import DType
from .contents import checked, entries, fields
from .tensors import TfjsGraph, TfjsNode, TfjsValue

MODELS = frozenset({"Sequential", "Model", "Functional"})
"""Classes of layers that are models."""
DEEPEST = 16
"""The maximum depth of models within models."""
MOST_NODES = 1 << 16
"""The maximum number of layers of a model, those of models within it included."""


@dataclass(frozen=True)
class InputSpec:
    """An input of a layers model: its name, its shape with None for open sizes, and its type."""

    name: str
    shape: tuple[int | None, ...]
    dtype: DType


@dataclass(kw_only=True)
class Topology:
    """A layers model.

    Attributes:
        kind: "Sequential" or "Model".
        config: its configuration.
        graph: its layers.
        inputs: its inputs.
        names: the names of its outputs.
    """

    kind: str
    config: Mapping[str, Any]
    graph: TfjsGraph
    inputs: Sequence[InputSpec]
    names: Sequence[str]


def read_topology(name: str, topology: Mapping[str, Any]) -> Topology:
    """Read `modelTopology` of a layers model.

    Raises:
        NotSupportedError: no topology, or a broken one. The message has the file and the culprit.
    """
    content = topology.get("model_config", topology)
    kind, config = (content.get("class_name"), content.get("config")) if isinstance(content, dict) else (None, None)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if not isinstance(kind, str) or kind not in MODELS:
        raise NotSupportedError(f"{name}: a model of the class {kind!r}; allowed: {', '.join(sorted(MODELS))}")
    config = {"layers": config} if isinstance(config, list) else config  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(config, dict):
        raise NotSupportedError(f"{name}: the model has no configuration")
    reader = _Reader(name)
    with checked(name, "modelTopology"):
        graph = _unique(reader.model(kind, cast("dict[str, Any]", config), 0))
    names = [value.name for value in graph.outputs]
    return Topology(kind=kind, config=cast("dict[str, Any]", config), graph=graph, inputs=reader.specs(graph), names=names)


def read_model(name: str, kind: str, config: Mapping[str, Any]) -> TfjsGraph:
    """Return the layers of a model within a layer."""
    with checked(name, "the model inside"):
        return _Reader(name).model(kind, config, 1)


def _unique(graph: TfjsGraph) -> TfjsGraph:
    """Give outputs of the same name different ones."""
    seen: set[str] = set()
    for value in graph.outputs:
        base, number = value.name, 1
        while value.name in seen:
            value.name = f"{base}_{number}"
            number += 1
        seen.add(value.name)
    return graph


@dataclass
class _Reader:
    """Reads models within models."""

    name: str
    count: int = 0
    declared: dict[TfjsValue, InputSpec] = field(default_factory=dict[TfjsValue, InputSpec])

    def specs(self, graph: TfjsGraph) -> list[InputSpec]:
        """Return the inputs of a graph."""
        return [self.declared[value] for value in graph.inputs]

    def fail(self, reason: str) -> NoReturn:
        raise NotSupportedError(f"{self.name}: {reason}")

    def layers(self, config: Mapping[str, Any]) -> list[tuple[str, str, dict[str, Any], dict[str, Any]]]:
        """Return name, class, configuration and entry of each layer."""
        listed = entries(config.get("layers"))
        if not listed:
            self.fail("the model has no layers")
        found: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = []
        for number, entry in enumerate(listed):
            content = fields(entry)
            kind, given = content.get("class_name"), content.get("config")
            own = {"layers": entries(given)} if isinstance(given, list) else fields(given)
            if not isinstance(kind, str) or not isinstance(given, dict | list):
                self.fail(f"layer {number} has no class and configuration")
            name = content.get("name") or own.get("name") or f"{kind.lower()}_{number}"
            found.append((str(name), kind, own, content))
        self.count += len(found)
        if self.count > MOST_NODES:
            self.fail(f"the model has more than {MOST_NODES} layers")
        return found

    def model(self, kind: str, config: Mapping[str, Any], depth: int) -> TfjsGraph:
        """Return the layers of a model."""
        if depth > DEEPEST:
            self.fail(f"models within each other more than {DEEPEST} deep")
        return self.sequential(config, depth) if kind == "Sequential" else self.functional(config, depth)

    def input(self, name: str, config: Mapping[str, Any], known: bool = True) -> TfjsValue:
        """Return an input of a model."""
        shape: Any = config.get("batch_input_shape", config.get("batch_shape"))
        type_name = config.get("dtype") or "float32"
        if known and not isinstance(shape, list):
            self.fail(f"input '{name}' has no shape")
        sizes = cast("list[Any]", shape) if isinstance(shape, list) else []
        if len(sizes) > 16 or not all(
            d is None or (isinstance(d, int) and not isinstance(d, bool) and 0 < d < 1 << 31) for d in sizes
        ):
            self.fail(f"input '{name}' has the shape {shape!r}")
        if type_name not in ("float32", "int32", "bool"):
            self.fail(f"input '{name}' has the dtype {type_name!r}; allowed: float32, int32, bool")
        value = TfjsValue(name)
        dtype = np.dtype(bool if type_name == "bool" else type_name)
        self.declared[value] = InputSpec(name, tuple(sizes), dtype)
        return value

    def sequential(self, config: Mapping[str, Any], depth: int) -> TfjsGraph:
        """Return the layers of a Sequential."""
        layers = self.layers(config)
        name, kind, own, _ = layers[0]
        if kind == "InputLayer":
            layers = layers[1:]
            value = self.input(name, own, depth == 0)
        elif kind in MODELS:
            inner = self.model(kind, own, depth + 1)
            if len(inner.inputs) != 1:
                self.fail(f"model '{name}' has {len(inner.inputs)} inputs")
            spec = self.declared[inner.inputs[0]]
            value = TfjsValue(f"{name}_input")
            self.declared[value] = InputSpec(value.name, spec.shape, spec.dtype)
        else:
            shape = own.get("batch_input_shape", config.get("build_input_shape"))
            value = self.input(f"{name}_input", {"dtype": own.get("dtype"), "batch_input_shape": shape}, depth == 0)
        nodes: list[TfjsNode] = []
        current = value
        for name, kind, own, _ in layers:
            results = self.apply(nodes, name, kind, own, [current], 1, depth)
            current = results[0]
        return TfjsGraph(name=str(config.get("name", "")), nodes=nodes, inputs=[value], outputs=[current])

    def apply(
        self,
        nodes: list[TfjsNode],
        name: str,
        kind: str,
        config: Mapping[str, Any],
        inputs: Sequence[TfjsValue],
        wanted: int,
        depth: int,
    ) -> list[TfjsValue]:
        """Append a layer, or the layers of a model, and return the results."""
        if kind in MODELS:
            inner = self.model(kind, config, depth + 1)
            if len(inner.inputs) != len(inputs):
                self.fail(f"model '{name}' has {len(inner.inputs)} inputs, but is given {len(inputs)}")
            copied = inner.copy(inputs)
            nodes += copied.nodes
            if wanted > len(copied.outputs):
                self.fail(f"model '{name}' has {len(copied.outputs)} outputs, of which {wanted} are used")
            return list(copied.outputs)
        outputs = tuple(TfjsValue(name if i == 0 else f"{name}_{i}") for i in range(wanted))
        nodes.append(TfjsNode(name=name, op=kind, inputs=tuple(inputs), outputs=outputs, attributes=config, path=name))
        return list(outputs)

    def functional(self, config: Mapping[str, Any], depth: int) -> TfjsGraph:
        """Return the layers of a functional model, in an order in which each follows its inputs."""
        layers = self.layers(config)
        by_name = {name: (name, kind, own, entry) for name, kind, own, entry in layers}
        if len(by_name) != len(layers):
            self.fail("two layers have the same name")
        calls: dict[tuple[str, int], list[tuple[str, int, int]]] = {}
        wanted: dict[str, int] = {}
        for name, kind, _, entry in layers:
            for index, references in enumerate(self.inbound(name, entry)):
                calls[name, index] = references
                for source, _, tensor in references:
                    wanted[source] = max(wanted.get(source, 1), tensor + 1)
            if kind == "InputLayer":
                calls[name, 0] = []
        ends = {key: self.ends(config, key) for key in ("input_layers", "output_layers")}
        for source, _, tensor in ends["output_layers"]:
            wanted[source] = max(wanted.get(source, 1), tensor + 1)
        offsets = {
            name: 1 if kind in MODELS and entry.get("inbound_nodes") and (name, 0) in calls else 0
            for name, kind, _, entry in layers
        }
        results: dict[tuple[str, int], list[TfjsValue]] = {}
        nodes: list[TfjsNode] = []
        if not ends["input_layers"]:
            self.fail("the model has no inputs")
        for name, _, _ in ends["input_layers"]:
            if name not in by_name or by_name[name][1] != "InputLayer":
                self.fail(f"input '{name}' is no InputLayer")
        for key in self.ordered(calls, by_name, offsets):
            name, kind, own, _ = by_name[key[0]]
            if kind == "InputLayer":
                results[key] = [self.input(name, own, depth == 0)]
                continue
            inputs = [self.found(results, r, offsets) for r in calls[key]]
            results[key] = self.apply(nodes, name, kind, own, inputs, wanted.get(name, 1), depth)
        given = [results[name, 0][0] for name, _, _ in ends["input_layers"]]
        outputs = [self.found(results, r, offsets) for r in ends["output_layers"]]
        return TfjsGraph(name=str(config.get("name", "")), nodes=nodes, inputs=given, outputs=outputs)

    def found(
        self, results: Mapping[tuple[str, int], list[TfjsValue]], reference: tuple[str, int, int], offsets: Mapping[str, int]
    ) -> TfjsValue:
        """Return the value that a reference to layer, call and tensor means.

        Calls of a model within another may be counted from 1: the first one is the model itself.
        """
        name, call, tensor = reference
        values = results.get((name, call - offsets.get(name, 0))) or results.get((name, call))
        if values is None or not 0 <= tensor < len(values):
            self.fail(f"a layer uses result {tensor} of call {call} of '{name}', which does not exist")
        return values[tensor]

    def ordered(
        self,
        calls: Mapping[tuple[str, int], Sequence[tuple[str, int, int]]],
        by_name: Mapping[str, Any],
        offsets: Mapping[str, int],
    ) -> list[tuple[str, int]]:
        """Return the calls in an order in which each follows those that it needs."""
        order: list[tuple[str, int]] = []
        state: dict[tuple[str, int], bool] = {}
        for start in calls:
            stack = [(start, False)]
            while stack:
                key, done = stack.pop()
                if done:
                    state[key] = True
                    order.append(key)
                    continue
                if key in state:
                    continue
                state[key] = False
                stack.append((key, True))
                for name, call, _ in calls[key]:
                    if name not in by_name:
                        self.fail(f"layer '{key[0]}' uses '{name}', which does not exist")
                    source = (name, call - offsets.get(name, 0))
                    source = source if source in calls else (name, call)
                    if source not in calls:
                        self.fail(f"layer '{key[0]}' uses call {call} of '{name}', which does not exist")
                    if state.get(source) is False:
                        self.fail(f"layer '{key[0]}' is part of a cycle")
                    if source not in state:
                        stack.append((source, False))
        return order

    def ends(self, config: Mapping[str, Any], key: str) -> list[tuple[str, int, int]]:
        """Return the references of a model's inputs or outputs."""
        ends = entries(config.get(key))
        ends = [ends] if ends and isinstance(ends[0], str) else ends
        return [self.reference(key, end) for end in ends]

    def inbound(self, name: str, entry: Mapping[str, Any]) -> list[list[tuple[str, int, int]]]:
        """Return the references of each call of a layer."""
        calls: Any = entry.get("inbound_nodes") or []
        if not isinstance(calls, list):
            self.fail(f"layer '{name}' has no list of inbound_nodes")
        found: list[list[tuple[str, int, int]]] = []
        for call in cast("list[Any]", calls):
            if not isinstance(call, list):
                self.fail(f"layer '{name}' has inbound_nodes in a form of another version of Keras")
            sources = entries(cast("list[Any]", call))
            sources = [sources] if sources and isinstance(sources[0], str) else sources
            found.append([self.reference(f"layer '{name}'", source) for source in sources])
        return found

    def reference(self, where: str, entry: Any) -> tuple[str, int, int]:
        """Return name, call and tensor of a reference."""
        parts = cast("list[Any]", entry) if isinstance(entry, list) else []
        if (
            len(parts) < 3
            or not isinstance(parts[0], str)
            or not all(isinstance(p, int) and 0 <= p < 1 << 16 for p in parts[1:3])
        ):
            self.fail(f"{where} has the reference {entry!r}, which must have a layer, a call and a tensor")
        if len(parts) > 3 and parts[3]:
            self.fail(f"{where} calls '{parts[0]}' with arguments {parts[3]!r}, which are not supported")
        return parts[0], parts[1], parts[2]
