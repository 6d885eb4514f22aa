"""`to_javascript`: a graph as an ES module for browsers with WebNN."""

from __future__ import annotations

import base64
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from webnn_wgpu.api.graph import Graph, MLGraph
from webnn_wgpu.api.signatures import CallForm, call_form, camel
from webnn_wgpu.formats.constants import from_number, to_bytes
from webnn_wgpu.formats.document import (
    Constant,
    Document,
    InlineBytes,
    OperandReference,
    ScalarFill,
    Statement,
    TensorDeclaration,
    WeightsKey,
)
from webnn_wgpu.formats.names import UniqueNames

from .arguments import check_graph
from .files import replace_files
from .webnn import Array, Weights, document_of, option_name, standardized, weights_files

__all__ = ["to_javascript", "write_javascript"]

RESERVED: frozenset[str] = frozenset(
    """
    abstract arguments async await boolean break buildGraph builder byte case catch char class const context continue
    debugger default delete do double else enum eval export extends false final finally float for function get goto if
    implements import in inputs instanceof int interface let load long native new null of outputs package private
    protected public return run set ARRAYS decoded short static super switch synchronized this throw throws transient
    true try typeof undefined uses var void volatile weights while with yield NaN missing lacks Infinity WeightsFile atob
    globalThis openContext
    """.split()
)
"""Words that no variable may be called."""

TYPED_ARRAYS = {
    "float32": "Float32Array",
    "int32": "Int32Array",
    "uint32": "Uint32Array",
    "int64": "BigInt64Array",
    "uint64": "BigUint64Array",
    "int8": "Int8Array",
    "uint8": "Uint8Array",
    "int4": "Uint8Array",
    "uint4": "Uint8Array",
}

SAFE = 2**53
"""Integers from here on are no doubles."""


def to_javascript(graph: MLGraph, *, weights: Literal["inline"] | dict[str, Array] = "inline") -> str:
    """Return a graph as an ES module without dependencies, which builds and runs it in a browser with WebNN.

    The module exports `buildGraph(context, weights)`, `inputs`, `outputs`, `uses`, `run(context, graph, feeds)`,
    `load(weightsPath, manifestPath, options)` and `missing(context)`, and `WeightsFile` if there are files of weights.
    `missing` names the operators, data types and ranks that the browser lacks. `buildGraph` raises an error with these names
    before it builds anything.

    Args:
        graph: the graph. Extension operators are composed of WebNN's operators.
        weights: "inline" to put all constants in the module, or a mapping that receives the constants above 1 KiB by key,
            for a caller that writes `.weights` and manifest.

    Returns:
        The text of the module.

    Raises:
        MLTypeError: `graph` is no graph.
        NotSupportedError: an operator that has no composition of WebNN's operators.

    Example:
        >>> from webnn_wgpu.exporters.javascript import to_javascript
        >>> print(to_javascript(b.build({"y": b.softmax(x, 1)})).split("MLGraphBuilder(context);")[1].split("return")[0])
        <BLANKLINE>
          const x = builder.input("x", {dataType: "float32", shape: [2, 3]});
          const y = builder.softmax(x, 1);
        <BLANKLINE>
    """
    check_graph(graph, "to_javascript")
    inline = weights == "inline"
    with standardized(graph, "standard") as (source, _):
        document, arrays = document_of(source, weights="inline" if inline else "auto", labels=True)
        uses = _uses(source.source)
    if isinstance(weights, dict):
        weights.update(arrays)
    types = {name: (t.data_type, list(t.shape)) for name, t in graph.outputs.items()}
    return _Module(document, bool(arrays), uses).text(types)


def write_javascript(graph: MLGraph, path: str | os.PathLike[str], *, weights: Weights = "auto") -> list[Path]:
    """Write a graph as an ES module, and constants above 1 KiB to `NAME.weights` and `NAME.manifest.json`.

    Args:
        graph: the graph.
        path: the file of the module. Files of its name are replaced.
        weights: "inline" to put all constants in the module.

    Returns:
        The files that were written, the module first.

    Raises:
        NotSupportedError: an operator that has no composition of WebNN's operators.

    Example:
        >>> import tempfile
        >>> from webnn_wgpu.exporters.javascript import write_javascript
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in write_javascript(b.build({"y": b.softmax(x, 1)}), f"{folder}/scores.js")]
        ['scores.js']
    """
    arrays: dict[str, Array] = {}
    target = Path(path)
    text = to_javascript(graph, weights="inline" if weights == "inline" else arrays)
    return replace_files({target: text.encode(), **weights_files(target, arrays, "auto")})


