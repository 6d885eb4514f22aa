"""GraphDef as JSON: nodes, functions, signatures and hash tables as values and nodes in the order of execution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

from webnn_wgpu import NotSupportedError

from ..common.held import DType
from .call import TYPES, NodeFacts, text_of, type_of
from .contents import TfjsFile, checked, entries, fields
from .frames import FLOW, structured
from .raw import RawNode, Reference, reference
from .tensors import TfjsGraph, TfjsNode, TfjsValue

MOST_NODES = 1 << 18
"""The maximum number of nodes of a file."""
DEEPEST = 32
"""The maximum depth of functions that call each other."""
INPUTS = frozenset({"Placeholder"})
TABLES = frozenset({"HashTable", "HashTableV2"})
IMPORTS = frozenset({"LookupTableImport", "LookupTableImportV2", "InitializeTable", "InitializeTableV2"})
FINDS = {"LookupTableFind", "LookupTableFindV2", "LookupTableSize", "LookupTableSizeV2"}
GRAPHS = ("cond", "body", "then_branch", "else_branch", "f")
"""Attributes that name functions."""


@dataclass(frozen=True)
class GraphInput:
    """An input of a graph model: its value, its shape with None for open sizes, None if the rank is open, and its type."""

    value: TfjsValue
    shape: tuple[int | None, ...] | None
    dtype: DType


@dataclass(kw_only=True)
class GraphModel:
    """A graph model.

    Attributes:
        graph: its nodes, inputs and outputs.
        inputs: its inputs.
        constants: the names of the weights, by the values that they are.
        version: the version of GraphDef.
    """

    graph: TfjsGraph
    inputs: Sequence[GraphInput]
    constants: dict[TfjsValue, str]
    version: int = 0


def read_graph(file: TfjsFile) -> GraphModel:
    """Read the graph of a model.

    Raises:
        NotSupportedError: a broken graph. The message has the file and the culprit.
    """
    with checked(file.name, "modelTopology"):
        return _Reader(file).model()


@dataclass
class _Reader:
    """Reads the graphs of a file."""

    file: TfjsFile
    constants: dict[TfjsValue, str] = field(default_factory=dict[TfjsValue, str])
    functions: dict[str, TfjsGraph] = field(default_factory=dict[str, TfjsGraph])
    tables: dict[str, tuple[TfjsValue, TfjsValue]] = field(default_factory=dict[str, tuple[TfjsValue, TfjsValue]])
    open: list[str] = field(default_factory=list[str])
    count: int = 0

    def fail(self, reason: str) -> NoReturn:
        raise NotSupportedError(f"{self.file.name}: {reason}")

    def model(self) -> GraphModel:
        """Read the main graph."""
        topology = self.file.topology
        library: Any = topology.get("library") or {}
        self.definitions: dict[str, dict[str, Any]] = {}
        for entry in self.list(library.get("function") if isinstance(library, dict) else None, "library.function"):  # pyright: ignore[reportUnknownMemberType]
            name = fields(fields(entry).get("signature")).get("name")
            if not isinstance(name, str):
                self.fail("a function has no name")
            self.definitions[name] = fields(entry)
        raw = self.raw(topology.get("node"), "")
        initializer: Any = self.file.document.get("modelInitializer")
        if isinstance(initializer, dict):
            self.initialize(self.raw(cast("dict[str, Any]", initializer).get("node"), ""))
        self.initialize(raw)
        signature: Any = self.file.document.get("signature") or {}
        if not signature:
            metadata: Any = self.file.document.get("userDefinedMetadata")
            signature = cast("dict[str, Any]", metadata).get("signature") or {} if isinstance(metadata, dict) else {}
        given = self.signed(signature, "inputs", raw) or [(n.name, 0) for n in raw.values() if n.op in INPUTS]
        used = {source for node in raw.values() for source in (*(s for s, _ in node.inputs), *node.controls)}
        leaves = [(n.name, 0) for n in raw.values() if n.name not in used and n.op not in TABLES | IMPORTS | {"NoOp", "Const"}]
        wanted = self.signed(signature, "outputs", raw) or leaves
        if not wanted:
            self.fail("the graph has no outputs")
        values: dict[Reference, TfjsValue] = {}
        inputs: list[GraphInput] = []
        for name, _ in given:
            inputs.append(self.input(raw[name], values))
        nodes = self.nodes(raw, values, [*given], wanted, "")
        outputs = self.named(values, wanted, nodes)
        graph = TfjsGraph(name=self.file.name, nodes=nodes, inputs=[i.value for i in inputs], outputs=outputs)
        versions: Any = topology.get("versions")
        version = cast("dict[str, Any]", versions).get("producer") if isinstance(versions, dict) else 0
        return GraphModel(
            graph=graph, inputs=inputs, constants=self.constants, version=version if isinstance(version, int) else 0
        )

    def named(self, values: dict[Reference, TfjsValue], wanted: Sequence[Reference], nodes: list[TfjsNode]) -> list[TfjsValue]:
        """Return the outputs with names of their own."""
        outputs: list[TfjsValue] = []
        for key in wanted:
            value = values.get(key) or self.fail(f"no node computes the output '{key[0]}'")
            if value in outputs:
                again = TfjsValue(f"{value.name}_{len(outputs)}")
                nodes.append(TfjsNode(name=again.name, op="Identity", inputs=(value,), outputs=(again,)))
                value = again
            outputs.append(value)
        return outputs

    def list(self, value: Any, where: str) -> list[Any]:
        if value is None:
            return []
        return cast("list[Any]", value) if isinstance(value, list) else self.fail(f"{where} is not a list")

    def raw(self, listed: Any, where: str) -> dict[str, RawNode]:
        """Return the nodes of a graph or function by name."""
        found: dict[str, RawNode] = {}
        for entry in self.list(listed, f"{where or 'modelTopology'}.node"):
            content = fields(entry)
            name, op, attributes = content.get("name"), content.get("op"), fields(content.get("attr"))
            inputs = entries(content.get("input"))
            if not isinstance(name, str) or not isinstance(op, str):
                self.fail(f"{where}: a node has no name and operator")
            if not all(isinstance(i, str) for i in inputs):
                self.fail(f"node '{name}' has inputs that are no names")
            if name in found:
                self.fail(f"two nodes have the name '{name}'")
            found[name] = RawNode(name, op, list(map(str, inputs)), attributes)
        self.count += len(found)
        if self.count > MOST_NODES:
            self.fail(f"the file has more than {MOST_NODES} nodes")
        return found

    def resolve(self, raw: dict[str, RawNode], arguments: Iterable[str] = ()) -> None:
        """Resolve the references of nodes."""
        known = set(arguments)
        for node in raw.values():
            node.inputs.clear()
            node.controls.clear()
            for text in node.texts:
                if text.startswith("^"):
                    node.controls.append(text[1:])
                    continue
                source, index = reference(text, raw)
                if source not in raw and source not in known:
                    self.fail(f"node '{node.name}' uses '{text}', which does not exist")
                if not 0 <= index < 1 << 16:
                    self.fail(f"node '{node.name}' uses '{text}'")
                node.inputs.append((source, index))
            node.controls = [c for c in node.controls if c in raw]

    def signed(self, signature: Any, end: str, raw: dict[str, RawNode]) -> list[Reference]:
        """Return the inputs or outputs of a signature."""
        self.resolve(raw)
        found: list[Reference] = []
        for key, entry in fields(fields(signature).get(end)).items():
            text = fields(entry).get("name", key)
            source, index = reference(str(text), raw)
            if source not in raw:
                if end == "inputs":
                    continue
                self.fail(f"the signature has the output {text!r}, which does not exist")
            if (source, index) not in found and not (end == "inputs" and raw[source].op in TABLES):
                found.append((source, index))
        return found

    def input(self, node: RawNode, values: dict[Reference, TfjsValue]) -> GraphInput:
        """Return an input of the main graph."""
        value = values[node.name, 0] = TfjsValue(node.name)
        facts = NodeFacts(TfjsNode(name=node.name, op=node.op, inputs=(), outputs=(), attributes=node.attributes))
        declared = facts.attribute("dtype", "type")
        dtype = TYPES.get(type_of(declared)) if declared is not None else TYPES["DT_FLOAT"]
        if dtype is None or dtype.kind == "c":
            self.fail(f"input '{node.name}' has the type {type_of(declared)}")
        sizes = facts.shape("shape")
        if sizes is not None and (len(sizes) > 16 or any(not -1 <= d < 1 << 31 for d in sizes)):
            self.fail(f"input '{node.name}' has the shape {sizes}")
        return GraphInput(value, None if sizes is None else tuple(d if d > 0 else None for d in sizes), dtype)

    def initialize(self, raw: dict[str, RawNode]) -> None:
        """Take the keys and values of hash tables."""
        if not any(node.op in IMPORTS for node in raw.values()):
            return
        self.resolve(raw)
        for node in raw.values():
            if node.op not in IMPORTS or len(node.inputs) < 3:
                continue
            table, keys, values = (raw[source] for source, _ in node.inputs[:3])
            pair: list[TfjsValue] = []
            for source in (keys, values):
                if source.op != "Const" or source.name not in self.file.weights:
                    self.fail(f"hash table '{table.name}' is filled by '{source.name}', which is no weight")
                value = TfjsValue(source.name)
                self.constants[value] = source.name
                pair.append(value)
            self.tables[table.name] = (pair[0], pair[1])
            shared = text_of(table.attributes.get("shared_name", {}).get("s", ""))
            self.tables.setdefault(f"shared/{shared}", (pair[0], pair[1]))

    def function(self, name: str) -> TfjsGraph:
        """Return the graph of a function."""
        if name in self.functions:
            return self.functions[name]
        definition = self.definitions.get(name) or self.fail(f"there is no function '{name}'")
        if name in self.open or len(self.open) >= DEEPEST:
            self.fail(f"function '{name}' calls itself, or functions call each other more than {DEEPEST} deep")
        self.open.append(name)
        signature = definition["signature"]
        arguments = [str(a.get("name")) for a in self.list(signature.get("inputArg"), f"{name}.inputArg")]
        raw = self.raw(definition.get("nodeDef"), name)
        self.resolve(raw, arguments)
        values: dict[Reference, TfjsValue] = {(a, 0): TfjsValue(a) for a in arguments}
        inputs = [values[a, 0] for a in arguments]
        returned: Any = definition.get("ret") or {}
        wanted: list[Reference] = []
        for argument in self.list(signature.get("outputArg"), f"{name}.outputArg"):
            text: Any = returned.get(argument.get("name"))
            found = reference(str(text), raw)
            if not isinstance(text, str) or (found[0] not in raw and found[0] not in arguments):
                self.fail(f"function '{name}' returns {text!r}, which does not exist")
            wanted.append(found)
        nodes = self.nodes(raw, values, [(a, 0) for a in arguments], wanted, name)
        outputs = [values.get(key) or self.fail(f"no node of '{name}' computes '{key[0]}'") for key in wanted]
        self.open.pop()
        self.functions[name] = TfjsGraph(name=name, nodes=nodes, inputs=inputs, outputs=outputs)
        return self.functions[name]

    def nodes(
        self,
        raw: dict[str, RawNode],
        values: dict[Reference, TfjsValue],
        given: Sequence[Reference],
        wanted: Sequence[Reference],
        scope: str,
    ) -> list[TfjsNode]:
        """Return the nodes that outputs depend on, each behind those that it reads."""
        counts: dict[str, int] = {}
        for source, index in (*(r for node in raw.values() for r in node.inputs), *wanted):
            counts[source] = max(counts.get(source, 1), index + 1)

        def value(key: Reference) -> TfjsValue:
            if key not in values:
                values[key] = TfjsValue(key[0] if not key[1] else f"{key[0]}:{key[1]}")
            return values[key]

        ends = {source for source, _ in given}
        made: dict[str, TfjsNode] = {}
        for node in raw.values():
            if node.name in ends or node.op in TABLES | IMPORTS:
                continue
            if node.op == "Const":
                self.constant(node, value((node.name, 0)), scope)
                continue
            if node.op in INPUTS:
                continue
            inputs = tuple(value(key) for key in node.inputs)
            if node.op in FINDS:
                inputs = (*self.table(node, raw), *inputs[1:])
            graphs = self.graphs(node)
            made[node.name] = TfjsNode(
                name=f"{scope}/{node.name}" if scope else node.name,
                op=node.op,
                inputs=inputs,
                outputs=tuple(value((node.name, i)) for i in range(counts.get(node.name, least(node)))),
                attributes=node.attributes,
                graphs=graphs,
            )
        found: Iterable[TfjsNode] = made.values()
        if any(node.op in FLOW for node in raw.values()):
            found = structured(self.fail, raw, made, values)
        for key in wanted:
            value(key)
        return self.ordered(found, [values[key] for key in wanted], {values[key] for key in given if key in values})

    def graphs(self, node: RawNode) -> dict[str, TfjsGraph]:
        """Return the graphs that a node uses. A node whose operator is a function calls it."""
        found: dict[str, TfjsGraph] = {}
        for name in GRAPHS:
            entry: Any = node.attributes.get(name)
            function = fields(fields(entry).get("func")).get("name")
            if function is not None:
                found[name] = self.function(str(function))
        if not found and node.op in self.definitions:
            found["f"] = self.function(node.op)
            node.op = "PartitionedCall"
        return found

    def table(self, node: RawNode, raw: Mapping[str, RawNode]) -> tuple[TfjsValue, TfjsValue]:
        """Return keys and values of the hash table that a node reads."""
        source = raw.get(node.inputs[0][0]) if node.inputs else None
        shared = text_of(source.attributes.get("shared_name", {}).get("s", "")) if source is not None else ""
        found = self.tables.get(source.name if source is not None else "") or self.tables.get(f"shared/{shared}")
        return found or self.fail(f"node '{node.name}' reads a hash table that nothing fills")

    def constant(self, node: RawNode, value: TfjsValue, scope: str) -> None:
        """Take the weight of a constant."""
        for name in (f"{scope}/{node.name}", node.name) if scope else (node.name,):
            if name in self.file.weights:
                self.constants[value] = name
                return

    def ordered(self, nodes: Iterable[TfjsNode], wanted: Sequence[TfjsValue], given: set[TfjsValue]) -> list[TfjsNode]:
        """Return the nodes that values depend on, each behind those that it reads."""
        makers = {output: node for node in nodes for output in node.outputs}
        order: list[TfjsNode] = []
        done: dict[TfjsNode, bool] = {}
        for end in wanted:
            stack: list[tuple[TfjsNode, bool]] = [(makers[end], False)] if end in makers else []
            while stack:
                node, left = stack.pop()
                if left:
                    done[node] = True
                    order.append(node)
                    continue
                if node in done:
                    continue
                done[node] = False
                stack.append((node, True))
                for used in self.reads(node):
                    source = makers.get(used)
                    if source is None:
                        if used not in given and used not in self.constants:
                            self.fail(f"node '{node.name}' reads '{used.name}', which is neither a weight nor an input")
                    elif done.get(source) is False:
                        self.fail(f"node '{node.name}' is part of a cycle")
                    elif source not in done:
                        stack.append((source, False))
        return order

    def reads(self, node: TfjsNode) -> list[TfjsValue]:
        """Return the values that a node reads, with those that its graphs read from the graph around."""
        found = dict.fromkeys(node.inputs)
        for graph in node.graphs.values():
            inside = {*graph.inputs, *(o for inner in graph.nodes for o in inner.outputs)}
            for inner in graph.nodes:
                found.update({v: None for v in self.reads(inner) if v not in inside})
            found.update({v: None for v in graph.outputs if v not in inside})
        return [v for v in found if v not in self.constants]


def least(node: RawNode) -> int:
    """Return the number of outputs that a node has at least."""
    return 0 if node.op in ("NoOp", "Assert") else 2 if node.op in ("TensorArrayV3", "TensorListPopBack") else 1
