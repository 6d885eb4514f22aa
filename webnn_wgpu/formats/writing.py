"""Writes documents as `.webnn` texts and as JSON. The same document gives the same bytes."""

from __future__ import annotations

import json
import math
from typing import Any, cast

from .document import (
    SHORT_TYPES,
    Constant,
    Document,
    DynamicDimension,
    Init,
    OperandReference,
    ScalarFill,
    Statement,
    TensorDeclaration,
    WeightsKey,
)
from .graph_json import FORMAT
from .names import UniqueNames, identifier, remarks

_SHORT = {long: short for short, long in SHORT_TYPES.items()}


def to_text(document: Document) -> str:
    """Return a document as a `.webnn` text. Remarks keep the names of inputs and outputs that are no identifiers."""
    return _TextWriter(document).text()


class _TextWriter:
    """Writes one document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        made = UniqueNames()
        inputs = {d.name: made.of(identifier(d.name)) for d in document.inputs}
        self.names: dict[str, str] = dict(inputs)
        computed = {name for s in document.statements for name in s.results}
        # An output of a text is an operand: it takes the output's name, or a copy does.
        self.outputs: dict[str, str] = {}
        self.copies: list[tuple[str, str]] = []
        for output in document.outputs:
            written = made.of(identifier(output.name))
            self.outputs[written] = output.name
            operand = output.operand.name
            if operand in computed and operand not in self.names:
                self.names[operand] = written
            else:
                self.copies.append((written, operand))
        others = [*(c.declaration.name for c in document.constants), *(n for s in document.statements for n in s.results)]
        for name in others:
            if name not in self.names:
                self.names[name] = made.of(identifier(name))
        self.renamed = {written: name for name, written in inputs.items()} | self.outputs

    def text(self) -> str:
        document = self.document
        quantized = " @quantized" if document.quantized else ""
        blocks = [
            ("inputs", sorted(f"{self.declaration(d)};" for d in document.inputs)),
            ("consts", sorted(self.constant(c) for c in document.constants)),
            ("nodes", [*(self.statement(s) for s in document.statements), *self.copied()]),
        ]
        parts = [f"  {name} {{\n" + "".join(f"    {line}\n" for line in lines) + "  }\n" for name, lines in blocks if lines]
        outputs = " ".join(f"{name};" for name in sorted(self.outputs))
        parts.append(f"  outputs {{ {outputs} }}\n")
        header = f"webnn_graph {_string(document.name)} v{document.version}{quantized} {{\n"
        return remarks(self.renamed) + header + "\n".join(parts) + "}\n"

    def copied(self) -> list[str]:
        """Return the statements of outputs that are inputs, constants or other outputs."""
        return [f"{written} = identity({self.names[operand]});" for written, operand in self.copies]

    def declaration(self, declaration: TensorDeclaration) -> str:
        sizes = ", ".join(
            f"dyn({_string(d.name)}, {d.max_size})" if isinstance(d, DynamicDimension) else str(d) for d in declaration.shape
        )
        return f"{self.names[declaration.name]}: {_SHORT[declaration.data_type]}[{sizes}]"

    def constant(self, constant: Constant) -> str:
        return f"{self.declaration(constant.declaration)} {_annotation(constant.init)};"

    def statement(self, statement: Statement) -> str:
        results = ", ".join(self.names[name] for name in statement.results)
        target = f"[{results}]" if statement.bracketed else results
        given = [self.value(v) for v in statement.arguments]
        given += [f"{name}={self.option(value)}" for name, value in sorted(statement.options.items())]
        return f"{target} = {statement.operator}({', '.join(given)});"

    def option(self, value: Any) -> str:
        # Every reader takes a string for an operand, but not every reader an identifier.
        return _string(self.names[value.name]) if isinstance(value, OperandReference) else self.value(value)

    def value(self, value: Any) -> str:
        if isinstance(value, OperandReference):
            return self.names[value.name]
        if isinstance(value, list):
            return f"[{', '.join(self.value(v) for v in cast('list[Any]', value))}]"
        if isinstance(value, str):
            return _string(value)
        if isinstance(value, DynamicDimension):
            return f"{{name: {_string(value.name)}, maxSize: {value.max_size}}}"
        return _literal(value)


def _annotation(init: Init) -> str:
    if isinstance(init, WeightsKey):
        return f"@weights({_string(init.key)})"
    if isinstance(init, ScalarFill):
        return f"@scalar({_literal(init.value)})"
    return f"@bytes([{', '.join(map(str, init.data))}])"


def _string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f'"{_special(value)}"' if not math.isfinite(value) else repr(value)
    return "null" if value is None else str(value)


def _special(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def to_json(document: Document) -> str:
    """Return a document in its JSON form."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": document.version,
        "name": document.name,
        "quantized": document.quantized,
        "inputs": {d.name: _type(d) for d in sorted(document.inputs, key=lambda d: d.name)},
        "consts": {
            c.declaration.name: _type(c.declaration) | {"init": _init(c.init)}
            for c in sorted(document.constants, key=lambda c: c.declaration.name)
        },
        "nodes": [
            {
                "id": s.results[0],
                "op": s.operator,
                "inputs": [v.name for v in s.arguments],
                "options": {name: _plain(value) for name, value in sorted(s.options.items())},
                "outputs": list(s.results),
            }
            for s in document.statements
        ],
        "outputs": {o.name: o.operand.name for o in sorted(document.outputs, key=lambda o: o.name)},
    }
    return _dumped(content, 0) + "\n"


def _type(declaration: TensorDeclaration) -> dict[str, Any]:
    shape = [{"name": d.name, "maxSize": d.max_size} if isinstance(d, DynamicDimension) else d for d in declaration.shape]
    return {"dataType": declaration.data_type, "shape": shape}


def _init(init: Init) -> dict[str, Any]:
    if isinstance(init, WeightsKey):
        return {"kind": "weights", "ref": init.key}
    if isinstance(init, ScalarFill):
        return {"kind": "scalar", "value": _plain(init.value)}
    return {"kind": "inlineBytes", "bytes": list(init.data)}


def _plain(value: Any) -> Any:
    if isinstance(value, OperandReference):
        return value.name
    if isinstance(value, DynamicDimension):
        return {"name": value.name, "maxSize": value.max_size}
    if isinstance(value, list):
        return [_plain(v) for v in cast("list[Any]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        return _special(value)
    return value


def _dumped(value: Any, level: int) -> str:
    """Return JSON with two blanks per level, and lists of numbers and names on one line."""
    indent = "  " * (level + 1)
    if isinstance(value, dict) and value:
        items = [f"{indent}{json.dumps(k)}: {_dumped(v, level + 1)}" for k, v in cast("dict[str, Any]", value).items()]
        return "{\n" + ",\n".join(items) + f"\n{'  ' * level}}}"
    if isinstance(value, list) and any(isinstance(v, dict) and "op" in v for v in cast("list[Any]", value)):
        items = [f"{indent}{_dumped(v, level + 1)}" for v in cast("list[Any]", value)]
        return "[\n" + ",\n".join(items) + f"\n{'  ' * level}]"
    return json.dumps(value)