def quoted(text: str) -> str:
    r"""Return a string literal that is safe within a page, too.

    >>> print(quoted("</script>"))
    "\u003c/script>"
    """
    return json.dumps(text).replace("<", "\\u003c")


@dataclass(frozen=True)
class _Use:
    """The data types and ranks of an operator's operands of one name."""

    data_types: frozenset[str]
    ranks: tuple[int, int]

    def joined(self, other: _Use | None) -> _Use:
        if other is None:
            return self
        ranks = min(self.ranks[0], other.ranks[0]), max(self.ranks[1], other.ranks[1])
        return _Use(self.data_types | other.data_types, ranks)

    def __str__(self) -> str:
        return f"{{dataTypes: {json.dumps(sorted(self.data_types))}, ranks: [{self.ranks[0]}, {self.ranks[1]}]}}"


SEVERAL_OUTPUTS = frozenset({"split", "gru", "lstm", "lstmCell"})
"""Operators whose results `opSupportLimits` calls `outputs`."""


def _uses(graph: Graph) -> dict[str, dict[str, _Use]]:
    """Return the types and ranks of the operands of a graph, by operator and by the names of `opSupportLimits`."""
    found: dict[str, dict[str, _Use]] = {}
    for node in sorted(graph.nodes, key=lambda node: node.op):
        form = call_form(node.op)
        names = form.operands * len(node.inputs) if form.variadic else form.operands
        ends = [(camel(name), value) for name, value in zip(names, node.inputs, strict=False) if value is not None]
        ends += [("outputs" if node.op in SEVERAL_OUTPUTS else "output", value) for value in node.outputs]
        members = found.setdefault(node.op, {})
        for name, value in ends:
            type_ = graph.type(value)
            members[name] = _Use(frozenset({type_.data_type}), (type_.rank, type_.rank)).joined(members.get(name))
    return found


