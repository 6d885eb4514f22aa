"""The `.webnn` text: its parser."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ..core.errors import quoted
from .document import (
    SHORT_TYPES,
    Constant,
    Document,
    DynamicDimension,
    Faults,
    FileError,
    Init,
    InlineBytes,
    Location,
    OperandReference,
    Output,
    ScalarFill,
    Statement,
    TensorDeclaration,
    WeightsKey,
    checked_size,
    checked_version,
)
from .names import own_names

SPECIAL_NUMBERS = {"Infinity": float("inf"), "-Infinity": float("-inf"), "NaN": float("nan")}
"""Numbers that have no literal and are written as strings."""


def parse_text(text: str, file: str) -> Document:
    """Parse a `.webnn` text.

    Args:
        text: the text.
        file: name of the file, for messages.

    Returns:
        The document.

    Raises:
        FileError: the text does not follow the grammar. The message names line and column.

    Example:
        >>> graph = parse_text('webnn_graph "g" v1 { inputs { x: f32[2]; } nodes { y = relu(x); } outputs { y; } }', "g.webnn")
        >>> graph.inputs[0].shape, graph.statements[0].operator
        ((2,), 'relu')
    """
    import lark

    check_depth(text, file)
    try:
        tree = _parser().parse(text)
    except lark.exceptions.UnexpectedInput as error:
        raise _syntax_error(error, text, file) from None
    return _with_own_names(_Reader(file).document(tree), own_names(text))


def _with_own_names(document: Document, names: dict[str, str]) -> Document:
    """Return a document whose inputs and outputs have the names that remarks give them."""
    if not names:
        return document
    return replace(
        document,
        inputs=tuple(replace(d, binding=names.get(d.name, "")) for d in document.inputs),
        outputs=tuple(replace(o, name=names.get(o.name, o.name)) for o in document.outputs),
    )


MOST_BRACKETS = 64
"""Brackets within each other, at most."""

_OPENING, _CLOSING = frozenset("[({"), frozenset("])}")
# The first alternative skips what has no brackets: a search at each of millions of characters takes much longer.
_BRACKETS = re.compile(r'[^"#\[\](){}]+|"(?:\\.|[^"\\])*"|#[^\n]*|[\[({]|[\])}]', re.DOTALL)


def check_depth(text: str, file: str) -> None:
    """Refuse a text or JSON with deeply nested brackets, for which parsers take long or exceed Python's stack."""
    depth = 0
    for match in _BRACKETS.finditer(text):
        bracket = match[0]
        depth += (bracket in _OPENING) - (bracket in _CLOSING)
        if depth > MOST_BRACKETS:
            line, column = text.count("\n", 0, match.start()) + 1, match.start() - text.rfind("\n", 0, match.start())
            raise FileError(
                Location(file, f"{line}:{column}"),
                "brackets are nested too deeply",
                got=f"{depth} brackets",
                allowed=f"at most {MOST_BRACKETS}",
            )


@cache
def _parser() -> Any:
    import lark

    grammar = Path(__file__).with_name("webnn.lark").read_text("utf-8")
    return lark.Lark(grammar, parser="lalr", lexer="contextual", maybe_placeholders=False)


def _syntax_error(error: Any, text: str, file: str) -> FileError:
    line, column = getattr(error, "line", -1), getattr(error, "column", -1)
    if not isinstance(line, int) or line < 1:
        line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
    expected: list[str] = sorted(getattr(error, "expected", None) or getattr(error, "allowed", None) or ())
    token = getattr(error, "token", None)
    found = str(token) if token is not None else text.split("\n")[line - 1][column - 1 : column + 19]
    names = ", ".join(_TERMINALS.get(name, name.lower()) for name in expected)
    return FileError(
        Location(file, f"{line}:{column}"),
        "the text does not follow the grammar of .webnn files" if found else "the text ends too soon",
        got=quoted(found),
        allowed=names,
    )


