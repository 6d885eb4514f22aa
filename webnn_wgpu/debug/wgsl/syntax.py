"""The syntax tree of WGSL. Every node knows its line and column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Number: TypeAlias = int | float


@dataclass(frozen=True, slots=True, eq=False)
class SyntaxNode:
    """A part of a source.

    Attributes:
        line: its line, counted from 1.
        column: its column, counted from 1.
    """

    line: int
    column: int


# expressions ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Literal(SyntaxNode):
    """A number or bool. `type` is the type of its suffix, or "" for an abstract number."""

    value: Number | bool
    type: str


@dataclass(frozen=True, slots=True, eq=False)
class Name(SyntaxNode):
    """A name, perhaps with template arguments: a type, a function or a value."""

    name: str
    arguments: tuple[Expression, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(str, self.arguments))}>" if self.arguments else self.name


@dataclass(frozen=True, slots=True, eq=False)
class CallExpression(SyntaxNode):
    """A function, a built-in function or a type applied to arguments."""

    callee: Name
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Unary(SyntaxNode):
    """An operator before an operand, including `&` and `*`."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Binary(SyntaxNode):
    """An operator between two operands."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Member(SyntaxNode):
    """A member of a structure, or components of a vector."""

    base: Expression
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Index(SyntaxNode):
    """An element of an array, a component of a vector or a column of a matrix."""

    base: Expression
    index: Expression


Expression: TypeAlias = Literal | Name | CallExpression | Unary | Binary | Member | Index


# statements -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Declaration(SyntaxNode):
    """A `let`, `const` or `var`. The template of a `var` holds its address space and access."""

    kind: str
    name: str
    type: Name | None
    value: Expression | None
    template: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Assign(SyntaxNode):
    """`target operator value`. A target of None discards the value."""

    target: Expression | None
    operator: str
    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class CallStatement(SyntaxNode):
    """A call without a use of its result."""

    call: CallExpression


@dataclass(frozen=True, slots=True, eq=False)
class Assertion(SyntaxNode):
    """`const_assert`."""

    condition: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Block(SyntaxNode):
    """Statements with a scope of their own."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True, eq=False)
class If(SyntaxNode):
    """`if`. `other` is a block or the next `if`."""

    condition: Expression
    then: Block
    other: Block | If | None


@dataclass(frozen=True, slots=True, eq=False)
class SwitchClause(SyntaxNode):
    """A clause of a `switch`. A selector of None is `default`."""

    selectors: tuple[Expression | None, ...]
    body: Block


@dataclass(frozen=True, slots=True, eq=False)
class Switch(SyntaxNode):
    """`switch`."""

    selector: Expression
    cases: tuple[SwitchClause, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Loop(SyntaxNode):
    """A loop of any kind: `for`, `while` and `loop` differ in their absent parts."""

    start: Statement | None
    condition: Expression | None
    update: Statement | None
    body: Block
    continuing: Block | None
    break_if: Expression | None


@dataclass(frozen=True, slots=True, eq=False)
class Jump(SyntaxNode):
    """`break` or `continue`."""

    kind: str


@dataclass(frozen=True, slots=True, eq=False)
class Return(SyntaxNode):
    """`return`."""

    value: Expression | None


Statement: TypeAlias = Declaration | Assign | CallStatement | Assertion | Block | If | Switch | Loop | Jump | Return


# modules --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Attribute(SyntaxNode):
    """`@name(arguments)`."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Field(SyntaxNode):
    """A member of a structure, or a parameter of a function."""

    name: str
    type: Name
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Structure(SyntaxNode):
    """`struct`."""

    name: str
    members: tuple[Field, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Alias(SyntaxNode):
    """`alias`."""

    name: str
    type: Name


@dataclass(frozen=True, slots=True, eq=False)
class Global(SyntaxNode):
    """A `var`, `const` or `override` of the module."""

    declaration: Declaration
    attributes: tuple[Attribute, ...]

    @property
    def name(self) -> str:
        """Its name."""
        return self.declaration.name


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Function(SyntaxNode):
    """A function. `result` is None if it returns nothing."""

    name: str
    parameters: tuple[Field, ...]
    result: Name | None
    body: Block
    attributes: tuple[Attribute, ...]


Declared: TypeAlias = Structure | Alias | Global | Function


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """A source: its declarations by name, and its module's assertions."""

    declarations: dict[str, Declared]
    assertions: tuple[Assertion, ...]


def attribute(of: Field | Global | Function, name: str) -> Attribute | None:
    """Return an attribute by name, if it is there."""
    return next((a for a in of.attributes if a.name == name), None)