class _Module:
    """The text of one module."""

    def __init__(self, document: Document, has_weights: bool, uses: Mapping[str, Mapping[str, _Use]]) -> None:
        self.document, self.has_weights, self.uses = document, has_weights, uses
        self.taken = UniqueNames(RESERVED)
        self.variables: dict[str, str] = {}
        declared = [d.name for d in document.inputs] + [c.declaration.name for c in document.constants]
        for name in (*declared, *(name for s in document.statements for name in s.results)):
            if name not in self.variables:
                self.variables[name] = self.variable(name)

    def variable(self, name: str) -> str:
        plain = re.sub(r"[^A-Za-z0-9_$]", "_", name)
        return self.taken.of(plain if plain and not plain[0].isdigit() else f"_{plain}")

    def text(self, outputs: Mapping[str, tuple[str, list[int]]]) -> str:
        document = self.document
        inputs = {d.public_name: (d.data_type, list(cast("tuple[int, ...]", d.shape))) for d in document.inputs}
        parts = [f"// {quoted(document.name)}, written by webnn_wgpu.", _ARRAYS]
        if self.has_weights:
            parts.append(_WEIGHTS_FILE)
        constants = [self.constant(c) for c in document.constants]
        if any("decoded(" in constant for constant in constants):
            parts.append(_DECODE)
        parts += [f"export const inputs = {_types(inputs)};", f"export const outputs = {_types(outputs)};"]
        operators = [
            f"  {name}: {{{', '.join(f'{member}: {use}' for member, use in members.items())}}},"
            for name, members in self.uses.items()
        ]
        parts.append("\n".join(["export const uses = {", *operators, "};"]))
        parts.append(_MISSING)
        lines = [
            "export async function buildGraph(context, weights) {",
            _CHECK,
            "  const builder = new MLGraphBuilder(context);",
        ]
        lines += [f"  const {self.variables[d.name]} = {self.input(d)};" for d in document.inputs]
        names = [self.variables[c.declaration.name] for c in document.constants]
        lines += [f"  const {name} = {constant};" for name, constant in zip(names, constants, strict=True)]
        lines += [f"  const {self.target(s)} = {self.call(s)};" for s in document.statements]
        ends = ", ".join(f"{_member(o.name)}: {self.variables[o.operand.name]}" for o in document.outputs)
        lines += [f"  return await builder.build({{{ends}}});", "}"]
        parts.append("\n".join(lines))
        parts += [_RUN, _OPEN, _LOAD_WEIGHTS if self.has_weights else _LOAD]
        return "\n\n".join(parts) + "\n"

    def input(self, declaration: TensorDeclaration) -> str:
        return f"builder.input({quoted(declaration.public_name)}, {_descriptor(declaration.data_type, declaration.shape)})"

    def constant(self, constant: Constant) -> str:
        declaration, init = constant.declaration, constant.init
        shape = constant.shape
        descriptor = _descriptor(declaration.data_type, shape)
        if isinstance(init, WeightsKey):
            return f"builder.constant({descriptor}, weights.getData({quoted(init.key)}))"
        if isinstance(init, ScalarFill) and not declaration.data_type.endswith("int4") and declaration.data_type != "float16":
            count = math.prod(shape)
            number = _number(init.value)
            big = declaration.data_type in ("int64", "uint64") and not number.endswith("n")
            return (
                f"builder.constant({descriptor}, new {TYPED_ARRAYS[declaration.data_type]}({count}).fill({number}{'n' * big}))"
            )
        data = init.data if isinstance(init, InlineBytes) else to_bytes(from_number(declaration, shape, init.value))
        text = quoted(base64.b64encode(data).decode())
        return f"builder.constant({descriptor}, decoded({text}, {quoted(declaration.data_type)}))"

    def target(self, statement: Statement) -> str:
        names = ", ".join(self.variables[name] for name in statement.results)
        return f"[{names}]" if statement.bracketed else names

    def call(self, statement: Statement) -> str:
        form = call_form(statement.operator)
        operands = [self.variables[v.name] for v in statement.arguments]
        given = [f"[{', '.join(operands)}]"] if form.variadic else operands
        arguments = _arguments(form, statement.operator)
        options = dict(statement.options)
        given += [self.value(options.pop(option_name(statement.operator, name))) for name in arguments]
        if options:
            members = ", ".join(f"{name}: {self.value(value)}" for name, value in options.items())
            given.append(f"{{{members}}}")
        return f"builder.{statement.operator}({', '.join(given)})"

    def value(self, value: Any) -> str:
        if isinstance(value, OperandReference):
            return self.variables[value.name]
        if isinstance(value, list):
            return f"[{', '.join(self.value(v) for v in cast('list[Any]', value))}]"
        return quoted(value) if isinstance(value, str) else _number(value)


OPTIONAL_BY_POSITION = {"triangular": ()}
"""Operators whose arguments by position in Python are options in JavaScript."""


def _arguments(form: CallForm, operator: str) -> tuple[str, ...]:
    return OPTIONAL_BY_POSITION.get(operator, form.arguments)


def _descriptor(data_type: str, shape: Any) -> str:
    return f"{{dataType: {quoted(data_type)}, shape: [{', '.join(map(str, shape))}]}}"


def _member(name: str) -> str:
    # A computed name: `__proto__` is a member like any other.
    return f"[{quoted(name)}]"


def _types(types: Mapping[str, tuple[str, list[int]]]) -> str:
    return "{" + ", ".join(f"{_member(name)}: {_descriptor(*type_)}" for name, type_ in types.items()) + "}"


def _number(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value}n" if abs(value) >= SAFE else str(value)
    if math.isnan(value):
        return "NaN"
    return repr(value) if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


_ARRAYS = """const ARRAYS = {
  float32: Float32Array, float16: globalThis.Float16Array ?? Uint16Array, int32: Int32Array, uint32: Uint32Array,
  int64: BigInt64Array, uint64: BigUint64Array, int8: Int8Array, uint8: Uint8Array, int4: Uint8Array, uint4: Uint8Array,
};"""

_DECODE = """function decoded(text, dataType) {
  return new ARRAYS[dataType](Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
}"""

