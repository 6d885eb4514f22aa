"""Reading WGSL: from a source to its syntax tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

from ...core.errors import MLTypeError, NotSupportedError
from . import syntax
from .syntax import Expression, Module, Name, Statement

T = TypeVar("T")

_SUFFIXES = {"li": "i64", "lu": "u64", "lf": "f64", "i": "i32", "u": "u32", "f": "f32", "h": "f16"}
_MODULES = 64
"""Syntax trees that are kept."""


@lru_cache(_MODULES)
def parse(source: str) -> Module:
    """Return the syntax tree of a WGSL source.

    Raises:
        MLTypeError: the source is not WGSL. The message names line and column.
        NotSupportedError: `lark` is not installed.

    Example:
        >>> [function] = parse("fn half(x: f32) -> f32 { return x * 0.5; }").declarations.values()
        >>> function.name, str(function.result), function.line
        ('half', 'f32', 1)
    """
    return cast("Module", _read(source, "module"))


def parse_expression(source: str) -> Expression:
    """Return the syntax tree of a WGSL expression, as `parse` does that of a module."""
    return cast("Expression", _read(source, "expression"))


def _read(source: str, start: str) -> Any:
    parser, build, lark = _parser()
    try:
        return build.transform(parser.parse(source, start=start))
    except lark.exceptions.VisitError as error:
        raise error.orig_exc from None
    except lark.UnexpectedInput as error:
        token = getattr(error, "token", None)
        if token is None or token.type == "$END":
            found = "the end of the source" if token is not None else f"the character {source[error.pos_in_stream]!r}"
        else:
            found = repr(str(token))
        where = f"line {error.line}, column {error.column}" if error.line > 0 else f"line {source.count(chr(10)) + 1}"
        raise MLTypeError(
            "the interpreter cannot read this WGSL", operator="interpret", got=f"{found} at {where}", hint=_hint(source, error)
        ) from None


def _hint(source: str, error: Any) -> str:
    lines = source.splitlines()
    return f"The line reads: {lines[error.line - 1].strip()}" if 0 < error.line <= len(lines) else ""


@cache
def _parser() -> tuple[Any, Any, Any]:
    try:
        import lark
    except ImportError:
        raise NotSupportedError(
            "the WGSL interpreter needs the package lark", operator="interpret", hint="pip install 'webnn-wgpu[debug]'"
        ) from None
    grammar = (Path(__file__).parent / "grammar.lark").read_text(encoding="utf-8")
    # lark passes the position of a node only to methods that ask for it.
    methods = {rule: lark.v_args(meta=True)(method) for rule, method in vars(_Build).items() if not rule.startswith("_")}
    build = type("Build", (lark.Transformer,), methods)
    parser = lark.Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        postlex=cast("Any", _Templates()),
        start=["module", "expression"],
        propagate_positions=True,
        maybe_placeholders=True,
    )
    return parser, build(), lark


class _Templates:
    """A filter of tokens that separates "<" and ">" around template arguments from comparisons (section "Template Lists")."""

    always_accept = ()

    def process(self, stream: Iterator[Any]) -> Iterator[Any]:
        tokens: list[Any] = []
        opened: list[tuple[int, int]] = []
        depth = 0
        for found in stream:
            token, kind = found, found.type
            if kind == "LESS" and tokens and tokens[-1].type in ("IDENT", "VAR"):
                opened.append((len(tokens), depth))
            elif kind in ("GREATER", "SHIFT_RIGHT") or (token.startswith(">") and opened):
                token = _closed(token, tokens, opened, depth)
                if token is None:
                    continue
            elif token in ("(", "["):
                depth += 1
            elif token in (")", "]"):
                while opened and opened[-1][1] >= depth:
                    opened.pop()
                depth -= 1
            elif token in (";", "{", ":") or token == "=":
                opened.clear()
                depth = 0
            elif kind in ("OR_OR", "AND_AND"):
                while opened and opened[-1][1] >= depth:
                    opened.pop()
            tokens.append(token)
        yield from tokens


def _closed(token: Any, tokens: list[Any], opened: list[tuple[int, int]], depth: int) -> Any:
    """Close template lists by the leading ">" characters of a token, and return the remainder of the token, if any."""
    text = str(token)
    while text.startswith(">") and opened and opened[-1][1] == depth:
        start, _ = opened.pop()
        tokens[start] = tokens[start].update(type="_OPEN")
        tokens.append(token.update(type="_CLOSE", value=">"))
        text = text[1:]
    if not text:
        return None
    kinds = {">": "GREATER", "=": "ASSIGN", ">=": "GREATER_EQUAL", ">>": "SHIFT_RIGHT"}
    return token.update(type=kinds.get(text, token.type), value=text)


def _of(kind: type[T], children: Sequence[Any]) -> tuple[T, ...]:
    return tuple(child for child in children if isinstance(child, kind))


def _number(text: str) -> tuple[int | float, str]:
    """Return the value of a literal and the type of its suffix."""
    hexadecimal = text[:2].lower() == "0x"
    floating = "p" in text.lower() if hexadecimal else any(c in text for c in ".eE")
    suffixes = [s for s in _SUFFIXES if not (hexadecimal and not floating and s in ("f", "h", "lf"))]
    suffix = next((s for s in suffixes if text.endswith(s)), "")
    digits = text.removesuffix(suffix)
    type_ = _SUFFIXES.get(suffix, "")
    if hexadecimal:
        return (float.fromhex(digits) if floating else int(digits, 16)), type_
    return (float(digits) if floating or type_ in ("f32", "f16", "f64") else int(digits)), type_


class _Build:
    """A builder of syntax trees, with a method for each grammar rule that creates a node."""

    def module(self, _: Any, children: list[Any]) -> Module:
        kinds = syntax.Structure | syntax.Alias | syntax.Global | syntax.Function
        declared = [
            syntax.Global(c.line, c.column, c, ()) if isinstance(c, syntax.Declaration) else c
            for c in children
            if c is not None
        ]
        found: dict[str, Any] = {}
        for declaration in declared:
            if isinstance(declaration, kinds):
                if declaration.name in found:
                    raise MLTypeError(
                        "a name is declared twice in a module",
                        operator="interpret",
                        got=f"{declaration.name}, {_at(declaration)}",
                    )
                found[declaration.name] = declaration
        return Module(found, _of(syntax.Assertion, children))

    def empty(self, *_: Any) -> None:
        return None

    enable = requires = diagnostic = ignored = default_selector = empty

    def global_variable(self, meta: Any, children: list[Any]) -> syntax.Global:
        return syntax.Global(meta.line, meta.column, children[-1], _of(syntax.Attribute, children))

    def override(self, meta: Any, children: list[Any]) -> syntax.Global:
        *_, name, type_, value = children
        declaration = syntax.Declaration(
            line=meta.line, column=meta.column, kind="override", name=str(name), type=type_, value=value
        )
        return syntax.Global(meta.line, meta.column, declaration, _of(syntax.Attribute, children))

    def alias(self, meta: Any, children: list[Any]) -> syntax.Alias:
        return syntax.Alias(meta.line, meta.column, str(children[0]), children[1])

    def structure(self, meta: Any, children: list[Any]) -> syntax.Structure:
        return syntax.Structure(meta.line, meta.column, str(children[0]), _of(syntax.Field, children))

    def function(self, meta: Any, children: list[Any]) -> syntax.Function:
        *_, name, parameters, result, body = children
        return syntax.Function(
            line=meta.line,
            column=meta.column,
            name=str(name),
            parameters=parameters,
            result=result,
            body=body,
            attributes=_of(syntax.Attribute, children),
        )

    def parameters(self, _: Any, children: list[Any]) -> tuple[syntax.Field, ...]:
        return _of(syntax.Field, children)

    def member(self, meta: Any, children: list[Any]) -> syntax.Field:
        *_, name, type_ = children
        return syntax.Field(name.line, name.column, str(name), type_, _of(syntax.Attribute, children))

    parameter = member

    def result(self, _: Any, children: list[Any]) -> Name:
        return children[-1]

    def attribute(self, meta: Any, children: list[Any]) -> syntax.Attribute:
        name, *arguments = children
        return syntax.Attribute(meta.line, meta.column, str(name), tuple(a for a in arguments if a is not None))

    def variable(self, meta: Any, children: list[Any]) -> syntax.Declaration:
        template, name, type_, value = children
        return syntax.Declaration(
            line=meta.line, column=meta.column, kind="var", name=str(name), type=type_, value=value, template=template or ()
        )

    def constant(self, meta: Any, children: list[Any]) -> syntax.Declaration:
        name, type_, value = children
        return syntax.Declaration(line=meta.line, column=meta.column, kind="const", name=str(name), type=type_, value=value)

    def let(self, meta: Any, children: list[Any]) -> syntax.Declaration:
        name, type_, value = children
        return syntax.Declaration(line=meta.line, column=meta.column, kind="let", name=str(name), type=type_, value=value)

    def assertion(self, meta: Any, children: list[Any]) -> syntax.Assertion:
        return syntax.Assertion(meta.line, meta.column, children[0])

    def name(self, meta: Any, children: list[Any]) -> Name:
        return Name(meta.line, meta.column, str(children[0]), children[1] or ())

    def templates(self, _: Any, children: list[Any]) -> tuple[Expression, ...]:
        return tuple(children)

    def block(self, meta: Any, children: list[Any]) -> syntax.Block:
        return syntax.Block(meta.line, meta.column, _statements(children))

    def break_(self, meta: Any, _: list[Any]) -> syntax.Jump:
        return syntax.Jump(meta.line, meta.column, "break")

    def continue_(self, meta: Any, _: list[Any]) -> syntax.Jump:
        return syntax.Jump(meta.line, meta.column, "continue")

    def discard(self, meta: Any, _: list[Any]) -> None:
        raise MLTypeError("discard is for fragment shaders", operator="interpret", got=f"discard, line {meta.line}")

    def return_(self, meta: Any, children: list[Any]) -> syntax.Return:
        return syntax.Return(meta.line, meta.column, children[0] if children else None)

    def assign(self, meta: Any, children: list[Any]) -> syntax.Assign:
        target, operator, value = children
        return syntax.Assign(meta.line, meta.column, target, str(operator), value)

    def phony(self, meta: Any, children: list[Any]) -> syntax.Assign:
        return syntax.Assign(meta.line, meta.column, None, "=", children[0])

    def increment(self, meta: Any, children: list[Any]) -> syntax.Assign:
        target, operator = children
        one = syntax.Literal(meta.line, meta.column, 1, "")
        return syntax.Assign(meta.line, meta.column, target, f"{operator[0]}=", one)

    def call_statement(self, meta: Any, children: list[Any]) -> syntax.CallStatement:
        return syntax.CallStatement(meta.line, meta.column, children[0])

    def if_(self, meta: Any, children: list[Any]) -> syntax.If:
        condition, then, other = children
        return syntax.If(meta.line, meta.column, condition, then, other)

    def switch(self, meta: Any, children: list[Any]) -> syntax.Switch:
        return syntax.Switch(meta.line, meta.column, children[0], tuple(children[1:]))

    def case(self, meta: Any, children: list[Any]) -> syntax.SwitchClause:
        return syntax.SwitchClause(meta.line, meta.column, children[0], children[1])

    def default(self, meta: Any, children: list[Any]) -> syntax.SwitchClause:
        return syntax.SwitchClause(meta.line, meta.column, (None,), children[0])

    def selectors(self, _: Any, children: list[Any]) -> tuple[Expression | None, ...]:
        return tuple(children)

    def loop(self, meta: Any, children: list[Any]) -> syntax.Loop:
        *statements, continuing = children
        body = syntax.Block(meta.line, meta.column, _statements(statements))
        after, break_if = continuing or (None, None)
        return syntax.Loop(
            line=meta.line,
            column=meta.column,
            start=None,
            condition=None,
            update=None,
            body=body,
            continuing=after,
            break_if=break_if,
        )

    def continuing(self, meta: Any, children: list[Any]) -> tuple[syntax.Block, Expression | None]:
        *statements, break_if = children
        return syntax.Block(meta.line, meta.column, _statements(statements)), break_if

    def break_if(self, _: Any, children: list[Any]) -> Expression:
        return children[0]

    def while_(self, meta: Any, children: list[Any]) -> syntax.Loop:
        return syntax.Loop(
            line=meta.line,
            column=meta.column,
            start=None,
            condition=children[0],
            update=None,
            body=children[1],
            continuing=None,
            break_if=None,
        )

    def for_(self, meta: Any, children: list[Any]) -> syntax.Loop:
        start, condition, update, body = children
        return syntax.Loop(
            line=meta.line,
            column=meta.column,
            start=start,
            condition=condition,
            update=update,
            body=body,
            continuing=None,
            break_if=None,
        )

    def for_init(self, _: Any, children: list[Any]) -> Statement:
        return children[0]

    for_update = for_init

    def binary(self, meta: Any, children: list[Any]) -> syntax.Binary:
        left, operator, right = children
        return syntax.Binary(meta.line, meta.column, str(operator), left, right)

    def unary(self, meta: Any, children: list[Any]) -> syntax.Unary:
        return syntax.Unary(meta.line, meta.column, str(children[0]), children[1])

    def member_access(self, meta: Any, children: list[Any]) -> syntax.Member:
        return syntax.Member(meta.line, meta.column, children[0], str(children[1]))

    def index(self, meta: Any, children: list[Any]) -> syntax.Index:
        return syntax.Index(meta.line, meta.column, children[0], children[1])

    def call(self, meta: Any, children: list[Any]) -> syntax.CallExpression:
        callee, *arguments = children
        return syntax.CallExpression(meta.line, meta.column, callee, tuple(a for a in arguments if a is not None))

    def literal(self, meta: Any, children: list[Any]) -> syntax.Literal:
        return syntax.Literal(meta.line, meta.column, *_number(str(children[0])))

    def true(self, meta: Any, _: list[Any]) -> syntax.Literal:
        return syntax.Literal(meta.line, meta.column, True, "bool")

    def false(self, meta: Any, _: list[Any]) -> syntax.Literal:
        return syntax.Literal(meta.line, meta.column, False, "bool")


def _statements(children: Sequence[Any]) -> tuple[Statement, ...]:
    return tuple(child for child in children if child is not None and not isinstance(child, syntax.Attribute))


def _at(node: syntax.SyntaxNode) -> str:
    return f"line {node.line}, column {node.column}"
