"""The builder's methods as graph files call them: their operands, arguments and options. Readers and writers use it.

Everything is read from the signatures of `MLGraphBuilder`, so that an operator is declared once.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from .builder import MLGraphBuilder
from .ml import ml
from .operators.ext import Extensions

COMPOSED = ("squeeze", "unsqueeze", "globalAveragePool", "globalMaxPool")
"""Operators of some writers that WebNN does not have. The builder composes them."""


@dataclass(frozen=True, kw_only=True)
class CallForm:
    """How an operator is called.

    Attributes:
        name: the specification's name, or "x.NAME" of an extension operator.
        method: name of the builder's method.
        operands: names of the operands, the required ones first.
        variadic: whether the only operand is a list.
        arguments: names of further arguments by position, in the specification's order.
        annotations: all arguments and options with their types, as source text.
        required: names of arguments and operands without default.
        defaults: the defaults of options.
        positional: the operands that are given by position. Other operands are options.
        returns: the type of the result, as source text.
    """

    name: str
    method: str
    operands: tuple[str, ...]
    variadic: bool
    arguments: tuple[str, ...]
    annotations: Mapping[str, str]
    required: tuple[str, ...]
    defaults: Mapping[str, Any]
    positional: tuple[str, ...]
    returns: str

    def option(self, name: str) -> str | None:
        """Return the Python name of an operand, argument or option that a file spells `name`, or None for an unknown name."""
        plain = _plain(name)
        return next((n for n in (*self.operands, *self.annotations) if _plain(n) == plain), None)

    def is_choice(self, option: str) -> bool:
        """Whether the option is one of several strings."""
        return "Literal[" in self.annotations[option] and "Sequence" not in self.annotations[option]

    def is_number(self, option: str) -> bool:
        """Whether the option is a number that may be infinite or NaN."""
        return self.annotations[option] in ("float", "float | None")


def _plain(name: str) -> str:
    """Return a name without case and underscores, which camelCase and snake_case share."""
    return name.replace("_", "").lower()


def camel(name: str) -> str:
    """Return the specification's spelling of a Python name.

    >>> camel("new_shape")
    'newShape'
    """
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


@cache
def _methods() -> Mapping[str, str]:
    return {_plain(name): name for name in dir(MLGraphBuilder) if not name.startswith("_")}


@cache
def call_form(name: str) -> CallForm:
    """Return the form of the call of an operator that the builder has."""
    extension = name.startswith("x.")
    owner: Any = Extensions if extension else MLGraphBuilder
    method = name.removeprefix("x.") if extension else _methods()[_plain(name)]
    signature = inspect.signature(getattr(owner, method))
    parameters = signature.parameters
    known = [p for n, p in parameters.items() if n not in ("self", "options", "label", "activation")]
    operands = [p for p in known if "MLOperand" in str(p.annotation)]
    others = [p for p in known if "MLOperand" not in str(p.annotation)]
    return CallForm(
        name=name,
        method=method,
        operands=tuple(p.name for p in operands),
        variadic=any(str(p.annotation).startswith("Sequence[MLOperand") for p in operands),
        arguments=tuple(p.name for p in others if p.kind is p.POSITIONAL_OR_KEYWORD),
        annotations={p.name: str(p.annotation) for p in others},
        required=tuple(p.name for p in known if _is_required(name, p)),
        positional=tuple(p.name for p in operands if p.kind is p.POSITIONAL_OR_KEYWORD),
        returns=str(signature.return_annotation),
        defaults={p.name: p.default for p in others if p.default is not p.empty},
    )


NEEDED = {"softmax": "axis", "argMax": "axis", "argMin": "axis", "pad": "ending_padding"}
"""Arguments that the builder lets callers leave out, for the forms of 2024, and that files must have."""


def _is_required(name: str, parameter: inspect.Parameter) -> bool:
    first = parameter.name == "input"
    return first or parameter.default is parameter.empty or NEEDED.get(name) == parameter.name


@cache
def operator_names() -> tuple[str, ...]:
    """Return the names of all operators that files may call: extension operators are "x.NAME"."""
    with ml.create_context(backend="reference") as context:
        limits = context.op_support_limits()
    plain = [n for n, v in limits.items() if isinstance(v, Mapping) and _plain(n) in _methods() and n not in NO_OPERATORS]
    return (*plain, *COMPOSED, *(f"x.{n}" for n in limits["extensions"]))


NO_OPERATORS = frozenset({"input", "constant", "output", "extensions"})

OTHER_NAMES = {"not": "logicalNot"}
"""Names of the 2024 specification that have changed."""


def find(operator: str) -> CallForm | None:
    """Return the form of an operator's call: by its exact name, then without case, then by its Python name."""
    operator = OTHER_NAMES.get(operator, operator)
    names = operator_names()
    plain = _plain(operator)
    name = operator if operator in names else next((n for n in names if _plain(n) == plain), None)
    return None if name is None else call_form(name)


LONGEST_NAME = 100
"""Characters of a name for which a similar one is looked for, at most."""


def nearest(name: str, known: tuple[str, ...]) -> str:
    """Return a hint with the known name that is most similar to `name`, or "" if none is similar."""
    if len(name) > LONGEST_NAME:
        return ""
    close = difflib.get_close_matches(name, known, 1, 0.6)
    return f"Did you mean '{close[0]}'?" if close else ""