_WEIGHTS_FILE = """export class WeightsFile {
  constructor(buffer, tensors) {
    this.buffer = buffer;
    this.tensors = tensors;
  }

  static async load(weightsPath, manifestPath) {
    const [blob, text] = await Promise.all([fetch(weightsPath), fetch(manifestPath)]);
    for (const response of [blob, text]) {
      if (!response.ok) throw new Error(`${response.url}: ${response.status}`);
    }
    const buffer = await blob.arrayBuffer();
    const manifest = await text.json();
    if (!["wg-weights-manifest", "webnn-weights-manifest"].includes(manifest.format) || manifest.version !== 1) {
      throw new Error(`${manifestPath} is no manifest of weights, version 1`);
    }
    const head = new DataView(buffer);
    if (buffer.byteLength < 8 || head.getUint32(0, false) !== 0x57475754 || head.getUint32(4, true) !== 1) {
      throw new Error(`${weightsPath} is no file of weights, version 1`);
    }
    const tensors = new Map(Object.entries(manifest.tensors));
    for (const [name, {byteOffset, byteLength}] of tensors) {
      if (!(byteOffset >= 8 && byteLength >= 0 && byteOffset + byteLength <= buffer.byteLength)) {
        throw new Error(`the tensor ${JSON.stringify(name)} exceeds ${weightsPath}`);
      }
    }
    return new WeightsFile(buffer, tensors);
  }

  getTensorNames() {
    return [...this.tensors.keys()];
  }

  getSlice(name) {
    const tensor = this.tensors.get(name);
    if (tensor === undefined) throw new Error(`no tensor ${JSON.stringify(name)}`);
    return this.buffer.slice(tensor.byteOffset, tensor.byteOffset + tensor.byteLength);
  }

  getData(name) {
    const buffer = this.getSlice(name);
    return new ARRAYS[this.tensors.get(name).dataType](buffer);
  }
}"""

_MISSING = """export function missing(context) {
  const limits = context.opSupportLimits?.() ?? {};
  const found = [];
  const check = (name, members) => {
    for (const [member, {dataTypes, ranks}] of Object.entries(members)) {
      const limit = limits[name]?.[member];
      for (const type of dataTypes) {
        if (limit && !limit.dataTypes.includes(type)) found.push(`${name} of ${type} as ${member}`);
      }
      const {min = 0, max = Infinity} = limit?.rankRange ?? {};
      if (ranks[0] < min || ranks[1] > max) found.push(`${name} of rank ${ranks[0] < min ? ranks[0] : ranks[1]} as ${member}`);
    }
  };
  for (const [name, members] of Object.entries(uses)) {
    if (typeof MLGraphBuilder.prototype[name] !== "function") found.push(`the operator ${name}`);
    else check(name, members);
  }
  for (const [kind, all] of [["input", inputs], ["output", outputs]]) {
    for (const {dataType} of Object.values(all)) {
      if (limits[kind]?.dataTypes.includes(dataType) === false) found.push(`an ${kind} of ${dataType}`);
    }
  }
  return found;
}"""

_CHECK = """  const lacks = missing(context);
  if (lacks.length) throw new Error(`this browser's WebNN lacks ${lacks.join(", ")}`);"""

_RUN = """export async function run(context, graph, feeds) {
  if (typeof context.dispatch !== "function") throw new Error("this browser's WebNN has no MLContext.dispatch");
  const [given, made, results] = [1, 2, 3].map(() => Object.create(null));
  try {
    for (const [name, descriptor] of Object.entries(inputs)) {
      given[name] = await context.createTensor({...descriptor, writable: true});
      context.writeTensor(given[name], feeds[name]);
    }
    for (const [name, descriptor] of Object.entries(outputs)) {
      made[name] = await context.createTensor({...descriptor, readable: true});
    }
    context.dispatch(graph, given, made);
    for (const [name, {dataType}] of Object.entries(outputs)) {
      results[name] = new ARRAYS[dataType](await context.readTensor(made[name]));
    }
    return results;
  } finally {
    for (const tensor of [...Object.values(given), ...Object.values(made)]) tensor.destroy();
  }
}"""

_OPEN = """async function openContext(options) {
  if (!globalThis.navigator?.ml) throw new Error("this browser has no WebNN");
  try {
    return await navigator.ml.createContext(options);
  } catch (error) {
    throw new Error(`this browser's WebNN opens no context: ${error.message}`, {cause: error});
  }
}"""

_LOAD = """export async function load(weightsPath, manifestPath, options) {
  const context = await openContext(options);
  return {context, graph: await buildGraph(context)};
}"""

_LOAD_WEIGHTS = """export async function load(weightsPath, manifestPath, options) {
  const context = await openContext(options);
  const weights = await WeightsFile.load(weightsPath, manifestPath);
  return {context, graph: await buildGraph(context, weights)};
}"""