_TERMINALS = {
    "IDENT": "a name",
    "NUMBER": "a number",
    "STRING": "a string",
    "BYTES": "@bytes([0..255, ...])",
    "QUANTIZED": "@quantized",
    "LBRACE": "{",
    "RBRACE": "}",
    "LSQB": "[",
    "RSQB": "]",
    "LPAR": "(",
    "RPAR": ")",
    "SEMICOLON": ";",
    "COLON": ":",
    "COMMA": ",",
    "EQUAL": "=",
    "WEBNN_GRAPH": 'webnn_graph "NAME" v1 {',
    "__ANON_0": "@weights",
    "__ANON_1": "@scalar",
    "$END": "the end of the file",
}


def _unquoted(text: str) -> str:
    """Return a string's characters. A backslash stands for the character behind it."""
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)


class _Reader:
    """Makes a document of a syntax tree."""

    def __init__(self, file: str) -> None:
        self.file = file

    def at(self, token: Any) -> Location:
        return Location(self.file, f"{token.line}:{token.column}")

    def document(self, tree: Any) -> Document:
        name, version, *blocks = tree.children
        quantized = bool(blocks) and getattr(blocks[0], "type", "") == "QUANTIZED"
        inputs: list[TensorDeclaration] = []
        constants: list[Constant] = []
        statements: list[Statement] = []
        outputs: list[Output] = []
        faults = Faults()
        number = 1
        with faults.collected():
            number = self.version(version.children)
        for item in _items(blocks):
            with faults.collected():
                match item.data:
                    case "input":
                        inputs.append(self.declaration(*item.children))
                    case "constant":
                        constants.append(self.constant(*item.children))
                    case "output":
                        token = item.children[0]
                        outputs.append(Output(str(token), OperandReference(str(token), self.at(token))))
                    case _:
                        statements.append(self.statement(item))
        faults.check()
        return Document(
            location=Location(self.file),
            name=_unquoted(name),
            version=number,
            quantized=quantized,
            inputs=tuple(inputs),
            constants=tuple(constants),
            statements=tuple(statements),
            outputs=tuple(outputs),
        )

    def version(self, tokens: list[Any]) -> int:
        text = "".join(map(str, tokens))
        if not re.fullmatch("v[0-9]{1,9}", text):
            raise FileError(self.at(tokens[0]), "the version is missing", got=quoted(text), allowed="v1, v2")
        return checked_version(int(text[1:]), self.at(tokens[0]))

    def declaration(self, name: Any, type_: Any) -> TensorDeclaration:
        data_type, *dimensions = type_.children
        if data_type not in SHORT_TYPES:
            raise FileError(self.at(data_type), "no such data type", got=quoted(str(data_type)), allowed=", ".join(SHORT_TYPES))
        shape = tuple(self.dimension(d) for d in dimensions)
        return TensorDeclaration(name=str(name), data_type=SHORT_TYPES[data_type], shape=shape, location=self.at(name))

    def dimension(self, tree: Any) -> int | DynamicDimension:
        *name, size = tree.children
        number = checked_size(self.number(size), self.at(size))
        return DynamicDimension(_unquoted(name[0]), number) if name else number

    def constant(self, name: Any, type_: Any, *annotations: Any) -> Constant:
        declaration = self.declaration(name, type_)
        for size in declaration.shape:
            if isinstance(size, DynamicDimension):
                raise FileError(declaration.location, f"the shape of constant '{name}' must be static")
        init: Init = self.init(annotations[-1]) if annotations else WeightsKey(str(name), explicit=False)
        return Constant(declaration, init)

    def init(self, annotation: Any) -> Init:
        token = annotation.children[0]
        if annotation.data == "weights":
            return WeightsKey(_unquoted(token))
        if annotation.data == "scalar":
            if token.type == "NUMBER":
                return ScalarFill(self.number(token))
            text = _unquoted(token)
            if text not in SPECIAL_NUMBERS:
                raise FileError(self.at(token), "no number", got=quoted(text), allowed=", ".join(SPECIAL_NUMBERS))
            return ScalarFill(SPECIAL_NUMBERS[text])
        return InlineBytes(self.bytes(token))

    def bytes(self, token: Any) -> bytes:
        inner = token[token.index("[") + 1 : token.rindex("]")]
        digits = (re.sub("#[^\n]*", "", inner) if "#" in inner else inner).strip().removesuffix(",")
        if not digits:
            return b""
        try:
            # json reads millions of numbers several times faster than numpy.
            return bytes(json.loads(f"[{digits}]"))
        except ValueError:
            return self.odd_bytes(digits, token)

    def odd_bytes(self, digits: str, token: Any) -> bytes:
        """Return bytes of which some have leading zeros, or raise the error of the first item that is no byte."""
        items = [item.strip() for item in digits.split(",")]
        if any(not item.isdigit() for item in items):
            raise FileError(self.at(token), "the numbers of @bytes must be separated by single commas")
        numbers = [item.lstrip("0") or "0" for item in items]
        worst = next((item for item in numbers if len(item) > 3 or int(item) > 255), None)
        if worst is not None:
            raise FileError(self.at(token), "an item of @bytes is no byte", got=quoted(worst), allowed="0..255")
        return bytes(map(int, numbers))

    def number(self, token: Any) -> int | float:
        if re.fullmatch("-?[0-9]+", token):
            if len(token) > 400:
                raise FileError(self.at(token), "the number has too many digits", got=f"{len(token)} digits", allowed="400")
            return int(token)
        return float(token)

    def statement(self, tree: Any) -> Statement:
        target, expression = tree.children
        several = tree.data == "several"
        results = tuple(map(str, target.children)) if several else (str(target),)
        operator = expression.children[0]
        arguments: list[Any] = []
        options: dict[str, Any] = {}
        if expression.data == "alias":
            arguments.append(OperandReference(str(operator), self.at(operator)))
        else:
            for argument in expression.children[1:]:
                if argument.data != "named":
                    arguments.append(self.value(argument))
                    continue
                name, value = argument.children
                if name in options:
                    raise FileError(self.at(name), f"the option '{name}' is given twice")
                options[str(name)] = self.value(value)
        return Statement(
            operator="" if expression.data == "alias" else str(operator),
            arguments=tuple(arguments),
            options=options,
            results=results,
            bracketed=several,
            location=self.at(operator),
        )

    def value(self, tree: Any) -> Any:
        match tree.data:
            case "array":
                return [self.value(v) for v in tree.children]
            case "object":
                return self.object(tree)
            case "string":
                return _unquoted(tree.children[0])
            case "number":
                return self.number(tree.children[0])
            case "reference":
                return OperandReference(str(tree.children[0]), self.at(tree.children[0]))
            case _:
                return {"true": True, "false": False, "null": None}[tree.data]

    def object(self, tree: Any) -> Any:
        members: dict[str, Any] = {}
        for member in tree.children:
            key, value = member.children
            members[_unquoted(key) if key.type == "STRING" else str(key)] = self.value(value)
        return dynamic_size(members)


def dynamic_size(members: dict[str, Any]) -> dict[str, Any] | DynamicDimension:
    """Return the dynamic dimension that an object stands for, or the object itself."""
    name, size = members.get("name"), members.get("maxSize")
    if len(members) == 2 and isinstance(name, str) and isinstance(size, int):
        return DynamicDimension(name, size)
    return members


def _items(blocks: list[Any]) -> list[Any]:
    """Return declarations, statements and outputs of all blocks."""
    found: list[Any] = []
    for block in blocks:
        if getattr(block, "data", "") in _ITEMS:
            found.append(block)
        elif getattr(block, "data", "") == "block":
            found.extend(block.children)
    return found


_ITEMS = frozenset({"input", "constant", "output", "single", "several"})
