"""The documentation of element-wise operators: the sentences of one row, between the sentences that all rows share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.names import method_name
from .interfaces.documentation import BINARY, PLAIN, UNARY, Documentation, Group, Method


@dataclass(frozen=True, kw_only=True)
class Text:
    """The own part of an element-wise operator's documentation.

    Attributes:
        summary: the first line.
        numerics: the rounding, and the results for special values.
        group: the module and class of the method. None stands for those of unary or binary operators.
        arguments: the texts of options, and of operands whose text differs from that of other rows.
        details: the paragraphs behind the summary.
        example: a doctest, if the operands of the usual doctest do not suit the operator.
        raises: the clauses about options, which precede those about operands.
        method: the signature of the method, beyond operands and attributes.
    """

    summary: str
    numerics: str = ""
    group: Group | None = None
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    details: str = ""
    example: str = ""
    raises: str = ""
    method: Method = PLAIN


def unary_documentation(name: str, text: Text, operand: str = "input", output: str = "") -> Documentation:
    """Return the documentation of an operator of one operand.

    Args:
        name: name of the operator.
        text: its own part.
        operand: name of the operand.
        output: the output's data type, where it is not the operand's.
    """
    kind = output or "the input's data type"
    result = f"An operand of {kind}, with the shape of `{operand}`."
    activation = text.method.activation
    return Documentation(
        group=text.group or UNARY,
        summary=text.summary,
        details=text.details,
        arguments={
            operand: f"{{types}}, with any shape.{' Without it the method returns an MLActivation.' * activation}",
            **text.arguments,
        },
        returns=result + " Without `input`, an MLActivation." * activation,
        raises=_listed(text.raises, "The data type is not allowed"),
        numerics=text.numerics,
        example=text.example or _example(name, "x"),
        method=text.method,
    )


def binary_documentation(name: str, text: Text, operands: tuple[str, str], output: str = "") -> Documentation:
    """Return the documentation of an operator of two operands that broadcast together.

    Args:
        name: name of the operator.
        text: its own part.
        operands: names of the operands.
        output: the output's data type, where it is not the operands'.
    """
    first, second = operands
    return Documentation(
        group=text.group or BINARY,
        summary=text.summary,
        details=text.details,
        arguments={
            first: "{types}, with any shape.",
            second: f"The data type of `{first}`, with a shape that broadcasts with that of `{first}`.",
            **text.arguments,
        },
        returns=f"An operand of {output or 'their data type'} with the broadcast shape.",
        raises=_listed(text.raises, "The data types differ or are not allowed, the shapes do not broadcast"),
        numerics=text.numerics,
        example=text.example or _example(name, "x, y"),
        method=text.method,
    )


def _listed(first: str, then: str) -> str:
    return f"{first}, {then[0].lower()}{then[1:]}" if first else then


def _example(name: str, operands: str) -> str:
    return f">>> b.{method_name(name)}({operands}).shape\n(2, 3)"
